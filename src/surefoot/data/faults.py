"""Faults of a log: detected in the groups, then traced to file and line."""

import csv
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import duckdb

from surefoot._display import printable
from surefoot.data.columns import Layout
from surefoot.data.count_queries import (
    AFTER_END,
    CUT,
    GAP,
    LEFT_OUT,
    MOVE,
    REPEATED,
    flagged,
    missing,
    transitions,
)
from surefoot.data.dates import EXACT
from surefoot.data.sources import MEMORY_LIMIT, Connection, quote_name, quote_text, scan
from surefoot.model.csv_lines import numbered_records, open_csv

DROP = "Fill it in, or leave such rows out with missing='drop'."
LARGEST = 9e15
"""Counts up to this are exact as floating-point numbers."""
EXACT_RECORDS = 2_000_000
"""Up to this record the line of a CSV is found exactly, despite line breaks inside quotes."""


class NoTransitionError(ValueError):
    """No row follows another: a log of one step per episode can only continue another log."""


def check_groups(connection: Connection, layout: Layout, *, drop_missing: bool) -> None:
    """Raise on anything that must not be counted; with ``drop_missing``, mark gaps between steps.

    Groups are few, so checking them costs little; only a fault needs a second scan.
    """
    if not one_value(connection, "SELECT count(*) FROM groups"):
        what = "no complete row" if drop_missing else "no rows"
        raise ValueError(f"{layout.source.name}: the log has {what}, so there is nothing to count.")
    if not drop_missing:
        _check_missing(connection, layout)
    if not one_value(connection, f"SELECT count(*) FROM groups WHERE flag <> {CUT}"):
        raise NoTransitionError(
            f"{layout.source.name}: no row has a following row in its episode, so there is no "
            "transition. Check the episode and step columns."
        )
    _check_counts(connection, layout)
    _check_rewards(connection, layout)
    if layout.derived:
        _check_episodes(connection, layout, drop_missing)


def _check_missing(connection: Connection, layout: Layout) -> None:
    columns = layout.columns
    measured = {columns.episode: "placed", columns.step: "ordered"}
    for column, condition in missing(layout).items():
        if column in (columns.reward, columns.count):
            continue  # checked together with their values
        if column in measured:
            query = f"SELECT sum(lines - {measured[column]}) FROM groups"
        else:
            query = f"SELECT sum(lines) FROM groups WHERE ({condition}) AND flag <> {CUT}"
        if lines := one_value(connection, query):
            _raise_missing(connection, layout, column, condition, int(lines))


def _raise_missing(
    connection: Connection, layout: Layout, column: str, condition: str, lines: int
) -> NoReturn:
    fails = _many(lines, "rows fail")
    columns = layout.columns
    if layout.derived and column not in (columns.episode, columns.step, columns.terminal):
        place, _ = _first_followed(connection, layout, f"({condition}) AND flag <> {CUT}")
        raise ValueError(f"{place}: {printable(column)} is missing{fails}. {DROP}")
    shown = "spelled_end" if column == columns.terminal else "NULL"
    place, value = first_row(connection, layout, condition, shown)
    if value is not None:
        raise ValueError(
            f"{place}: {printable(column)} is {value!r}{fails}; it must be true or false (or 1 "
            "or 0). Correct "
            "the row."
        )
    empty = "empty" if layout.source.kind == "csv" else "missing"
    raise ValueError(f"{place}: {printable(column)} is {empty}{fails}. {DROP}")


def _many(rows: float, noun: str = "such rows") -> str:
    return f" ({int(rows):,} {noun})" if rows > 1 else ""


def _first_followed(connection: Connection, layout: Layout, condition: str) -> tuple[str, Any]:
    """Return the episode and step of the first row that meets a condition on following rows."""
    rows = transitions(layout, drop_missing=False)
    found = connection.execute(
        f"SELECT e, k FROM ({rows}) WHERE {condition} ORDER BY e, k LIMIT 1"
    ).fetchall()
    episode, step = found[0]
    shown = int(step) if isinstance(step, float) and step.is_integer() else step
    return f"{layout.source.name}, episode {episode!r}, step {shown}", step


def _check_counts(connection: Connection, layout: Layout) -> None:
    column = layout.columns.count
    if column is None:
        return
    if one_value(
        connection, f"SELECT count(*) FROM groups WHERE counted < lines AND flag <> {CUT}"
    ):
        lines = one_value(connection, "SELECT sum(lines - counted) FROM groups")
        _raise_missing(connection, layout, column, "n IS NULL", int(lines))
    for found, condition, rule in (
        ("fewest < 0", "n < 0", "counts cannot be negative"),
        ("NOT whole", "n <> floor(n)", "counts are whole numbers"),
        (f"NOT n < {LARGEST}", f"NOT n < {LARGEST}", "counts must stay below 9e15"),
    ):
        if one_value(connection, f"SELECT count(*) FROM groups WHERE {found}"):
            place, value = first_row(connection, layout, condition, "n")
            shown = "too large in total" if value is None else f"{value:g}"
            raise ValueError(f"{place}: {printable(column)} is {shown}; {rule}. Correct the row.")


def _check_rewards(connection: Connection, layout: Layout) -> None:
    column = layout.columns.reward
    if column is None:
        return
    lines, rewarded, finite = connection.execute(
        "SELECT sum(lines), sum(rewarded), "
        "coalesce(bool_and(isfinite(lowest) AND isfinite(highest)), true) "
        f"FROM groups WHERE flag <> {CUT}"
    ).fetchall()[0]
    if rewarded < lines:
        _raise_missing(connection, layout, column, "r IS NULL", int(lines - rewarded))
    if not finite:
        raise_not_finite(connection, layout)


def _check_episodes(connection: Connection, layout: Layout, drop_missing: bool) -> None:
    """Check that steps are distinct, have no gaps, and stop at the end of the episode."""
    flags = dict(connection.execute("SELECT flag, sum(lines) FROM groups GROUP BY flag").fetchall())
    if AFTER_END in flags:
        place, _ = _first_followed(connection, layout, f"flag = {AFTER_END}")
        raise ValueError(
            f"{place}: {printable(layout.columns.terminal)} is set, but the episode goes on"
            f"{_many(flags[AFTER_END])}. Start a new episode after a terminal step."
        )
    if REPEATED in flags:
        place, step = _first_followed(connection, layout, f"flag = {REPEATED}")
        raise ValueError(
            f"{place}: the step occurs twice{_many(flags[REPEATED])}, so the order of rows is "
            f"unknown. Number the steps of each episode{_beyond_exact(layout, step)}."
        )
    unit_steps = one_value(connection, f"SELECT count(*) FROM groups WHERE flag = {MOVE} AND NOT z")
    if GAP not in flags or not unit_steps:
        return
    if drop_missing:
        connection.execute(f"UPDATE groups SET flag = {LEFT_OUT} WHERE flag = {GAP}")
        return  # the steps of 1 remain
    place, _ = _first_followed(connection, layout, f"flag = {GAP}")
    raise ValueError(
        f"{place}: the next step is missing{_many(flags[GAP])}, so the next state is unknown. Add "
        "the rows, number the steps 0, 1, 2, ... if none is missing, or leave such rows out with "
        "missing='drop'."
    )


def _beyond_exact(layout: Layout, step: Any) -> str:
    if not isinstance(step, float) or abs(step) < EXACT:
        return ""
    column = layout.columns.step
    return f"; {column!r} holds decimals, which cannot tell such large numbers apart"


def count_dropped(connection: Connection, layout: Layout) -> dict[str, int]:
    """Return how many rows were left out on request, by the first column they lacked."""
    dropped: dict[str, int] = {}
    lacks = missing(layout)
    if layout.derived:
        for column, name in ((layout.columns.episode, "e"), (layout.columns.step, "k")):
            before = "" if name == "e" else " AND e IS NOT NULL"
            query = f"SELECT count(*) FROM ({layout.select()}) WHERE {name} IS NULL{before}"
            dropped[str(column)] = int(one_value(connection, query))
    cases = " ".join(f"WHEN {test} THEN {i}" for i, test in enumerate(lacks.values()))
    rows = flagged(layout, placed_only=True)
    found = connection.execute(
        f"SELECT CASE {cases} END AS why, count(*) FROM ({rows}) WHERE flag <> {CUT} GROUP BY why"
    ).fetchall()
    columns = list(lacks)
    for why, lines in found:
        if why is not None:
            dropped[columns[why]] = dropped.get(columns[why], 0) + int(lines)
    return {column: lines for column, lines in dropped.items() if lines}


def one_value(connection: Connection, query: str) -> Any:
    """Return the one value of a query."""
    return connection.execute(query).fetchall()[0][0]


def execute(connection: Connection, layout: Layout, query: str) -> None:
    """Run a query that reads the log; errors of DuckDB become one clear message."""
    try:
        connection.execute(query)
    except duckdb.OutOfRangeException:  # a sum that overflows; the caller has another way
        raise
    except duckdb.OutOfMemoryException:
        raise ValueError(
            f"{layout.source.name}: counting needs more than the {MEMORY_LIMIT} of memory that "
            "DuckDB may use. Read the log in parts and add the counts."
        ) from None
    except duckdb.Error as problem:
        _raise_unreadable(layout, str(problem))


def raise_not_finite(connection: Connection, layout: Layout) -> NoReturn:
    """Raise an error that names the reward that is not finite."""
    column = layout.columns.reward
    place, value = first_row(connection, layout, "isnan(r)", "r")
    if value is not None:
        raise ValueError(
            f"{place}: {printable(column)} is NaN; rewards must be finite numbers. Fill it in, "
            "or leave such "
            "rows out with missing='drop'."
        )
    place, value = first_row(connection, layout, "isinf(r)", "r")
    if value is not None:
        raise ValueError(
            f"{place}: {printable(column)} is {value}; rewards must be finite numbers. Correct "
            "the row."
        )
    raise ValueError(
        f"{layout.source.name}: {printable(column)} is too large to be averaged. Rescale the "
        "rewards."
    )


def _raise_unreadable(layout: Layout, message: str) -> NoReturn:
    file = _file_in(layout, message)
    line = re.search(r"CSV Error on Line: (\d+)", message)
    if file is None or line is None:
        place = layout.source.name if file is None else printable(file)
        if "state machine reached an invalid state" in message:
            raise ValueError(
                f"{place}: line endings or quotes are mixed, so that rows cannot be told apart. "
                "Write the file with one kind of line ending and doubled quotes."
            )
        raise ValueError(f"{place}: cannot be read ({printable(message.splitlines()[0])}).")
    where = f"{printable(file)}, line {line_of(layout, file, int(line.group(1)) - 1, blanks=True)}"
    if found := re.search(
        r'converting column "(.*)"\. Could not convert string "(.*)" to', message
    ):
        column, text = found.groups()
        kind = "a time" if layout.types.get(column) == "TIMESTAMP" else "a number"
        raise ValueError(
            f"{where}: {printable(column)} is {_short(text)!r}, not {kind}. Correct the row."
        )
    if found := re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message):
        raise ValueError(
            f"{where}: {found.group(2)} fields where the header has {found.group(1)}. Complete the "
            "row, or quote fields that hold the delimiter."
        )
    if "quote" in message and "unterminated" in message:
        raise ValueError(f"{where}: a quote is not closed. Double the quotes inside a field.")
    if "unicode" in message:
        raise ValueError(
            f"{where}: the text is not UTF-8. Save the file as UTF-8, or name its encoding with "
            "encoding=."
        )
    reason = printable(message.splitlines()[0])
    raise ValueError(f"{where}: the row cannot be read ({reason}). Correct the row.")


def check_texts(connection: Connection, layout: Layout) -> None:
    """Refuse texts that are not numbers, or dates, in the style of their column."""
    style = layout.numerals
    checked = [
        (name, f"NOT regexp_full_match(trim({quote_name(name)}), {quote_text(style.pattern)})",
         f"not a number with a decimal {'point' if style.decimal == '.' else 'comma'}")
        for name in layout.text_numbers
    ]  # fmt: skip
    if layout.step_format is not None and layout.columns.step is not None:
        step, form = quote_name(layout.columns.step), quote_text(layout.step_format)
        test = f"{step} IS NOT NULL AND try_strptime(trim({step}), {form}) IS NULL"
        wrong = f"not a date such as {layout.step_format} describes"
        checked.append((layout.columns.step, test, wrong))
    for column, condition, wrong in checked:
        _check_text(connection, layout, column, condition, wrong)


def _check_text(
    connection: Connection, layout: Layout, column: str, condition: str, wrong: str
) -> None:
    """Raise at the first text of a column that meets a condition."""
    name = quote_name(column)
    for file in layout.source.files:
        rows = scan(layout.source.only(file), {column: "VARCHAR"}, rows=True)
        try:
            row, text = connection.execute(
                f'SELECT min("row number"), arg_min({name}, "row number") FROM ({rows}) '
                f"WHERE {condition}"
            ).fetchall()[0]
        except duckdb.Error:  # the count itself will say where the file cannot be read
            return
        if row is not None:
            line = line_of(layout, file, int(row), blanks=False)
            raise ValueError(
                f"{printable(file)}, line {line}: {printable(column)} is {_short(text)!r}, "
                f"{wrong}. Correct the row."
            )


def check_joined_digits(connection: Connection, layout: Layout) -> None:
    """Refuse numbers such as 1_000, which DuckDB reads as 1000."""
    if not layout.source.joined_digits:
        return
    for column, kind in layout.types.items():
        if kind not in ("DOUBLE", "HUGEINT"):
            continue
        condition = f"contains({quote_name(column)}, '_')"
        _check_text(connection, layout, column, condition, "not a number")


def _file_in(layout: Layout, message: str) -> Path | None:
    files = layout.source.files
    found = re.search(r"^\s*file = (.*)$", message, re.MULTILINE)
    if len(files) == 1 or found is None:
        return files[0] if len(files) == 1 else None
    listed = found.group(1).strip()
    plain = re.sub(r"\[(.)\]", r"\1", listed)
    read = {str(layout.source.read_path(path)): path for path in files}
    return read.get(listed, read.get(plain))


def _short(text: str, most: int = 60) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def line_of(layout: Layout, file: Path, record: int, *, blanks: bool) -> int:
    """Return the line on which a record of a CSV starts; the first after the header is record 1.

    ``blanks`` says whether blank lines were counted as records.
    """
    if record > EXACT_RECORDS:
        return record + 1
    delimiter = next(part.delimiter for part in layout.source.parts if file in part.files)
    seen = -1
    try:
        # DuckDB reports bytes that are not UTF-8.
        with open_csv(layout.source.read_path(file), errors="replace") as text:
            reader = csv.reader(text, delimiter=delimiter)
            for start, fields in numbered_records(reader):
                seen += bool(fields) or blanks
                if seen == record:
                    return start
            return reader.line_num + 1
    except csv.Error:
        return record + 1


def first_row(
    connection: Connection, layout: Layout, condition: str, shown: str
) -> tuple[str, Any]:
    """Return the place of the first row that meets an SQL condition, and ``shown`` in that row."""
    files = layout.source.files
    for source in [layout.source.only(path) for path in files] or [layout.source]:
        here = replace(layout, source=source)
        # An aggregate's FILTER is not pushed down to the files, whose statistics ignore NaN.
        row, value = connection.execute(
            f'SELECT min("row number") FILTER (WHERE {condition}), '
            f'arg_min({shown}, "row number") FILTER (WHERE {condition}) '
            f"FROM ({here.select(rows=True)})"
        ).fetchall()[0]
        if row is not None:
            return _spell(here, int(row)), value
    return layout.source.name, None


def _spell(layout: Layout, row: int) -> str:
    if layout.source.kind == "memory":
        return f"{layout.source.name}, row {row - 1} (the first is 0)"
    file = layout.source.files[0]
    if layout.source.kind == "parquet":
        return f"{printable(file)}, row {row}"
    return f"{printable(file)}, line {line_of(layout, file, row, blanks=False)}"
