"""Draws of uncertain mean rewards: their laws, and that they depend on their key alone."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from noisy_rewards import noisy_log, with_seen
from surefoot.data.counts import Counts
from surefoot.data.reward_uncertainty import bounded_law
from surefoot.data.transitions import read_transitions
from surefoot.posterior.mean_rewards import MeanRewards, draw_mean_rewards
from surefoot.posterior.pooled_rewards import pool_rewards
from surefoot.posterior.protocol import stream_key


def pooled_law(counts: Counts, entry: int) -> tuple[Any, Any, Any, int]:
    """Return weight, centre and scale of the Student laws whose mixture a mean follows.

    From the definition: the means seen of an action are jointly normal with the covariance
    ``sigma^2 (diag(1/n) + within I + between same_row)``, for every pair of ratios on the grid.
    """
    size, seen = counts.count.astype(float), np.asarray(counts.reward_mean)
    same_row = np.equal.outer(counts.entry_row, counts.entry_row).astype(float)
    inside = float(np.nansum((size - 1) * np.asarray(counts.reward_var)))
    freedom = int(size.sum()) - 1
    grid = pool_rewards(counts).ratio[0]
    found = []
    for within in grid:
        for between in grid:
            own = within * np.eye(len(size)) + between * same_row
            solve = np.linalg.inv(np.diag(1 / size) + own)
            ones = np.ones(len(size))
            precision = ones @ solve @ ones
            level = ones @ solve @ seen / precision
            square = inside + (seen - level) @ solve @ (seen - level)
            log_weight = 0.5 * np.linalg.slogdet(solve)[1] - 0.5 * np.log(precision)
            log_weight -= 0.5 * freedom * np.log(square)
            centre = level + own[entry] @ solve @ (seen - level)
            pull = 1 - own[entry] @ solve @ ones  # what the level's own doubt adds
            spread = own[entry, entry] - own[entry] @ solve @ own[entry] + pull**2 / precision
            found.append((log_weight, centre, np.sqrt(square / freedom * spread)))
    log_weight, centre, scale = np.array(found).T
    weight = np.exp(log_weight - log_weight.max())
    return weight / weight.sum(), centre, scale, freedom


def test_normal_draws_follow_the_pooled_law() -> None:
    rng = np.random.default_rng(1)
    state = rng.integers(0, 3, 30)
    log = {"state": state, "action": np.zeros(30, int), "next_state": rng.integers(0, 3, 30),
           "reward": state + rng.normal(0, 1, 30)}  # fmt: skip
    counts = read_transitions(log, rewards="normal")
    draws = draw_mean_rewards(counts, 20_000, np.random.default_rng(2))
    for entry in (0, 4):
        weight, centre, scale, freedom = pooled_law(counts, entry)
        for level in (0.01, 0.1, 0.5, 0.9, 0.99):
            end = np.quantile(draws[:, entry], level)
            below = weight @ stats.t.cdf((end - centre) / scale, freedom)
            assert abs(below - level) < 4.5 * np.sqrt(level * (1 - level) / 20_000)


def test_a_single_mean_follows_the_student_law() -> None:
    """With one entry there is nothing to pool: the classical posterior of a normal mean."""
    seen = np.random.default_rng(1).normal(0, 1, 6)
    log = {"state": [0] * 6 + [1], "action": [0] * 6 + [1], "next_state": [1] * 6 + [0],
           "reward": [*seen, 0.0]}  # fmt: skip
    draws = draw_mean_rewards(
        read_transitions(log, rewards="normal"), 40_000, np.random.default_rng(2)
    )
    scaled = (draws[:, 0] - seen.mean()) / np.sqrt(seen.var(ddof=1) / 6)
    assert stats.kstest(scaled, stats.t(df=5).cdf).pvalue > 1e-3


def test_means_that_scatter_widely_are_left_alone() -> None:
    """The grid of ratios goes as far up as the means seen need."""
    rng = np.random.default_rng(1)
    log = noisy_log(400, rng, lambda n, g: 1e6 * (np.arange(n) % 2) + g.normal(0, 1e-3, n))
    counts = read_transitions(log, rewards="normal")
    draws = draw_mean_rewards(counts, 4000, np.random.default_rng(2))
    np.testing.assert_allclose(draws.mean(axis=0), counts.reward_mean, atol=1e-3)
    assert draws.std(axis=0).max() < 1e-3


def test_bounded_draws_of_rewards_at_the_ends_follow_clopper_and_pearson() -> None:
    log = noisy_log(20, np.random.default_rng(1), lambda n, rng: rng.integers(0, 2, n) * 10.0)
    counts = read_transitions(log, reward_range=(0.0, 10.0))
    draws = draw_mean_rewards(counts, 40_000, np.random.default_rng(2))
    assert draws.min() >= 0
    assert draws.max() <= 10
    for entry in range(2):
        wins = round(counts.reward_mean[entry])  # of ten tries
        law = stats.beta(wins, 10 - wins + 1)
        assert stats.kstest(draws[:, entry] / 10, law.cdf).pvalue > 1e-3


@pytest.mark.parametrize("size", [1, 4])
def test_one_reward_only_is_uncertain_in_a_declared_range(size: int) -> None:
    """Exactly Gaffke's law: n rewards at 3, one more at the low end."""
    log = {"state": [0] * size + [1], "action": [0] * size + [1], "next_state": [1] * size + [0],
           "reward": [3.0] * size + [3.0]}  # fmt: skip
    counts = read_transitions(log, reward_range=(1.0, 8.0))
    assert counts.reward_model == "bounded"
    draws = draw_mean_rewards(counts, 40_000, np.random.default_rng(2))
    assert stats.kstest((draws[:, 0] - 1) / 2, stats.beta(size, 1).cdf).pvalue > 1e-3
    assert draws[:, 1].std() > 0
    exact = read_transitions(log)
    assert (draw_mean_rewards(exact, 10, np.random.default_rng(2)) == 3.0).all()
    given = read_transitions(log, reward={(0, 0): 3.0, (1, 1): 3.0}, reward_range=(1.0, 8.0))
    assert (draw_mean_rewards(given, 10, np.random.default_rng(2)) == 3.0).all()


def test_bounded_draws_have_the_moments_of_gaffkes_law() -> None:
    rng = np.random.default_rng(3)
    seen = rng.beta(2, 1, (2, 12))
    counts = read_transitions(noisy_log(8, rng, lambda n, g: g.random(n)), reward_range=(-0.5, 4.0))
    draws = draw_mean_rewards(with_seen(counts, seen), 40_000, rng)
    for entry in range(2):
        weights = rng.dirichlet(np.ones(13), 40_000)
        exact = weights @ np.append(seen[entry], -0.5)
        assert draws[:, entry].mean() == pytest.approx(exact.mean(), abs=0.005)
        assert draws[:, entry].std() == pytest.approx(exact.std(), rel=0.02)
        assert np.quantile(draws[:, entry], 0.02) < np.quantile(exact, 0.02)


SKEWED: dict[str, Any] = {
    "rarely high": (lambda g, n: (g.random(n) < 0.05) * 1.0, 0.05),
    "rarely low": (lambda g, n: (g.random(n) < 0.95) * 1.0, 0.95),
    "rarely low, half way up": (lambda g, n: (g.random(n) < 0.9) * 0.5, 0.45),
    "uniform": (lambda g, n: g.random(n), 0.5),
    "skewed down": (lambda g, n: g.beta(5, 0.3, n), 5 / 5.3),
    "skewed up": (lambda g, n: g.beta(0.3, 5, n), 0.3 / 5.3),
    "catastrophes": (lambda g, n: np.where(g.random(n) < 0.005, 0.0, 0.999), 0.995 * 0.999),
}


@pytest.mark.parametrize("name", SKEWED)
@pytest.mark.parametrize("size", [1, 2, 5, 20, 100])
def test_quantiles_of_the_bounded_law_are_confidence_bounds(name: str, size: int) -> None:
    """A fixed truth lies below the delta-quantile at most as often as delta says."""
    draw, truth = SKEWED[name]
    trials = 4000
    seen = draw(np.random.default_rng(8), (trials, size))
    with_variance = np.full(trials, np.nan) if size == 1 else seen.var(axis=1, ddof=1)
    counts = replace(
        read_transitions(
            {"state": np.arange(trials), "action": np.zeros(trials, int),
             "next_state": (np.arange(trials) + 1) % trials, "reward": np.zeros(trials)},
            reward_range=(0.0, 1.0),
        ),
        count=np.full(trials, size), reward_mean=seen.mean(axis=1), reward_var=with_variance,
    )  # fmt: skip
    law = bounded_law(counts)
    for delta in (0.05, 0.2):
        share = stats.beta.ppf(delta, np.maximum(law.successes, 1e-300), law.failures)
        bound = law.lowest + law.width * np.where(law.successes > 0, share, 0.0)
        assert np.count_nonzero(bound > truth + 1e-12) <= stats.binom.isf(1e-4, trials, delta)


def test_draws_cover_the_true_mean() -> None:
    """The delta-quantile of bounded draws lies above the truth at most as often as it says."""
    rng = np.random.default_rng(6)
    delta, trials, misses = 0.1, 1000, 0
    log = noisy_log(8, rng, lambda n, g: g.random(n))
    counts = read_transitions(log, rewards="bounded", reward_range=(0, 1))
    for _ in range(trials):
        # The second entry keeps the action noisy when the first shows one reward only.
        seen = np.stack((rng.random(10) < 0.3, np.arange(10) < 5)).astype(float)
        draws = draw_mean_rewards(with_seen(counts, seen), 400, rng)[:, 0]
        misses += np.quantile(draws, delta) > 0.3
    assert misses <= stats.binom.isf(1e-6, trials, delta)


def test_a_mean_at_the_end_of_the_range_can_be_drawn() -> None:
    """A mean may leave the range by a rounding; no success at all is the lowest reward for sure."""
    log = noisy_log(6, np.random.default_rng(0), lambda n, _: np.arange(n) % 3.0)
    counts = read_transitions(log, reward_range=(0.0, 2.0))
    edge = replace(counts, reward_mean=np.array([np.nextafter(2.0, 3.0), 0.0]))
    draws = draw_mean_rewards(edge, 1000, np.random.default_rng(0))
    assert np.isfinite(draws).all()
    assert (draws <= 2.0).all()
    assert (draws[:, 1] == 0.0).all()


@pytest.mark.parametrize("model", ["normal", "bounded"])
def test_draws_depend_on_key_and_entry_alone(model: Any) -> None:
    rng = np.random.default_rng(3)
    log = {"state": rng.integers(0, 5, 400), "action": rng.integers(0, 3, 400),
           "next_state": rng.integers(0, 5, 400), "reward": rng.normal(size=400)}  # fmt: skip
    rewards = MeanRewards(read_transitions(log, rewards=model).on_support("observed"))
    key = stream_key(np.random.default_rng(4))
    whole = rewards.draws(key, 0, 200)
    assert whole.shape == (200, rewards.counts.num_entries)
    entries = np.array([7, 3, 20])
    for first, last in ((0, 200), (0, 1), (5, 30), (16, 48), (33, 199)):
        part = rewards.draws(key, first, last, entries)
        np.testing.assert_array_equal(part, whole[first:last, entries])
    other = rewards.draws(stream_key(np.random.default_rng(5)), 0, 200)
    assert (other[:, rewards.uncertain] != whole[:, rewards.uncertain]).all()
    # Draws are independent; entries are where they share no level.
    many = rewards.draws(key, 0, 4000)[:, rewards.uncertain]
    if model == "bounded":
        assert np.abs(np.corrcoef(many.T) - np.eye(many.shape[1])).max() < 0.1
    assert abs(np.corrcoef(many[:-1, 0], many[1:, 0])[0, 1]) < 0.06


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    log = noisy_log(40, np.random.default_rng(1), lambda n, rng: rng.random(n))
    rewards = MeanRewards(read_transitions(log))
    key = stream_key(np.random.default_rng(4))
    alone = rewards.draws(key, 0, 500)
    monkeypatch.setattr("surefoot.posterior.mean_rewards.WORTH_A_THREAD", 10)
    np.testing.assert_array_equal(rewards.draws(key, 0, 500), alone)
