"""Kernels that draw rows under the learned prior, with successors that were never seen."""

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
from surefoot.posterior.law_kernels import TINY, row_likelihood
from surefoot.posterior.philox_kernels import CONTROL, WORDS, Words, open_stream, uniform
from surefoot.posterior.unseen_kernels import first_above, running_shares, unseen_entry

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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
def draw_heavy_masses(
    count: Floats, place: Ints, shown: int, used: int, a: int, s: int, alpha: Floats,
    strength: Floats, most: float, filled: Ints, shape: Floats, d: Floats, c: Floats, words: Words,
    control: Words, line: int, out: Floats,
) -> None:  # fmt: skip
    """Write the probabilities of the successors of a heavy-tailed row into ``out[line]``.

    Those seen and all unseen ones together are Dirichlet with parameters ``n_j - d`` and
    ``t + k d`` (Pitman 1996); the unseen ones share theirs as exponential variates do.
    """
    rest = strength[s] - shown * alpha[a]
    if filled[a] != s + 1:
        for k in range(shown):
            shape[a, k] = count[place[k]] + alpha[a]
        shape[a, shown] = rest
        prepare(shape[a], d[a], c[a], shown + 1)
        filled[a] = s + 1
    parts = shown + (1 if used > shown else 0)
    small = max(most + alpha[a], rest) < LOGARITHMIC_BELOW
    dirichlet_draws(shape[a], d[a], c[a], 0, parts, small, words, control, line, line + 1, 0, out)
    if used == shown:
        return
    whole, total = out[line, shown], 0.0
    for k in range(shown, used):
        out[line, k] = -math.log(1.0 - uniform(words, control))
        total += out[line, k]
    for k in range(shown, used):
        out[line, k] *= whole / total


@kernel(lean=True)
def draw_masses(
    count: Floats, place: Ints, shown: int, used: int, a: int, s: int, alpha: Floats,
    strength: Floats, most: float, filled: Ints, shape: Floats, d: Floats, c: Floats, words: Words,
    control: Words, line: int, out: Floats,
) -> None:  # fmt: skip
    """Write the probabilities of the ``used`` successors of a row into ``out[line]``.

    ``filled[a]`` tells how many shapes are prepared, for a discount the size law they are for.
    """
    if alpha[a] < 0:
        draw_heavy_masses(
            count, place, shown, used, a, s, alpha, strength, most, filled, shape, d, c, words,
            control, line, out,
        )  # fmt: skip
        return
    if filled[a] < used:
        extend_shapes(count, place, shown, alpha[a], filled[a], used, shape[a], d[a], c[a])
        filled[a] = used
    small = most + alpha[a] < LOGARITHMIC_BELOW
    dirichlet_draws(shape[a], d[a], c[a], 0, used, small, words, control, line, line + 1, 0, out)


@kernel(lean=True)
def learned_row(
    count: Floats, row_start: Ints, row: int, column: int, action: int, distinct: int,
    log: Floats, scaled: Floats, laws: Floats, alpha: Floats, strength: Floats, sizes: Floats,
    size_law: Ints, alpha_law: Ints, shares: Floats, part_start: Ints, part_entry: Ints,
    part_cumulative: Floats, key0: np.uint64, key1: np.uint64, first: int, words: Words,
    control: Words, place: Ints, shape: Floats, d: Floats, c: Floats, filled: Ints,
    known: NDArray[np.bool_], picked: Floats, usual: Floats, drawn: Floats, out: Floats,
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
            count, place, shown, used, a, size_law[i, action], alpha, strength, most, filled, shape,
            d, c, words, control, 0, drawn,
        )  # fmt: skip
        for k in range(used):
            out[i, column + place[k] - begin] += drawn[0, k]


@kernel()
def learned_rows(
    count: Floats, row_start: Ints, rows: Ints, columns: Ints, action: Ints, fine: Ints,
    group: Ints, distinct: Ints, shape: Floats, marginal: Floats, laws: Floats,
    alpha: Floats, strength: Floats, sizes: Floats, size_law: Ints, alpha_law: Ints,
    shares: Floats, part_start: Ints, part_entry: Ints, part_cumulative: Floats,
    key0: np.uint64, key1: np.uint64, first: int, out: Floats,
) -> None:  # fmt: skip
    """Write draws ``first, first + 1, ...`` of several rows, one for each line of the drawn laws.

    A row's concentration and number of successors are drawn given the laws of its action and its
    own counts. Seen successors are Gamma(n + a), unseen ones Gamma(a); heavy-tailed rows have
    their own law (`draw_heavy_masses`). Each unseen one leads to a candidate entry: ``shares``
    picks a part among those that have candidates in the row, and the weight that a part's
    candidates leave over goes to the last part, the rest. Each row has one random stream per block
    of draws; ``first`` begins a block. O(K) per row and draw.
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
            alpha, strength, sizes[group[row]], size_law, alpha_law, shares, part_start,
            part_entry, part_cumulative, key0, key1, first, words, control, place, shapes, d, c,
            filled, known, picked, usual, drawn, out,
        )  # fmt: skip
