"""The VaR operator: its order statistics, its fixed point, and what it promises."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from surefoot._order_statistics import lower_rank
from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.certificates import var_kernels as kernels
from surefoot.certificates.models import draw_models
from surefoot.certificates.var import var_solve
from surefoot.certificates.var_levels import greedy_levels
from surefoot.certificates.var_operator import (
    Mixing,
    equal_levels,
    fixed_point,
    strict_draws,
    strict_ranks,
)
from surefoot.data.counts import Counts
from surefoot.domains import garnet, machine_replacement, riverswim
from surefoot.domains.domain import Domain
from surefoot.model.mdp import MDP
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.posterior.draws import PosteriorDraws
from surefoot.solvers.evaluation.evaluator import choose_evaluator
from surefoot.solvers.evaluation.rewards import rewards_of
from surefoot.solvers.solution import Status
from surefoot.solvers.solver import evaluate, solve
from surefoot.solvers.worst_case import worst_case


def data(domain, n_per_row, seed=0):
    counts = domain.simulate(n_per_row, np.random.default_rng(seed))
    mdp = counts.to_mdp(discount=domain.mdp.discount, prior=1.0, initial=domain.mdp.initial)
    return DirichletPosterior(counts), mdp


def batch_of(domain, n_per_row, draws, seed=0):
    posterior, mdp = data(domain, n_per_row, seed)
    rewards = rewards_of(mdp, posterior, objective="max")
    rows = np.arange(mdp.num_rows)
    return draw_models(posterior, mdp, rewards, rows, draws, np.random.default_rng(seed + 1))


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=40), st.data())
@settings(max_examples=100, deadline=None)
def test_order_statistic(numbers, choose):
    rank = choose.draw(st.integers(1, len(numbers)))
    assert (
        kernels.order_statistic(np.array(numbers, dtype=float), rank) == sorted(numbers)[rank - 1]
    )
    exact = np.array([Fraction(x, 7) for x in numbers], dtype=object)
    assert kernels.order_statistic.py_func(exact, rank) == Fraction(sorted(numbers)[rank - 1], 7)


def operator(batch, ranks, v):
    """Return ``Tv`` from the definition."""
    mdp = batch.mdp
    z = mdp.reward + mdp.discount * v[mdp.successor]
    values = np.sort(np.add.reduceat(batch.draws * z, mdp.row_start[:-1], axis=1), axis=0)
    quantile = values[ranks[mdp.row_state] - 1, np.arange(mdp.num_rows)]
    return np.maximum.reduceat(quantile, mdp.state_start[:-1]), quantile


@pytest.mark.parametrize("domain", [
    riverswim(), machine_replacement(),
    garnet(30, 3, 4, discount=0.95, rng=np.random.default_rng(2)),
])  # fmt: skip
def test_the_fixed_point_is_one(domain):
    batch = batch_of(domain, 10, 900)
    ranks = np.full(batch.mdp.num_states, 13)
    point = fixed_point(batch, ranks, None, 1e-9, 10_000)
    assert point.converged
    image, rows = operator(batch, ranks, point.v)
    np.testing.assert_allclose(image, point.v, atol=2e-9)
    np.testing.assert_allclose(rows[point.choice], image, atol=1e-9)
    np.testing.assert_array_equal(batch.mdp.row_state[point.choice], np.arange(len(ranks)))
    # The draw said to attain the quantile does.
    z = batch.mdp.reward + batch.mdp.discount * point.v[batch.mdp.successor]
    worth = np.add.reduceat(batch.draws * z, batch.mdp.row_start[:-1], axis=1)
    np.testing.assert_allclose(worth[point.attained, point.choice], image, atol=1e-9)


def test_plain_sweeps_reach_the_same_point(monkeypatch):
    batch = batch_of(riverswim(), 10, 500)
    ranks = np.full(6, 9)
    jumped = fixed_point(batch, ranks, None, 1e-6, 10_000)
    place = "surefoot.certificates.var_operator"
    with monkeypatch.context() as patch:
        patch.setattr(f"{place}._jump", lambda *given: given[3])
        mixed = fixed_point(batch, ranks, None, 1e-6, 10_000)
        patch.setattr(f"{place}.Mixing.after", lambda *given: given[2])
        plain = fixed_point(batch, ranks, None, 1e-6, 10_000)
    with monkeypatch.context() as patch:
        # Jumps without a matrix.
        patch.setattr("surefoot.solvers.evaluation.evaluator.FULL_STATES", 1)
        sparse = fixed_point(
            replace(batch, evaluator=choose_evaluator(batch.mdp)), ranks, None, 1e-6, 10_000
        )
    for faster in (jumped, mixed, sparse):
        np.testing.assert_allclose(faster.v, plain.v, atol=4e-6)
        assert faster.sweeps < 0.2 * plain.sweeps
    short = fixed_point(batch, ranks, None, 1e-6, 3)
    assert not short.converged
    assert np.abs(short.v - jumped.v).max() <= short.error_bound + 1e-6


@pytest.mark.parametrize("weighted", [False, True])
def test_never_looser_than_the_ball_for_its_own_values(weighted):
    n, alpha, eta = 2000, 0.02, 0.01
    batch = batch_of(riverswim(), 10, n)
    rank = lower_rank(n, alpha, eta)
    # The ball's strict rank: the smallest k with P[Bin(n, 1-alpha) >= k] <= eta.
    size = next(k for k in range(n) if binom.sf(k - 1, n, 1 - alpha) <= eta)
    assert rank == n - size + 1
    rng = np.random.default_rng(5)
    mdp = batch.mdp
    weights = rng.uniform(0.2, 1.0, mdp.num_entries) if weighted else np.ones(mdp.num_entries)
    apart = weights * np.abs(batch.draws - mdp.probability)
    distance = np.sort(np.add.reduceat(apart, mdp.row_start[:-1], axis=1), axis=0)[size - 1]
    for row in range(mdp.num_rows):
        part = slice(mdp.row_start[row], mdp.row_start[row + 1])
        z = rng.normal(size=part.stop - part.start) * 10
        worst = worst_case(
            z, mdp.probability[part], budget=distance[row], weights=weights[part], norm="l1"
        )
        assert np.sort(batch.draws[:, part] @ z)[rank - 1] >= worst.value - 1e-9
    ball = AmbiguitySet(mdp=mdp, norm="l1", budget=distance, weights=weights)
    robust = solve(mdp, ball, tolerance=1e-6)
    point = fixed_point(batch, np.full(6, rank), None, 1e-6, 10_000)
    assert np.all(point.v + 2e-6 >= robust.lower)


def test_the_promise_is_the_one_of_the_formula():
    posterior, mdp = data(riverswim(), 50)
    solution = var_solve(posterior, mdp, delta=0.1, rng=np.random.default_rng(7), draws=1500,
                         promise_draws=4000)  # fmt: skip
    assert (solution.draws, solution.promise_draws) == (1500, 4000)
    fresh = posterior.sample(4000, np.random.default_rng(7).spawn(3)[2])
    reward = rewards_of(mdp, posterior, objective="max").fixed
    z = reward + mdp.discount * solution.value[mdp.successor]
    worth = np.sort(np.add.reduceat(fresh * z, mdp.row_start[:-1], axis=1), axis=0)
    rank = lower_rank(4000, 0.1 / 6, 0.001 / 6)
    q = np.array([worth[rank - 1, mdp.row_of(s, a)] for s, a in enumerate(solution.policy)])
    change = (q - solution.value).min() / (1 - mdp.discount)
    assert solution.promise == pytest.approx(mdp.initial @ solution.value + change, rel=1e-9)
    assert solution.promise < mdp.initial @ solution.value + change


def test_the_promise_holds_also_when_stopped_early():
    posterior, mdp = data(riverswim(), 100)
    early = var_solve(posterior, mdp, delta=0.1, rng=np.random.default_rng(0), max_iterations=2)
    assert early.status is Status.ITERATION_LIMIT
    late = var_solve(posterior, mdp, delta=0.1, rng=np.random.default_rng(0))
    assert late.status is Status.CONVERGED
    assert early.promise <= late.promise


@pytest.mark.parametrize("allocate", ["equal", "greedy"])
def test_coverage(allocate):
    """P* from the prior, data from P*: the promise fails in no more than delta of all cases."""
    skeleton, replications, delta = riverswim(discount=0.9).mdp, 100, 0.2
    nothing = Counts.on_rows_of(skeleton, np.zeros(skeleton.num_entries, dtype=np.int64))
    rng = np.random.default_rng(11)
    truths = DirichletPosterior(nothing).sample(replications, rng)
    failures = 0
    for truth in truths:
        true_mdp = MDP(
            **{name: getattr(skeleton, name) for name in (
                "state_start", "row_action", "row_start", "successor", "reward", "discount",
                "initial", "num_actions", "reward_per_entry")},
            probability=truth,
        )  # fmt: skip
        counts = Domain(name="true", mdp=true_mdp).simulate(5, rng)
        solution = var_solve(
            DirichletPosterior(counts), true_mdp, delta=delta, rng=rng, draws=400,
            promise_draws=2000, allocate=allocate,
        )  # fmt: skip
        failures += evaluate(true_mdp, solution.policy).return_upper < solution.promise
    assert binom.sf(failures - 1, replications, delta) > 0.001


def test_greedy_levels_share_delta_and_earn_more():
    batch = batch_of(riverswim(), 100, 4000)
    delta, eta = 0.05, 0.001
    equal = fixed_point(
        batch, strict_ranks(batch, equal_levels(batch, delta), eta), None, 1e-6, 10_000
    )
    levels, point = greedy_levels(batch, delta, eta, equal, 1e-6, 10_000, 16_000)
    assert levels.sum() <= delta
    assert levels.sum() == pytest.approx(delta)
    assert batch.initial @ point.v >= batch.initial @ equal.v
    assert all(lower_rank(4000, level, eta / 6) >= 1 for level in levels)
    assert levels.std() > 0


def test_certain_states_take_no_share_of_delta():
    mdp = MDP.from_arrays(
        [[[0.0, 0.5, 0.5]], [[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]]], [[0.0], [1.0], [0.0]],
        discount=0.9, initial=[1.0, 0.0, 0.0],
    )  # fmt: skip
    counts = Counts.on_rows_of(mdp, np.array([30, 10, 40, 40]))
    solution = var_solve(DirichletPosterior(counts), mdp, delta=0.05, rng=np.random.default_rng(0))
    assert solution.levels.tolist() == [0.05, 0.0, 0.0]
    assert solution.promise_draws == 16 * strict_draws(0.05, 0.001, 1)
    assert 0.9 * 10 * 0.55 < solution.promise < 0.9 * 10 * 0.7


def test_costs_mirror_rewards():
    posterior, mdp = data(machine_replacement(), 20)
    costs = MDP(**{**mdp.__dict__, "reward": -mdp.reward})
    gain = var_solve(posterior, mdp, delta=0.1, rng=np.random.default_rng(3))
    cost = var_solve(posterior, costs, delta=0.1, rng=np.random.default_rng(3), objective="min")
    np.testing.assert_array_equal(gain.policy, cost.policy)
    np.testing.assert_array_equal(gain.value, -cost.value)
    assert gain.promise == -cost.promise


def test_finitely_many_draws_are_split():
    posterior, mdp = data(riverswim(), 50)
    draws = PosteriorDraws.from_arrays(
        posterior.sample(4000, np.random.default_rng(0)), mdp=mdp, independent=True
    )
    solution = var_solve(draws, mdp, delta=0.1, rng=np.random.default_rng(1))
    assert solution.promise_draws == 2000
    assert solution.draws == 2000
    few = var_solve(draws, mdp, delta=0.1, rng=np.random.default_rng(1), draws=3000)
    assert few.draws == 2000
    assert "2000 draws (3000 asked for)" in few.note


@pytest.mark.parametrize(("options", "message"), [
    ({"promise_draws": 100}, "needs at least 518 draws"),
    ({"allocate": "fair"}, "choose 'equal' or 'greedy'"),
    ({"delta": 0.0}, "delta=0.0"),
    ({"delta": float("nan")}, "delta=nan"),
    ({"rng": 3}, "numpy Generator, got int"),
    ({"objective": "best"}, "'max' or 'min'"),
])  # fmt: skip
def test_bad_input(options, message):
    posterior, mdp = data(riverswim(), 5)
    arguments = {"delta": 0.1, "rng": np.random.default_rng(0)} | options
    with pytest.raises(ValueError, match=message):
        var_solve(posterior, mdp, **arguments)


def test_mixing_recovers_from_a_bad_mixture():
    """A mixture that made things worse is forgotten: the next sweep starts at the best image."""
    mixing = Mixing()
    good = np.array([1.0, 2.0, 3.0])
    assert mixing.after(np.zeros(3), good) is good
    near = np.array([1.0, 2.0, 2.5])
    mixing.after(good, near)
    assert mixing.after(np.zeros(3), np.array([0.0, 0.0, 50.0])) is near
    again = np.array([1.0, 2.0, 4.0])
    assert mixing.after(near, again) is again  # nothing is known yet
