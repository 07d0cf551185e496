"""Random bits by counters: Philox4x32-10 (Salmon, Moraes, Dror and Shaw 2011).

The words of draw ``i`` of entry ``e`` are ``philox(key, (e, i, trial, stream))``, so that a draw
does not depend on which other entries and draws are made, in what order or on what device.
"""

from typing import Any

import numpy as np

from surefoot.solvers.gpu.arrays import Array

NAME = "philox4x32 1"
"""The random stream of draws on a device, as certificates record it."""
ROUNDS = 10
_M0, _M1 = 0xD2511F53, 0xCD9E8D57
_W0, _W1 = 0x9E3779B9, 0xBB67AE85
_FOLD = 0x9E3779B97F4A7C15


def key_words(key: tuple[np.uint64, np.uint64]) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """Return ``(2,)``: the 64 bits that a key of 128 bits becomes here.

    Examples
    --------
    >>> key_words((np.uint64(1), np.uint64(0))).tolist()
    [1, 0]
    """
    folded = (int(key[0]) ^ (int(key[1]) * _FOLD)) % 2**64
    return np.array([folded % 2**32, folded >> 32], dtype=np.uint32)


def philox(xp: Any, key: Array, counter: tuple[Array, ...]) -> tuple[Array, ...]:
    """Return four words of 32 bits for every counter of four; the words broadcast.

    ``key`` is an array of two words, or a pair of them.

    Examples
    --------
    >>> zero = np.zeros(1, dtype=np.uint32)
    >>> [hex(int(word[0])) for word in philox(np, np.zeros(2, np.uint32), (zero,) * 4)]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    c0, c1, c2, c3 = (xp.asarray(word, dtype=xp.uint32) for word in counter)
    k0, k1 = key if isinstance(key, tuple) else (key[:1], key[1:])
    for turn in range(ROUNDS):
        high0, low0 = _product(xp, c0, _M0)
        high1, low1 = _product(xp, c2, _M1)
        step0 = k0 + np.uint32(turn * _W0 % 2**32)
        step1 = k1 + np.uint32(turn * _W1 % 2**32)
        c0, c1, c2, c3 = high1 ^ c1 ^ step0, low1, high0 ^ c3 ^ step1, low0
    return c0, c1, c2, c3


def _product(xp: Any, word: Array, factor: int) -> tuple[Array, Array]:
    wide = word.astype(xp.uint64) * np.uint64(factor)
    return (wide >> np.uint64(32)).astype(xp.uint32), wide.astype(xp.uint32)


def uniforms(xp: Any, words: tuple[Array, ...]) -> tuple[Array, Array]:
    """Return two numbers in (0, 1) from four words: 52 bits each, and half a step, exactly.

    Examples
    --------
    >>> low, high = np.zeros(1, np.uint32), np.full(1, 2**32 - 1, np.uint32)
    >>> [float(u[0]) in (2.0**-53, 1 - 2.0**-53) for u in uniforms(np, (low, low, high, high))]
    [True, True]
    """
    return _unit(xp, words[0], words[1]), _unit(xp, words[2], words[3])


def _unit(xp: Any, high: Array, low: Array) -> Array:
    rest = (low >> np.uint32(12)).astype(xp.float64) * 2.0**-52 + 2.0**-53
    return high.astype(xp.float64) * 2.0**-32 + rest
