"""A hospital ward: many states, many treatments, and small differences between treatments.

It resembles clinical benchmarks made from treatment records (hundreds of states, 25 treatments,
some forty successors a row, survival pays 1): most rows were tried only a few times, their values
depend mostly on successors that were not seen, and the best of many looks far better than it is.
"""

import numpy as np

from surefoot.model.mdp import MDP
from surefoot.studies.zoo.worlds import World

SAME = 60.0
"""How alike the treatments of a state are: the sum of the Dirichlet parameters around their common
row (0.02 per successor is added)."""


def ward(
    name: str, *, states: int, treatments: int, successors: int, seed: int, discount: float = 0.99
) -> World:
    """Return a ward; its last two states are death, which pays 0, and discharge, which pays 1.

    Examples
    --------
    >>> ward("small", states=30, treatments=4, successors=8, seed=0).mdp.num_states
    32
    """
    rng = np.random.default_rng(seed)
    severity = np.sort(rng.beta(2.0, 2.5, size=states))
    size, rows = states + 2, states * treatments
    lists, chances = [], []
    for state in range(states):
        near = np.clip(state + rng.normal(0, 0.12 * states, 2 * successors), 0, states - 1)
        others = np.unique(near.astype(np.int64))
        others = np.sort(rng.choice(others, min(len(others), successors - 2), replace=False))
        common = rng.dirichlet(np.full(len(others), 0.7))
        for _ in range(treatments):
            death = min(0.5, 0.22 * severity[state] ** 2.2 * np.exp(0.28 * rng.normal()))
            leaves = min(0.5, 0.16 * (1 - severity[state]) ** 1.5 * np.exp(0.18 * rng.normal()))
            onward = rng.dirichlet(SAME * common + 0.02)
            lists.append(np.concatenate((others, [states, states + 1])))
            chances.append(np.concatenate((onward * (1 - death - leaves), [death, leaves])))
    lists += [np.array([states]), np.array([states + 1])]
    chances += [np.ones(1), np.ones(1)]
    successor = np.concatenate(lists).astype(np.int32)
    row_start = np.concatenate(([0], np.cumsum([len(one) for one in lists])))
    owner = np.repeat(np.arange(rows + 2), np.diff(row_start))
    first = np.append(rng.gamma(1.0, size=states), [0.0, 0.0])
    mdp = MDP(
        state_start=np.concatenate((np.arange(0, rows + 1, treatments), [rows + 1, rows + 2])),
        row_action=np.concatenate((np.tile(np.arange(treatments), states), [0, 0])),
        row_start=row_start,
        successor=successor,
        probability=np.concatenate(chances),
        reward=np.where((successor == states + 1) & (owner < rows), 1.0, 0.0),
        discount=discount,
        initial=first / first.sum(),
        num_actions=treatments,
        reward_per_entry=True,
        state_labels=tuple(f"s{state}" for state in range(size)),
        action_labels=tuple(f"a{action}" for action in range(treatments)),
    )
    ends = np.arange(size) >= states
    return World(name=name, mdp=mdp, terminal=ends, steps=60)
