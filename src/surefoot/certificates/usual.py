"""The usual action, where nothing is known to be better.

One uncertain row hardly changes a percentile of the return: the errors of many rows mostly cancel.
So a search for the best percentile takes, state by state, whatever looks better on average, and
among many actions that look a little better it takes the luckiest. Here an action other than the
usual one must have the higher lower end: its value less as many standard deviations as delta asks
for (a delta above .05 counts as .05), compared with the same for the usual action.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from surefoot.certificates.by_step import rows_at
from surefoot.certificates.plays import row_values, standard_error
from surefoot.model.mdp import MDP
from surefoot.model.step_policy import StepPolicy
from surefoot.posterior.coupling_kernels import score_rows
from surefoot.solvers.backward import Ranges
from surefoot.solvers.solver import evaluate
from surefoot.solvers.steps import largest_value

ROUNDS = 3
"""How often values are computed again after actions were changed."""

MOST_DOUBT = 0.05
"""A departure may be wrong this often at most."""

PREFERRED = 1.5
"""An action tried this many times as often as another was preferred to it; less may be chance."""

CLEAR = 3
"""An action tried this many times as often as another is a clear practice in comparison."""

ERROR_DRAWS = 256
"""Draws that say how uncertain a row is."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ends = Callable[[Floats], tuple[Floats, Floats, Floats]]
"""Given the values of states, ``(R,)`` means of rows, their lower ends, and those of rows that
regress to the mean of their state."""


def chosen_at(delta: float) -> float:
    """Return the delta that a policy is chosen for, where the promise may fail with ``delta``.

    `MOST_DOUBT` at most. A bolder choice finds more luck, which is taken off again: at delta .2
    such policies were promised less on the frozen lake than those of .05, and earned less.

    Examples
    --------
    >>> chosen_at(0.2), chosen_at(0.01)
    (0.05, 0.01)
    """
    return min(delta, MOST_DOUBT)


def caution_at(delta: float) -> float:
    """Return how many deviations a row's lower end lies below its mean.

    Those of `MOST_DOUBT` at least: departures taken with less doubt are mostly luck, whatever the
    promise may risk. Counted at delta .2 (docs/coverage.md), they earned less where behaviour
    was good, and promised less after what they owe to luck.
    """
    return float(norm.isf(chosen_at(delta)))


def usual_rows(mdp: MDP, visits: NDArray[np.number]) -> Ints:
    """Return ``(S,)``: the row of every state that was tried most, the first of equals."""
    most = np.maximum.reduceat(visits, mdp.state_start[:-1])
    rows = np.flatnonzero(visits == most[mdp.row_state])
    return rows[np.unique(mdp.row_state[rows], return_index=True)[1]]


def ends_by_counts(mdp: MDP, visits: NDArray[np.number], caution: float) -> Ends:
    """Return how to value rows: the error of a mean is the deviation of a step, by its tries."""

    def ends(value: Floats) -> tuple[Floats, Floats, Floats]:
        mean, deviation = row_values(mdp, mdp.discount * value[mdp.successor])
        return lower_ends(mdp, visits, mean, standard_error(deviation, visits), caution)

    return ends


def ends_by_draws(
    mdp: MDP, visits: NDArray[np.number], draws: Floats, gains: Floats, caution: float
) -> Ends:
    """Return how to value rows: the error is the deviation over drawn rows, and their rewards.

    It knows that a row may have a successor which it never showed: the tries that it has say
    nothing of that.
    """
    few, pays = draws[:ERROR_DRAWS], gains[:ERROR_DRAWS]

    def ends(value: Floats) -> tuple[Floats, Floats, Floats]:
        ahead = mdp.discount * value[mdp.successor]
        worth = np.empty((len(few), mdp.num_rows))
        score_rows(few, ahead, mdp.row_start, worth)
        mean = row_values(mdp, ahead)[0]
        return lower_ends(mdp, visits, mean, np.std(worth + pays, axis=0), caution)

    return ends


def lower_ends(
    mdp: MDP, visits: NDArray[np.number], mean: Floats, error: Floats, caution: float
) -> tuple[Floats, Floats, Floats]:
    """Return ``(R,)`` means of rows, their lower ends, and those after they regress to the mean."""
    center, kept = regression(mdp, visits, mean, error)
    regressed = center + kept * (mean - center) - caution * np.sqrt(kept) * error
    return mean, mean - caution * error, regressed


def regression(
    mdp: MDP, visits: NDArray[np.number], mean: Floats, error: Floats
) -> tuple[Floats, Floats]:
    """Return ``(R,)``: where what rows are worth regresses to, and how much of it stays.

    Actions of a state are taken to scatter around a common mean with one variance, which the rows
    of all states estimate: that of their means, less what their errors explain, plus a deviation of
    the estimate, since too small a variance would deny every difference. What a row shows beyond
    the mean of its state is real by the share of that variance in it and its error's.

    Examples
    --------
    >>> from surefoot import MDP
    >>> mdp = MDP.from_arrays(np.ones((1, 3, 1)), np.zeros((1, 3)), discount=0.9)
    >>> tries, mean = np.array([50, 5, 5]), np.array([0.0, 3.0, -3.0])
    >>> for error in (0.1, 2.5):
    ...     center, kept = regression(mdp, tries, mean, np.array([0.1, error, error]))
    ...     print(center.round(2).tolist(), kept.round(2).tolist())
    [0.0, 0.0, 0.0] [1.0, 1.0, 1.0]
    [0.0, 0.0, 0.0] [1.0, 0.69, 0.69]
    """
    state, tried = mdp.row_state, visits > 0
    rows = np.bincount(state, tried, mdp.num_states)
    several = tried & (rows[state] > 1)
    freedom = float((rows[rows > 1] - 1.0).sum())
    if freedom == 0.0:
        return mean, np.ones(mdp.num_rows)
    middle = np.bincount(state, mean * tried, mdp.num_states) / np.maximum(rows, 1.0)
    apart = float(((mean - middle[state])[several] ** 2).sum())
    by_error = float((error**2 * (1.0 - 1.0 / np.maximum(rows[state], 1.0)))[several].sum())
    variance = max(0.0, apart * (1.0 + np.sqrt(2.0 / freedom)) - by_error) / freedom
    spread = variance + error**2
    precision = np.divide(tried, spread, out=np.zeros_like(mean), where=spread > 0)
    total = np.bincount(state, precision, mdp.num_states)[state]
    common = np.bincount(state, precision * mean, mdp.num_states)[state]
    center = np.divide(common, total, out=middle[state], where=total > 0)
    kept = np.divide(variance, spread, out=np.ones_like(mean), where=spread > 0)
    return np.where(several, center, mean), np.where(several, kept, 1.0)


def lost_by_regression(
    mdp: MDP, visits: NDArray[np.number], mean: Floats, error: Floats, *, clear: float = CLEAR
) -> Floats:
    """Return ``(R,)``: how much of its advantage over the usual row a row loses by regression.

    0 for rows that do not depart from a practice ``clear`` times as frequent.
    """
    usual = usual_rows(mdp, visits)[mdp.row_state]
    center, kept = regression(mdp, visits, mean, error)
    regressed = center + kept * (mean - center)
    lost = (mean - mean[usual]) - (regressed - regressed[usual])
    return np.where(clear * visits <= visits[usual], np.maximum(lost, 0.0), 0.0)


def keep_usual(mdp: MDP, rows: Ints, visits: NDArray[np.number], ends: Ends) -> Ints:
    """Return ``(S,)`` rows: those of a policy, or the usual one where it has the higher lower end.

    Rows tried as often as the usual one stay. Rewards of the model are to be maximised.

    Examples
    --------
    >>> from surefoot import MDP
    >>> mdp = MDP.from_arrays(
    ...     [[[0.5, 0.5], [0.6, 0.4]], [[1.0, 0.0], [1.0, 0.0]]], [[0.0, 0.0], [1.0, 1.0]],
    ...     discount=0.9,
    ... )
    >>> tries = np.array([3, 500, 4, 4])  # the first looks better, after three tries
    >>> keep_usual(mdp, np.array([0, 3]), tries, ends_by_counts(mdp, tries, 1.6)).tolist()
    [1, 3]
    """
    usual, chosen = usual_rows(mdp, visits), np.asarray(rows)
    tolerance = max(1e-6 * largest_value(mdp), 1e-300)
    for _ in range(ROUNDS):
        value = evaluate(mdp, mdp.row_action[chosen], tolerance=tolerance).value
        surer = surer_rows(chosen, usual, visits, ends(value))
        if np.array_equal(surer, chosen):
            break
        chosen = surer
    return chosen


def keep_usual_by_step(
    mdp: MDP, policy: StepPolicy, visits: NDArray[np.number], ends: Ends
) -> StepPolicy:
    """Return a policy by step that keeps usual actions as `keep_usual` does, the last step first.

    What is usual in a state is so at every step: rows are tried, not steps.
    """
    usual = usual_rows(mdp, visits)
    found = Ranges(mdp, policy.horizon)
    value = np.zeros(mdp.num_states) if mdp.final_reward is None else mdp.final_reward
    for step in reversed(range(policy.horizon)):
        found_ends = ends(value)
        chosen = surer_rows(rows_at(mdp, policy, step), usual, visits, found_ends)
        found.note(step, chosen)
        value = found_ends[0][chosen]
    return found.policy()


def surer_rows(
    rows: Ints, usual: Ints, visits: NDArray[np.number], ends: tuple[Floats, Floats, Floats]
) -> Ints:
    """Return ``(S,)``: the usual row where the chosen one was tried less and may be worse.

    Where the usual one is a clear practice, departures from it are few tries among many that were
    not better: what they show regresses to the mean before it is compared.
    """
    mean, lower, regressed = ends
    back = (visits[rows] < visits[usual]) & (lower[rows] < lower[usual])
    clear = (CLEAR * visits[rows] <= visits[usual]) & (mean[rows] != mean[usual])
    back |= clear & (regressed[rows] <= regressed[usual])
    return np.asarray(np.where(back, usual, rows))
