"""The usual action, where nothing is known to be better.

A percentile of the return hardly minds that one row is uncertain: the doubts of many rows mostly
cancel. So a search for the best percentile takes whatever looks better on average in each state by
itself, and of many that look a little better the luckiest. Here every departure from what was done
most must be better at its lower end: its value less as many of its deviations as delta is worth,
against the same of the usual action.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from surefoot.certificates.plays import row_values
from surefoot.model.mdp import MDP
from surefoot.solvers.solver import evaluate
from surefoot.solvers.steps import largest_value

ROUNDS = 3
"""How often values are computed again after actions were changed."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def caution_at(delta: float) -> float:
    """Return how many deviations a row's lower end lies below its mean."""
    return max(0.0, float(norm.isf(delta)))


def usual_rows(mdp: MDP, visits: NDArray[np.number]) -> Ints:
    """Return ``(S,)``: the row of every state that was tried most, the first of equals."""
    most = np.maximum.reduceat(visits, mdp.state_start[:-1])
    rows = np.flatnonzero(visits == most[mdp.row_state])
    return rows[np.unique(mdp.row_state[rows], return_index=True)[1]]


def keep_usual(mdp: MDP, rows: Ints, visits: NDArray[np.number], caution: float) -> Ints:
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
    >>> keep_usual(mdp, np.array([0, 3]), tries, caution=1.6).tolist()
    [1, 3]
    """
    usual, chosen = usual_rows(mdp, visits), np.asarray(rows)
    rarer = visits[chosen] < visits[usual]
    tolerance = max(1e-6 * largest_value(mdp), 1e-300)
    for _ in range(ROUNDS):
        if not rarer.any():
            break
        value = evaluate(mdp, mdp.row_action[chosen], tolerance=tolerance).value
        mean, deviation = row_values(mdp, mdp.discount * value[mdp.successor])
        lower = mean - caution * deviation / np.sqrt(visits + 1.0)
        back = rarer & (lower[chosen] < lower[usual])
        if not back.any():
            break
        chosen = np.where(back, usual, chosen)
        rarer &= ~back
    return chosen
