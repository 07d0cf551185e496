"""Normal and exponential variates by 256-layer ziggurats: tables, and the rare cases.

Layer 0 is the base strip with the tail beyond ``TAIL``; all layers have the same area. ``WIDTH``
turns a random whole number below 2^52 (normal) or 2^53 (exponential) into a point of the layer;
below ``LIMIT`` the point certainly lies under the curve. ``HEIGHT[i]`` is the curve at the right
edge of layer ``i``, ``HEIGHT[i+1]`` at that of the narrower layer above it.

``TAIL`` is the one number for which 256 layers of equal area end exactly at the top of the curve
(Marsaglia and Tsang 2000); a test checks that they do. The common case, a word below ``LIMIT``, is
written out where variates are used.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot._compile import kernel
from surefoot.posterior.philox_kernels import Words, next_word, uniform

LAYERS = 256
NORMAL_TAIL = 3.6541528853610088
EXPONENTIAL_TAIL = 7.69711747013104972
Curve = Callable[[float], float]


class Ziggurat(NamedTuple):
    """The tables of one curve, and its layers' right edges (narrowest last, then 0)."""

    width: NDArray[np.float64]
    limit: NDArray[np.int64]
    height: NDArray[np.float64]
    edge: NDArray[np.float64]


def build(tail: float, tail_area: float, curve: Curve, inverse: Curve, bits: int) -> Ziggurat:
    """Stack layers of equal area from the tail to the top of a falling curve with curve(0) = 1."""
    area = tail * curve(tail) + tail_area
    edges = [area / curve(tail), tail]
    while len(edges) < LAYERS:
        edges.append(inverse(curve(edges[-1]) + area / edges[-1]))
    edge = np.array([*edges, 0.0])
    height = np.array([curve(x) for x in edge])
    limit = np.floor(edge[1:] / edge[:-1] * 2.0**bits).astype(np.int64)
    return Ziggurat(edge[:-1] * 2.0**-bits, limit, height, edge)


NORMAL = build(
    NORMAL_TAIL,
    math.sqrt(math.pi / 2) * math.erfc(NORMAL_TAIL / math.sqrt(2)),
    lambda x: math.exp(-0.5 * x * x),
    lambda y: math.sqrt(-2.0 * math.log(y)),
    bits=52,
)
EXPONENTIAL = build(
    EXPONENTIAL_TAIL,
    math.exp(-EXPONENTIAL_TAIL),
    lambda x: math.exp(-x),
    lambda y: -math.log(y),
    bits=53,
)
NORMAL_WIDTH, NORMAL_LIMIT, NORMAL_HEIGHT, _ = NORMAL
EXPONENTIAL_WIDTH, EXPONENTIAL_LIMIT, EXPONENTIAL_HEIGHT, _ = EXPONENTIAL


@kernel(lean=True)
def rare_normal(word: np.uint64, words: Words, control: Words) -> Any:
    """Return a standard normal variate for any word, also one beyond the limit of its layer."""
    while True:
        layer = word & np.uint64(0xFF)
        signed = np.int64(word) >> 11
        x = signed * NORMAL_WIDTH[layer]
        if abs(signed) < NORMAL_LIMIT[layer]:
            return x
        if layer == 0:
            while True:
                beyond = -math.log(uniform(words, control)) / NORMAL_TAIL
                if -2.0 * math.log(uniform(words, control)) > beyond * beyond:
                    return NORMAL_TAIL + beyond if x > 0 else -NORMAL_TAIL - beyond
        low, high = NORMAL_HEIGHT[layer], NORMAL_HEIGHT[layer + np.uint64(1)]
        if low + uniform(words, control) * (high - low) < math.exp(-0.5 * x * x):
            return x
        word = next_word(words, control)


@kernel(lean=True)
def rare_exponential(word: np.uint64, words: Words, control: Words) -> Any:
    """Return a standard exponential variate for any word, also one beyond its layer's limit."""
    while True:
        layer = word & np.uint64(0xFF)
        magnitude = np.int64(word >> np.uint64(11))
        x = magnitude * EXPONENTIAL_WIDTH[layer]
        if magnitude < EXPONENTIAL_LIMIT[layer]:
            return x
        if layer == 0:
            return EXPONENTIAL_TAIL - math.log(uniform(words, control))
        low, high = EXPONENTIAL_HEIGHT[layer], EXPONENTIAL_HEIGHT[layer + np.uint64(1)]
        if low + uniform(words, control) * (high - low) < math.exp(-x):
            return x
        word = next_word(words, control)
