"""Draws of uncertain mean rewards: their laws, and that they depend on their key alone."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from surefoot.data.counts import Counts
from surefoot.data.transitions import read_transitions
from surefoot.posterior.mean_rewards import MeanRewards, draw_mean_rewards
from surefoot.posterior.protocol import stream_key


def noisy_log(size: int, rng: np.random.Generator, draw: Any) -> dict[str, Any]:
    state = np.arange(size) % 2
    return {"state": state, "action": np.zeros(size, int), "next_state": 1 - state,
            "reward": draw(size, rng)}  # fmt: skip


def with_seen(counts: Counts, rewards: Any) -> Counts:
    """Return counts of two entries whose rewards are the rows of an array."""
    return replace(
        counts,
        count=np.full(2, rewards.shape[1]),
        reward_mean=rewards.mean(axis=1),
        reward_var=rewards.var(axis=1, ddof=1),
    )


def test_normal_draws_follow_the_student_law() -> None:
    counts = read_transitions(
        noisy_log(12, np.random.default_rng(1), lambda n, rng: rng.normal(0, 1, n)),
        rewards="normal",
    )
    draws = draw_mean_rewards(counts, 40_000, np.random.default_rng(2))
    pooled = counts.reward_var.mean()  # equal counts in both entries
    for entry in range(2):
        scaled = (draws[:, entry] - counts.reward_mean[entry]) / np.sqrt(pooled / 6)
        assert stats.kstest(scaled, stats.t(df=10).cdf).pvalue > 1e-3


def test_bounded_draws_lie_in_the_range_and_below_the_uniform_prior() -> None:
    log = noisy_log(20, np.random.default_rng(1), lambda n, rng: rng.integers(0, 2, n) * 10.0)
    counts = read_transitions(log, reward_range=(0.0, 10.0))
    draws = draw_mean_rewards(counts, 40_000, np.random.default_rng(2))
    assert draws.min() >= 0
    assert draws.max() <= 10
    for entry in range(2):
        wins = round(counts.reward_mean[entry])  # of ten tries
        law = stats.beta(wins, 10 - wins + 1)
        assert stats.kstest(draws[:, entry] / 10, law.cdf).pvalue > 1e-3


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
    # Entries are independent given the spread, and so are draws.
    many = rewards.draws(key, 0, 4000)[:, rewards.uncertain]
    assert np.abs(np.corrcoef(many.T) - np.eye(many.shape[1])).max() < 0.1
    assert abs(np.corrcoef(many[:-1, 0], many[1:, 0])[0, 1]) < 0.06


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    log = noisy_log(40, np.random.default_rng(1), lambda n, rng: rng.random(n))
    rewards = MeanRewards(read_transitions(log))
    key = stream_key(np.random.default_rng(4))
    alone = rewards.draws(key, 0, 500)
    monkeypatch.setattr("surefoot.posterior.mean_rewards.WORTH_A_THREAD", 10)
    np.testing.assert_array_equal(rewards.draws(key, 0, 500), alone)
