"""Kernels of the learned prior: evidence for the laws, and draws of rows with unseen successors."""

import math

import numpy as np
from numpy.typing import NDArray

from surefoot._compile import kernel
from surefoot.posterior.dirichlet_kernels import (
    BLOCK_DRAWS,
    LOGARITHMIC_BELOW,
    dirichlet_draws,
    prepare,
)
from surefoot.posterior.philox_kernels import CONTROL, WORDS, Words, open_stream, uniform
from surefoot.posterior.unseen_kernels import first_above, running_shares, unseen_entry

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TINY = 1e-250
"""Sums of scaled terms below this lost digits to underflow; they are recomputed in logarithms."""


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
    visits: Floats, distinct: Ints, kind: Ints, log_prior: Floats, alpha: Floats, out: Floats
) -> None:
    """Write ``out[g, l, a]``: the log likelihood of a group of rows, K summed out.

    ``log_prior[kind, l, K]`` is the log probability of K under size law ``l``. O(laws) per K.
    """
    most = log_prior.shape[2]
    term, scaled = np.empty(most), np.empty(most)
    prior = np.exp(log_prior)
    for g in range(len(visits)):
        for a in range(len(alpha)):
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
    visits: Floats, distinct: Ints, kind: Ints, log_prior: Floats, alpha: Floats, out: Floats
) -> None:
    """Write ``out[g, l, a, K]``: the cumulative posterior of K in a group of rows."""
    most = log_prior.shape[2]
    term = np.empty(most)
    for g in range(len(visits)):
        for a in range(len(alpha)):
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
    visits: Floats, distinct: Ints, group: Ints, alpha: Floats, sizes: Floats, out: Floats
) -> None:
    """Write ``out[f, l, a]``: the mean probability of all successors that a row has not shown.

    It is the mean of ``(K - k) a / (n + K a)`` over the posterior of K, ``sizes[group[f]]``.
    """
    for f in range(len(visits)):
        n, k = visits[f], distinct[f]
        for law in range(sizes.shape[1]):
            for a in range(len(alpha)):
                total = 0.0
                for size in range(max(k, 1), sizes.shape[3]):
                    share = sizes[group[f], law, a, size] - sizes[group[f], law, a, size - 1]
                    total += share * (size - k) * alpha[a] / (n + size * alpha[a])
                out[f, law, a] = total


@kernel()
def shape_likelihood(count: Floats, row_start: Ints, alpha: Floats, out: Floats) -> None:
    """Write ``out[r, a] = sum_j log Gamma(a + n_j) - log Gamma(a)``. O(entries) per alpha."""
    for r in range(len(row_start) - 1):
        for a in range(len(alpha)):
            total = 0.0
            for e in range(row_start[r], row_start[r + 1]):
                if count[e] > 0:
                    total += math.lgamma(alpha[a] + count[e]) - math.lgamma(alpha[a])
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


@kernel(lean=True)
def alpha_weights(log: Floats, scaled: Floats, law: Floats, out: Floats) -> None:
    """Write running sums of ``law[a] scaled[a]``, by which a draw picks a row's concentration.

    Where all terms underflow, the most likely concentration gets all the weight.
    """
    running = 0.0
    for a in range(len(law)):
        running += law[a] * scaled[a]
        out[a] = running
    if running <= TINY:
        best = -1
        for a in range(len(law)):
            if law[a] > 0 and (best < 0 or log[a] > log[best]):
                best = a
        for a in range(len(law)):
            out[a] = 1.0 if a >= best else 0.0


@kernel(lean=True)
def shown_places(count: Floats, begin: int, end: int, place: Ints) -> tuple[int, float]:
    """Write the entries with a positive count in a row; return how many, and the largest count."""
    shown, most = 0, 0.0
    for e in range(begin, end):
        if count[e] > 0:
            place[shown] = e
            most = max(most, count[e])
            shown += 1
    return shown, most


@kernel(lean=True)
def row_law(
    i: int, row: int, first: int, key0: np.uint64, key1: np.uint64, s: int, h: int, log: Floats,
    scaled: Floats, laws: Floats, sizes: Floats, distinct: int, known: NDArray[np.bool_],
    picked: Floats, words: Words, control: Words,
) -> tuple[int, int]:  # fmt: skip
    """Draw a row's concentration and its number of successors, given the laws of its action.

    The first draw of a block opens the row's stream of that block; this is draw ``first + i``.
    """
    if i % BLOCK_DRAWS == 0:
        open_stream(control, key0, key1, row, (first + i) // BLOCK_DRAWS)
    if not known[s, h]:
        alpha_weights(log[s], scaled[s], laws[h], picked[s, h])
        known[s, h] = True
    weights = picked[s, h]
    last = len(weights) - 1
    a = min(first_above(weights, 0, last, uniform(words, control) * weights[last]), last)
    return a, first_above(sizes[s, a], distinct, sizes.shape[2], uniform(words, control))


@kernel(lean=True)
def extend_shapes(
    count: Floats, place: Ints, shown: int, alpha: float, filled: int, used: int, shape: Floats,
    d: Floats, c: Floats,
) -> None:  # fmt: skip
    """Write shapes ``filled..used-1`` of a row and the constants of the squeeze for them.

    Seen successors come first, in the order of ``place``; unseen ones all have shape ``alpha``.
    """
    for k in range(filled, used):
        shape[k] = count[place[k]] + alpha if k < shown else alpha
    prepare(shape[filled:], d[filled:], c[filled:], used - filled)


@kernel(lean=True)
def draw_masses(
    count: Floats, place: Ints, shown: int, used: int, a: int, alpha: Floats, most: float,
    filled: Ints, shape: Floats, d: Floats, c: Floats, words: Words, control: Words, line: int,
    out: Floats,
) -> None:  # fmt: skip
    """Write the probabilities of the ``used`` successors of a row into ``out[line]``."""
    if filled[a] < used:
        extend_shapes(count, place, shown, alpha[a], filled[a], used, shape[a], d[a], c[a])
        filled[a] = used
    small = most + alpha[a] < LOGARITHMIC_BELOW
    dirichlet_draws(shape[a], d[a], c[a], 0, used, small, words, control, line, line + 1, 0, out)


@kernel(lean=True)
def learned_row(
    count: Floats, row_start: Ints, row: int, column: int, action: int, distinct: int,
    log: Floats, scaled: Floats, laws: Floats, alpha: Floats, sizes: Floats, size_law: Ints,
    alpha_law: Ints, shares: Floats, part_start: Ints, part_entry: Ints, part_cumulative: Floats,
    key0: np.uint64, key1: np.uint64, first: int, words: Words, control: Words, place: Ints,
    shape: Floats, d: Floats, c: Floats, filled: Ints, known: NDArray[np.bool_], picked: Floats,
    usual: Floats, drawn: Floats, out: Floats,
) -> None:  # fmt: skip
    """Write one row of all draws; see `learned_rows`.

    What depends on the row alone, or on the row and its concentration, is computed once.
    """
    begin, end = row_start[row], row_start[row + 1]
    shown, most = shown_places(count, begin, end, place)
    known[:] = False
    filled[:] = 0
    for i in range(len(size_law)):
        a, size = row_law(
            i, row, first, key0, key1, size_law[i, action], alpha_law[i, action], log, scaled,
            laws, sizes, distinct, known, picked, words, control,
        )  # fmt: skip
        used = shown
        if size > distinct and running_shares(row, shares[i], part_start, usual) > 0:
            for _ in range(size - distinct):
                place[used] = unseen_entry(
                    row, usual, part_start, part_entry, part_cumulative, words, control
                )
                used += 1
        for e in range(end - begin):
            out[i, column + e] = 0.0
        if used == 1:
            out[i, column + place[0] - begin] = 1.0
            continue
        draw_masses(
            count, place, shown, used, a, alpha, most, filled, shape, d, c, words, control, 0, drawn
        )
        for k in range(used):
            out[i, column + place[k] - begin] += drawn[0, k]


@kernel()
def learned_rows(
    count: Floats, row_start: Ints, rows: Ints, columns: Ints, action: Ints, fine: Ints,
    group: Ints, distinct: Ints, shape: Floats, marginal: Floats, laws: Floats,
    alpha: Floats, sizes: Floats, size_law: Ints, alpha_law: Ints, shares: Floats,
    part_start: Ints, part_entry: Ints, part_cumulative: Floats,
    key0: np.uint64, key1: np.uint64, first: int, out: Floats,
) -> None:  # fmt: skip
    """Write draws ``first, first + 1, ...`` of several rows, one for each line of the drawn laws.

    A row's concentration and number of successors are drawn given the laws of its action and its
    own counts. Seen successors are Gamma(n + a), unseen ones Gamma(a). Each unseen one leads to a
    candidate entry: ``shares`` picks a part among those that have candidates in the row, and the
    weight that a part's candidates leave over goes to the last part, the rest. Each row has one
    random stream per block of draws; ``first`` begins a block. O(K) per row and draw.
    """
    words = np.empty(WORDS, np.uint64)
    control = np.empty(CONTROL, np.uint64)
    num_sizes, num_alpha = sizes.shape[1], len(alpha)
    longest = 0
    for row in rows:
        longest = max(longest, row_start[row + 1] - row_start[row])
    width = longest + sizes.shape[3]
    shapes, d, c = np.empty((3, num_alpha, width))
    place, filled = np.empty(width, np.int64), np.empty(num_alpha, np.int64)
    log, scaled = np.empty((2, num_sizes, num_alpha))
    known = np.empty((num_sizes, len(laws)), np.bool_)
    picked = np.empty((num_sizes, len(laws), num_alpha))
    usual, drawn = np.empty(shares.shape[1]), np.empty((1, width))
    for j in range(len(rows)):
        row = rows[j]
        if row_start[row + 1] - row_start[row] == 1:
            out[:, columns[j]] = 1.0
            continue
        for s in range(num_sizes):
            row_likelihood(marginal[fine[row], s], shape[row], log[s], scaled[s])
        learned_row(
            count, row_start, row, columns[j], action[row], distinct[row], log, scaled, laws,
            alpha, sizes[group[row]], size_law, alpha_law, shares, part_start, part_entry,
            part_cumulative, key0, key1, first, words, control, place, shapes, d, c, filled, known,
            picked, usual, drawn, out,
        )  # fmt: skip
