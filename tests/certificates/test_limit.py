"""The limit from coupled draws: valid on models that can be enumerated, and tight."""

import itertools

import numpy as np
import pytest
from scipy.stats import binom

import surefoot as sf
from surefoot.certificates import certification, limit
from surefoot.certificates.limit import (
    ANY_POLICY,
    DETERMINISTIC,
    bound_of_one,
    coupled,
    upper_bound,
)
from surefoot.domains.garnet import garnet
from surefoot.model.policies import check_policy
from surefoot.solvers.evaluation.returns import policy_returns
from surefoot.solvers.evaluation.rewards import rewards_of

DELTA, ETA = 0.1, 0.2


def small(seed, posterior):
    """Return a model of 4 states and 2 actions, and its posterior."""
    rng = np.random.default_rng(seed)
    domain = garnet(4, 2, 3, discount=0.9, rng=rng)
    made = posterior(domain.simulate(4, rng))
    mdp = made.counts.to_mdp(discount=0.9, prior=1.0)
    return mdp, made, rewards_of(mdp, made, objective="max")


def optimum(mdp, posterior, rewards, draws=20_000):
    """Return the percentile optimum by enumeration, and the policy that attains it."""
    best = -np.inf, None
    for actions in itertools.product(range(2), repeat=mdp.num_states):
        policy = check_policy(mdp, np.array(actions))
        returns = policy_returns(
            posterior, mdp, policy, draws, np.random.default_rng(9), rewards=rewards
        )
        best = max(best, (float(np.quantile(returns.lower, DELTA)), actions))
    return best


@pytest.fixture
def not_listed(monkeypatch):
    monkeypatch.setattr(limit, "MAX_POLICIES", 0)


@pytest.mark.parametrize("posterior", [sf.DirichletPosterior, sf.LearnedPosterior])
@pytest.mark.parametrize("seed", [0, 1])
def test_limit_lies_below_the_optimum_no_more_often_than_eta(not_listed, posterior, seed):
    mdp, made, rewards = small(seed, posterior)
    best, policy = optimum(mdp, made, rewards)
    start = check_policy(mdp, np.array(policy)).rows.astype(np.int64)
    rngs = np.random.default_rng(3).spawn(80)
    bounds = [
        upper_bound(
            made, mdp, rewards, delta=DELTA, eta=ETA, draws=200, rng=rng, start=start
        )
        for rng in rngs
    ]  # fmt: skip
    assert all(bound.scope == DETERMINISTIC for bound in bounds)
    low = sum(bound.value < best for bound in bounds)
    assert binom.sf(low - 1, len(bounds), ETA) > 1e-3
    if posterior is sf.DirichletPosterior:  # it would be no test if limits were far too high
        assert low > 0


@pytest.mark.parametrize("posterior", [sf.DirichletPosterior, sf.LearnedPosterior])
def test_limit_from_coupled_draws_is_much_closer(posterior):
    """Between the actions of these states data decide badly; there are 4^30 policies."""
    rng = np.random.default_rng(0)
    made = posterior(garnet(30, 4, 5, discount=0.9, rng=rng).simulate(3, rng))
    mdp = made.counts.to_mdp(discount=0.9, prior=1.0)
    rewards = rewards_of(mdp, made, objective="max")
    policy = check_policy(mdp, sf.solve(mdp).policy)
    start = policy.rows.astype(np.int64)
    returns = policy_returns(made, mdp, policy, 600, np.random.default_rng(1), rewards=rewards)
    own = bound_of_one(returns, delta=DELTA, eta=0.01).value
    plain, alike = (
        upper_bound(
            made, mdp, rewards, delta=DELTA, eta=0.01, draws=600, rng=np.random.default_rng(1),
            start=start, randomised=randomised,
        )
        for randomised in (True, False)
    )  # fmt: skip
    assert plain.scope == ANY_POLICY
    assert own < alike.value < plain.value
    assert alike.value - own < 0.7 * (plain.value - own)


def test_limit_holds_with_any_worth_of_successors(not_listed):
    """The policy that couples need not be good: the limit is looser then, and right."""
    mdp, made, rewards = small(0, sf.DirichletPosterior)
    best, policy = optimum(mdp, made, rewards)
    worst = 1 - np.array(policy)
    start = check_policy(mdp, worst).rows.astype(np.int64)
    bound = upper_bound(
        made, mdp, rewards, delta=DELTA, eta=0.001, draws=5000, rng=np.random.default_rng(1),
        start=start,
    )  # fmt: skip
    assert bound.value > best


def test_randomised_policies_get_a_limit_that_covers_them(not_listed):
    mdp, made, _ = small(0, sf.DirichletPosterior)
    mixed = np.full((mdp.num_states, 2), 0.5)
    common = {"draws": 500, "rng": np.random.default_rng(0)}
    assert sf.certify(mixed, made, mdp, **common).scope == ANY_POLICY
    certain = np.zeros(mdp.num_states, dtype=int)
    assert sf.certify(certain, made, mdp, **common).scope == DETERMINISTIC


def test_policies_by_step_are_not_coupled():
    mdp, made, rewards = small(0, sf.DirichletPosterior)
    rows = mdp.state_start[:-1]
    assert coupled(made, mdp, rewards, rows) is not None
    assert coupled(made, mdp.over(5), rewards, rows) is None


def test_allowed_pairs_and_costs_are_coupled_alike(not_listed):
    mdp, made, _ = small(1, sf.DirichletPosterior)
    allowed = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (3, 1)]
    policy = np.array([0, 0, 0, 1])
    common = {"draws": 1000, "allowed": allowed, "objective": "max"}
    made_of = sf.certify(policy, made, mdp, rng=np.random.default_rng(0), **common)
    assert made_of.scope == f"{DETERMINISTIC} among those allowed"
    turned = sf.certify(
        policy, made, mdp, draws=1000, allowed=allowed, objective="min",
        rng=np.random.default_rng(0),
    )  # fmt: skip
    assert turned.lower_bound <= turned.upper_bound


def test_more_effort_takes_more_draws_and_repeats(not_listed):
    mdp, made, _ = small(0, sf.DirichletPosterior)
    policy = np.zeros(mdp.num_states, dtype=int)
    usual, more, again = (
        sf.certify(policy, made, mdp, rng=np.random.default_rng(0), limit_effort=effort)
        for effort in (1.0, 1.5, 1.5)
    )
    assert more.other_draws > usual.other_draws
    assert more.draws == usual.draws
    assert more.upper_bound == again.upper_bound
    with pytest.raises(ValueError, match="limit_effort=0"):
        sf.certify(policy, made, mdp, rng=np.random.default_rng(0), limit_effort=0)


def test_limit_is_not_below_what_the_policy_could_be_promised_with_a_benign_unseen(not_listed):
    log = sf.machine_replacement().log(episodes=30, rng=np.random.default_rng(0))
    counts = sf.read_transitions(log, episode="episode", step="step").on_support()
    posterior = sf.DirichletPosterior(counts)
    mdp = counts.to_mdp(discount=0.95, prior=1.0)
    policy = sf.solve(mdp).policy
    made = sf.certify(policy, posterior, mdp, draws=1000, rng=np.random.default_rng(0))
    best = certification.lead_to_best(mdp, counts)
    promised = sf.certify(policy, posterior, best, draws=1000, rng=np.random.default_rng(1))
    assert made.upper_bound >= promised.lower_bound > made.lower_bound


def test_verify_finds_a_limit_that_is_too_low():
    from dataclasses import replace

    mdp, made, _ = small(0, sf.DirichletPosterior)
    policy = np.zeros(mdp.num_states, dtype=int)
    good = sf.certify(policy, made, mdp, draws=2000, rng=np.random.default_rng(0))
    assert sf.verify(good, made, mdp, rng=np.random.default_rng(1)).stands
    lower = replace(good, lower_bound=good.lower_bound - 5, upper_bound=good.lower_bound - 4)
    found = sf.verify(lower, made, mdp, rng=np.random.default_rng(1))
    assert not found.stands
    assert "more than the limit" in found.message


def test_limit_pays_nothing_after_the_end():
    """One decision, then the end: with rewards in (0, 1) no policy can be promised more than 1."""
    rng = np.random.default_rng(4)
    state = np.repeat(np.arange(6), 40)
    log = {"state": state, "action": np.tile([0, 1], 120), "reward": rng.integers(0, 2, 240) * 1.0,
           "next_state": np.full(240, 6), "terminal": np.full(240, True)}  # fmt: skip
    counts = sf.read_transitions(log, terminal="terminal", reward_range=(0.0, 1.0))
    counts = counts.on_support("observed")
    mdp = counts.to_mdp(discount=0.99, prior=1.0, initial=np.eye(7)[0])
    policy = np.zeros(7, dtype=np.int64)
    made = sf.certify(policy, sf.DirichletPosterior(counts), mdp, rng=rng)
    assert made.lower_bound < 0.5 < made.upper_bound <= 1.0
