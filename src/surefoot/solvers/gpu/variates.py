"""Gamma and normal variates from counters, for whole arrays at a time."""

from typing import Any

import numpy as np

from surefoot.solvers.gpu.arrays import NUMPY, Array, Arrays
from surefoot.solvers.gpu.gamma_pallas import in_blocks
from surefoot.solvers.gpu.philox import philox, uniforms

BOOST = np.uint32(0xFFFFFFFF)
"""The trial whose bits raise a gamma variate of shape ``a + 1`` to one of shape ``a``."""


def log_gammas(
    arrays: Arrays, key: Array, place: Array, draw: Array, stream: int, shape: Array, *, small: bool
) -> Array:
    """Return logarithms of gamma variates; -inf where a shape is 0.

    Marsaglia and Tsang's method (2000): with ``d = a - 1/3`` and a normal ``x``,
    ``d (1 + x/sqrt(9d))^3`` is taken in at least 95 of 100 trials for ``a >= 1``. Trials go on
    until each has been taken once. A shape below 1 (``small``: there may be some) takes that of
    ``a + 1`` times ``u^(1/a)``. In logarithms nothing underflows.
    """
    xp = arrays.xp
    if arrays.kernels:
        plain = arrays._replace(kernels=False)

        def formula(key: Array, place: Array, draw: Array, shape: Array) -> Array:
            return log_gammas(plain, key, place, draw, stream, shape, small=small)

        return in_blocks(formula, key, place, draw, shape, interpret=False)
    raised = xp.where(shape < 1.0, shape + 1.0, shape) if small else shape
    d = raised - 1.0 / 3.0
    word = np.uint32(stream)
    found = _few_left(key, place, draw, word, shape, d) if xp is np else _all_again(
        arrays, key, place, draw, word, shape, d
    )  # fmt: skip
    found = found + xp.log(d)
    if small and xp is np:
        place, draw, shape, _ = np.broadcast_arrays(place, draw, shape, found)
        at = np.nonzero((shape > 0.0) & (shape < 1.0))
        u, _ = uniforms(xp, philox(xp, key, (place[at], draw[at], BOOST, word)))
        found[at] += np.log(u) / shape[at]
    elif small:
        u, _ = uniforms(xp, philox(xp, key, (place, draw, BOOST, word)))
        found = found + xp.where(shape < 1.0, xp.log(u) / xp.where(shape > 0.0, shape, 1.0), 0.0)
    return xp.where(shape > 0.0, found, -xp.inf)


def _trial(arrays: Arrays, key: Array, counter: tuple[Array, ...], d: Array) -> tuple[Array, Array]:
    """Return which trials are taken, and ``3 log(1 + x/sqrt(9d))``."""
    xp = arrays.xp
    u, uniform = uniforms(xp, philox(xp, key, counter))
    x = arrays.quantile(u)
    root = 1.0 + x / xp.sqrt(9.0 * d)
    logarithm = 3.0 * xp.log(xp.maximum(root, 1e-300))
    bound = 0.5 * x * x + d * (1.0 - root * root * root + logarithm)
    return (root > 0.0) & (xp.log(uniform) < bound), logarithm


def _all_again(
    arrays: Arrays, key: Array, place: Array, draw: Array, word: Array, shape: Array, d: Array
) -> Array:
    """Try all again until none is missing: a device has no use for a list of a few."""
    xp = arrays.xp

    def again(state: tuple[Array, Array]) -> tuple[Array, Array]:
        number, found = state
        taken, logarithm = _trial(arrays, key, (place, draw, number, word), d)
        return number + np.uint32(1), xp.where(taken & xp.isnan(found), logarithm, found)

    size = np.broadcast_shapes(place.shape, draw.shape, shape.shape)
    start = xp.where(shape > 0.0, xp.full(size, xp.nan), 0.0)
    first = (xp.zeros((), dtype=xp.uint32), start)
    return arrays.loop(lambda state: xp.where(xp.isnan(state[1]), 1, 0).max() > 0, again, first)[1]


def _few_left(key: Array, place: Array, draw: Array, word: Array, shape: Array, d: Array) -> Array:
    """Try again those that are missing."""
    place, draw, shape, d = np.broadcast_arrays(place, draw, shape, d)
    found = np.zeros(shape.shape)
    left = np.flatnonzero(shape > 0.0)
    number = np.zeros(1, dtype=np.uint32)
    while len(left):
        at = np.unravel_index(left, shape.shape)
        taken, logarithm = _trial(NUMPY, key, (place[at], draw[at], number, word), d[at])
        found.flat[left[taken]] = logarithm[taken]
        left, number = left[~taken], number + np.uint32(1)
    return found


def normals(arrays: Arrays, key: Array, place: Array, draw: Array, stream: int) -> Array:
    """Return standard normal variates."""
    words = philox(arrays.xp, key, (place, draw, np.uint32(0), np.uint32(stream)))
    return arrays.quantile(uniforms(arrays.xp, words)[0])


def shares(xp: Any, logarithms: Array) -> Array:
    """Return ``exp`` of numbers divided by their sum over the first axis; 0 where all are -inf."""
    largest = logarithms.max(axis=0)
    parts = xp.exp(logarithms - xp.where(largest == -xp.inf, 0.0, largest))
    total = parts.sum(axis=0)
    return parts / xp.where(total == 0.0, 1.0, total)
