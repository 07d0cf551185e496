"""Random numbers by counters: the right bits, the right laws, the same on both machines."""

import numpy as np
import pytest
from scipy import stats

from surefoot.solvers.gpu.arrays import NUMPY, jax_arrays
from surefoot.solvers.gpu.device import doubles
from surefoot.solvers.gpu.philox import key_words, philox, uniforms
from surefoot.solvers.gpu.variates import log_gammas, normals, shares

KEY = key_words((np.uint64(3), np.uint64(5)))
DRAWS = np.arange(20_000, dtype=np.uint32)


def test_philox_gives_the_published_words() -> None:
    """The known answers of Random123 for philox4x32 with ten rounds."""
    pi = tuple(np.array([w], np.uint32) for w in (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344))
    key = np.array([0xA4093822, 0x299F31D0], dtype=np.uint32)
    words = [int(word[0]) for word in philox(np, key, pi)]
    assert words == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]
    ones = tuple(np.full(1, 0xFFFFFFFF, np.uint32) for _ in range(4))
    words = [int(word[0]) for word in philox(np, np.full(2, 0xFFFFFFFF, np.uint32), ones)]
    assert words == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


def test_uniforms_are_uniform_and_inside() -> None:
    words = philox(np, KEY, (np.uint32(7), DRAWS, np.uint32(0), np.uint32(0)))
    for u in uniforms(np, words):
        assert u.min() > 0.0
        assert u.max() < 1.0
        assert stats.kstest(u, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("shape", [0.05, 0.7, 1.0, 3.5, 400.0])
def test_gammas_have_their_law(shape: float) -> None:
    place = np.array([11], dtype=np.uint32)
    logs = log_gammas(NUMPY, KEY, place, DRAWS, 0, np.array([shape]), small=True)
    law = stats.loggamma(shape)
    assert stats.kstest(logs, law.cdf).pvalue > 1e-3


def test_normals_have_their_law() -> None:
    found = normals(NUMPY, KEY, np.array([2], dtype=np.uint32), DRAWS, 1)
    assert stats.kstest(found, "norm").pvalue > 1e-3


def test_a_shape_of_nothing_has_no_share() -> None:
    shape = np.array([[2.0], [0.0], [1e-3]])
    place = np.arange(3, dtype=np.uint32)[:, None]
    logs = log_gammas(NUMPY, KEY, place, DRAWS[:50], 0, shape, small=True)
    found = shares(np, logs)
    assert np.all(found[1] == 0.0)
    np.testing.assert_allclose(found.sum(axis=0), 1.0, rtol=1e-14)
    assert np.all(shares(np, np.full((2, 1), -np.inf)) == 0.0)


def test_the_device_makes_the_same_numbers() -> None:
    shape = np.array([[0.1], [0.9], [1.0], [30.0], [0.0]])
    place = np.arange(5, dtype=np.uint32)[:, None]
    mine = log_gammas(NUMPY, KEY, place, DRAWS[:500], 4, shape, small=True)
    with doubles():
        xp = jax_arrays().xp
        numbers = (xp.asarray(KEY), xp.asarray(place), xp.asarray(DRAWS[:500]))
        theirs = np.asarray(log_gammas(jax_arrays(), *numbers, 4, xp.asarray(shape), small=True))
    np.testing.assert_allclose(theirs, mine, rtol=1e-11, atol=1e-11)
