"""The random bits and variates: against NumPy's Philox and against the exact laws."""

import math

import numpy as np
import pytest
from scipy import stats

from surefoot.posterior import dirichlet_kernels, ziggurat_kernels
from surefoot.posterior.philox_kernels import CONTROL, WORDS, next_word, open_stream


def words_of(key0, key1, row, block, count):
    words, control = np.empty(WORDS, np.uint64), np.empty(CONTROL, np.uint64)
    open_stream(control, np.uint64(key0), np.uint64(key1), row, block)
    return np.array([next_word(words, control) for _ in range(count)], dtype=np.uint64)


@pytest.mark.parametrize(
    ("key", "row", "block"), [((1, 2), 0, 0), ((2**64 - 1, 5), 7, 3), ((9, 0), 2**40, 2**33)]
)
def test_bits_are_those_of_philox(key, row, block):
    # NumPy raises the counter before it makes bits, so its first counter is one before ours.
    before = np.array([2**64 - 1, block - 1 if block else 2**64 - 1, row, 0], dtype=np.uint64)
    if block == 0:
        before[2] = row - 1 if row else 2**64 - 1
        before[3] = 2**64 - 1 if row == 0 else 0
    numpy_bits = np.random.Philox(key=np.array(key, dtype=np.uint64), counter=before)
    np.testing.assert_array_equal(
        words_of(*key, row, block, 3 * WORDS + 5), numpy_bits.random_raw(3 * WORDS + 5)
    )


@pytest.mark.parametrize(
    ("tables", "curve", "tail_area"),
    [
        (
            ziggurat_kernels.NORMAL,
            lambda x: math.exp(-0.5 * x * x),
            math.sqrt(2 * math.pi) * stats.norm.sf(ziggurat_kernels.NORMAL_TAIL),
        ),
        (
            ziggurat_kernels.EXPONENTIAL,
            lambda x: math.exp(-x),
            math.exp(-ziggurat_kernels.EXPONENTIAL_TAIL),
        ),
    ],
    ids=["normal", "exponential"],
)
def test_ziggurat_layers_have_equal_areas_up_to_the_top(tables, curve, tail_area):
    edge, height = tables.edge, tables.height
    base = edge[1] * curve(edge[1]) + tail_area
    layers = edge[1:256] * np.diff(height[1:])
    np.testing.assert_allclose(layers, base, rtol=1e-10)


def gammas(shape, n, seed=0):
    """Return gamma variates: the first of two, by undoing the normalisation with a known second."""
    shapes = np.array([shape, 1.0])
    out = np.empty((n, 2))
    d, c = np.empty(2), np.empty(2)
    dirichlet_kernels.prepare(shapes, d, c, 2)
    dirichlet_kernels.dirichlet_rows(
        shapes, d, c, np.array([0, 2]), np.array([False]), np.array([0]), np.array([0]),
        np.uint64(seed), np.uint64(1), 0, n, out,
    )  # fmt: skip
    return out


@pytest.mark.parametrize("shape", [0.02, 0.3, 0.999, 1.0, 1.001, 2.0, 3.5, 40.0, 5000.0])
def test_shares_follow_the_beta_law(shape):
    shares = gammas(shape, 100_000)[:, 0]
    assert stats.kstest(shares, stats.beta(shape, 1.0).cdf).pvalue > 1e-4


def test_tails_of_the_variates():
    # Ratios of exponentials reach the tails of the ziggurat: P(share > 1 - 1e-5) = 1e-5.
    shares = gammas(1.0, 2_000_000, seed=5)[:, 0]
    for small in (1e-3, 1e-4, 1e-5):
        expected = 2_000_000 * small
        for count in (np.sum(shares < small), np.sum(shares > 1 - small)):
            assert abs(count - expected) < 5 * math.sqrt(expected)
    large = gammas(30.0, 2_000_000, seed=6)[:, 0]
    for level in (1e-4, 1e-3, 1 - 1e-3, 1 - 1e-4):
        below = np.sum(large < stats.beta(30.0, 1.0).ppf(level))
        expected = 2_000_000 * level
        assert abs(below - expected) < 5 * math.sqrt(expected * (1 - level))
