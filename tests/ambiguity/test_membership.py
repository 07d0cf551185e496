"""Membership agrees with the definition of each set and with nature's choices."""

import dataclasses

import numpy as np
import pytest

from surefoot.ambiguity.sets import AmbiguitySet, contains
from surefoot.domains.garnet import garnet
from surefoot.solvers.solver import solve


@pytest.fixture(scope="module")
def model():
    return garnet(8, 2, 4, discount=0.8, rng=np.random.default_rng(0)).mdp


def sets(mdp):
    rng = np.random.default_rng(1)
    weights = rng.random(mdp.num_entries)
    budget = np.full(mdp.num_rows, 0.2)
    yield AmbiguitySet(mdp=mdp, norm="l1", budget=budget, weights=weights)
    yield AmbiguitySet(mdp=mdp, norm="linf", budget=0.3 * budget)
    yield AmbiguitySet(mdp=mdp, norm="linf", budget=0.3 * budget, weights=weights)
    yield AmbiguitySet(mdp=mdp, norm="kl", budget=0.5 * budget)
    p = mdp.probability
    yield AmbiguitySet(mdp=mdp, norm="box", lower=0.8 * p, upper=np.minimum(1.3 * p, 1.0))


@pytest.mark.parametrize("which", range(5))
def test_nature_stays_inside_and_just_beyond_is_outside(model, which):
    made = list(sets(model))[which]
    assert contains(made, model.probability).all()
    chosen = solve(model, made).nature_model().probability
    # A hair towards the nominal model: rounding may have put nature on the wrong side of the edge.
    inward = chosen + 1e-9 * (model.probability - chosen)
    assert contains(made, inward).all()
    outward = np.maximum(chosen + 1e-4 * (chosen - model.probability), 0.0)
    moved = np.add.reduceat(np.abs(chosen - model.probability), model.row_start[:-1]) > 1e-3
    assert moved.any()
    assert not contains(made, outward)[moved].any()


def test_pinned_and_free_entries(model):
    weights = np.ones(model.num_entries)
    weights[0], weights[1] = np.inf, 0.0
    made = AmbiguitySet(mdp=model, norm="l1", budget=np.full(model.num_rows, 10.0), weights=weights)
    p = model.probability.copy()
    p[1] += 0.01
    p[2] -= 0.01
    assert contains(made, p).all()
    p[0] += 0.01
    assert contains(made, p).tolist() == [False] + [True] * (model.num_rows - 1)


def test_unseen_successors_in_a_kl_ball(model):
    probability = model.probability.copy()
    probability[:4] = 1.0, 0.0, 0.0, 0.0
    seen = dataclasses.replace(model, probability=probability)
    made = AmbiguitySet.from_arrays(seen, norm="kl", budget=0.1)
    p = probability.copy()
    p[:2] = np.exp(-0.0999), 1 - np.exp(-0.0999)
    assert contains(made, p)[0]
    p[:2] = 0.0, 1.0
    assert not contains(made, p)[0]


def test_wrong_shapes_are_refused(model):
    with pytest.raises(ValueError, match="shape"):
        contains(next(sets(model)), [0.5])
