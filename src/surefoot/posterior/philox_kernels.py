"""Random bits from independent streams, one per (key, row, block of draws).

The generator is Philox4x64-10 (Salmon, Moraes, Dror and Shaw 2011), which turns counters into bits:
word ``4 i + j`` of a stream is word ``j`` of ``philox(key, counter=(i, block, row, 0))``. So the
stream of one row and block does not depend on which other rows and blocks are drawn, in which
order or by which thread.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot._compile import COMPILES, kernel

if COMPILES:
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba import types
    from numba.extending import intrinsic

Words = NDArray[np.uint64]

WORDS = 64
"""Words computed at a time: independent Philox blocks overlap in the processor's pipeline."""
POSITION, COUNTER, BLOCK, ROW, KEY0, KEY1 = range(6)
CONTROL = 6
"""Length of the array that holds a reader's position in its stream."""
TO_UNIT = 2.0**-53

_M0, _M1 = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
_W0, _W1 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)


def _wide_product(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    wide = ir.IntType(128)
    x, y = (builder.zext(argument, wide) for argument in arguments)
    upper = builder.lshr(builder.mul(x, y), ir.Constant(wide, 64))
    return builder.trunc(upper, ir.IntType(64))


def _high_word(_context: Any, _a: Any, _b: Any) -> Any:
    """Return the upper 64 bits of the product of two 64-bit words."""
    return types.uint64(types.uint64, types.uint64), _wide_product


high_word: Any = intrinsic(_high_word) if COMPILES else _high_word


@kernel(lean=True)
def open_stream(control: Words, key0: np.uint64, key1: np.uint64, row: int, block: int) -> None:
    """Point ``control`` at the first word of a stream."""
    control[POSITION] = WORDS
    control[COUNTER] = 0
    control[BLOCK] = block
    control[ROW] = row
    control[KEY0] = key0
    control[KEY1] = key1


@kernel(lean=True)
def refill(words: Words, control: Words) -> None:
    """Write the next words of the stream. Ten rounds of Philox4x64 per four words."""
    first = control[COUNTER]
    for i in range(WORDS // 4):
        c0 = first + np.uint64(i)
        c1, c2, c3 = control[BLOCK], control[ROW], np.uint64(0)
        k0, k1 = control[KEY0], control[KEY1]
        for _ in range(10):
            high0, low0 = high_word(_M0, c0), _M0 * c0
            high1, low1 = high_word(_M1, c2), _M1 * c2
            c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
            k0 += _W0
            k1 += _W1
        words[4 * i], words[4 * i + 1] = c0, c1
        words[4 * i + 2], words[4 * i + 3] = c2, c3
    control[COUNTER] = first + np.uint64(WORDS // 4)
    control[POSITION] = 0


@kernel(lean=True)
def next_word(words: Words, control: Words) -> Any:
    """Return the next 64 random bits."""
    if control[POSITION] >= WORDS:
        refill(words, control)
    position = control[POSITION]
    control[POSITION] = position + np.uint64(1)
    return words[position]


@kernel(lean=True)
def uniform(words: Words, control: Words) -> float:
    """Return a uniform variate in (0, 1]: its logarithm is finite."""
    return (np.int64(next_word(words, control) >> np.uint64(11)) + 1) * TO_UNIT
