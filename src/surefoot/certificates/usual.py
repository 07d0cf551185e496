"""The usual action, where nothing is known to be better.

A percentile of the return hardly minds that one row is uncertain: the doubts of many rows mostly
cancel. So a search for the best percentile takes whatever looks better on average in each state by
itself, and of many that look a little better the luckiest. Here every departure from what was done
most must be better at its lower end: its value less as many of its deviations as delta is worth
(.05 at most), against the same of the usual action.
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

ERROR_DRAWS = 256
"""Draws that say how uncertain a row is."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ends = Callable[[Floats], tuple[Floats, Floats]]
"""Given the values of states, ``(R,)`` means of rows and their lower ends."""


def caution_at(delta: float) -> float:
    """Return how many deviations a row's lower end lies below its mean.

    Those of `MOST_DOUBT` at least: departures taken with less doubt are mostly luck, whatever the
    promise may risk. Counted at delta .2 (docs/coverage.md), they earned less where behaviour
    was good, and promised less after what they owe to luck.
    """
    return float(norm.isf(min(delta, MOST_DOUBT)))


def usual_rows(mdp: MDP, visits: NDArray[np.number]) -> Ints:
    """Return ``(S,)``: the row of every state that was tried most, the first of equals."""
    most = np.maximum.reduceat(visits, mdp.state_start[:-1])
    rows = np.flatnonzero(visits == most[mdp.row_state])
    return rows[np.unique(mdp.row_state[rows], return_index=True)[1]]


def ends_by_counts(mdp: MDP, visits: NDArray[np.number], caution: float) -> Ends:
    """Return how to value rows: the error of a mean is the deviation of a step, by its tries."""

    def ends(value: Floats) -> tuple[Floats, Floats]:
        mean, deviation = row_values(mdp, mdp.discount * value[mdp.successor])
        return mean, mean - caution * standard_error(deviation, visits)

    return ends


def ends_by_draws(mdp: MDP, draws: Floats, gains: Floats, caution: float) -> Ends:
    """Return how to value rows: the error is the deviation over drawn rows, and their rewards.

    It knows that a row may have a successor which it never showed: the tries that it has say
    nothing of that.
    """
    few, pays = draws[:ERROR_DRAWS], gains[:ERROR_DRAWS]

    def ends(value: Floats) -> tuple[Floats, Floats]:
        ahead = mdp.discount * value[mdp.successor]
        worth = np.empty((len(few), mdp.num_rows))
        score_rows(few, ahead, mdp.row_start, worth)
        mean = row_values(mdp, ahead)[0]
        return mean, mean - caution * np.std(worth + pays, axis=0)

    return ends


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
        surer = surer_rows(chosen, usual, visits, ends(value)[1])
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
        mean, lower = ends(value)
        chosen = surer_rows(rows_at(mdp, policy, step), usual, visits, lower)
        found.note(step, chosen)
        value = mean[chosen]
    return found.policy()


def surer_rows(rows: Ints, usual: Ints, visits: NDArray[np.number], lower: Floats) -> Ints:
    """Return ``(S,)``: the usual row where the chosen one was tried less and may be worse."""
    back = (visits[rows] < visits[usual]) & (lower[rows] < lower[usual])
    return np.asarray(np.where(back, usual, rows))
