"""The learned prior's computations over all rows, on whole arrays, without numba.

Each function computes the same numbers as the function of the same name in
`surefoot.posterior.law_kernels`; a test compares them. Draws of rows are not here: without
numba, a device makes them (`surefoot.solvers.gpu.learned_rows`).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from surefoot._cores import available_cores, on_threads, plain_blas
from surefoot.posterior.law_kernels import MOST_ATOMS, TINY

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BLOCK = 2**17
"""How many numbers are processed at a time, so that they stay in a core's cache."""


def size_likelihood(visits: Floats, distinct: Ints, alpha: Floats, most: int) -> Floats:
    """Return ``[g, a, K]``: the log likelihood of K = 0..most successors in each group."""
    size = np.arange(most + 1)
    n, k = visits[:, None, None], distinct[:, None, None]
    possible = size >= np.maximum(k, 1)
    some = np.maximum(size, 1) * alpha[:, None]
    terms = (
        gammaln(size + 1.0)
        - gammaln(np.maximum(size - k, 0) + 1.0)
        + gammaln(some)
        - gammaln(some + n)
    )
    return np.where(possible, terms, -np.inf)


def heavy_likelihood(visits: Floats, distinct: Ints, discount: Floats, strength: Floats) -> Floats:
    """Return ``[g, l, a]``: the log likelihood of heavy-tailed rows in each group."""
    n, k = visits[:, None, None], distinct[:, None, None]
    d, t = discount, strength[:, None]
    new = (k - 1) * np.log(d) + gammaln(t / d + np.maximum(k, 1)) - gammaln(t / d + 1.0)
    return np.where(k > 0, new + gammaln(t + 1.0) - gammaln(t + n), 0.0)


def heavy_atoms(distinct: Ints, discount: Floats, strength: Floats, room: Ints) -> Ints:
    """Return ``[g, l, a]``: into how many parts the unseen mass of heavy-tailed rows is split."""
    k = distinct[:, None, None]
    alike = 2.0 * (1.0 + strength[:, None] + k * discount) / (1.0 - discount) - 1.0
    return np.minimum(np.minimum(alike.astype(np.int64), MOST_ATOMS), room[:, None, None])


def log_sum_weighted(log: Floats) -> Floats:
    """Return ``log sum exp`` over the last axis, without underflow."""
    largest = log.max(axis=-1, keepdims=True)
    shift = np.where(np.isneginf(largest), 0.0, largest)
    with np.errstate(divide="ignore"):
        return np.asarray(
            (largest + np.log(np.exp(log - shift).sum(axis=-1, keepdims=True)))[..., 0]
        )


def size_marginals(
    visits: Floats, distinct: Ints, kind: Ints, log_prior: Floats, alpha: Floats, strength: Floats,
    out: Floats,
) -> None:  # fmt: skip
    """Write ``out[g, l, a]``: the log likelihood of a group of rows, K summed out."""
    heavy = alpha < 0
    out[..., heavy] = heavy_likelihood(visits, distinct, -alpha[heavy], strength)
    even = alpha[~heavy]
    for part in _blocks(len(visits), log_prior[0].size * len(even)):
        out[part][..., ~heavy] = log_sum_weighted(
            _weighed(visits, distinct, kind, log_prior, even, part)
        )


def size_posteriors(
    visits: Floats, distinct: Ints, kind: Ints, log_prior: Floats, cap: Ints, alpha: Floats,
    strength: Floats, out: Floats,
) -> None:  # fmt: skip
    """Write ``out[g, l, a, K]``: the cumulative posterior of K in a group of rows."""
    heavy = alpha < 0
    size = np.arange(log_prior.shape[2])
    atoms = heavy_atoms(distinct, -alpha[heavy], strength, cap[kind] - distinct)
    out[:, :, heavy] = size >= (distinct[:, None, None] + atoms)[..., None]
    even = alpha[~heavy]
    for part in _blocks(len(visits), log_prior[0].size * len(even)):
        log = _weighed(visits, distinct, kind, log_prior, even, part)
        running = np.cumsum(np.exp(log - log_sum_weighted(log)[..., None]), axis=-1)
        out[part][:, :, ~heavy] = running / running[..., -1:]


def _weighed(
    visits: Floats, distinct: Ints, kind: Ints, log_prior: Floats, alpha: Floats, part: slice
) -> Floats:
    """Return ``[g, l, a, K]``: log likelihood plus log prior."""
    terms = size_likelihood(visits[part], distinct[part], alpha, log_prior.shape[2] - 1)
    return np.asarray(terms[:, None] + log_prior[kind[part]][:, :, None])


def missing_mass(
    visits: Floats, distinct: Ints, group: Ints, alpha: Floats, strength: Floats, sizes: Floats,
    out: Floats,
) -> None:  # fmt: skip
    """Write ``out[f, l, a]``: the mean probability of all successors that a row has not shown."""
    heavy = alpha < 0
    even, discount, t = alpha[~heavy], -alpha[heavy], strength[:, None]
    size = np.arange(1, sizes.shape[3])
    for part in _blocks(len(visits), sizes[0].size):
        n, k = visits[part, None, None], distinct[part, None, None]
        of_group = sizes[group[part]]
        unseen = np.where(size >= k, size - k, 0) * even[:, None] / (n + size * even[:, None])
        share = np.diff(of_group[:, :, ~heavy], axis=-1)
        out[part][:, :, ~heavy] = (share * unseen[:, None]).sum(axis=-1)
        full = np.take_along_axis(of_group[:, :, heavy], k[..., None], axis=-1)[..., 0]
        out[part][:, :, heavy] = (1.0 - full) * (t + k * discount) / (t + n)


def shape_likelihood(count: Floats, row_start: Ints, alpha: Floats, out: Floats) -> None:
    """Write ``out[r, a] = sum_j log Gamma(a + n_j) - log Gamma(a)``; terms come from a table."""
    known, which = np.unique(count, return_inverse=True)
    base = gammaln(np.where(alpha > 0, alpha, alpha + 1.0))

    def fill(a: int) -> None:
        some = np.where(known > 0, known, 1.0)
        table = np.where(known > 0, gammaln(alpha[a] + some) - base[a], 0.0)
        out[:, a] = np.add.reduceat(table[which], row_start[:-1])

    on_threads(fill, range(len(alpha)), available_cores())


def row_evidence(
    fine: Ints, action: Ints, marginal: Floats, shape: Floats, laws: Floats, out: Floats
) -> None:
    """Add to ``out[action, size law, alpha law]`` the log evidence of every row."""
    order = np.argsort(action, kind="stable")
    parts = list(_blocks(len(order), marginal.shape[1] * len(laws)))
    told: list[Any] = [None] * len(parts)

    def tell(number: int) -> None:
        rows = order[parts[number]]
        log, scaled, largest = _row_likelihood(fine[rows], marginal, shape[rows])
        total = _mixed(scaled, laws)
        small = ~(total > TINY)
        found = largest + np.log(np.where(small, 1.0, total))
        if small.any():
            found[small] = _far_laws(log, laws, small)
        first = np.flatnonzero(np.diff(action[rows], prepend=-1))
        told[number] = action[rows[first]], np.add.reduceat(found, first, axis=0)

    with plain_blas():
        on_threads(tell, range(len(parts)), available_cores())
    for which, sums in told:  # always in the same order, whichever thread was first
        out[which] += sums


def row_alphas(
    fine: Ints, action: Ints, marginal: Floats, shape: Floats, missing: Floats, laws: Floats,
    posterior: Floats, weight: Floats, seen: Floats,
) -> None:  # fmt: skip
    """Add to ``weight[r, a]`` the probability of each concentration, given all rows.

    ``law[a] exp(log[a] - whole)`` is ``law[a] scaled[a]`` over its sum: no further exponential.
    """

    def weigh(part: slice) -> None:
        log, scaled, _ = _row_likelihood(fine[part], marginal, shape[part])
        total = _mixed(scaled, laws)
        small = ~(total > TINY)
        share = np.where(small, 0.0, posterior[action[part]] / np.where(small, 1.0, total))
        given = scaled * sum(share[..., h, None] * law for h, law in enumerate(laws))
        if small.any():
            at = np.nonzero(small)
            own = np.where(laws[at[2]] > 0, log[at[:2]], -np.inf)
            own = laws[at[2]] * np.exp(own - _far_laws(log, laws, small)[:, None])
            np.add.at(given, at[:2], posterior[action[part]][small][:, None] * own)
        weight[part] += given.sum(axis=1)
        seen[part] += (given * (1.0 - missing[fine[part]])).sum(axis=1)

    with plain_blas():
        on_threads(weigh, _blocks(len(fine), marginal.shape[1] * len(laws)), available_cores())


def _row_likelihood(fine: Ints, marginal: Floats, shape: Floats) -> tuple[Floats, Floats, Floats]:
    """Return log likelihoods ``[r, size law, alpha]``, scaled exponentials, and the largest."""
    log = marginal[fine] + shape[:, None]
    largest = log.max(axis=-1, keepdims=True)
    return log, np.exp(log - largest), largest


def _mixed(scaled: Floats, laws: Floats) -> Floats:
    """Return ``[r, size law, alpha law]``: sums over concentrations, as one matrix product."""
    rows, sizes, alphas = scaled.shape
    return np.asarray((scaled.reshape(-1, alphas) @ laws.T).reshape(rows, sizes, len(laws)))


def _far_laws(log: Floats, laws: Floats, small: NDArray[np.bool_]) -> Floats:
    """Return the log evidence of laws so far from their row's counts that all terms underflow."""
    r, s, h = np.nonzero(small)
    with np.errstate(divide="ignore"):
        return log_sum_weighted(log[r, s] + np.log(laws[h]))


def _blocks(size: int, each: int) -> Iterator[slice]:
    """Yield slices of rows such that a block has about as many numbers as the cache holds."""
    step = max(1, BLOCK // max(1, each))
    return (slice(first, min(first + step, size)) for first in range(0, size, step))
