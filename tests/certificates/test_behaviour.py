"""What behaviour earned and what a policy gains: true as often as claimed, silent where unknown."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from surefoot.certificates.behaviour import (
    CUT_OFF,
    FEW_EPISODES,
    NO_EPISODES,
    NO_LIMIT,
    Earned,
    earned,
    gain,
    share_delta,
)

LOGS = 300


def chain(rng: np.random.Generator, size: int, limit: int | None = None) -> Any:
    """A reward of 1 a step; each step ends the episode with probability .3."""
    steps = rng.geometric(0.3, size)
    ended = np.ones(size, dtype=bool) if limit is None else steps <= limit
    steps = steps if limit is None else np.minimum(steps, limit)
    sums = (1 - 0.9**steps) / 0.1
    return SimpleNamespace(discount=0.9, earned=sums, steps=steps, ended=ended, time_limit=limit)


TRUE = 1 / (1 - 0.9 * 0.7)
LIMITS = {"lowest": 0.0, "highest": 10.0}


@pytest.mark.parametrize("limit", [None, 4])
def test_ends_hold_as_often_as_claimed_also_for_cut_episodes(limit: int | None) -> None:
    low = high = 0
    for seed in range(LOGS):
        found = earned(chain(np.random.default_rng(seed), 30, limit), **LIMITS, delta=0.1)
        low += found.lower > TRUE
        high += found.upper < TRUE
    assert max(low, high) <= stats.binom.isf(0.001, LOGS, 0.1)


def test_what_was_cut_widens_both_ends_by_its_worst_and_best() -> None:
    log = chain(np.random.default_rng(0), 200, 4)
    whole, first = (earned(log, **LIMITS, delta=0.05, horizon=h) for h in (None, 4))
    cut = np.mean(~log.ended)
    assert whole.slack == pytest.approx(cut * 0.9**4 * 10)
    assert first.slack == 0.0
    assert first.lower <= whole.lower + 1e-12  # nothing is lost below where the worst is 0
    assert first.upper < whole.upper
    assert whole.cut == np.count_nonzero(~log.ended)
    with pytest.raises(ValueError, match="common length 4"):
        earned(log, **LIMITS, delta=0.05, horizon=3)


def test_few_or_no_episodes_have_no_interval() -> None:
    few = earned(chain(np.random.default_rng(0), 9), **LIMITS, delta=0.05)
    assert (few.lower, few.upper, few.reason) == (None, None, FEW_EPISODES)
    assert few.mean is not None
    none = earned(None, **LIMITS, delta=0.05)
    assert (none.mean, none.reason) == (None, NO_EPISODES)
    assert gain(1.0, none, delta_policy=0.04).lower_bound is None
    assert gain(1.0, few, delta_policy=0.04).reason == FEW_EPISODES


def test_limits_that_the_log_contradicts_are_refused() -> None:
    with pytest.raises(ValueError, match="declared range"):
        earned(chain(np.random.default_rng(0), 50), lowest=0.0, highest=2.0, delta=0.05)
    with pytest.raises(ValueError, match="declared range"):
        earned(chain(np.random.default_rng(0), 50), lowest=5.0, highest=10.0, delta=0.05)
    with pytest.raises(ValueError, match="finite"):
        earned(chain(np.random.default_rng(0), 50), lowest=0.0, highest=np.nan, delta=0.05)


def test_without_a_limit_of_returns_there_is_no_interval() -> None:
    log = chain(np.random.default_rng(0), 50)
    found = earned(log, lowest=0.0, highest=np.inf, delta=0.05)
    assert (found.lower, found.upper, found.reason) == (None, None, NO_LIMIT)
    assert gain(1.0, found, delta_policy=0.04).lower_bound is None


def test_gain_is_lower_minus_upper_and_silent_where_cuts_decide() -> None:
    policy, behaviour = share_delta(0.05)
    assert policy + behaviour == pytest.approx(0.05)
    facts = {"mean": 1.0, "lower": 0.5, "delta": behaviour, "episodes": 50}
    found = gain(3.0, Earned(upper=2.0, cut=0, **facts), delta_policy=policy)
    assert found.lower_bound == 1.0
    assert found.delta_policy + found.delta_behaviour == pytest.approx(0.05)
    # A loss that has nothing to do with cuts is a number; one that they decide is none.
    assert gain(1.0, Earned(upper=2.0, cut=0, **facts), delta_policy=policy).lower_bound == -1.0
    swamped = gain(1.0, Earned(upper=2.0, cut=9, slack=1.5, **facts), delta_policy=policy)
    assert (swamped.lower_bound, swamped.reason) == (None, CUT_OFF)


def test_the_gain_is_true_as_often_as_claimed() -> None:
    """The policy's own bound is exact here: what is left to fail is behaviour's side."""
    broken = 0
    for seed in range(LOGS):
        found = earned(chain(np.random.default_rng(seed), 25), **LIMITS, delta=0.1)
        broken += gain(TRUE + 0.2, found, delta_policy=0.1).lower_bound > 0.2
    assert broken <= stats.binom.isf(0.001, LOGS, 0.1)
