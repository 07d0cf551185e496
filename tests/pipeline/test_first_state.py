"""The doubt about the first state: what episodes from unknown states may earn."""

from dataclasses import replace

import numpy as np
import pytest

from surefoot.domains import riverswim
from surefoot.pipeline.first_state import _least_by_kind
from surefoot.solvers.unseen import LeastRewards


@pytest.mark.parametrize("going_on", [-0.3, 0.2])
@pytest.mark.parametrize(("discount", "horizon"), [(0.9, None), (0.9, 4), (1.0, 4), (1.0, 1)])
@pytest.mark.parametrize("final", [0.0, -2.0])
def test_the_least_of_an_unknown_episode_is_that_of_its_worst_end(
    going_on, discount, horizon, final
):
    mdp = riverswim().mdp
    if horizon is None:
        mdp, final = replace(mdp, discount=discount), 0.0
    else:
        mdp = replace(mdp, discount=discount, horizon=horizon, final_reward=np.full(6, final))
    steps, at_an_end = horizon or 500, -1.5
    paid = going_on * np.concatenate(([0.0], np.cumsum(discount ** np.arange(steps))))
    ends = [paid[k] + discount**k * at_an_end for k in range(steps)]
    never = paid[-1] + discount**steps * final
    found = _least_by_kind(mdp, LeastRewards(at_an_end, going_on))
    least = min(*ends, never)
    assert found <= least + 1e-9
    assert found >= least - max(0.0, -going_on) - 1e-9  # at most one more step is charged
