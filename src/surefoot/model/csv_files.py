"""Models as CSV: one line per reachable successor.

DuckDB reads the whole file at once. If something is wrong, the file is read again line by line to
find the line to name.
"""

import glob
import gzip
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import duckdb
import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot._atomic import replacing
from surefoot.model import csv_lines
from surefoot.model.csv_lines import COLUMNS, CsvHeader, Values
from surefoot.model.mdp import MDP, Label

ENTRIES_PER_WRITE = 100_000
WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)


def read_csv(path: Path, *, discount: float, initial: ArrayLike | None) -> MDP:
    """Read a model; every error names the file and, where possible, the line."""
    layout = csv_lines.read_header(path)
    with duckdb.connect() as connection:
        values = _read_values(path, layout, connection)
        csv_lines.check_values(path, layout, values)
        state_labels = _read_labels(path, layout, connection, "state")
        action_labels = _read_labels(path, layout, connection, "action")
    try:
        return MDP.from_rows(
            state=values["idstatefrom"],
            action=values["idaction"],
            successor=values["idstateto"],
            probability=values["probability"],
            reward=values["reward"],
            discount=discount,
            initial=initial,
            state_labels=state_labels,
            action_labels=action_labels,
        )
    except ValueError as problem:
        csv_lines.find_bad_entry(path, layout, values)
        raise ValueError(f"{path}: {problem}") from None


def _read_values(path: Path, layout: CsvHeader, connection: duckdb.DuckDBPyConnection) -> Values:
    """Load the file into a table named ``entries``; return its numbers, NaN for empty fields."""
    types = {f"c{i}": "DOUBLE" if i in layout.numbers else "VARCHAR" for i in range(layout.width)}
    wanted = ", ".join(f"c{i} AS {name}" for name, i in layout.place.items())
    try:
        connection.execute(
            f"CREATE TEMP TABLE entries AS SELECT {wanted} FROM read_csv(?, columns={types}, "
            "header=true, delim=',', quote='\"', escape='\"', comment='', auto_detect=false, "
            "nullstr='', allow_quoted_nulls=false, strict_mode=true)",
            [glob.escape(str(path))],
        )
        found = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM entries").fetchnumpy()
    except duckdb.Error as problem:
        csv_lines.find_unreadable_line(path, layout)
        raise ValueError(f"{path} cannot be read: {str(problem).splitlines()[0]}") from None
    columns: dict[str, Any] = dict(found)
    return {name: np.ma.filled(columns[name].astype(np.float64), np.nan) for name in COLUMNS}


def _read_labels(
    path: Path, layout: CsvHeader, connection: duckdb.DuckDBPyConnection, noun: str
) -> tuple[Label, ...] | None:
    """Return the labels of states or actions by id, or None if the file has no column for them."""
    pairs = layout.label_columns(noun)
    if not pairs:
        return None
    listed = " UNION ALL ".join(
        f"SELECT {ids} AS id, {name} AS label FROM entries" for ids, name in pairs
    )
    found = connection.execute(
        "SELECT id, min(label), min(label) = max(label) AND count(label) = count(*) "
        f"FROM ({listed}) GROUP BY id ORDER BY id"
    ).fetchall()
    if not all(sound for _, _, sound in found):
        csv_lines.refuse_labels(path, layout, noun)
    for expected, (number, _, _) in enumerate(found):
        if number != expected:
            raise ValueError(
                f"{path}: {noun} {expected} has no label because no line uses it. Number the "
                f"{noun}s without gaps, or remove the label columns of {noun}s."
            )
    labels = [label for _, label, _ in found]
    if all(WHOLE_NUMBER.fullmatch(label) for label in labels):
        return tuple(int(label) for label in labels)
    return tuple(labels)


def write_csv(mdp: MDP, path: Path) -> None:
    """Write a model; floats in the shortest form that is read back as the same bits."""
    _check_actions_survive(mdp)
    if mdp.horizon is not None or mdp.final_reward is not None:
        raise ValueError(
            "a CSV file cannot hold a horizon or a final reward: reading it back would give "
            "another model. Write a .npz file, or a model without them, and pass horizon to solve."
        )
    states = _labels_as_csv("state_labels", mdp.state_labels)
    actions = _labels_as_csv("action_labels", mdp.action_labels)
    names = list(COLUMNS)
    if states:
        names += ["labelstatefrom", "labelstateto"]
    if actions:
        names += ["labelaction"]
    with _text_writer(path) as file:
        file.write(",".join(names) + "\n")
        line = "{},{},{},{!r},{!r}" + ",{}" * (len(names) - len(COLUMNS)) + "\n"
        for start in range(0, mdp.num_entries, ENTRIES_PER_WRITE):
            columns = _columns(mdp, slice(start, start + ENTRIES_PER_WRITE), states, actions)
            file.writelines(map(line.format, *columns))


def _columns(
    mdp: MDP, entries: slice, states: Sequence[str] | None, actions: Sequence[str] | None
) -> list[list[Any]]:
    row = mdp.entry_row[entries]
    state, action = mdp.row_state[row].tolist(), mdp.row_action[row].tolist()
    successor = mdp.successor[entries].tolist()
    reward = mdp.entry_reward[entries]
    columns = [state, action, successor, mdp.probability[entries].tolist(), reward.tolist()]
    if states:
        columns += [[states[i] for i in state], [states[i] for i in successor]]
    if actions:
        columns += [[actions[i] for i in action]]
    return columns


def _check_actions_survive(mdp: MDP) -> None:
    """Refuse a model with an action that no line would mention: reading would lose it."""
    used = np.zeros(mdp.num_actions, dtype=np.bool_)
    used[mdp.row_action] = True
    lost: NDArray[np.int64] = np.flatnonzero(~used)
    if len(lost) and (not used[-1] or mdp.action_labels is not None):
        raise ValueError(
            f"action {mdp.action_name(lost[-1])} is available in no state, so a CSV file cannot "
            "hold it. Write an .npz file, which can."
        )


def _labels_as_csv(name: str, labels: tuple[Label, ...] | None) -> list[str] | None:
    """Return text labels quoted, integers unquoted; refuse labels that would not be read back."""
    if labels is None:
        return None
    plain = [label.item() if isinstance(label, np.generic) else label for label in labels]
    if all(type(label) is int for label in plain):
        return [str(label) for label in plain]
    for label in plain:
        if not isinstance(label, str) or "\0" in label or not _encodable(label):
            raise ValueError(
                f"{name} holds {label!r}; the labels of a CSV file are either all text or all "
                "whole numbers. Write an .npz file, which can hold them."
            )
    texts = [str(label) for label in plain]
    if all(WHOLE_NUMBER.fullmatch(text) for text in texts):
        raise ValueError(
            f"{name} are texts that all look like whole numbers ({texts[0]!r}), and would come "
            "back from a CSV file as integers. Write an .npz file, which keeps them."
        )
    return ['"' + text.replace('"', '""') + '"' for text in texts]


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def _text_writer(path: Path) -> Iterator[IO[str]]:
    if not path.name.lower().endswith(".gz"):
        with replacing(path, "w", encoding="utf-8", newline="\n") as file:
            yield file
        return
    # No name and no time stamp inside: the same model gives the same file.
    with replacing(path) as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as zipped:
        text = io.TextIOWrapper(zipped, encoding="utf-8", newline="\n")
        try:
            yield text
        finally:
            text.detach()  # flushes; the with statement above closes the files
