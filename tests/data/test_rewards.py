"""Given rewards, unseen rewards, and how sure mean rewards are."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import random_logs as lg
from scipy import stats

from noisy_rewards import noisy_log, with_seen
from surefoot.data.counts import Counts
from surefoot.data.reward_uncertainty import mean_reward_interval, uncertain_rewards
from surefoot.data.rewards import RewardStatistics, pool
from surefoot.data.transitions import read_transitions

LOG = pd.DataFrame(
    [("a", "x", 1.0, "b"), ("a", "x", 2.0, "b"), ("b", "x", 4.0, "a"), ("b", "y", -3.0, "a")],
    columns=["state", "action", "reward", "next_state"],
)


def means(counts: Counts) -> dict[Any, float]:
    return {key: mean for key, (mean, _) in lg.rewarded(counts).items()}


def test_unseen_entries_get_the_lowest_of_their_action() -> None:
    counts = read_transitions(LOG).on_support("all")
    found = means(counts)
    assert found["a", "x", "b"] == 1.5
    assert found["a", "x", "a"] == found["b", "x", "b"] == 1.0
    assert found["b", "y", "b"] == -3.0
    assert counts.report is not None
    assert counts.report.filled_rewards == 3
    assert "3 possible transitions never seen" in counts.summary()


@pytest.mark.parametrize("kind", ["mapping", "short mapping", "array", "function", "csv", "pandas"])
def test_given_rewards_replace_those_seen(kind: str, tmp_path: Path) -> None:
    entries = [(s, a, t) for s in "ab" for a in "xy" for t in "ab"]
    value = {key: float(i) for i, key in enumerate(entries)}
    if kind == "short mapping":
        value = {key: float("ab".index(key[0])) for key in entries}
    listed = pd.DataFrame(
        [(*key, v) for key, v in value.items()], columns=["state", "action", "next_state", "reward"]
    )
    listed.to_csv(tmp_path / "rewards.csv", index=False)
    given: Any = {
        "mapping": value,
        "short mapping": {(s, a): float("ab".index(s)) for s in "ab" for a in "xy"},
        "array": np.array([value[key] for key in entries]).reshape(2, 2, 2),
        "function": lambda s, a, t: value[s, a, t],
        "csv": tmp_path / "rewards.csv",
        "pandas": listed,
    }[kind]
    read = read_transitions(LOG, reward=given)
    later = read_transitions(LOG).with_rewards(given)
    for counts in (read, later):
        assert counts.reward_model == "fixed" or counts is later
        placed = counts.on_support("all", unvisited="prior")
        assert not uncertain_rewards(placed).any()
        assert means(placed) == value
    mdp = read_transitions(LOG, reward=None).to_mdp(discount=0.9, support="all", rewards=given)
    # (a, y) was never tried: it is not offered, with whatever reward.
    assert mdp.num_rows == 3


def test_a_partial_table_leaves_the_rest_as_seen() -> None:
    counts = read_transitions(LOG).with_rewards({("b", "x", "a"): 7.0, ("b", "x", "b"): 9.0})
    found = means(counts.on_support("all"))
    assert found["b", "x", "a"] == 7.0
    assert found["b", "x", "b"] == 9.0
    assert found["a", "x", "b"] == 1.5
    assert found["a", "x", "a"] == 1.0  # still the lowest seen under x


def test_a_table_of_state_and_action_alone(tmp_path: Path) -> None:
    path = tmp_path / "rewards.csv"
    path.write_text("state,action,reward\na,x,5\nb,x,6\nb,y,7\n")
    counts = read_transitions(LOG, reward=path)
    assert means(counts.on_support("all"))["a", "x", "a"] == 5.0
    path.write_text("state,action,reward\na,x,5\na,x,6\n")
    with pytest.raises(ValueError, match="state 'a', action 'x' more than one reward"):
        read_transitions(LOG, reward=path)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros((3, 2)), "rewards has shape"),
        ({("a",): 1.0}, "keys are"),
        ({("a", "x"): np.nan}, "finite"),
        (lambda s, a, t: np.inf, "the reward function returned inf for state 'a'"),
        (object(), "rewards must be an array"),
    ],
)
def test_bad_given_rewards(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_transitions(LOG).with_rewards(given)


def test_no_rewards_at_all() -> None:
    counts = read_transitions(LOG, reward=None)
    assert "no rewards" in counts.summary()
    assert counts.on_support().reward_mean is None
    with pytest.raises(ValueError, match="these counts have no rewards"):
        counts.to_mdp(discount=0.9)
    with pytest.raises(ValueError, match="rewards has no reward for state 'a', action 'x'"):
        counts.with_rewards({("z", "x"): 1.0})


def test_the_default_is_not_fixed_when_rewards_vary() -> None:
    assert read_transitions(LOG).reward_model == "bounded"
    assert read_transitions(LOG[1:]).reward_model == "fixed"
    assert read_transitions(LOG, rewards="fixed").reward_model == "fixed"
    assert "1 transition shows more than one reward" in read_transitions(LOG).summary()


def test_only_noisy_actions_are_uncertain() -> None:
    counts = read_transitions(LOG).on_support("all")
    found = dict(zip(lg.counted(counts), uncertain_rewards(counts).tolist(), strict=True))
    assert {key for key, value in found.items() if value} == {("a", "x", "b"), ("b", "x", "a")}


def test_pooling_matches_all_rewards_at_once() -> None:
    rng = np.random.default_rng(0)
    parts = [rng.normal(5, 2, size) for size in (1, 4, 10)]
    each = RewardStatistics(
        np.array([p.mean() for p in parts]),
        np.array([np.nan, parts[1].var(ddof=1), parts[2].var(ddof=1)]),
    )
    whole = pool(np.zeros(3, int), np.array([1, 4, 10]), each, 1)
    together = np.concatenate(parts)
    np.testing.assert_allclose(whole.mean, together.mean())
    np.testing.assert_allclose(whole.variance, together.var(ddof=1))


@pytest.mark.parametrize("model", ["normal", "bounded"])
def test_intervals_cover_all_means_together(model: Any) -> None:
    rng = np.random.default_rng(5)
    delta, trials, misses = 0.1, 2000, 0
    log = noisy_log(8, rng, lambda n, g: g.normal(size=n))
    counts = read_transitions(log, rewards=model, reward_range=(-5, 5))
    for _ in range(trials):
        if model == "bounded":
            seen = np.where(rng.random((2, 6)) < 0.3, 5.0, -5.0)  # the widest law in the range
            truth = -2.0
        else:
            seen, truth = rng.normal(1.0, 3.0, (2, 3)), 1.0
        low, high = mean_reward_interval(with_seen(counts, seen), delta)
        misses += bool(np.any((low > truth) | (high < truth)))
    assert misses <= stats.binom.isf(1e-6, trials, delta)


def test_certain_rewards_have_no_width() -> None:
    counts = read_transitions(LOG, rewards="fixed").on_support("all")
    low, high = mean_reward_interval(counts, 0.05)
    np.testing.assert_array_equal(low, counts.reward_mean)
    np.testing.assert_array_equal(high, counts.reward_mean)
    with pytest.raises(ValueError, match="delta=0"):
        mean_reward_interval(counts, 0.0)


def test_long_equal_rewards_do_not_vary() -> None:
    """Sums of many equal numbers are rounded; that must not look like uncertain rewards."""
    size = 300_000
    rng = np.random.default_rng(0)
    state, after = rng.integers(0, 4, (2, size))
    table = rng.normal(size=(4, 4))
    log = {"state": state, "action": np.zeros(size, int), "next_state": after,
           "reward": table[state, after]}  # fmt: skip
    half = size // 2
    whole = read_transitions(log)
    both = read_transitions({k: v[:half] for k, v in log.items()}) + read_transitions(
        {k: v[half:] for k, v in log.items()}
    )
    for counts in (whole, both):
        assert counts.reward_model == "fixed"
        assert not counts.rewards_vary
        np.testing.assert_allclose(counts.reward_mean, table.ravel(), rtol=1e-11)


def test_the_worst_includes_what_a_function_says_of_unseen_transitions() -> None:
    counts = read_transitions(LOG).with_rewards(
        lambda s, a, t: -50.0 if (s, t) == ("a", "a") else 0
    )
    placed = counts.on_support("all", min_visits=2)
    assert means(placed)["a", "x", "a"] == -50.0
    assert means(placed)["b", "x", "b"] == -50.0  # withheld rows: stuck at the worst there is
    assert placed.report is not None
    assert placed.report.lowest_reward == -50.0
