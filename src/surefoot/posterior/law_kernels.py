"""Kernels that learn the laws of rows: how likely each law makes what the rows have shown."""

import math

import numpy as np
from numpy.typing import NDArray

from surefoot._compile import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TINY = 1e-250
"""Sums of scaled terms below this lost digits to underflow; they are recomputed in logarithms."""
MOST_ATOMS = 24
"""Into how many unseen successors the mass that a heavy-tailed row has not shown is split at most.
There are infinitely many; this many vary a little more together."""


@kernel(lean=True)
def size_likelihood(n: float, k: int, alpha: float, out: Floats) -> float:
    """Write ``out[K]``: the log likelihood of K successors given ``k`` distinct in ``n`` visits.

    It is the logarithm of ``K!/(K-k)! Gamma(K a)/Gamma(K a + n)``, -inf for K < k. Returns the
    largest.
    """
    largest = -np.inf
    for size in range(len(out)):
        out[size] = -np.inf
        if size >= max(k, 1):
            out[size] = (
                math.lgamma(size + 1.0)
                - math.lgamma(size - k + 1.0)
                + math.lgamma(size * alpha)
                - math.lgamma(size * alpha + n)
            )
            largest = max(largest, out[size])
    return largest


@kernel(lean=True)
def heavy_likelihood(n: float, k: int, discount: float, strength: float) -> float:
    """Return the log likelihood of ``k`` distinct successors in ``n`` visits of a heavy-tailed row.

    With discount ``d`` and strength ``t`` it is the logarithm of
    ``(t + d) (t + 2 d) ... (t + (k - 1) d) Gamma(t + 1)/Gamma(t + n)`` (Pitman and Yor 1997).
    """
    if k == 0:
        return 0.0
    start = strength / discount
    new = (k - 1) * math.log(discount) + math.lgamma(start + k) - math.lgamma(start + 1.0)
    return new + math.lgamma(strength + 1.0) - math.lgamma(strength + n)


@kernel(lean=True)
def heavy_atoms(k: int, discount: float, strength: float, room: int) -> int:
    """Return into how many unseen successors a heavy-tailed row's unseen mass is split.

    ``J`` equally likely exponential parts have a mean sum of squares of ``2/(J + 1)``, the parts of
    the row's own law ``(1 - d)/(1 + t + k d)``.
    """
    alike = 2.0 * (1.0 + strength + k * discount) / (1.0 - discount) - 1.0
    return min(int(alike), MOST_ATOMS, room)


@kernel(lean=True)
def log_sum_weighted(log: Floats, log_weight: Floats) -> float:
    """Return ``log sum exp(log + log_weight)``, without underflow."""
    largest = -np.inf
    for k in range(len(log)):
        largest = max(largest, log[k] + log_weight[k])
    if largest == -np.inf:
        return largest
    total = 0.0
    for k in range(len(log)):
        total += math.exp(log[k] + log_weight[k] - largest)
    return largest + math.log(total)


@kernel()
def size_marginals(
    visits: Floats, distinct: Ints, kind: Ints, log_prior: Floats, alpha: Floats, strength: Floats,
    out: Floats,
) -> None:  # fmt: skip
    """Write ``out[g, l, a]``: the log likelihood of a group of rows, K summed out.

    ``log_prior[kind, l, K]`` is the log probability of K under size law ``l``. A negative ``alpha``
    is the discount of heavy-tailed rows; their size law has a ``strength``. O(laws) per K.
    """
    most = log_prior.shape[2]
    term, scaled = np.empty(most), np.empty(most)
    prior = np.exp(log_prior)
    for g in range(len(visits)):
        for a in range(len(alpha)):
            if alpha[a] < 0:
                for law in range(log_prior.shape[1]):
                    out[g, law, a] = heavy_likelihood(
                        visits[g], distinct[g], -alpha[a], strength[law]
                    )
                continue
            largest = size_likelihood(visits[g], distinct[g], alpha[a], term)
            for size in range(most):
                scaled[size] = math.exp(term[size] - largest)
            for law in range(log_prior.shape[1]):
                total = 0.0
                for size in range(most):
                    total += prior[kind[g], law, size] * scaled[size]
                if total > TINY:
                    out[g, law, a] = largest + math.log(total)
                else:
                    out[g, law, a] = log_sum_weighted(term, log_prior[kind[g], law])


@kernel()
def size_posteriors(
    visits: Floats, distinct: Ints, kind: Ints, log_prior: Floats, cap: Ints, alpha: Floats,
    strength: Floats, out: Floats,
) -> None:  # fmt: skip
    """Write ``out[g, l, a, K]``: the cumulative posterior of K in a group of rows.

    For heavy-tailed rows it is the number of successors into which they are split, at most
    ``cap[kind]``.
    """
    most = log_prior.shape[2]
    term = np.empty(most)
    for g in range(len(visits)):
        for a in range(len(alpha)):
            if alpha[a] < 0:
                k, room = distinct[g], cap[kind[g]] - distinct[g]
                for law in range(log_prior.shape[1]):
                    atoms = heavy_atoms(k, -alpha[a], strength[law], room)
                    for size in range(most):
                        out[g, law, a, size] = 1.0 if size >= k + atoms else 0.0
                continue
            size_likelihood(visits[g], distinct[g], alpha[a], term)
            for law in range(log_prior.shape[1]):
                whole = log_sum_weighted(term, log_prior[kind[g], law])
                running = 0.0
                for size in range(most):
                    running += math.exp(term[size] + log_prior[kind[g], law, size] - whole)
                    out[g, law, a, size] = running
                for size in range(most):
                    out[g, law, a, size] /= running


@kernel()
def missing_mass(
    visits: Floats, distinct: Ints, group: Ints, alpha: Floats, strength: Floats, sizes: Floats,
    out: Floats,
) -> None:  # fmt: skip
    """Write ``out[f, l, a]``: the mean probability of all successors that a row has not shown.

    It is the mean of ``(K - k) a / (n + K a)`` over the posterior of K, ``sizes[group[f]]``; for
    heavy-tailed rows ``(t + k d)/(t + n)``, unless the row can have no further successor.
    """
    for f in range(len(visits)):
        n, k = visits[f], distinct[f]
        for law in range(sizes.shape[1]):
            for a in range(len(alpha)):
                if alpha[a] < 0:
                    some = 1.0 - sizes[group[f], law, a, k]
                    out[f, law, a] = some * (strength[law] - k * alpha[a]) / (strength[law] + n)
                    continue
                total = 0.0
                for size in range(max(k, 1), sizes.shape[3]):
                    share = sizes[group[f], law, a, size] - sizes[group[f], law, a, size - 1]
                    total += share * (size - k) * alpha[a] / (n + size * alpha[a])
                out[f, law, a] = total


@kernel()
def shape_likelihood(count: Floats, row_start: Ints, alpha: Floats, out: Floats) -> None:
    """Write ``out[r, a] = sum_j log Gamma(a + n_j) - log Gamma(a)``. O(entries) per alpha.

    For a discount, ``a < 0``, the first of ``n_j`` visits counts in the marginal: less
    ``log Gamma(a + 1)``.
    """
    for r in range(len(row_start) - 1):
        for a in range(len(alpha)):
            total = 0.0
            base = math.lgamma(alpha[a] if alpha[a] > 0 else alpha[a] + 1.0)
            for e in range(row_start[r], row_start[r + 1]):
                if count[e] > 0:
                    total += math.lgamma(alpha[a] + count[e]) - base
            out[r, a] = total


@kernel(lean=True)
def law_evidence(log: Floats, scaled: Floats, largest: float, law: Floats) -> float:
    """Return the log of ``sum_a law[a] exp(log[a])``; ``scaled = exp(log - largest)``."""
    total = 0.0
    for a in range(len(law)):
        total += law[a] * scaled[a]
    if total > TINY:
        return largest + math.log(total)
    best = -np.inf  # the law is so far from the row's counts that all its terms underflow
    for a in range(len(law)):
        if law[a] > 0:
            best = max(best, log[a])
    total = 0.0
    for a in range(len(law)):
        if law[a] > 0:
            total += law[a] * math.exp(log[a] - best)
    return best + math.log(total)


@kernel(lean=True)
def row_likelihood(marginal: Floats, shape: Floats, log: Floats, scaled: Floats) -> float:
    """Write a row's log likelihood of each concentration, and its scaled exponential.

    Returns the largest log likelihood, by which the exponentials are scaled.
    """
    largest = -np.inf
    for a in range(len(log)):
        log[a] = marginal[a] + shape[a]
        largest = max(largest, log[a])
    for a in range(len(log)):
        scaled[a] = math.exp(log[a] - largest)
    return largest


@kernel()
def row_evidence(
    fine: Ints, action: Ints, marginal: Floats, shape: Floats, laws: Floats, out: Floats
) -> None:
    """Add to ``out[action, size law, alpha law]`` the log evidence of every row.

    ``marginal[f, l, a]`` is the log likelihood of a group under size law ``l`` and concentration
    ``a``; ``laws[h, a]`` the probability of ``a`` under law ``h``.
    """
    log, scaled = np.empty(laws.shape[1]), np.empty(laws.shape[1])
    for r in range(len(fine)):
        for s in range(marginal.shape[1]):
            largest = row_likelihood(marginal[fine[r], s], shape[r], log, scaled)
            for h in range(len(laws)):
                out[action[r], s, h] += law_evidence(log, scaled, largest, laws[h])


@kernel()
def row_alphas(
    fine: Ints, action: Ints, marginal: Floats, shape: Floats, missing: Floats, laws: Floats,
    posterior: Floats, weight: Floats, seen: Floats,
) -> None:  # fmt: skip
    """Add to ``weight[r, a]`` the probability of each concentration, given all rows.

    ``seen[r, a]`` is the same times the mean probability of the successors the row has shown;
    ``posterior[action, size law, alpha law]`` is the probability of the laws.
    """
    num_alpha = laws.shape[1]
    log, scaled = np.empty(num_alpha), np.empty(num_alpha)
    for r in range(len(fine)):
        for s in range(marginal.shape[1]):
            largest = row_likelihood(marginal[fine[r], s], shape[r], log, scaled)
            for h in range(len(laws)):
                whole = law_evidence(log, scaled, largest, laws[h])
                for a in range(num_alpha):
                    if laws[h, a] > 0:
                        share = posterior[action[r], s, h] * laws[h, a] * math.exp(log[a] - whole)
                        weight[r, a] += share
                        seen[r, a] += share * (1.0 - missing[fine[r], s, a])
