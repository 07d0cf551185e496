"""Where the unseen state leads: to the worst state of the log, or to the best one."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from surefoot.data.counts import Counts
from surefoot.model.mdp import MDP
from surefoot.solvers.solver import solve
from surefoot.solvers.steps import largest_value, until_the_end

MOST_ROUNDS = 100
"""Rounds of the search for the worst state at most; each lowers its value, so few are needed."""
PRECISION = 1e-8
"""Tolerance of the values that are compared, as a share of the largest possible value."""


def lead_to_worst(mdp: MDP, counts: Counts) -> MDP:
    """Make the unseen state of a model lead to the state of the log with the smallest value.

    In a model made from counts the unseen state is absorbing at the lowest reward. Here it pays
    that reward for one step and then leads to the worst known state: the one with the smallest
    value under the policy that is best in the resulting model. With a horizon, values are those
    over all its steps.

    Each round solves for the best policy, then looks for a worse state: Hoffman and Karp's strategy
    iteration, for the player that chooses where the unseen state leads.
    """
    known = known_states(counts)
    if counts.unseen is None or len(known) == 0:
        return mdp
    entry = mdp.row_start[mdp.state_start[counts.unseen]]
    target = counts.unseen
    if until_the_end(mdp):  # values are finite only if it leads on: start with an end
        mdp = _leading_to(mdp, entry, int(known[np.argmax(counts.is_terminal[known])]))
    largest = largest_value(mdp)
    for _ in range(MOST_ROUNDS):
        value = solve(mdp, tolerance=max(PRECISION * largest, 1e-300)).value
        worst = int(known[np.argmin(value[known])])
        current = value[target] if target != counts.unseen else np.inf
        if value[worst] >= current - 4 * PRECISION * largest:
            break
        target = worst
        mdp = _leading_to(mdp, entry, target)
    return mdp


def _leading_to(mdp: MDP, entry: int, state: int) -> MDP:
    successor = mdp.successor.copy()
    successor[entry] = state
    return replace(mdp, successor=successor)


def lead_to_best(mdp: MDP, counts: Counts) -> MDP:
    """Make the unseen state pay the highest reward of the model and lead to its best state.

    For upper bounds, which assume that nothing unobserved is better than this.
    """
    known = known_states(counts)
    if counts.unseen is None or len(known) == 0:
        return mdp
    highest = float(mdp.reward.max())
    meets = (mdp.successor == counts.unseen) | (mdp.entry_state == counts.unseen)
    reward = np.where(meets, highest, mdp.entry_reward)
    final = mdp.final_reward
    if final is not None:
        final = np.array(final)
        final[counts.unseen] = final.max()
    best = replace(mdp, reward=reward, reward_per_entry=True, final_reward=final)
    largest = largest_value(best)
    value = solve(best, tolerance=max(PRECISION * largest, 1e-300)).value
    entry = int(mdp.row_start[mdp.state_start[counts.unseen]])
    return _leading_to(best, entry, int(known[np.argmax(value[known])]))


def known_states(counts: Counts) -> NDArray[np.int64]:
    """Return the states that the log knows about: left at least once, or terminal."""
    left = np.zeros(counts.num_states, dtype=np.bool_)
    left[counts.row_state[counts.visits > 0]] = True
    return np.flatnonzero(left | counts.is_terminal)


def landing_of(mdp: MDP, unseen: int) -> int:
    """Return the successor of the unseen state; itself if it is absorbing."""
    return int(mdp.successor[mdp.row_start[mdp.state_start[unseen]]])
