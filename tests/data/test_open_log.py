"""The transitions of an open log, by id: what later questions about episodes rest on."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from surefoot.data.counts import Counts
from surefoot.data.open_log import open_log
from surefoot.data.transitions import assemble

COLUMNS: dict[str, Any] = {
    "state": "state", "action": "action", "next_state": "next_state", "reward": "reward",
    "episode": "e", "step": "k", "terminal": "done", "count": None,
}  # fmt: skip
LOG = pl.DataFrame(
    {
        "e": ["x", "x", "y", "y", "y", "z"],
        "k": [0, 1, 0, 1, 2, 0],
        "state": ["a", "b", "a", "a", "b", "b"],
        "action": [0, 1, 0, 0, 1, 1],
        "reward": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        "next_state": ["b", "a", "a", "b", "end", "a"],
        "done": [False, True, False, False, True, False],
    }
)


def counted(rows: list[tuple[Any, ...]], counts: Counts) -> np.ndarray:
    dense = np.zeros((counts.num_states, counts.num_actions, counts.num_states), dtype=np.int64)
    for state, action, successor, weight in rows:
        dense[state, action, successor] += int(weight)
    return dense


@pytest.mark.parametrize("kind", ["memory", "csv", "following"])
def test_moves_are_exactly_what_was_counted(tmp_path: Path, kind: str) -> None:
    source: Any = LOG
    columns = dict(COLUMNS)
    if kind == "csv":
        source = tmp_path / "log.csv"
        LOG.write_csv(source)
    if kind == "following":
        columns["next_state"] = None
    with open_log(source, columns, drop_missing=False, text_labels=False) as log:
        counts = assemble(log.tally)
        for relation in (f"({log.moves(counts)})", log.keep(counts)):
            rows = log.connection.execute(
                f"SELECT state, action, successor, weight FROM {relation}"
            ).fetchall()
            dense = np.zeros_like(counted(rows, counts))
            dense[counts.dense_index] = counts.count
            np.testing.assert_array_equal(counted(rows, counts), dense)


def test_a_second_question_needs_no_second_reading(tmp_path: Path) -> None:
    LOG.write_csv(tmp_path / "log.csv")
    with open_log(tmp_path / "log.csv", COLUMNS, drop_missing=False, text_labels=False) as log:
        table = log.keep(assemble(log.tally))
        (tmp_path / "log.csv").unlink()
        returns = log.connection.execute(
            f"SELECT episode, sum(reward * pow(0.5, step)), bool_or(terminal), bool_or(truncated) "
            f"FROM {table} GROUP BY episode ORDER BY episode"
        ).fetchall()
    assert returns == [
        ("x", 2.0, True, False), ("y", 6.25, True, False), ("z", 6.0, False, True)
    ]  # fmt: skip
