"""Where the unseen state leads: to the worst state of the log, or to the best one."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.data.count_arrays import LEARNED
from surefoot.data.counts import Counts
from surefoot.model.mdp import MDP
from surefoot.solvers.solver import solve
from surefoot.solvers.steps import largest_value, until_the_end

MOST_ROUNDS = 100
"""Rounds of the search for the worst state at most; each lowers its value, so few are needed."""
PRECISION = 1e-8
"""Tolerance of the values that are compared, as a share of the largest possible value."""

MISSED = 3.0
"""How many steps of a kind that was never observed may still have been missed."""


def lead_to_worst(mdp: MDP, counts: Counts) -> MDP:
    """Make the unseen state of a model lead to the worst that the log knows.

    In a model made from counts the unseen state is absorbing at the lowest reward. Here it pays
    that reward for one step and then leads to the worst known state: the one with the smallest
    value under the policy that is best in the resulting model. With a horizon, values are those
    over all its steps.

    Where steps that go on never paid as little as those that end an episode, one step cannot do
    both: pay the least and go on to the worst state. The worse of the two counts (`least_rewards`).

    Each round solves for the best policy, then looks for a worse state: Hoffman and Karp's strategy
    iteration, for the player that chooses where the unseen state leads.
    """
    known = known_states(counts)
    if counts.unseen is None or len(known) == 0:
        return mdp
    entry = int(mdp.row_start[mdp.state_start[counts.unseen]])
    least = least_rewards(counts)
    ends = counts.is_terminal[known]
    pays = np.where(ends, least.at_an_end, least.going_on)
    target = counts.unseen
    if until_the_end(mdp):  # values are finite only if it leads on: start with an end
        target = int(known[np.argmax(ends)])
        mdp = _leading_to(mdp, entry, target, least.at_an_end)
        target = counts.unseen
    largest = largest_value(mdp)
    for _ in range(MOST_ROUNDS):
        value = solve(mdp, tolerance=max(PRECISION * largest, 1e-300)).value
        worth = pays + mdp.discount * value[known]
        worst = int(np.argmin(worth))
        current = worth[known == target].min(initial=np.inf)
        if worth[worst] >= current - 4 * PRECISION * largest:
            break
        target = int(known[worst])
        mdp = _leading_to(mdp, entry, target, float(pays[worst]))
    return _entered(mdp, counts, entry, least) if least.differ else mdp


class LeastRewards(NamedTuple):
    """The lowest rewards: of steps that end an episode, and of steps that go on."""

    at_an_end: float
    going_on: float

    @property
    def differ(self) -> bool:
        """Whether steps that go on pay more."""
        return self.going_on > self.at_an_end


def least_rewards(counts: Counts) -> LeastRewards:
    """Return the lowest rewards by kind of step, where they are known exactly.

    Steps that go on count as if three more of them might have paid the lowest reward of all: with
    ``n`` of them observed, that share ``3/n`` of all steps is exceeded once in twenty times.
    """
    known = None if counts.report is None else counts.report.lowest_reward
    floor = 0.0 if known is None else known
    exact = counts.reward_model == "fixed" and counts.reward_range is None and counts.given is None
    learned = counts.report is not None and counts.report.support == LEARNED
    seen = counts.count > 0
    if counts.reward_mean is None or counts.reward_var is None or not (exact and learned):
        return LeastRewards(floor, floor)
    on = seen & ~counts.is_terminal[counts.successor]
    if np.any(np.nan_to_num(counts.reward_var[seen]) != 0.0) or not counts.is_terminal.any():
        return LeastRewards(floor, floor)
    tries = float(counts.count[on].sum())
    lowest = float(counts.reward_mean[on].min(initial=np.inf)) if on.any() else floor
    missed = min(1.0, MISSED / max(tries, 1.0))
    return LeastRewards(floor, max(floor, lowest - missed * (lowest - floor)))


def _entered(mdp: MDP, counts: Counts, entry: int, least: LeastRewards) -> MDP:
    """Return the model in which a step to the unseen state goes on, or ends if that is worse.

    An end pays the lowest reward on the way to it, and nothing after it.
    """
    tolerance = max(PRECISION * largest_value(mdp), 1e-300)
    goes_on = least.going_on + mdp.discount * solve(mdp, tolerance=tolerance).value[counts.unseen]
    reward = mdp.entry_reward.copy()
    into = (mdp.successor == counts.unseen) & (np.arange(mdp.num_entries) != entry)
    if goes_on <= least.at_an_end:
        reward[into] = least.going_on
        return replace(mdp, reward=reward, reward_per_entry=True)
    end = int(np.argmax(counts.is_terminal))
    return _leading_to(mdp, entry, end, 0.0)


def _leading_to(mdp: MDP, entry: int, state: int, pays: float) -> MDP:
    successor, reward = mdp.successor.copy(), mdp.entry_reward.copy()
    successor[entry] = state
    led = replace(mdp, successor=successor)
    if reward[entry] == pays:
        return led
    reward[entry] = pays
    return replace(led, reward=reward, reward_per_entry=True)


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
    return _leading_to(best, entry, int(known[np.argmax(value[known])]), highest)


def known_states(counts: Counts) -> NDArray[np.int64]:
    """Return the states that the log knows about: left at least once, or terminal."""
    left = np.zeros(counts.num_states, dtype=np.bool_)
    left[counts.row_state[counts.visits > 0]] = True
    return np.flatnonzero(left | counts.is_terminal)


def landing_of(mdp: MDP, unseen: int) -> int:
    """Return the successor of the unseen state; itself if it is absorbing."""
    return int(mdp.successor[mdp.row_start[mdp.state_start[unseen]]])
