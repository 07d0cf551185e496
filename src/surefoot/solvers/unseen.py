"""Where the unseen state leads: to the worst state of the log."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from surefoot.data.counts import Counts
from surefoot.model.mdp import MDP
from surefoot.solvers.solver import solve

MOST_ROUNDS = 100
"""Rounds of looking for the worst state; each one lowers its value, so few are needed."""
PRECISION = 1e-8
"""How exactly values are known when states are compared, as a share of the largest there can be."""


def lead_to_worst(mdp: MDP, counts: Counts) -> MDP:
    """Let the unseen state of a model lead to the state of the log with the smallest value.

    In a model made from counts the unseen state is absorbing at the lowest reward. Here it leads
    on after one step at that reward, to the worst known state under the best policy against just
    that.

    Each round lets the policy answer, then looks for a worse state: Hoffman and Karp's strategy
    iteration for the side that chooses where the unseen leads.
    """
    known = known_states(counts)
    if counts.unseen is None or len(known) == 0:
        return mdp
    entry = mdp.row_start[mdp.state_start[counts.unseen]]
    largest = float(np.abs(mdp.reward).max()) / (1 - mdp.discount)
    target = counts.unseen
    for _ in range(MOST_ROUNDS):
        value = solve(mdp, tolerance=max(PRECISION * largest, 1e-300)).value
        worst = int(known[np.argmin(value[known])])
        current = value[target] if target != counts.unseen else np.inf
        if value[worst] >= current - 4 * PRECISION * largest:
            break
        target = worst
        successor = mdp.successor.copy()
        successor[entry] = target
        mdp = replace(mdp, successor=successor)
    return mdp


def lead_to_best(mdp: MDP, counts: Counts) -> MDP:
    """Let the unseen state pay the highest reward of the model and lead to its best state.

    For bounds from above: whatever was never observed, it is taken to be no better.
    """
    known = known_states(counts)
    if counts.unseen is None or len(known) == 0:
        return mdp
    highest = float(mdp.reward.max())
    meets = (mdp.successor == counts.unseen) | (mdp.entry_state == counts.unseen)
    reward = np.where(meets, highest, mdp.entry_reward)
    best = replace(mdp, reward=reward, reward_per_entry=True)
    largest = float(np.abs(reward).max()) / (1 - mdp.discount)
    value = solve(best, tolerance=max(PRECISION * largest, 1e-300)).value
    successor = best.successor.copy()
    successor[mdp.row_start[mdp.state_start[counts.unseen]]] = known[np.argmax(value[known])]
    return replace(best, successor=successor)


def known_states(counts: Counts) -> NDArray[np.int64]:
    """Return the states of which the log says something: left at least once, or terminal."""
    left = np.zeros(counts.num_states, dtype=np.bool_)
    left[counts.row_state[counts.visits > 0]] = True
    return np.flatnonzero(left | counts.is_terminal)


def landing_of(mdp: MDP, unseen: int) -> int:
    """Return the successor of the unseen state; itself if it is absorbing."""
    return int(mdp.successor[mdp.row_start[mdp.state_start[unseen]]])
