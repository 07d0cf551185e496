"""Dirichlet draws: gamma variates by the squeeze of Marsaglia and Tsang (2000, ACM TOMS 26)."""

import math

import numpy as np
from numpy.typing import NDArray

from surefoot._compile import kernel
from surefoot.posterior.philox_kernels import (
    CONTROL,
    POSITION,
    TO_UNIT,
    WORDS,
    Words,
    open_stream,
    refill,
)
from surefoot.posterior.ziggurat_kernels import (
    EXPONENTIAL_LIMIT,
    EXPONENTIAL_WIDTH,
    NORMAL_LIMIT,
    NORMAL_WIDTH,
    rare_exponential,
    rare_normal,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BLOCK_DRAWS = 16
"""Draws that share one stream. Changing this, or ``WORDS``, changes every draw."""
LOGARITHMIC_BELOW = 0.1
"""A row with a shape larger than this underflows with probability below 1e-30."""


@kernel(lean=True)
def prepare(shape: Floats, d: Floats, c: Floats, size: int) -> bool:
    """Write the constants of the squeeze for one row; tell whether the row needs logarithms."""
    largest = 0.0
    for k in range(size):
        lifted = shape[k] + 1.0 if shape[k] < 1.0 else shape[k]
        d[k] = lifted - 1.0 / 3.0
        c[k] = 1.0 / math.sqrt(9.0 * d[k])
        largest = max(largest, shape[k])
    return largest < LOGARITHMIC_BELOW


@kernel(lean=True)
def outside_squeeze(d: float, x: float, v: float, u: float) -> bool:
    """Tell whether a proposal that failed the squeeze is accepted after all."""
    return math.log(u) < 0.5 * x * x + d * (1.0 - v + math.log(v))


@kernel(lean=True, error_model="numpy")
def dirichlet_draws(
    shape: Floats, d: Floats, c: Floats, begin: int, end: int, logarithmic: bool,
    words: Words, control: Words, first: int, last: int, column: int, out: Floats,
) -> None:  # fmt: skip
    """Write draws ``first..last-1`` of one row into ``out[first:last, column:]``. O(K) per draw.

    The row's entries are ``begin..end-1`` of ``shape``; ``d = a - 1/3`` and ``c = 1/sqrt(9 d)`` are
    the squeeze's constants for ``a = shape``, or ``shape + 1`` where that is below 1: there
    Gamma(a) = Gamma(a+1) exp(-E/a) with E exponential. With ``logarithmic`` (all shapes below 1)
    the row is normalised from logarithms, for shapes so small that all its variates may underflow.

    One long function on purpose: only the rare cases are calls.
    """
    position = control[POSITION]
    shift = column - begin
    for i in range(first, last):
        total = 0.0
        largest = -np.inf
        for k in range(begin, end):
            g = 0.0
            while shape[k] != 1.0:
                if position >= WORDS - 1:
                    refill(words, control)
                    position = np.uint64(0)
                word = words[position]
                u = (np.int64(words[position + np.uint64(1)] >> np.uint64(11)) + 1) * TO_UNIT
                position += np.uint64(2)
                layer = word & np.uint64(0xFF)
                signed = np.int64(word) >> 11
                x = signed * NORMAL_WIDTH[layer]
                if abs(signed) >= NORMAL_LIMIT[layer]:
                    control[POSITION] = position
                    x = rare_normal(word, words, control)
                    position = control[POSITION]
                v = 1.0 + c[k] * x
                cube = v * v * v
                square = x * x
                if v > 0.0 and (
                    u < 1.0 - 0.0331 * square * square or outside_squeeze(d[k], x, cube, u)
                ):
                    g = d[k] * cube
                    break
            if shape[k] <= 1.0:
                if position >= WORDS:
                    refill(words, control)
                    position = np.uint64(0)
                word = words[position]
                position += np.uint64(1)
                layer = word & np.uint64(0xFF)
                magnitude = np.int64(word >> np.uint64(11))
                e = magnitude * EXPONENTIAL_WIDTH[layer]
                if magnitude >= EXPONENTIAL_LIMIT[layer]:
                    control[POSITION] = position
                    e = rare_exponential(word, words, control)
                    position = control[POSITION]
                if shape[k] == 1.0:
                    g = e
                elif logarithmic:
                    g = math.log(g) - e / shape[k]
                    largest = max(largest, g)
                else:
                    g *= math.exp(-e / shape[k])
            out[i, k + shift] = g
            total += g
        if logarithmic:
            total = 0.0
            for k in range(column, column + end - begin):
                out[i, k] = math.exp(out[i, k] - largest)
                total += out[i, k]
        scale = 1.0 / total
        for k in range(column, column + end - begin):
            out[i, k] *= scale
    control[POSITION] = position


@kernel()
def dirichlet_rows(
    shape: Floats, d: Floats, c: Floats, row_start: Ints, logarithmic: NDArray[np.bool_],
    rows: Ints, columns: Ints, key0: np.uint64, key1: np.uint64, first: int, last: int, out: Floats,
) -> None:  # fmt: skip
    """Write draws ``first..last-1`` of several rows into ``out[0:last-first]``.

    ``first`` is a multiple of ``BLOCK_DRAWS``; row ``rows[j]`` goes to the columns from
    ``columns[j]`` on. A row with one entry is 1 and uses no random bits.
    """
    words = np.empty(WORDS, np.uint64)
    control = np.empty(CONTROL, np.uint64)
    for j in range(len(rows)):
        row = rows[j]
        begin, end = row_start[row], row_start[row + 1]
        if end - begin == 1:
            out[: last - first, columns[j]] = 1.0
            continue
        for start in range(first, last, BLOCK_DRAWS):
            stop = min(start + BLOCK_DRAWS, last)
            open_stream(control, key0, key1, row, start // BLOCK_DRAWS)
            dirichlet_draws(
                shape, d, c, begin, end, logarithmic[row], words, control,
                start - first, stop - first, columns[j], out,
            )  # fmt: skip


@kernel()
def dirichlet_models(
    shapes: Floats, row_start: Ints, rows: Ints, columns: Ints,
    key0: np.uint64, key1: np.uint64, first: int, out: Floats,
) -> None:  # fmt: skip
    """Write one draw of every row for each line of Dirichlet parameters ``shapes``.

    Line ``i`` is draw ``first + i`` and has its own streams, keyed by that number.
    """
    words = np.empty(WORDS, np.uint64)
    control = np.empty(CONTROL, np.uint64)
    longest = 0
    for row in rows:
        longest = max(longest, row_start[row + 1] - row_start[row])
    shape, d, c = np.empty(longest), np.empty(longest), np.empty(longest)
    for i in range(len(shapes)):
        for j in range(len(rows)):
            begin, end = row_start[rows[j]], row_start[rows[j] + 1]
            if end - begin == 1:
                out[i, columns[j]] = 1.0
                continue
            for k in range(end - begin):
                shape[k] = shapes[i, begin + k]
            logarithmic = prepare(shape, d, c, end - begin)
            open_stream(control, key0, key1, rows[j], first + i)
            dirichlet_draws(
                shape, d, c, 0, end - begin, logarithmic, words, control, i, i + 1, columns[j], out
            )
