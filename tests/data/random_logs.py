"""Random logs, every way to store them, and a recount in plain Python."""

import csv
import gzip
import io
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from surefoot.data.counts import Counts

COLUMNS = ("state", "action", "reward", "next_state")

AWKWARD = ("", "NA", "NaN", "null", "007", "7", "a,b", 'say "hi"', "'", "é", "日本", " x ", "1e2",
           "-0", "tab\there", "line\nbreak", "[x]", "%", "\\", "terminal", "unseen")  # fmt: skip
texts = st.one_of(
    st.sampled_from(AWKWARD),
    st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), max_size=6),
)
numbers = st.integers(-(2**40), 2**40)
rewards = st.one_of(
    st.sampled_from([0.0, 1.0, 0.1, -20.0]),
    st.integers(-(10**9), 10**9).map(lambda thousandths: thousandths / 1000),
)


@dataclass(frozen=True)
class Row:
    state: Any
    action: Any
    reward: float
    next_state: Any


@st.composite
def logs(draw: Any, labels: Any = None) -> list[Row]:
    """Return 1 to 40 transitions among a few labels, at least two of them states."""
    kind = labels if labels is not None else draw(st.sampled_from([texts, numbers]))
    states = draw(st.lists(kind, min_size=2, max_size=4, unique=True))
    actions = draw(st.lists(kind, min_size=1, max_size=3, unique=True))
    pick = st.builds(
        Row, st.sampled_from(states), st.sampled_from(actions), rewards, st.sampled_from(states)
    )
    rows = draw(st.lists(pick, min_size=0, max_size=39))
    return [Row(states[0], actions[0], draw(rewards), states[1]), *rows]


def columns_of(rows: list[Row]) -> dict[str, list[Any]]:
    return {name: [getattr(row, name) for row in rows] for name in COLUMNS}


def csv_text(rows: list[Row], delimiter: str = ",") -> str:
    """Write with every text quoted, so that '' is a label and not a missing value."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([row.state, row.action, row.reward, row.next_state] for row in rows)
    return out.getvalue()


def as_csv(rows: list[Row], folder: Path) -> Path:
    path = folder / "log.csv"
    path.write_text(csv_text(rows), encoding="utf-8", newline="")
    return path


def as_csv_gz(rows: list[Row], folder: Path) -> Path:
    path = folder / "log.csv.gz"
    path.write_bytes(gzip.compress(csv_text(rows).encode()))
    return path


def as_tsv(rows: list[Row], folder: Path) -> Path:
    path = folder / "log.tsv"
    path.write_text(csv_text(rows, "\t"), encoding="utf-8", newline="")
    return path


def as_parquet(rows: list[Row], folder: Path) -> Path:
    path = folder / "log.parquet"
    pq.write_table(as_arrow(rows, folder), path)
    return path


def as_folder(rows: list[Row], folder: Path) -> Path:
    place = folder / "many"
    place.mkdir(exist_ok=True)
    for old in place.iterdir():
        old.unlink()
    middle = len(rows) // 2
    for name, part in (("b.parquet", rows[middle:]), ("a.parquet", rows[:middle])):
        if part:
            pq.write_table(as_arrow(part, folder), place / name)
    return place


def as_glob(rows: list[Row], folder: Path) -> str:
    middle = len(rows) // 2
    for old in folder.glob("part *.csv"):
        old.unlink()
    for i, part in enumerate((rows[:middle], rows[middle:])):
        if part:
            text = csv_text(part)
            (folder / f"part {i}.csv").write_text(text, encoding="utf-8", newline="")
    return str(folder / "part *.csv")


def as_pandas(rows: list[Row], folder: Path) -> pd.DataFrame:
    return pd.DataFrame(columns_of(rows))


def as_pandas_objects(rows: list[Row], folder: Path) -> pd.DataFrame:
    return pd.DataFrame(columns_of(rows), dtype=object)


def as_polars(rows: list[Row], folder: Path) -> pl.DataFrame:
    return pl.DataFrame(columns_of(rows))


def as_polars_lazy(rows: list[Row], folder: Path) -> pl.LazyFrame:
    return pl.DataFrame(columns_of(rows)).lazy()


def as_arrow(rows: list[Row], folder: Path) -> pa.Table:
    return pa.table(columns_of(rows))


def as_arrow_reader(rows: list[Row], folder: Path) -> pa.RecordBatchReader:
    return pa.table(columns_of(rows)).to_reader()


def as_dict(rows: list[Row], folder: Path) -> dict[str, np.ndarray]:
    return {name: np.array(values) for name, values in columns_of(rows).items()}


def as_dict_of_lists(rows: list[Row], folder: Path) -> dict[str, list[Any]]:
    return columns_of(rows)


FORMATS = {
    "csv": as_csv, "csv.gz": as_csv_gz, "tsv": as_tsv, "parquet": as_parquet, "folder": as_folder,
    "glob": as_glob, "pandas": as_pandas, "pandas objects": as_pandas_objects, "polars": as_polars,
    "polars lazy": as_polars_lazy, "arrow": as_arrow, "arrow reader": as_arrow_reader,
    "dict": as_dict, "dict of lists": as_dict_of_lists,
}  # fmt: skip
CSV_LIKE = {"csv", "csv.gz", "tsv", "glob"}


def counted(counts: Counts) -> dict[tuple[Any, Any, Any], int]:
    """Return the counts by label."""
    assert counts.state_labels is not None
    assert counts.action_labels is not None
    return {
        (counts.state_labels[s], counts.action_labels[a], counts.state_labels[t]): int(n)
        for s, a, t, n in zip(
            counts.entry_state, counts.entry_action, counts.successor, counts.count, strict=True
        )
    }


def rewarded(counts: Counts) -> dict[tuple[Any, Any, Any], tuple[float, float]]:
    """Return mean and variance of rewards by label."""
    assert counts.reward_mean is not None
    assert counts.reward_var is not None
    values = zip(counts.reward_mean.tolist(), counts.reward_var.tolist(), strict=True)
    return dict(zip(counted(counts), values, strict=True))


def recount(rows: list[Row]) -> Counter[tuple[Any, Any, Any]]:
    return Counter((row.state, row.action, row.next_state) for row in rows)


def rewards_by_entry(rows: list[Row]) -> dict[tuple[Any, Any, Any], list[float]]:
    found = defaultdict(list)
    for row in rows:
        found[row.state, row.action, row.next_state].append(row.reward)
    return dict(found)
