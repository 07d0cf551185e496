"""How often a policy plays each row of a model, and what its plays of a row are worth.

Over a horizon a row is played at several steps, with different values ahead. All of them use the
same estimate of the row, so an error in it costs the number of plays times the error in their mean
worth.
"""

from math import isqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.certificates.by_step import Policy, rows_at
from surefoot.model.mdp import MDP
from surefoot.model.policies import check_policy
from surefoot.solvers.evaluation.visits import plays_of_rows
from surefoot.solvers.solver import evaluate

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Plays(NamedTuple):
    """A policy in a model, row by row.

    Attributes
    ----------
    weight
        ``(R,)``: the expected discounted number of plays of a row.
    ahead
        ``(E,)``: the discounted value of the successor, over a horizon as a mean over the row's
        plays (without one it is the same at every play).
    value
        ``(S,)``: the value of the policy at its first step.
    return_lower
        Its return from the initial distribution, rounded down.
    """

    weight: Floats
    ahead: Floats
    value: Floats
    return_lower: float


def plays_of(mdp: MDP, policy: Policy) -> Plays:
    """Return the plays of a policy that takes one action in each state (and step)."""
    found = evaluate(mdp, policy)
    if mdp.horizon is None:
        weight = plays_of_rows(mdp, check_policy(mdp, policy))
        ahead = mdp.discount * found.value[mdp.successor]
    else:
        weight, ahead = _over_steps(mdp, policy, mdp.horizon)
    return Plays(weight, ahead, found.value, found.return_lower)


def row_values(mdp: MDP, ahead: Floats) -> tuple[Floats, Floats]:
    """Return mean and standard deviation, ``(R,)``, of a row's reward plus the value ahead."""
    z = mdp.entry_reward + ahead
    start = mdp.row_start[:-1]
    mean = np.add.reduceat(mdp.probability * z, start)
    square = np.add.reduceat(mdp.probability * (z - mean[mdp.entry_row]) ** 2, start)
    return mean, np.sqrt(square)


def standard_error(deviation: Floats, visits: NDArray[np.number]) -> Floats:
    """Return ``(R,)``: standard errors of the mean worth of rows, from the deviation of one try.

    The prior counts as one extra try: a row that was never tried has an error of one deviation.

    Examples
    --------
    >>> standard_error(np.array([2.0, 2.0]), np.array([0, 3])).tolist()
    [2.0, 1.0]
    """
    return np.asarray(deviation / np.sqrt(visits + 1.0))


def _over_steps(mdp: MDP, policy: Policy, horizon: int) -> tuple[Floats, Floats]:
    """Return `Plays.weight` and `Plays.ahead` over the steps of a horizon.

    Values are computed backwards from the last step, visits forwards from the first. Values are
    stored at the ends of stretches of ``sqrt(horizon)`` steps and computed again within each, so
    that memory grows only with the square root of the horizon.
    """
    stretch = isqrt(horizon)
    value = np.zeros(mdp.num_states) if mdp.final_reward is None else np.array(mdp.final_reward)
    ends: dict[int, Floats] = {}
    for step in reversed(range(horizon)):
        if (step + 1) % stretch == 0 or step + 1 == horizon:
            ends[step // stretch] = value
        value = _back(mdp, rows_at(mdp, policy, step), value)
    weight, ahead = np.zeros(mdp.num_rows), np.zeros(mdp.num_entries)
    visits = np.array(mdp.initial, dtype=np.float64)
    for first in range(0, horizon, stretch):
        last = min(first + stretch, horizon)
        after = [ends[first // stretch]]
        for step in reversed(range(first + 1, last)):
            after.append(_back(mdp, rows_at(mdp, policy, step), after[-1]))
        for step in range(first, last):
            played = np.zeros(mdp.num_rows)
            played[rows_at(mdp, policy, step)] = visits
            weight += played
            pushed = mdp.discount * played[mdp.entry_row]
            ahead += pushed * after.pop()[mdp.successor]
            visits = _arriving(mdp, pushed)
    often = weight[mdp.entry_row]
    return weight, np.divide(ahead, often, out=np.zeros_like(ahead), where=often > 0)


def _arriving(mdp: MDP, pushed: Floats) -> Floats:
    """Return ``(S,)``: the visits of the next step."""
    return np.asarray(
        np.bincount(mdp.successor, pushed * mdp.probability, mdp.num_states), dtype=np.float64
    )


def _back(mdp: MDP, rows: Ints, value: Floats) -> Floats:
    """Return ``(S,)``: the values one step earlier."""
    z = mdp.entry_reward + mdp.discount * value[mdp.successor]
    return np.asarray(np.add.reduceat(mdp.probability * z, mdp.row_start[:-1])[rows])
