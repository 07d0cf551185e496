"""Assumption checks: quiet when all is well, loud when it is not, and never lost."""

import gzip
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
from scipy import stats

from surefoot.data import checks, log, transitions
from surefoot.data.checks import _distinct, independence
from surefoot.data.transitions import read_transitions
from surefoot.domains import machine_replacement

ORDER = {"episode": "episode", "step": "step"}


def chain(size: int, rng: np.random.Generator, *, memory: float = 0.0, drift: float = 0.0) -> Any:
    """Log one long walk over two states whose next state may depend on the past or on time."""
    states = np.zeros(size + 1, dtype=int)
    before = 0
    for i in range(size):
        p = 0.5 + memory * (before - 0.5) + (drift if i > size // 2 else 0.0)
        before, states[i + 1] = states[i], rng.random() < p
    return {
        "state": states[:-1], "action": np.zeros(size, int), "reward": np.zeros(size),
        "next_state": states[1:], "episode": np.zeros(size, int), "step": np.arange(size),
    }  # fmt: skip


def test_quiet_when_all_is_well() -> None:
    counts = read_transitions(chain(4000, np.random.default_rng(0)), **ORDER)
    assert [check.name for check in counts.checks] == ["memory", "drift"]
    assert not any(check.warns for check in counts.checks)
    assert counts.warnings == ()
    assert "check: No drift between the first and the second half of the log" in counts.summary()


def test_memory_is_found_and_named() -> None:
    counts = read_transitions(chain(4000, np.random.default_rng(0), memory=0.3), **ORDER)
    memory, drift = counts.checks
    assert memory.warns
    assert not drift.warns
    assert "The next state depends on the step before it" in counts.warnings[0]
    assert "under action 0" in counts.warnings[0]
    assert "p = " in counts.warnings[0]
    assert f"warning: {counts.warnings[0]}" in counts.summary()
    # Warnings travel: to the skeleton, and into sums.
    assert counts.on_support().warnings[0] == counts.warnings[0]
    # Together with other data, a check says which data it speaks of.
    told = f"In the dict of columns: t{counts.warnings[0].removeprefix('T')}"
    assert told in (counts + counts).warnings


def test_memory_is_found_from_following_rows_too() -> None:
    log_ = chain(4000, np.random.default_rng(0), memory=0.3)
    del log_["next_state"]
    assert read_transitions(log_, **ORDER).checks[0].warns


def test_drift_is_found() -> None:
    log_ = chain(4000, np.random.default_rng(0), drift=0.2)
    drift = read_transitions(log_, **ORDER).checks[1]
    assert drift.warns
    assert "Next states differ between the first and the second half" in drift.sentence
    # Without an order of steps drift is still looked for, in the order of the rows.
    unordered = read_transitions(log_)
    assert unordered.checks[0].p_value is None
    assert "needs episode= and step=" in unordered.checks[0].sentence
    assert unordered.checks[1].warns


def test_a_domain_raises_no_alarm() -> None:
    domain = machine_replacement()
    for seed in range(3):
        data = domain.log(60, np.random.default_rng(seed))
        assert not any(check.warns for check in read_transitions(data, **ORDER).checks)


def test_p_values_are_honest() -> None:
    """Under independence, a corrected p-value below x comes at most about x of the time."""
    rng = np.random.default_rng(1)
    trials = 600
    found = np.empty(trials)
    for trial in range(trials):
        rows = np.repeat(np.arange(6), 40)
        before = rng.choice(5, size=240, p=[0.5, 0.3, 0.1, 0.06, 0.04])
        after = rng.choice(4, size=240, p=[0.6, 0.25, 0.1, 0.05])
        found[trial] = independence(rows, before, after, np.ones(240, int)).p_value
    for level in (0.01, 0.05, 0.2):
        assert np.count_nonzero(found < level) <= stats.binom.isf(1e-4, trials, 1.3 * level)


def test_the_statistic_is_pearsons() -> None:
    table = np.array([[30, 20, 10], [10, 25, 25]])
    before, after = (index.ravel() for index in np.indices(table.shape))
    evidence = independence(np.zeros(6, int), before, after, table.ravel())
    expected = stats.chi2_contingency(table, correction=False).pvalue
    np.testing.assert_allclose(evidence.worst_p, expected, rtol=1e-10)
    np.testing.assert_allclose(evidence.p_value, 2 * expected, rtol=1e-10)


@pytest.mark.parametrize("largest", [3, 200, 10_000])
@pytest.mark.parametrize("lowest", [0, -2])
def test_keys_are_told_apart_as_by_sorting(largest: int, lowest: int) -> None:
    """Keys that lie close together are not sorted; what is found is the same."""
    keys = np.random.default_rng(0).integers(lowest, largest, 100)
    for few in (keys, keys[:0]):
        expected = np.unique(few, return_inverse=True)
        for found, wanted in zip(_distinct(few), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_rare_values_are_put_together_and_thin_rows_left_out() -> None:
    # 100 rows: values seen fewer than sqrt(500) = 22.4 times are joined.
    before = np.repeat([0, 1, 2, 3], [40, 30, 20, 10])
    after = np.tile([0, 1], 50)
    together = independence(np.zeros(100, int), before, after, np.ones(100, int))
    joined = independence(np.zeros(100, int), np.minimum(before, 2), after, np.ones(100, int))
    assert together.p_value == joined.p_value
    assert independence(np.zeros(9, int), before[:9], after[:9], np.ones(9, int)).tried == 0
    constant = independence(np.zeros(100, int), before, np.zeros(100, int), np.ones(100, int))
    assert (constant.tried, constant.p_value) == (0, 1.0)


def test_too_little_data_is_said() -> None:
    counts = read_transitions(chain(8, np.random.default_rng(0)), **ORDER)
    assert all(check.p_value is None for check in counts.checks)
    assert "no state-action pair was tried" in counts.summary()


def test_aggregated_logs_cannot_be_checked() -> None:
    data = {"state": [0, 1], "action": [0, 0], "reward": [0.0, 0.0], "next_state": [1, 0],
            "n": [5, 5]}  # fmt: skip
    counts = read_transitions(data, count="n")
    assert all("aggregated" in check.sentence for check in counts.checks)


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat every file as too large to be checked at once."""
    monkeypatch.setattr(transitions, "CHECK_AT_ONCE", 0)
    assert log.CHECK_AT_ONCE > 0


@pytest.mark.usefixtures("late")
@pytest.mark.parametrize("kind", ["csv", "parquet", "folder"])
def test_large_files_are_checked_when_asked(kind: str, tmp_path: Path) -> None:
    table = pl.DataFrame(chain(4000, np.random.default_rng(0), memory=0.3, drift=0.2))
    path = tmp_path / f"log.{kind}"
    if kind == "csv":
        table.write_csv(path)
    elif kind == "parquet":
        table.write_parquet(path)
    else:
        path.mkdir()
        table[:1000].write_parquet(path / "1.parquet")
        table[1000:].write_parquet(path / "2.parquet")
    counts = read_transitions(path, **ORDER)
    assert counts.log is not None
    assert counts.log.checked is None
    expected = read_transitions(table, **ORDER).checks
    assert counts.on_support().checks is counts.checks
    for found, wanted in zip(counts.checks, expected, strict=True):
        assert found.sentence == wanted.sentence
        np.testing.assert_allclose(found.p_value, wanted.p_value, rtol=1e-6)
    assert all(check.warns for check in expected)


@pytest.mark.usefixtures("late")
def test_a_log_that_changed_is_not_checked_silently(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    pl.DataFrame(chain(100, np.random.default_rng(0))).write_csv(path)
    counts, gone = read_transitions(path, **ORDER), read_transitions(path, **ORDER)
    pl.DataFrame(chain(200, np.random.default_rng(0))).write_csv(path)
    assert "the log has changed or moved" in counts.summary()
    path.unlink()
    assert "the log has changed or moved" in gone.summary()


def test_sampling_of_long_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "MOST_ROWS", 8000)
    walk = chain(40_000, np.random.default_rng(0), memory=0.3)
    blocks = read_transitions(walk, **ORDER).checks[0]
    assert blocks.warns
    assert "on a sample of 1 in 5 rows" in blocks.sentence
    many = walk | {"episode": walk["step"] // 40}
    episodes = read_transitions(many, **ORDER).checks[0]
    assert episodes.warns
    assert "on a sample of 1 in 5 rows" in episodes.sentence
    times = walk | {"step": np.datetime64("2024-01-01", "us") + walk["step"]}
    first = read_transitions(pl.DataFrame(times), **ORDER).checks[0]
    assert first.warns
    assert "on the first rows" in first.sentence


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "folder", "memory"])
@pytest.mark.parametrize("drift", [0.0, 0.2])
def test_long_logs_are_not_scanned_twice(
    kind: str, drift: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = chain(4000, np.random.default_rng(0), drift=drift)
    table = pl.DataFrame({k: v for k, v in data.items() if k not in ("episode", "step")})
    path: Any = tmp_path / f"log.{kind}"
    if kind == "csv":
        table.write_csv(path)
    elif kind == "csv.gz":
        path.write_bytes(gzip.compress(table.write_csv().encode()))
    elif kind == "parquet":
        table.write_parquet(path)
    elif kind == "folder":
        path.mkdir()
        table[:1000].write_parquet(path / "1.parquet")
        table[1000:].write_parquet(path / "2.parquet")
    else:
        path = table
    with monkeypatch.context() as patch:
        patch.setattr(transitions, "CHECK_AT_ONCE", 0)
        patch.setattr(checks, "LONG", 3999)
        counts = read_transitions(path)
    assert counts.log is not None
    assert counts.log.checked is not None  # at once, whatever the size
    found = counts.checks[1]
    half = np.arange(4000) >= (2000 if kind == "parquet" else 1999)
    pair = table["state"].to_numpy() * 10 + table["action"].to_numpy()
    expected = independence(
        np.unique(pair, return_inverse=True)[1], half.astype(int),
        table["next_state"].to_numpy().astype(int), np.ones(4000, int),
    )  # fmt: skip
    assert found.p_value == pytest.approx(expected.p_value, rel=1e-6)
    assert found.warns == bool(drift)
    parts = "first and the second half" if kind == "parquet" else "first 1,999 rows of the log and"
    assert f"the {parts}" in found.sentence


def test_the_first_rows_alone_may_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "LONG", 1000)
    data = chain(8000, np.random.default_rng(0), drift=0.2)
    log_ = {k: v for k, v in data.items() if k not in ("episode", "step")}
    found = read_transitions(log_).checks[1]
    assert "between the first 500 rows of the log and the rest" in found.sentence
    assert found.warns
    assert "most clearly in state" in found.sentence


def test_rows_left_out_are_in_neither_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "LONG", 1000)
    data = chain(4000, np.random.default_rng(0))
    table = pl.DataFrame({k: v for k, v in data.items() if k not in ("episode", "step")})
    holes = table.with_columns(
        pl.when(pl.int_range(pl.len()) % 7 == 3)
        .then(None)
        .otherwise(pl.col("action"))
        .alias("action")
    )
    found = read_transitions(holes, missing="drop").checks[1]
    assert found.p_value is not None
    assert not found.warns


def test_too_little_memory_for_a_check_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise duckdb.OutOfMemoryException("Out of Memory Error: failed to allocate")

    monkeypatch.setattr(checks, "_drift", fails)
    log_of = {"state": [0, 1], "action": [0, 0], "reward": [0, 1], "next_state": [1, 0]}
    sentences = [check.sentence for check in read_transitions(log_of).checks]
    assert all("DuckDB may use 500MB of memory, and it needs more" in s for s in sentences)


def hidden_types(episodes: int, rng: np.random.Generator) -> Any:
    """Log cases of two types, who differ in what helps them, under actions at random."""
    kind = np.repeat(rng.integers(0, 2, episodes), 15)
    action = rng.integers(0, 2, episodes * 15)
    up = rng.random(episodes * 15) < np.where(action == kind, 0.6, 0.15)
    state = np.zeros((episodes, 16), dtype=int)
    state[:, 0] = 2
    for step in range(15):
        moved = state[:, step] + np.where(up.reshape(episodes, 15)[:, step], 1, -1)
        state[:, step + 1] = np.clip(moved, 0, 4)
    return {
        "state": state[:, :-1].ravel(), "action": action, "reward": np.zeros(episodes * 15),
        "next_state": state[:, 1:].ravel(), "episode": np.repeat(np.arange(episodes), 15),
        "step": np.tile(np.arange(15), episodes),
    }  # fmt: skip


def test_memory_that_shows_with_the_previous_action_only() -> None:
    """Whether the last step helped says nothing by itself; together with what was done it does."""
    log_ = hidden_types(800, np.random.default_rng(0))
    memory = read_transitions(log_, **ORDER).checks[0]
    assert memory.p_value is not None
    assert memory.p_value < 1e-20
    table = pl.DataFrame(log_).sort("episode", "step")
    table = table.with_columns(
        pl.col("state").shift(1).over("episode").alias("before")
    ).drop_nulls()
    row = (table["state"] * 2 + table["action"]).to_numpy()
    state_alone = independence(
        row, table["before"].to_numpy(), table["next_state"].to_numpy(), np.ones(len(row))
    )
    assert state_alone.p_value > 1e-3


def test_two_looks_for_memory_share_one_level() -> None:
    """False alarms of both together: no more than the level, however the log was made."""
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(60):
        found = read_transitions(chain(400, rng), **ORDER).checks[0].p_value
        alarms += found is not None and found < 0.1
    assert alarms <= stats.binom.ppf(0.999, 60, 0.1)
