"""The kernels that draw, step by step on the CPU, against NumPy's and the compiler's own code."""

from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri
from tests.heavy_rows import heavy_counts

from surefoot import LearnedPosterior, machine_replacement, read_transitions
from surefoot.solvers.evaluation.draws import Draws
from surefoot.solvers.evaluation.rewards import rewards_of
from surefoot.solvers.gpu import batches, learned_rows, variates
from surefoot.solvers.gpu.arrays import NUMPY, jax_arrays, normal_quantile
from surefoot.solvers.gpu.device import doubles
from surefoot.solvers.gpu.engine import of_all
from surefoot.solvers.gpu.gamma_pallas import in_blocks
from surefoot.solvers.gpu.landing_pallas import landings
from surefoot.solvers.gpu.philox import key_words
from surefoot.solvers.gpu.variates import log_gammas

KEY = key_words((np.uint64(3), np.uint64(5)))
DRAWS = np.arange(48, dtype=np.uint32)


def test_the_quantile_is_that_of_scipy() -> None:
    ends = 2.0 ** -np.arange(2, 54)
    u = np.concatenate((np.random.default_rng(0).random(100_000), ends, 1.0 - ends))
    np.testing.assert_allclose(normal_quantile(np, u), ndtri(u), rtol=1e-14)
    assert normal_quantile(np, np.array([0.5]))[0] == 0.0


@pytest.mark.parametrize("each", [True, False])
@pytest.mark.parametrize("small", [True, False])
def test_gammas_of_blocks_are_those_of_whole_arrays(each: bool, small: bool) -> None:
    rng = np.random.default_rng(1)
    size = (3, 2, 5, len(DRAWS) if each else 1)
    shape = (0.05 if small else 1.0) + 3.0 * rng.random(size)
    shape[rng.random(size) < 0.3] = 0.0
    place = np.arange(30, dtype=np.uint32).reshape(3, 2, 5, 1)
    with np.errstate(invalid="ignore"):  # the logarithm of a shape that is none
        mine = log_gammas(NUMPY, KEY, place, DRAWS, 4, shape, small=small)
    with doubles():
        plain = jax_arrays()

        def formula(key: Any, place: Any, draw: Any, number: Any) -> Any:
            return log_gammas(plain, key, place, draw, 4, number, small=small)

        given = (plain.xp.asarray(one) for one in (KEY, place, DRAWS, shape))
        theirs = np.asarray(in_blocks(formula, *given, interpret=True))
    np.testing.assert_array_equal(np.isinf(theirs), np.isinf(mine))
    np.testing.assert_allclose(theirs, mine, rtol=1e-11, atol=1e-11)


def test_the_unseen_land_where_whole_arrays_say() -> None:
    rng = np.random.default_rng(2)
    chance = rng.random((6, 2, 4, len(DRAWS))) * (rng.random((6, 2, 4, 1)) < 0.7)
    chance[:, 0, 0] = 0.0  # nothing listed: nothing lands, whatever is wanted
    chance[0, 1] = 0.0  # the first entry takes none
    running = np.cumsum(chance, axis=0)
    wanted = rng.poisson(2.0, running.shape[1:]).astype(np.int32)
    row = np.arange(8, dtype=np.uint32).reshape(2, 4, 1)
    mine = learned_rows._few_landed(KEY, row, DRAWS, running, wanted)
    with doubles():
        given = (jax_arrays().xp.asarray(one) for one in (KEY, row, DRAWS, running, wanted))
        theirs = np.asarray(landings(*given, learned_rows.LANDINGS, interpret=True))
    np.testing.assert_array_equal(theirs, mine)
    expected = np.where(running[-1] > 0.0, wanted, 0)
    np.testing.assert_array_equal(mine.sum(axis=0), expected)
    assert not mine[0, 1].any()


@pytest.mark.parametrize("heavy", [False, True])
def test_learned_rows_are_the_same_with_kernels(
    heavy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    import jax

    log = machine_replacement().log(episodes=20, rng=np.random.default_rng(0))
    counts = read_transitions(log, episode="episode", step="step")
    posterior = LearnedPosterior(heavy_counts(12, 6) if heavy else counts)
    mdp = posterior.to_mdp(discount=0.9)
    rewards = rewards_of(mdp, posterior, objective="max")
    made = of_all(Draws.take(posterior, mdp, rewards, 16, np.random.default_rng(1)))
    for module, name in ((variates, "in_blocks"), (learned_rows, "landings")):
        kernel = getattr(module, name)

        def here(*given: Any, kernel: Any = kernel, interpret: bool) -> Any:
            assert not interpret
            return kernel(*given, interpret=True)

        monkeypatch.setattr(module, name, here)
    keys = tuple(key_words(key) for key in made.keys)
    formulas = (made.source.formula, made.rewards.formula)
    draw = np.arange(16, dtype=np.uint32)
    with doubles():
        xp = jax_arrays().xp
        given = (keys[0], keys[1]), made.numbers, made.shared(0, 16)
        found = {
            kernels: batches._draw_there(
                kernels, formulas, *jax.tree.map(xp.asarray, given), xp.asarray(draw)
            )
            for kernels in (True, False)
        }
    for which in (0, 7):
        for tile, plain, mine in zip(found[True], found[False], made.again(which), strict=True):
            np.testing.assert_allclose(
                np.asarray(tile.chance)[..., which], mine.chance[..., 0], rtol=1e-9, atol=1e-12
            )
            np.testing.assert_allclose(tile.chance, plain.chance, rtol=1e-9, atol=1e-12)
