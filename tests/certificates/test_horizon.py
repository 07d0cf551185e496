"""Promises over a horizon: brackets draw by draw, certificates, comparison, verification."""

from dataclasses import replace

import numpy as np
import pytest

from surefoot import (
    Certificate,
    DirichletPosterior,
    StepPolicy,
    certify,
    certify_frequentist,
    compare,
    evaluate,
    frequentist_set,
    guarantee_curve,
    machine_replacement,
    optimize,
    riverswim,
    solve,
    var_solve,
    verify,
)
from surefoot.certificates.comparison import compare_frequentist
from surefoot.model.policies import check_policy
from surefoot.solvers.evaluation.returns import best_returns, policy_returns
from surefoot.solvers.evaluation.rewards import rewards_of

HORIZON = 7


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def machine():
    counts = machine_replacement().simulate(15, rng(1))
    mdp = counts.to_mdp(discount=1.0, prior=1.0).over(HORIZON, np.linspace(-3.0, 2.0, 10))
    return DirichletPosterior(counts), mdp


@pytest.mark.parametrize("objective", ["max", "min"])
def test_brackets_hold_the_value_in_every_drawn_model(machine, objective) -> None:
    posterior, mdp = machine
    rewards = rewards_of(mdp, posterior, objective=objective)
    by_step = solve(mdp, objective=objective).policy
    half = np.full((10, 2), 0.5)
    sign = 1.0 if objective == "max" else -1.0
    draws = posterior.sample(20, rng(5))
    for policy in (by_step, by_step.actions_at(0), half):
        rows = check_policy(mdp, policy)
        found = policy_returns(posterior, mdp, rows, 20, rng(5), rewards=rewards)
        for i, draw in enumerate(draws):
            truth = evaluate(replace(mdp, probability=draw), policy)
            ends = sorted((sign * truth.return_lower, sign * truth.return_upper))
            assert found.lower[i] <= ends[1]
            assert ends[0] <= found.upper[i]
            assert found.upper[i] - found.lower[i] < 1e-9
    best = best_returns(posterior, mdp, 20, rng(5), rewards=rewards)
    for i, draw in enumerate(draws):
        truth = solve(replace(mdp, probability=draw), objective=objective)
        ends = sorted((sign * truth.return_lower, sign * truth.return_upper))
        assert best.lower[i] <= ends[1]
        assert ends[0] <= best.upper[i]


@pytest.fixture(scope="module")
def result(machine):
    posterior, mdp = machine
    return optimize(posterior, mdp, draws=500, rng=rng(2))


def test_the_search_finds_a_policy_by_step(machine, result) -> None:
    posterior, mdp = machine
    made = result.certificate
    assert isinstance(result.policy, StepPolicy)
    assert made.horizon == HORIZON
    assert made.lower_bound <= made.upper_bound
    assert "with a rule for each step, the policy's expected return over at most 7 steps from" in (
        made.sentence
    )
    assert "discounted" not in made.sentence
    nominal = certify(solve(mdp).policy, posterior, mdp, draws=500, rng=rng(3), upper=False)
    chosen = certify(result.policy, posterior, mdp, draws=500, rng=rng(3), upper=False)
    assert chosen.marginal_bound >= nominal.marginal_bound - 0.5
    again = Certificate.from_json(made.to_json())
    assert np.array_equal(np.asarray(again.policy), np.asarray(made.policy))
    assert again.sentence == made.sentence


def test_a_certificate_is_verified_over_its_horizon(machine, result) -> None:
    posterior, mdp = machine
    assert verify(result.certificate, posterior, mdp, rng=rng(4)).stands
    plain = mdp.over(None)
    final = mdp.final_reward
    assert verify(result.certificate, posterior, plain, rng=rng(4), final_reward=final).stands
    other = verify(result.certificate, posterior, mdp.over(HORIZON + 1, final), rng=rng(4))
    assert not other.stands
    assert "other model" in other.message


def test_one_rule_for_all_steps(machine, result) -> None:
    posterior, mdp = machine
    found = optimize(posterior, mdp, draws=500, rng=rng(2), stationary=True)
    assert np.asarray(found.policy).shape == (10,)
    assert "with one rule for all steps, " in found.certificate.sentence
    assert found.certificate.lower_bound <= result.certificate.upper_bound
    allowed = np.ones((10, 2), dtype=bool)
    allowed[3] = [True, False]
    tied = optimize(posterior, mdp, draws=400, rng=rng(2), allowed=allowed)
    assert set(np.asarray(tied.policy)[:, 3].tolist()) == {0}


def test_policies_are_compared_over_the_horizon(machine, result) -> None:
    posterior, mdp = machine
    never = np.zeros(10, dtype=int)
    made = compare(result.policy, never, posterior, mdp, draws=300, rng=rng(6))
    assert made.difference_lower_bound > 0
    assert compare(
        StepPolicy.constant(HORIZON, never), never, posterior, mdp, draws=300, rng=rng(6)
    ).same
    curve = guarantee_curve(result.policy, posterior, mdp, draws=300, rng=rng(7))
    assert np.all(np.diff(curve.bound[~np.isnan(curve.bound)]) <= 0)


def test_promises_without_a_prior() -> None:
    counts = riverswim().simulate(200, rng(0))
    mdp = counts.to_mdp(discount=1.0)
    box = frequentist_set(counts, mdp.over(9), delta=0.05, kind="clopper_pearson")
    robust = solve(mdp, box, horizon=9)
    made = certify_frequentist(robust.policy, box, mdp, horizon=9)
    assert made.lower_bound == pytest.approx(robust.return_lower)
    assert made.lower_bound <= made.nominal_return <= made.upper_bound
    left = np.zeros(6, dtype=int)
    better = compare_frequentist(robust.policy, left, box, mdp, horizon=9)
    assert better.difference_lower_bound > -made.upper_bound


def test_what_needs_a_future_without_end_says_so(machine) -> None:
    posterior, mdp = machine
    with pytest.raises(ValueError, match="model without a horizon"):
        var_solve(posterior, mdp, delta=0.2, rng=rng())
