"""Draws that chose a policy do not certify it unnoticed; where nothing can be chosen nothing is."""

import numpy as np
import pytest

import surefoot as sf

REUSED = sf.Finding.of("draws_reused").text


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def machine():
    counts = sf.machine_replacement().simulate(20, rng(1))
    mdp, posterior = counts.to_mdp(discount=0.95, prior=1.0), sf.DirichletPosterior(counts)
    draws = posterior.sample(1200, rng(2)), posterior.sample(700, rng(3))
    return mdp, posterior, *draws


def finite(draws, mdp):
    return sf.PosteriorDraws.from_arrays(draws, mdp=mdp, independent=True)


def test_certifying_on_the_draws_that_chose_is_said(machine):
    mdp, _, draws, other = machine
    posterior = finite(draws, mdp)
    fresh = sf.certify(np.zeros(10, dtype=int), posterior, mdp, rng=rng())
    assert REUSED not in fresh.warnings
    result = sf.optimize(posterior, mdp, rng=rng(4))
    assert REUSED not in result.certificate.warnings
    again = sf.certify(result.policy, posterior, mdp, rng=rng(5))
    assert REUSED in again.warnings
    held = sf.certify(result.policy, result.holdout, mdp, rng=rng(5))
    assert REUSED not in held.warnings
    assert result.holdout.num_draws == 600
    assert REUSED not in sf.certify(result.policy, finite(other, mdp), mdp, rng=rng(5)).warnings


def test_endless_posteriors_are_always_fresh(machine):
    mdp, posterior, _, _ = machine
    result = sf.optimize(posterior, mdp, draws=300, rng=rng(4))
    assert result.holdout is posterior
    assert REUSED not in sf.certify(result.policy, posterior, mdp, draws=300, rng=rng(5)).warnings


def test_var_solve_chooses_too(machine):
    mdp, _, draws, _ = machine
    posterior = finite(draws, mdp)
    policy = sf.var_solve(posterior, mdp, delta=0.5, eta=0.1, rng=rng(0)).policy
    assert REUSED in sf.certify(policy, posterior, mdp, rng=rng(5)).warnings


def test_a_holdout_certifies_what_the_first_posterior_chose(machine):
    mdp, posterior, draws, other = machine
    first, second = finite(draws, mdp), finite(other, mdp)
    result = sf.optimize(first, mdp, rng=rng(4), holdout=second)
    assert result.selection_draws == 1200  # nothing was split
    assert result.certificate.draws == 700
    assert result.holdout is second
    assert not any("split" in note for note in result.notes)
    assert REUSED in sf.certify(result.policy, first, mdp, rng=rng(5)).warnings
    endless = sf.optimize(first, mdp, rng=rng(4), holdout=posterior, draws=400)
    alone = sf.certify(endless.policy, posterior, mdp, draws=400, rng=rng(4).spawn(3)[2])
    assert endless.certificate.lower_bound == alone.lower_bound


def test_a_holdout_of_another_model_is_refused(machine):
    mdp, posterior, _, _ = machine
    river = sf.DirichletPosterior(sf.riverswim().simulate(5, rng()))
    with pytest.raises(ValueError, match="state"):
        sf.optimize(posterior, mdp, rng=rng(), holdout=river)


def one_action(size):
    counts = sf.garnet(size, 1, 4, discount=0.9, rng=rng(3)).simulate(10, rng(4))
    return counts.to_mdp(discount=0.9, prior=1.0), sf.DirichletPosterior(counts)


@pytest.mark.parametrize("size", [12, 60])
def test_nothing_is_searched_where_there_is_nothing_to_choose(size, monkeypatch):
    mdp, posterior = one_action(size)
    for place in ("optimize.draw_models", "search.proposals", "search.local_search"):
        monkeypatch.setattr(f"surefoot.certificates.{place}", None)
    for name in ("best_returns", "policy_returns"):
        monkeypatch.setattr(f"surefoot.certificates.limit.{name}", None)
    told = []
    result = sf.optimize(
        posterior, mdp, draws=500, rng=rng(1), progress=lambda name, best: told.append(name)
    )
    made = result.certificate
    assert result.policy.tolist() == [0] * size
    assert [c.name for c in result.candidates] == told == ["the only policy"]
    assert result.selection_draws == 0
    assert made.lower_bound < made.upper_bound
    assert made.other_draws == made.draws == 500
    assert "the only policy" in result.summary()


def test_the_limit_of_one_policy_holds_its_quantile():
    """From the same draws: each end fails on its own, and rarely."""
    mdp, posterior = one_action(12)
    rewards = sf.solvers.evaluation.rewards.rewards_of(mdp, posterior, objective="max")
    rows = sf.model.policies.check_policy(mdp, np.zeros(12, dtype=int))
    many = sf.solvers.evaluation.returns.policy_returns(
        posterior, mdp, rows, 100_000, rng(7), rewards=rewards
    )
    quantile = np.quantile(many.lower, 0.1)
    policy = np.zeros(12, dtype=int)
    for seed in range(20):
        made = sf.certify(policy, posterior, mdp, delta=0.1, eta=1e-4, draws=400, rng=rng(seed))
        assert made.lower_bound < quantile < made.upper_bound


def test_allowed_pairs_may_leave_one_policy(machine):
    mdp, posterior, _, _ = machine
    pairs = [(s, int(mdp.row_action[mdp.state_start[s]])) for s in range(10)]
    result = sf.optimize(posterior, mdp, draws=300, rng=rng(1), allowed=pairs)
    assert len(result.candidates) == 1
    assert result.certificate.scope == "no policy among those allowed"
