"""Counts equal a plain recount, for every format and every awkward label."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import random_logs as lg
from hypothesis import HealthCheck, given, settings

from surefoot.data.transitions import read_transitions

CANONICAL = re.compile(r"0|-?[1-9][0-9]{0,17}")


def as_read(rows: list[lg.Row], name: str) -> list[lg.Row]:
    """Return the rows with labels as the documented rule reads them from a CSV."""
    if name not in lg.CSV_LIKE:
        return rows
    groups = {
        "state": [str(x) for row in rows for x in (row.state, row.next_state)],
        "action": [str(row.action) for row in rows],
    }
    whole = {what: all(map(CANONICAL.fullmatch, texts)) for what, texts in groups.items()}

    def label(what: str, value: Any) -> Any:
        return int(str(value)) if whole[what] else str(value)

    return [
        lg.Row(label("state", r.state), label("action", r.action), r.reward,
               label("state", r.next_state))
        for r in rows
    ]  # fmt: skip


@pytest.mark.parametrize("name", lg.FORMATS)
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=lg.logs())
def test_counts_equal_a_recount(name: str, rows: list[lg.Row], tmp_path: Path) -> None:
    counts = read_transitions(lg.FORMATS[name](rows, tmp_path))
    expected = as_read(rows, name)
    assert lg.counted(counts) == lg.recount(expected)
    seen = lg.rewards_by_entry(expected)
    for entry, (mean, variance) in lg.rewarded(counts).items():
        np.testing.assert_allclose(mean, np.mean(seen[entry]), rtol=1e-12, atol=1e-9)
        if len(set(seen[entry])) == 1:
            np.testing.assert_allclose(mean, seen[entry][0], rtol=1e-15)
        if len(seen[entry]) == 1:
            assert np.isnan(variance)
        elif len(set(seen[entry])) == 1:
            assert variance == 0
        else:
            np.testing.assert_allclose(variance, np.var(seen[entry], ddof=1), rtol=1e-9, atol=1e-9)
    assert counts.log is not None
    assert counts.log.rows == len(rows)
    assert counts.rewards_vary == any(len(set(v)) > 1 for v in seen.values())
    assert counts.reward_model == ("bounded" if counts.rewards_vary else "fixed")


@pytest.mark.parametrize("name", lg.FORMATS)
def test_labels_are_kept_exactly(name: str, tmp_path: Path) -> None:
    rows = [lg.Row(a, "go", 1.0, b) for a, b in zip(lg.AWKWARD, lg.AWKWARD[1:], strict=False)]
    counts = read_transitions(lg.FORMATS[name](rows, tmp_path))
    assert set(counts.state_labels or ()) == set(lg.AWKWARD)
    assert lg.counted(counts) == lg.recount(rows)


@pytest.mark.parametrize("name", lg.FORMATS)
def test_integers_stay_integers_in_order(name: str, tmp_path: Path) -> None:
    rows = [lg.Row(10, 2, 1.0, 9), lg.Row(9, 10, 1.0, -3), lg.Row(-3, 2, 0.0, 10)]
    counts = read_transitions(lg.FORMATS[name](rows, tmp_path))
    assert counts.state_labels == (-3, 9, 10)
    assert counts.action_labels == (2, 10)


def test_leading_zeros_make_a_column_text(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("state,action,reward,next_state\n007,1,0,7\n7,1,0,007\n")
    counts = read_transitions(path)
    assert counts.state_labels == ("007", "7")
    assert counts.action_labels == (1,)
    assert read_transitions(path, labels="text").action_labels == ("1",)


def test_many_rows_and_files_in_parallel(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    size = 200_000
    log = {
        "state": rng.integers(0, 50, size),
        "action": rng.integers(0, 3, size),
        "reward": np.round(rng.normal(size=size), 3),
        "next_state": rng.integers(0, 50, size),
    }
    dense = np.zeros((50, 3, 50), dtype=int)
    np.add.at(dense, (log["state"], log["action"], log["next_state"]), 1)
    lines = [f"{s},{a},{r},{t}\n" for s, a, r, t in zip(*log.values(), strict=True)]
    for i in range(3):
        text = "state,action,reward,next_state\n" + "".join(lines[i::3])
        (tmp_path / f"{i}.csv").write_text(text)
    for source in (log, tmp_path):
        counts = read_transitions(source)
        found = np.zeros_like(dense)
        found[counts.entry_state, counts.entry_action, counts.successor] = counts.count
        np.testing.assert_array_equal(found, dense)
        assert counts.reward_low is not None
        assert counts.reward_low.min() == log["reward"].min()
