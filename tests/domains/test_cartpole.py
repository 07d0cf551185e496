"""Cart-pole: a finite model of the real dynamics, the same for the same seed."""

import sys

import numpy as np
import pytest

from surefoot.cli import main
from surefoot.domains import cartpole
from surefoot.domains.cartpole import LIMITS, _linear_models, _mirrored_steps, _predict
from surefoot.domains.catalogue import make_domain
from surefoot.solvers.solver import solve


@pytest.fixture(scope="module")
def domain():
    return cartpole()


def test_shape_and_nominal_return(domain):
    """About 13.5, as found for other prototypes; twelve seeds gave 13.4 to 14.8."""
    mdp = domain.mdp
    assert (mdp.num_states, mdp.num_actions, mdp.num_rows) == (200, 2, 400)
    assert mdp.discount == 0.95
    assert solve(mdp).return_lower == pytest.approx(13.5, abs=0.5)


def test_equal_seeds_give_equal_models(domain):
    again, other = make_domain("cartpole").mdp, cartpole(seed=1).mdp
    assert np.array_equal(again.successor, domain.mdp.successor)
    assert np.array_equal(again.probability, domain.mdp.probability)
    assert np.array_equal(again.reward, domain.mdp.reward)
    assert not np.array_equal(other.reward, domain.mdp.reward)


def test_rewards_are_shares_of_safe_steps(domain):
    assert domain.mdp.reward.min() == 0.0
    assert domain.mdp.reward.max() == 1.0


def test_linear_models_are_mirror_images_and_close_to_the_real_dynamics():
    state, action, following = _mirrored_steps(np.random.default_rng(3))
    models = _linear_models(state, action, following)
    guess = np.random.default_rng(4).uniform(-LIMITS, LIMITS, size=(50, 4))
    left, right = np.zeros(50, dtype=int), np.ones(50, dtype=int)
    np.testing.assert_allclose(
        _predict(models, guess, left), -_predict(models, -guess, right), atol=1e-10
    )
    error = _predict(models, state, action) - following
    assert np.all(np.sqrt((error**2).mean(axis=0)) < 0.02)


def test_few_synthetic_steps_still_give_every_row_a_successor():
    mdp = cartpole(transitions=50, prototypes=30).mdp
    assert (mdp.num_states, mdp.num_rows) == (30, 60)


def test_without_gymnasium_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ImportError, match=r"surefoot\[rl\]"):
        cartpole()


@pytest.mark.parametrize("name", ["prototypes", "transitions"])
def test_sizes_are_checked(name):
    with pytest.raises(ValueError, match=name):
        cartpole(**{name: 0})


def test_without_gymnasium_the_other_domains_are_still_listed(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    assert main(["domains", "list"]) == 0
    captured = capsys.readouterr()
    assert "riverswim" in captured.out
    assert "needs the extra rl" in captured.err
