"""The paper's own rules, word for word where they are consistent. They give no guarantee.

The budget is the order statistic ``ceil((1 - delta/(S A)) n)`` of n draws, whatever n is; S and S A
count all states and actions, reachable or not; the nominal row is the mean of the draws that also
set the budget. Frequentist weights are taken from the data that set the budget. Budgets are
computed with the weights that the set is solved with; for published numbers that need other
weights, see `surefoot.studies.scale_mismatch`.

Use `surefoot.credible_set` and `surefoot.frequentist_set` for anything but comparing with the
published tables.
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.calibration.concentration import norm_budget
from surefoot.calibration.weights import choose_weights
from surefoot.model.mdp import MDP
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
    """Return ``(n, R)``: the weighted distance of every drawn row from the nominal row."""
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


def paper_frequentist_budget(
    samples: int,
    mdp: MDP,
    norm: str,
    weights: Floats | None,
    delta: float,
    bound: str = "hoeffding",
) -> Floats:
    """Return ``(R,)``: the paper's frequentist budgets with S and S A counted as printed.

    Hoeffding's solve ``2 S A sum_i c_i exp(-a n psi^2 / w_i^2) = delta`` over all S states in order
    of falling weight: ``c_i = 1, a = 2`` for L-infinity; ``c_i = 2^(S-i), a = 1/2, i < S`` for L1.
    Bernstein's (L1 only) have ``3 n psi^2 / (6 w_i^2 + 4 psi w_i)`` in the exponent. States that a
    row cannot reach are counted with its smallest weight.
    """
    size = mdp.num_states
    entry_weights = np.ones(mdp.num_entries) if weights is None else weights
    level = delta / (size * mdp.num_actions)
    budget = np.empty(mdp.num_rows)
    known: dict[bytes, float] = {}
    for row in range(mdp.num_rows):
        own = np.sort(entry_weights[mdp.row_start[row] : mdp.row_start[row + 1]])[::-1]
        padded = np.concatenate([own, np.full(size - len(own), own[-1])])
        key = padded.tobytes()
        if key not in known:
            known[key] = norm_budget(f"{bound}_{norm}", padded, samples=samples, level=level)
        budget[row] = known[key]
    return budget


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
    samples: int, mdp: MDP, values: Floats, method: Method, delta: float, bound: str = "hoeffding"
) -> AmbiguitySet:
    """Return the paper's set around empirical rows of ``samples`` transitions each."""
    weights = paper_weights(mdp, values, method)
    budget = paper_frequentist_budget(samples, mdp, method.norm, weights, delta, bound)
    return AmbiguitySet(mdp=mdp, norm=method.norm, budget=budget, weights=weights)


def paper_weights(mdp: MDP, values: Floats, method: Method) -> Floats | None:
    """Return weights of 2-norm 1 in every row, over its own successors; None if uniform."""
    return choose_weights(mdp, method.weights, norm=method.norm, center=None, z=values).weights
