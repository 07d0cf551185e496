"""CONTRIBUTING, "A new ambiguity set", followed literally: the total variation ball."""

import zlib
from pathlib import Path

import numpy as np
import pytest
import toy_kernels

import surefoot as sf
from oracles import lp_ball
from surefoot.ambiguity.sets import BALLS, Ball, contains
from surefoot.solvers.sweep_kernels import FAMILIES, OWN_FAMILY, add_ball

# Compiled sweeps are kept by name for the kernels of the package: other kernels, another name.
NAME = f"tv{zlib.crc32(Path(toy_kernels.__file__).read_bytes()):x}"


@pytest.fixture(scope="module", autouse=True)
def registered():
    BALLS[NAME] = Ball(parts=lambda p, q: np.abs(q - p) / 2, combine=np.add, weighted=False)
    add_ball(NAME, toy_kernels.tv_value, toy_kernels.tv_choice, toy_kernels.tv_floor)
    yield
    del BALLS[NAME], FAMILIES[OWN_FAMILY.pop(NAME)]


def test_one_row_equals_its_linear_program():
    rng = np.random.default_rng(0)
    for _ in range(50):
        z, p = rng.normal(size=5), rng.dirichlet(np.ones(5))
        budget = float(rng.uniform(0, 0.7))
        found = sf.worst_case(z, p, budget=budget, norm=NAME)
        assert found.value == pytest.approx(lp_ball(z, p, np.ones(5), 2 * budget, "l1"), abs=1e-7)
        assert found.distribution @ z == pytest.approx(found.value)


def test_the_solver_takes_it():
    mdp = sf.garnet(6, 2, 4, discount=0.9, rng=np.random.default_rng(1)).mdp
    toy = sf.AmbiguitySet.from_arrays(mdp, norm=NAME, budget=0.1)
    twin = sf.AmbiguitySet.from_arrays(mdp, norm="l1", budget=0.2)  # the same set
    found, known = (sf.solve(mdp, each) for each in (toy, twin))
    np.testing.assert_allclose(found.value, known.value, atol=1e-5)
    nature = found.nature_model().probability
    assert contains(sf.AmbiguitySet.from_arrays(mdp, norm=NAME, budget=0.1 + 1e-9), nature).all()
    assert not contains(sf.AmbiguitySet.from_arrays(mdp, norm=NAME, budget=0.05), nature).all()
    assert repr(toy) == f"AmbiguitySet({NAME}, 12 rows, budget 0.1)"


def test_without_discount_it_is_not_taken_for_a_set_that_always_ends():
    go_on = sf.MDP.from_arrays([[[0.9, 0.1]], [[0.0, 1.0]]], [[1.0], [0.0]], discount=1.0)
    assert sf.solve(go_on).value[0] == pytest.approx(10)
    forever = sf.AmbiguitySet.from_arrays(go_on, norm=NAME, budget=[[0.2], [0.0]])
    with pytest.raises(ValueError, match="the end"):
        sf.solve(go_on, forever)


def test_weights_are_refused_where_there_are_none():
    mdp = sf.riverswim().mdp
    with pytest.raises(ValueError, match="ball has no weights"):
        sf.AmbiguitySet.from_arrays(mdp, norm=NAME, budget=0.1, weights=2.0)
