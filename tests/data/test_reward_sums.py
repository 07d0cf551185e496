"""Sums of rewards: exact, and the same whatever the order, the files and the threads."""

from dataclasses import fields
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from surefoot.data import sources, tally
from surefoot.data.counts import Counts
from surefoot.data.reward_sums import digits_for, from_limbs, limbs_needed, to_limbs
from surefoot.data.transitions import read_transitions

ROWS = 60_000


def random_log(rows: int, scale: float = 1.0) -> pl.DataFrame:
    rng = np.random.default_rng(5)
    return pl.DataFrame(
        {
            "state": rng.integers(0, 6, rows),
            "action": rng.integers(0, 2, rows),
            "reward": scale * rng.normal(size=rows) * 10.0 ** rng.integers(-4, 3, rows),
            "next_state": rng.integers(0, 6, rows),
        }
    )


def same_bits(one: Counts, other: Counts) -> None:
    for field in fields(Counts):
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        if isinstance(mine, np.ndarray):
            assert mine.tobytes() == theirs.tobytes(), field.name


def test_row_order_files_kinds_and_merging_give_the_same_bits(tmp_path: Path) -> None:
    log = random_log(ROWS)
    whole = read_transitions(log)
    shuffled = log.sample(fraction=1.0, shuffle=True, seed=1)
    same_bits(read_transitions(shuffled), whole)
    log.write_csv(tmp_path / "log.csv")
    same_bits(read_transitions(tmp_path / "log.csv"), whole)
    for i, start in enumerate(range(0, ROWS, 13_000)):
        log.slice(start, 13_000).write_parquet(tmp_path / f"{i}.parquet", row_group_size=1000)
    parts = sorted(tmp_path.glob("*.parquet"))
    same_bits(read_transitions(parts), whole)
    first, *others = (read_transitions(part) for part in parts)
    for other in others:
        first = other + first
    same_bits(first, whole)


def test_three_million_rows_give_the_same_bits_in_any_order(tmp_path: Path) -> None:
    rows = 3_000_000
    log = random_log(rows)
    log.write_parquet(tmp_path / "whole.parquet")
    shuffled = log.sample(fraction=1.0, shuffle=True, seed=1)
    parts = [tmp_path / f"{i}.parquet" for i in range(3)]
    for i, part in enumerate(parts):
        shuffled.slice(i * rows // 3, rows // 3).write_parquet(part)
    same_bits(read_transitions(parts), read_transitions(tmp_path / "whole.parquet"))


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_give_the_same_bits(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    log = random_log(ROWS)
    whole = read_transitions(log)
    connect = sources.duckdb.connect

    def limited(config: dict[str, object]) -> object:
        return connect(config={**config, "threads": threads})

    monkeypatch.setattr(sources.duckdb, "connect", limited)
    same_bits(read_transitions(log), whole)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e6, 1e12, 1e40])
def test_means_and_variances_are_those_of_fractions(scale: float) -> None:
    log = random_log(300, scale)
    counts = read_transitions(log)
    largest = float(log["reward"].abs().max())  # type: ignore[arg-type]
    for i in range(counts.num_entries):
        s, a, t = (int(x[i]) for x in counts.dense_index)
        rewards = log.filter(
            (pl.col("state") == s) & (pl.col("action") == a) & (pl.col("next_state") == t)
        )["reward"].to_list()
        exact = sum(map(Fraction, rewards)) / len(rewards)
        assert counts.reward_mean is not None
        assert counts.reward_var is not None
        assert abs(counts.reward_mean[i] - exact) <= 1e-12 * largest
        if len(rewards) > 1:
            square = sum((Fraction(r) - exact) ** 2 for r in rewards) / (len(rewards) - 1)
            assert abs(counts.reward_var[i] - square) <= 1e-11 * largest**2


@pytest.mark.parametrize("reward", [0.1, 1 / 3, 1e-300, -1e300, 123456.789])
def test_equal_rewards_keep_their_bits(reward: float) -> None:
    log = {"state": [0, 0, 0, 1], "action": [0] * 4, "next_state": [1, 1, 1, 0],
           "reward": [reward] * 3 + [0.0]}  # fmt: skip
    counts = read_transitions(log)
    assert_array_equal(counts.reward_mean, [reward, 0.0])
    assert_array_equal(counts.reward_var, [0.0, np.nan])


def test_a_constant_far_from_zero_does_not_hide_the_variance() -> None:
    log = {"state": [0, 0, 1], "action": [0] * 3, "next_state": [1, 1, 0],
           "reward": [1e6, 1e6 + 1e-3, 0.0]}  # fmt: skip
    counts = read_transitions(log)
    assert counts.reward_var is not None
    assert counts.reward_var[0] == pytest.approx(5e-7, rel=1e-6)


def test_weights_count_as_repetitions() -> None:
    log = {"state": [0, 0, 1], "action": [0] * 3, "next_state": [1, 1, 0],
           "reward": [0.5, 0.75, 3.0]}  # fmt: skip
    weighted = read_transitions({**log, "n": [4_000_000_000_000, 5, 1]}, count="n")
    n = 4_000_000_000_005
    mean = (Fraction(1, 2) * (n - 5) + Fraction(3, 4) * 5) / n
    square = (n - 5) * (Fraction(1, 2) - mean) ** 2 + 5 * (Fraction(3, 4) - mean) ** 2
    assert weighted.reward_mean is not None
    assert weighted.reward_var is not None
    assert weighted.reward_mean[0] == float(mean)
    assert weighted.reward_var[0] == float(square / (n - 1))


def test_a_csv_whose_first_rows_mislead_is_read_like_any_other(tmp_path: Path) -> None:
    log = random_log(3000).with_columns(
        reward=pl.when(pl.int_range(3000) < 2000).then(0.001).otherwise(pl.col("reward") * 1e7)
    )
    log.write_csv(tmp_path / "log.csv")
    same_bits(read_transitions(tmp_path / "log.csv"), read_transitions(log))


def test_one_reward_per_transition_gives_the_same_sums_as_any_other_log(tmp_path: Path) -> None:
    log = random_log(ROWS).with_columns(reward=(pl.col("state") - 2) / 7 + pl.col("next_state"))
    equal = read_transitions(log)
    assert not equal.rewards_vary
    one = {"state": [9], "action": [0], "next_state": [9]}
    odd = pl.concat([pl.DataFrame(one | {"reward": [reward]}) for reward in (1.0, 2.0)])
    summed = read_transitions(pl.concat([odd.select(log.columns), log]))  # the first rows vary
    late = read_transitions(pl.concat([log, odd.select(log.columns)]))  # only the last rows do
    same_bits(late, summed)
    mine, theirs = equal.reward_sums, summed.reward_sums
    assert mine is not None
    assert theirs is not None
    assert mine.digits == theirs.digits
    assert mine.total.tolist() == theirs.total[:-1].tolist()
    assert mine.square.tolist() == theirs.square[:-1].tolist()
    log.write_csv(tmp_path / "log.csv")
    same_bits(read_transitions(tmp_path / "log.csv"), equal)


def test_the_scale_follows_the_largest_reward() -> None:
    assert [digits_for(x) for x in (0.0, 0.11, 1.0, 100.0)] == [13] * 4
    assert digits_for(0.1) == 16
    assert digits_for(100.1) == 10


def test_integers_survive_limbs() -> None:
    numbers = np.array([0, -1, 2**31, -(2**31), 2**130 + 7, -(2**130) - 7], dtype=object)
    assert from_limbs(to_limbs(numbers, limbs_needed(numbers))).tolist() == numbers.tolist()


@pytest.mark.parametrize(
    ("decimals", "size", "last", "quick"),
    [
        (0, 90.0, 3.0, True),
        (2, 90.0, 0.07, True),
        (6, 0.5, -12.345678, True),
        (2, 9.0, 0.1234567, False),  # more decimals than the first rows have
        (2, 9.0, 1e7, False),  # another scale
        (6, 99.0, 99.999999, False),  # squares above 2**53
    ],
)
def test_rewards_of_few_decimals_have_the_sums_of_all_others(
    monkeypatch: pytest.MonkeyPatch, decimals: int, size: float, last: float, quick: bool
) -> None:
    rows, most = 30_000, int(size * 10**decimals)
    cents = np.random.default_rng(6).integers(-most, most, rows)
    reward = pl.Series(cents / 10**decimals).scatter(rows - 1, last)
    log = random_log(rows).with_columns(reward=reward, state=pl.lit(0), next_state=pl.lit(1))
    used = []
    add = tally._add_decimals
    monkeypatch.setattr(tally, "_add_decimals", lambda *given: used.append(add(*given)) or used[-1])
    found = read_transitions(log)
    assert used == [quick]
    monkeypatch.setattr(tally, "_add_decimals", lambda *_given: False)
    same_bits(found, other := read_transitions(log))
    mine, theirs = found.reward_sums, other.reward_sums
    assert mine is not None
    assert theirs is not None
    assert mine.digits == theirs.digits
    assert mine.total.tolist() == theirs.total.tolist()
    assert mine.square.tolist() == theirs.square.tolist()
