"""Kernels of the learned prior: evidence of the laws, and draws of rows with unseen successors."""

import math

import numpy as np
from numpy.typing import NDArray

from surefoot._compile import kernel
from surefoot.posterior.dirichlet_kernels import dirichlet_draws, prepare
from surefoot.posterior.philox_kernels import CONTROL, WORDS, open_stream, uniform

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@kernel()
def size_likelihood(visits: Ints, distinct: Ints, alpha: Floats, most: int, out: Floats) -> None:
    """Write ``out[g, a, K]``: how well K successors explain the number of distinct ones seen.

    The logarithm of ``K!/(K-k)! Gamma(K a)/Gamma(K a + n)`` for groups of rows with ``n`` visits
    and ``k`` distinct successors, -inf for K < k. O(1) a number.
    """
    for g in range(len(visits)):
        n, k = visits[g], distinct[g]
        for a in range(len(alpha)):
            for size in range(most + 1):
                if size < k or size == 0:
                    out[g, a, size] = -np.inf
                    continue
                out[g, a, size] = (
                    math.lgamma(size + 1.0)
                    - math.lgamma(size - k + 1.0)
                    + math.lgamma(size * alpha[a])
                    - math.lgamma(size * alpha[a] + n)
                )


@kernel()
def shape_likelihood(count: Floats, row_start: Ints, alpha: Floats, out: Floats) -> None:
    """Write ``out[r, a] = sum_j log Gamma(a + n_j) - log Gamma(a)``. O(entries) an alpha."""
    for r in range(len(row_start) - 1):
        for a in range(len(alpha)):
            total = 0.0
            for e in range(row_start[r], row_start[r + 1]):
                if count[e] > 0:
                    total += math.lgamma(alpha[a] + count[e]) - math.lgamma(alpha[a])
            out[r, a] = total


@kernel()
def row_evidence(
    group: Ints, action: Ints, marginal: Floats, shape: Floats, laws: Floats, out: Floats
) -> None:
    """Add to ``out[action, size law, alpha law]`` the log evidence of every row.

    ``marginal[g, l, a]`` is the log likelihood of a group under size law ``l`` and concentration
    ``a``; ``laws[h, a]`` the probability of ``a`` under law ``h``.
    """
    num_laws, num_alpha = laws.shape
    term = np.empty(num_alpha)
    for r in range(len(group)):
        for s in range(marginal.shape[1]):
            largest = -np.inf
            for a in range(num_alpha):
                term[a] = marginal[group[r], s, a] + shape[r, a]
                largest = max(largest, term[a])
            for a in range(num_alpha):
                term[a] = math.exp(term[a] - largest)
            for h in range(num_laws):
                total = 0.0
                for a in range(num_alpha):
                    total += laws[h, a] * term[a]
                out[action[r], s, h] += largest + math.log(total)


@kernel()
def first_above(cumulative: Floats, goal: float) -> int:
    """Return the first index whose cumulative weight reaches a goal; their number if none does."""
    for k in range(len(cumulative)):
        if cumulative[k] >= goal:
            return k
    return len(cumulative)


@kernel()
def row_concentration(
    marginal: Floats, shape: Floats, law: Floats, weight: Floats, u: float
) -> int:
    """Return which concentration a row has in a draw, given the law and the row's own data."""
    largest = -np.inf
    for a in range(len(law)):
        weight[a] = marginal[a] + shape[a]
        largest = max(largest, weight[a])
    total = 0.0
    for a in range(len(law)):
        total += law[a] * math.exp(weight[a] - largest)
        weight[a] = total
    return int(min(first_above(weight, u * total), len(law) - 1))


@kernel()
def learned_rows(
    count: Floats, row_start: Ints, rows: Ints, columns: Ints, action: Ints, group: Ints,
    distinct: Ints, shape: Floats, marginal: Floats, laws: Floats,
    alpha: Floats, sizes: Floats, size_law: Ints, alpha_law: Ints, shares: Floats,
    part_start: Ints, part_entry: Ints, part_cumulative: Floats,
    key0: np.uint64, key1: np.uint64, first: int, out: Floats,
) -> None:  # fmt: skip
    """Write one draw of several rows for each line of the drawn laws.

    A row's concentration and number of successors are drawn given the laws of its action and its
    own counts. Seen successors are Gamma(n + a), unseen ones Gamma(a); each unseen one lands on an
    entry of the part that ``shares`` picks among those the row has; the last part, the rest, takes
    what the weights of another leave. Draw ``first + i`` has streams of its own. O(K) a row.
    """
    words = np.empty(WORDS, np.uint64)
    control = np.empty(CONTROL, np.uint64)
    parts = shares.shape[1]
    longest = 0
    for row in rows:
        longest = max(longest, row_start[row + 1] - row_start[row])
    width = longest + sizes.shape[3]
    gamma, d, c = np.empty(width), np.empty(width), np.empty(width)
    place = np.empty(width, np.int64)
    drawn = np.empty((1, width))
    weight, usual = np.empty(len(alpha)), np.empty(parts)
    for i in range(len(size_law)):
        for j in range(len(rows)):
            row = rows[j]
            begin, end = row_start[row], row_start[row + 1]
            if end - begin == 1:
                out[i, columns[j]] = 1.0
                continue
            open_stream(control, key0, key1, row, first + i)
            g, s = group[row], size_law[i, action[row]]
            chosen = row_concentration(
                marginal[g, s], shape[row], laws[alpha_law[i, action[row]]], weight,
                uniform(words, control),
            )  # fmt: skip
            used = 0
            for e in range(begin, end):
                out[i, columns[j] + e - begin] = 0.0
                if count[e] > 0:
                    gamma[used] = count[e] + alpha[chosen]
                    place[used] = e - begin
                    used += 1
            running = 0.0
            for part in range(parts):
                at = row * parts + part
                if part_start[at + 1] > part_start[at]:
                    running += shares[i, part]
                usual[part] = running
            cumulative = sizes[g, s, chosen]
            size = first_above(cumulative, uniform(words, control) * cumulative[-1])
            for _ in range(size - distinct[row] if running > 0 else 0):
                part = first_above(usual, uniform(words, control) * running)
                at = row * parts + part
                candidates = part_cumulative[part_start[at] : part_start[at + 1]]
                found = first_above(candidates, uniform(words, control))
                if found == len(candidates):
                    at = row * parts + parts - 1
                    candidates = part_cumulative[part_start[at] : part_start[at + 1]]
                    found = min(
                        first_above(candidates, uniform(words, control)), len(candidates) - 1
                    )
                gamma[used] = alpha[chosen]
                place[used] = part_entry[part_start[at] + found] - begin
                used += 1
            if used == 1:
                out[i, columns[j] + place[0]] = 1.0
                continue
            logarithmic = prepare(gamma, d, c, used)
            dirichlet_draws(gamma, d, c, 0, used, logarithmic, words, control, 0, 1, 0, drawn)
            for k in range(used):
                out[i, columns[j] + place[k]] += drawn[0, k]
