"""Gamma and normal variates from counters, for whole arrays at a time."""

from typing import Any

import numpy as np

from surefoot.solvers.gpu.arrays import Array, Arrays
from surefoot.solvers.gpu.philox import philox, uniforms

BOOST = np.uint32(0xFFFFFFFF)
"""The trial whose bits raise a gamma variate of shape ``a + 1`` to one of shape ``a``."""


def log_gammas(
    arrays: Arrays, key: Array, place: Array, draw: Array, stream: int, shape: Array, *, small: bool
) -> Array:
    """Return logarithms of gamma variates; -inf where a shape is 0.

    Marsaglia and Tsang's method (2000): with ``d = a - 1/3`` and a normal ``x``,
    ``d (1 + x/sqrt(9d))^3`` is taken in at least 95 of 100 trials for ``a >= 1``. All are tried
    again until each has been taken once. A shape below 1 (``small``: there may be some) takes that
    of ``a + 1`` times ``u^(1/a)``. In logarithms nothing underflows.
    """
    xp = arrays.xp
    raised = xp.where(shape < 1.0, shape + 1.0, shape) if small else shape
    d = raised - 1.0 / 3.0
    c = 1.0 / xp.sqrt(9.0 * d)
    stream_word = np.uint32(stream)

    def trial(state: tuple[Array, Array]) -> tuple[Array, Array]:
        number, found = state
        words = philox(xp, key, (place, draw, number, stream_word))
        u, uniform = uniforms(xp, words)
        x = arrays.quantile(u)
        root = 1.0 + c * x
        logarithm = 3.0 * xp.log(xp.maximum(root, 1e-300))
        bound = 0.5 * x * x + d * (1.0 - root * root * root + logarithm)
        taken = (root > 0.0) & (xp.log(uniform) < bound)
        found = xp.where(taken & xp.isnan(found), logarithm, found)
        return number + np.uint32(1), found

    size = np.broadcast_shapes(place.shape, draw.shape, shape.shape)
    missing = xp.full(size, xp.nan)
    start = (xp.zeros(1, dtype=xp.uint32), xp.where(shape > 0.0, missing, 0.0))
    _, found = arrays.loop(lambda state: xp.isnan(state[1]).any(), trial, start)
    found = found + xp.log(d)
    if small:
        u, _ = uniforms(xp, philox(xp, key, (place, draw, BOOST, stream_word)))
        found = found + xp.where(shape < 1.0, xp.log(u) / xp.where(shape > 0.0, shape, 1.0), 0.0)
    return xp.where(shape > 0.0, found, -xp.inf)


def normals(
    arrays: Arrays, key: Array, place: Array, draw: Array, stream: int
) -> Array:
    """Return standard normal variates."""
    words = philox(arrays.xp, key, (place, draw, np.uint32(0), np.uint32(stream)))
    return arrays.quantile(uniforms(arrays.xp, words)[0])


def shares(xp: Any, logarithms: Array) -> Array:
    """Return ``exp`` of numbers divided by their sum over the first axis; 0 where all are -inf."""
    largest = logarithms.max(axis=0)
    parts = xp.exp(logarithms - xp.where(largest == -xp.inf, 0.0, largest))
    total = parts.sum(axis=0)
    return parts / xp.where(total == 0.0, 1.0, total)
