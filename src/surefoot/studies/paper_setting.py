"""The paper's own rules, word for word where they are consistent. No guarantee comes with them.

The budget is the order statistic ``ceil((1 - delta/(S A)) n)`` of n draws, whatever n is; S and S A
count all states and actions, reachable or not; the nominal row is the mean of the draws that also
set the budget. Frequentist weights are taken from the data that set the budget. Weights are those
of the set that is solved: where the paper's published numbers need other ones, see
`surefoot.studies.scale_mismatch`.

Use `surefoot.credible_set` and `surefoot.frequentist_set` for anything but comparing with the
published tables.
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import logsumexp

from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.model.mdp import MDP
from surefoot.solvers.solver import solve
from surefoot.studies.published import Method

Floats = NDArray[np.float64]


def order_statistic(draws: int, delta: float, num_pairs: int) -> int:
    """Return the paper's index, ``ceil((1 - delta/(S A)) n)``.

    Examples
    --------
    >>> order_statistic(1000, 0.05, 12), order_statistic(20, 0.05, 12)  # of 20, the largest
    (996, 20)
    """
    return math.ceil((1.0 - delta / num_pairs) * draws)


def distances(draws: Floats, mdp: MDP, norm: str, weights: Floats | None) -> Floats:
    """Return ``(n, R)``: the weighted distance of every drawn row from the nominal one."""
    deviation = np.abs(draws - mdp.probability)
    if weights is not None:
        deviation *= weights
    combine = np.add if norm == "l1" else np.maximum
    result: Floats = combine.reduceat(deviation, mdp.row_start[:-1], axis=1)
    return result


def paper_credible_budget(
    draws: Floats, mdp: MDP, norm: str, weights: Floats | None, delta: float
) -> Floats:
    """Return ``(R,)``: the paper's order statistic of the distances (its Algorithm 3)."""
    k = order_statistic(len(draws), delta, mdp.num_states * mdp.num_actions)
    ordered = np.partition(distances(draws, mdp, norm, weights), k - 1, axis=0)
    budget: Floats = ordered[k - 1]
    return budget


def paper_hoeffding_budget(
    samples: int, mdp: MDP, norm: str, weights: Floats | None, delta: float
) -> Floats:
    """Return ``(R,)``: the paper's Hoeffding budgets with S and S A counted as printed.

    Solves ``2 S A sum_i c_i exp(-a n psi^2 / w_i^2) = delta`` over all S states in order of falling
    weight: ``c_i = 1, a = 2`` for L-infinity; ``c_i = 2^(S-i), a = 1/2, i < S`` for L1. States
    that a row cannot reach are counted with its smallest weight.
    """
    size = mdp.num_states
    entry_weights = np.ones(mdp.num_entries) if weights is None else weights
    budget = np.empty(mdp.num_rows)
    known: dict[bytes, float] = {}
    for row in range(mdp.num_rows):
        own = np.sort(entry_weights[mdp.row_start[row] : mdp.row_start[row + 1]])[::-1]
        padded = np.concatenate([own, np.full(size - len(own), own[-1])])
        key = padded.tobytes()
        if key not in known:
            known[key] = _hoeffding(padded, samples, norm, delta, size * mdp.num_actions)
        budget[row] = known[key]
    return budget


def _hoeffding(weights: Floats, samples: int, norm: str, delta: float, num_pairs: int) -> float:
    size = len(weights)
    if norm == "l1":
        counted, rate = np.arange(size - 1, 0, -1) * math.log(2.0), 0.5
        weights = weights[:-1]
    else:
        counted, rate = np.zeros(size), 2.0
    binding = weights > 0  # a weight of 0 leaves its entry free: nothing to bound
    counted, squares = counted[binding], weights[binding] ** 2
    target = math.log(delta / (2.0 * num_pairs))

    def excess(budget: float) -> float:
        return float(logsumexp(counted - rate * samples * budget**2 / squares)) - target

    most = counted.max() + math.log(size) - target
    largest = math.sqrt(squares.max() / (rate * samples) * most)
    return float(brentq(excess, 0.0, largest * (1 + 1e-9), xtol=1e-13))


def row_values(mdp: MDP) -> Floats:
    """Return ``(E,)``: ``z = r + discount * v`` of every entry, v the optimum of the model."""
    values: Floats = mdp.discount * solve(mdp).value[mdp.successor]
    return values + (mdp.reward if mdp.reward_per_entry else mdp.reward[mdp.entry_row])


def nominal_of_draws(draws: Floats, truth: MDP) -> MDP:
    """Return the model whose rows are the means of the draws (the paper's Algorithm 3)."""
    return replace(truth, probability=draws.mean(axis=0))


def paper_bayesian_set(
    draws: Floats, mdp: MDP, values: Floats, method: Method, delta: float
) -> AmbiguitySet:
    """Return the paper's set from draws of the posterior around a nominal model."""
    weights = paper_weights(mdp, values, method)
    budget = paper_credible_budget(draws, mdp, method.norm, weights, delta)
    return AmbiguitySet(mdp=mdp, norm=method.norm, budget=budget, weights=weights)


def paper_frequentist_set(
    samples: int, mdp: MDP, values: Floats, method: Method, delta: float
) -> AmbiguitySet:
    """Return the paper's Hoeffding set around empirical rows of ``samples`` transitions each."""
    weights = paper_weights(mdp, values, method)
    budget = paper_hoeffding_budget(samples, mdp, method.norm, weights, delta)
    return AmbiguitySet(mdp=mdp, norm=method.norm, budget=budget, weights=weights)


def paper_weights(mdp: MDP, values: Floats, method: Method) -> Floats | None:
    """Return weights of 2-norm 1 in every row, on its own successors; None for uniform ones."""
    if method.weights == "uniform":
        return None
    return np.concatenate(
        [
            unit_weights(values[first:last], method)
            for first, last in zip(mdp.row_start[:-1], mdp.row_start[1:], strict=True)
        ]
    )


def unit_weights(values: Floats, method: Method) -> Floats:
    """Return the weights of 2-norm 1 that minimise the bound on the span along ``values``.

    Examples
    --------
    >>> unit_weights(np.array([0.0, 1.0, 4.0]), Method("bayesian", "l1", "analytic")).round(3)
    array([0.667, 0.333, 0.667])
    """
    if method.weights == "socp":
        center = values.mean()
    elif method.norm == "l1":
        center = (values.max() + values.min()) / 2
    else:
        center = np.median(values)
    far = np.abs(values - center)
    if not far.max() > 0:
        return np.full(len(values), len(values) ** -0.5)
    weights: Floats = far if method.norm == "l1" else far ** (1 / 3)
    return weights / np.linalg.norm(weights)
