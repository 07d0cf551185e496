"""What missed losses can cost: the most costly rates by definition, and whether promises hold."""

from dataclasses import replace
from typing import Any

import cvxpy
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import surefoot as sf
from surefoot._order_statistics import lower_rank
from surefoot.data.counts import Counts
from surefoot.model.policies import check_policy
from surefoot.posterior.protocol import stream_key
from surefoot.solvers.evaluation.missed_losses import MissedLosses, missed_by_luck, missed_losses
from surefoot.solvers.evaluation.returns import policy_returns
from surefoot.solvers.evaluation.rewards import Rewards, rewards_of
from surefoot.solvers.evaluation.visits import plays_of_rows

Floats = NDArray[np.float64]


def ring(rewards: Floats, low: float, high: float) -> Counts:
    """Return counts of a ring of states with an action each: row ``s`` shows ``rewards[s]``.

    One more state, the last of the ring, with an action of its own, is where nothing is played.
    """
    rows, tries = rewards.shape
    state = np.repeat(np.arange(rows + 1), tries)
    paid = np.concatenate((rewards.ravel(), np.full(tries, low)))
    log = {"state": state, "action": (state == rows).astype(int),
           "next_state": (state + 1) % (rows + 1), "reward": paid}  # fmt: skip
    return sf.read_transitions(log, reward_range=(low, high)).on_support("observed")


def with_rewards(counts: Counts, rewards: Floats) -> Counts:
    """Return the counts of `ring` with other rewards, without reading another log."""
    seen, tries = rewards.shape
    scatter = rewards.var(axis=1, ddof=1) if tries > 1 else np.full(seen, np.nan)
    assert counts.reward_mean is not None
    assert counts.reward_var is not None
    mean, variance = counts.reward_mean.copy(), counts.reward_var.copy()
    mean[:seen], variance[:seen] = rewards.mean(axis=1), scatter
    return replace(counts, reward_mean=mean, reward_var=variance, reward_sums=None)


def returns_of(counts: Counts, n: int, seed: int, **options: Any) -> Floats:
    """Return draws of what one way along the ring pays, up to its last state."""
    rows = counts.num_states - 1
    first = np.eye(1, rows + 1).ravel()
    mdp = counts.to_mdp(discount=1.0, prior=1.0, horizon=rows, initial=first)
    policy = check_policy(mdp, (np.arange(rows + 1) == rows).astype(np.int64))
    posterior = sf.DirichletPosterior(counts)
    rewards = rewards_of(mdp, posterior, objective="max")
    found = policy_returns(
        posterior, mdp, policy, n, np.random.default_rng(seed), rewards=rewards, **options
    )
    return np.asarray(found.lower)


@pytest.mark.parametrize("tries", [1, 4, 30])
def test_a_single_row_has_the_law_of_gaffke(tries: int) -> None:
    """Rewards that were always 3: n of them at 3, one at the low end."""
    counts = ring(np.full((1, tries), 3.0), 1.0, 8.0)
    draws = returns_of(counts, 20_000, 1)
    if tries > 1:
        assert stats.kstest((draws - 1.0) / 2.0, stats.beta(tries, 1).cdf).pvalue > 1e-3
    else:  # nothing shows how rewards scatter: the mean is drawn from a law as wide as can be
        assert np.quantile(draws, 0.05) <= 1.0 + 2.0 * stats.beta(1, 1).ppf(0.05) + 0.02
    best = returns_of(counts, 20_000, 1, missed=False)
    assert (best >= draws).all()
    assert best.mean() == pytest.approx(3.0, abs=0.05)


RATES: dict[str, Any] = {
    "one bad row": lambda rows, n: np.where(np.arange(rows) == 0, 1.0 - 0.05 ** (1 / n), 0.0),
    "all bad alike": lambda rows, n: np.full(rows, 1.0 - 0.05 ** (1 / (n * rows))),
    "often": lambda rows, n: np.full(rows, 0.3),
    "now and then": lambda rows, n: np.full(rows, 1.0 / n),
    "few often": lambda rows, n: np.where(np.arange(rows) % 5 == 0, 0.5, 0.02),
    "all but one": lambda rows, n: np.where(np.arange(rows) == 0, 0.0, 0.9),
}
"""Rates of losses. The first two are hardest for a bound: none is seen in one log of twenty."""


@pytest.mark.parametrize("name", RATES)
@pytest.mark.parametrize("rows", [1, 4, 30])
@pytest.mark.parametrize("tries", [1, 10])
def test_a_fixed_truth_lies_below_the_quantile_as_often_as_claimed(
    name: str, rows: int, tries: int
) -> None:
    rate = RATES[name](rows, tries)
    rng, trials = np.random.default_rng(7), 250
    truth = 1.0 - rate.mean()
    broken = np.zeros(2, dtype=np.int64)
    log = ring(np.ones((rows, tries)), 0.0, 1.0)
    for trial in range(trials):
        seen = 1.0 - (rng.random((rows, tries)) < rate[:, None])
        draws = returns_of(with_rewards(log, seen), 400, trial) / rows
        broken += np.quantile(draws, (0.05, 0.2)) > truth + 1e-9
    for delta, times in zip((0.05, 0.2), broken, strict=True):
        assert times <= stats.binom.isf(1e-3, trials, delta), (name, rows, tries, delta)


def test_what_is_missed_is_no_numerical_error() -> None:
    counts = ring(np.ones((4, 10)), 0.0, 1.0)
    mdp = counts.to_mdp(discount=0.9, prior=1.0, initial=np.eye(5)[0])
    policy = (np.arange(5) == 4).astype(np.int64)
    made = sf.certify(policy, sf.DirichletPosterior(counts), mdp, rng=np.random.default_rng(0))
    assert made.nominal_return - made.lower_bound > 0.1
    assert made.numerical_error < 1e-6


def test_counts_with_other_rewards_are_those_of_their_log() -> None:
    seen = np.random.default_rng(2).random((4, 3))
    read, made = ring(seen, 0.0, 1.0), with_rewards(ring(np.ones((4, 3)), 0.0, 1.0), seen)
    np.testing.assert_allclose(returns_of(made, 50, 1), returns_of(read, 50, 1), rtol=1e-9)


def test_rows_that_are_alike_pay_as_one_row_with_all_their_tries() -> None:
    """With a further reward in each row the doubt of thirty rows would be thirty times as large."""
    counts = ring(np.ones((30, 10)), 0.0, 1.0)
    ends = returns_of(counts, 4000, 1) / 30.0
    assert stats.kstest(ends, stats.beta(300, 1).cdf).pvalue > 1e-3


@pytest.mark.parametrize("trial", range(20))
def test_the_most_costly_rates_are_found(trial: int) -> None:
    """``max sum c p`` such that luck is no rarer, by a conic solver."""
    rng = np.random.default_rng(trial)
    size = int(rng.integers(1, 6))
    tries, cost = rng.integers(1, 12, size).astype(np.float64), rng.exponential(1.0, size)
    order = np.argsort(-cost / tries)
    losses = MissedLosses(rows=order, tries=tries[order], cost=cost[order])
    missed = rng.exponential(2.0, 6)
    got = losses.total(missed)
    np.testing.assert_allclose(losses.of_rows(missed).sum(axis=1), got, rtol=1e-9)
    for one, most in zip(missed, got, strict=True):
        rate = cvxpy.Variable(size)
        limits = [rate >= 0, rate <= 1, tries @ -cvxpy.log(1 - rate) <= one]
        problem = cvxpy.Problem(cvxpy.Maximize(cost @ rate), limits)
        problem.solve(solver=cvxpy.CLARABEL)
        assert most == pytest.approx(problem.value, rel=1e-5, abs=1e-7)


def _any_model(rng: np.random.Generator) -> tuple[Any, Rewards]:
    log = {"state": rng.integers(0, 5, 300), "action": rng.integers(0, 3, 300),
           "next_state": rng.integers(0, 5, 300), "reward": rng.normal(size=300)}  # fmt: skip
    counts = sf.read_transitions(log, reward_range=(-9.0, 5.0)).on_support("observed")
    mdp = counts.to_mdp(discount=0.9, prior=1.0)
    return mdp, rewards_of(mdp, sf.DirichletPosterior(counts), objective="max")


def _plays(mdp: Any, shares: list[Floats]) -> Floats:
    """Return the discounted plays of every row, from ``(S, A)`` shares of each step."""
    visits, plays = np.array(mdp.initial), np.zeros(mdp.num_rows)
    for share in shares:
        now = visits[mdp.row_state] * share[mdp.row_state, mdp.row_action]
        plays += now
        moved = mdp.discount * now[mdp.entry_row] * mdp.probability
        visits = np.bincount(mdp.successor, moved, mdp.num_states)
    return plays


@pytest.mark.parametrize("horizon", [None, 1, 6])
@pytest.mark.parametrize("kind", ["rule", "mixed", "by step"])
def test_it_lies_where_it_costs_most_for_each_try(kind: str, horizon: int | None) -> None:
    """From the definition, step by step."""
    rng = np.random.default_rng(3)
    mdp, rewards = _any_model(rng)
    if horizon is not None:
        mdp = mdp.over(horizon)
    elif kind == "by step":
        return  # a rule that depends on the step needs a horizon
    steps = horizon or 400
    if kind == "by step":
        policy: Any = rng.integers(0, 3, (steps, 5))
        shares = [np.eye(3)[actions] for actions in policy]
    else:
        policy = rng.integers(0, 3, 5) if kind == "rule" else rng.dirichlet(np.ones(3), 5)
        shares = [np.eye(3)[policy] if kind == "rule" else policy] * steps
    counts = rewards.counts
    assert counts is not None
    weight = _plays(mdp, shares)
    worth, tries = np.zeros(mdp.num_rows), np.zeros(mdp.num_rows)
    for entry, row in enumerate(mdp.entry_row):
        worth[row] += mdp.probability[entry] * (counts.reward_mean[entry] + 9.0)
        tries[row] += counts.count[entry]
    plays = plays_of_rows(mdp, check_policy(mdp, policy))
    np.testing.assert_allclose(plays, weight, rtol=1e-5, atol=1e-12)
    found = missed_losses(mdp, plays, rewards)
    played = np.flatnonzero(weight)
    assert set(found.rows) == set(played)
    np.testing.assert_allclose(found.cost, (weight * worth)[found.rows], rtol=1e-5)
    np.testing.assert_array_equal(found.tries, tries[found.rows])
    assert (np.diff(found.cost / found.tries) <= 0).all()


def test_a_difference_may_have_missed_a_gain_of_the_other_policy() -> None:
    """Where the other policy plays a row more often, the high end counts."""
    mdp, rewards = _any_model(np.random.default_rng(5))
    counts = rewards.counts
    assert counts is not None
    plays = np.zeros(mdp.num_rows)
    plays[2] = -3.0
    found = missed_losses(mdp, plays, rewards)
    here = mdp.entry_row == 2
    gain = 3.0 * np.sum(mdp.probability[here] * (5.0 - counts.reward_mean[here]))
    assert found.rows.tolist() == [2]
    assert found.cost[0] == pytest.approx(gain)
    assert len(missed_losses(mdp, np.zeros(mdp.num_rows), rewards).rows) == 0


def test_luck_is_exponential_and_the_same_for_any_number_of_draws() -> None:
    key = stream_key(np.random.default_rng(4))
    luck = missed_by_luck(key, 20_000)
    assert stats.kstest(luck, stats.expon.cdf).pvalue > 1e-3
    np.testing.assert_array_equal(missed_by_luck(key, 40), luck[:40])


def test_nothing_is_charged_where_rewards_are_known() -> None:
    counts = ring(np.tile([[0.0], [5.0]], (1, 6)), 0.0, 9.0)
    exact = sf.read_transitions(
        {"state": [0, 1], "action": [0, 0], "next_state": [1, 0], "reward": [1.0, 2.0]}
    ).on_support("observed")
    for source, charged in ((counts, True), (exact, False)):
        mdp = source.to_mdp(discount=0.9, prior=1.0)
        rewards = rewards_of(mdp, sf.DirichletPosterior(source), objective="max")
        paid = missed_losses(mdp, np.ones(mdp.num_rows), rewards).total(np.ones(5))
        assert bool((paid > 0).all()) is charged
        assert charged or not paid.any()


def test_a_difference_pays_for_one_reward_where_policies_differ() -> None:
    """``compare``: both policies seem to earn 1 a step; one loss, or one gain, may be missing."""
    state, action = np.repeat([0, 0, 1, 1], 8), np.repeat([0, 1, 0, 1], 8)
    log = {"state": state, "action": action, "next_state": 1 - state, "reward": np.ones(32)}
    end = {}
    for high in (1.0, 3.0):
        counts = sf.read_transitions(log, reward_range=(0.0, high)).on_support("observed")
        mdp, posterior = counts.to_mdp(discount=0.5, prior=1.0), sf.DirichletPosterior(counts)
        rng = np.random.default_rng(1)
        made = sf.compare([0, 1], [1, 1], posterior, mdp, draws=4000, rng=rng)
        end[high] = made.difference_lower_bound
    # State 0 is played once; its two rows differ in plays by 1 and -1 discounted.
    plays = 0.5 / (1 - 0.25) + 0.5 * 0.5 / (1 - 0.25)
    missed = plays * (1.0 - (lower_rank(4000, 0.05, 0.001) / 4000) ** (1 / 8))
    assert end[1.0] == pytest.approx(-missed, rel=0.04)
    assert end[3.0] == pytest.approx(-2.0 * missed, rel=0.04)
