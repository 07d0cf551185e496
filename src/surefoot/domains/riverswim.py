"""RiverSwim: swim against the current for a large reward, or drift for a small one."""

from __future__ import annotations

import numpy as np

from surefoot.domains.domain import Domain
from surefoot.model.mdp import MDP


def riverswim(*, discount: float = 0.99) -> Domain:
    """Return RiverSwim with 6 states and 2 actions (Strehl and Littman 2008).

    Swimming left always succeeds; swimming right succeeds with probability 0.3. Drifting at the
    left end pays 5, holding the right end pays 10000.

    Examples
    --------
    >>> riverswim().mdp
    MDP(6 states, 2 actions, 12 rows, 22 entries, discount 0.99)
    """
    last = 5
    left, right = 0, 1
    transitions = np.zeros((6, 2, 6))
    rewards = np.zeros((6, 2, 6))
    for state in range(6):
        transitions[state, left, max(state - 1, 0)] = 1.0
        if 0 < state < last:
            transitions[state, right, state - 1 : state + 2] = (0.1, 0.6, 0.3)
    transitions[0, right, :2] = (0.7, 0.3)
    transitions[last, right, last - 1 :] = (0.7, 0.3)
    rewards[0, left, 0] = 5.0
    rewards[last, right, last] = 10000.0
    mdp = MDP.from_arrays(transitions, rewards, discount=discount, action_labels=("left", "right"))
    return Domain(name="riverswim", mdp=mdp)
