"""Random models and a slow chain, for timing solvers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from surefoot.domains.domain import Domain
from surefoot.model.mdp import MDP


def garnet(
    num_states: int,
    num_actions: int,
    num_successors: int,
    *,
    discount: float,
    rng: np.random.Generator,
) -> Domain:
    """Return a random problem with ``num_successors`` successors per row.

    Probabilities are normalised exponentials, rewards r(s,a) uniform on (0, 1). With as many
    successors as states every row is dense.

    Examples
    --------
    >>> garnet(4, 2, 3, discount=0.9, rng=np.random.default_rng(0)).mdp
    MDP(4 states, 2 actions, 8 rows, 24 entries, discount 0.9)
    """
    num_rows = num_states * num_actions
    weight = rng.exponential(size=(num_rows, num_successors))
    weight /= weight.sum(axis=1, keepdims=True)
    mdp = MDP(
        state_start=np.arange(0, num_rows + 1, num_actions),
        row_action=np.tile(np.arange(num_actions), num_states),
        row_start=np.arange(0, weight.size + 1, num_successors),
        successor=_random_successors(num_states, num_rows, num_successors, rng).ravel(),
        probability=weight.ravel(),
        reward=rng.random(num_rows),
        discount=discount,
        initial=np.full(num_states, 1.0 / num_states),
        num_actions=num_actions,
        reward_per_entry=False,
    )
    return Domain(name="garnet", mdp=mdp)


def _random_successors(
    num_states: int, num_rows: int, num_successors: int, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Draw sorted distinct successors for every row."""
    if not 1 <= num_successors <= num_states:
        raise ValueError(f"num_successors={num_successors}; it must lie in 1..{num_states}.")
    if num_successors == num_states:
        return np.tile(np.arange(num_states, dtype=np.int32), (num_rows, 1))
    if num_successors**2 > num_states:  # most rows would have duplicates: draw without replacement
        picks = [rng.choice(num_states, num_successors, replace=False) for _ in range(num_rows)]
        return np.sort(np.array(picks, dtype=np.int32))
    drawn = np.sort(rng.integers(0, num_states, (num_rows, num_successors), dtype=np.int32))
    while len(twice := np.flatnonzero((np.diff(drawn) == 0).any(axis=1))):
        again = rng.integers(0, num_states, (len(twice), num_successors), dtype=np.int32)
        drawn[twice] = np.sort(again)
    return drawn


def river_chain(num_states: int, *, discount: float) -> Domain:
    """Return a long river: a chain that mixes slowly, so that values depend on distant states.

    Every row has three successors. Left goes down/stays/up with .9/.05/.05, right with
    .05/.6/.35; the ends reach the three states nearest to them. Rewards: .005 for left in the
    first state, 1 for right in the last.

    Examples
    --------
    >>> river_chain(500, discount=0.95).mdp
    MDP(500 states, 2 actions, 1,000 rows, 3,000 entries, discount 0.95)
    """
    middle = np.clip(np.arange(num_states), 1, num_states - 2)
    successor = np.repeat(middle, 6) + np.tile([-1, 0, 1], 2 * num_states)
    probability = np.tile([0.9, 0.05, 0.05, 0.05, 0.6, 0.35], (num_states, 1))
    probability[0] = [0.9, 0.07, 0.03, 0.35, 0.6, 0.05]
    probability[-1] = [0.05, 0.9, 0.05, 0.05, 0.35, 0.6]
    reward = np.zeros(2 * num_states)
    reward[0], reward[-1] = 0.005, 1.0
    mdp = MDP(
        state_start=np.arange(0, 2 * num_states + 1, 2),
        row_action=np.tile([0, 1], num_states),
        row_start=np.arange(0, 6 * num_states + 1, 3),
        successor=successor.astype(np.int32),
        probability=probability.ravel(),
        reward=reward,
        discount=discount,
        initial=np.full(num_states, 1.0 / num_states),
        num_actions=2,
        reward_per_entry=False,
    )
    return Domain(name="river chain", mdp=mdp)
