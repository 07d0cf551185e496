"""Where in a log something is wrong: file and line, row, or episode and step."""

import csv
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import duckdb

from surefoot.data.columns import Layout
from surefoot.data.sources import Connection, open_text

EXACT_RECORDS = 2_000_000
"""Up to this record the line of a CSV is found exactly, with line breaks inside quotes."""


def execute(connection: Connection, layout: Layout, query: str) -> None:
    """Run a query that reads the log; what DuckDB cannot read becomes one clear line."""
    try:
        connection.execute(query)
    except duckdb.OutOfRangeException:  # how some versions answer infinite rewards
        raise_not_finite(connection, layout)
    except duckdb.Error as problem:
        _raise_unreadable(layout, str(problem))


def raise_not_finite(connection: Connection, layout: Layout) -> NoReturn:
    """Find the reward that is not a finite number."""
    column = layout.columns.reward
    place, value = first_row(connection, layout, "isnan(r)", "r")
    if value is not None:
        raise ValueError(
            f"{place}: {column} is NaN; rewards must be finite numbers. Fill it in, or leave such "
            "rows out with missing='drop'."
        )
    place, value = first_row(connection, layout, "isinf(r)", "r")
    if value is not None:
        raise ValueError(
            f"{place}: {column} is {value}; rewards must be finite numbers. Correct the row."
        )
    raise ValueError(
        f"{layout.source.name}: {column} is too large to be averaged. Rescale the rewards."
    )


def _raise_unreadable(layout: Layout, message: str) -> NoReturn:
    file = _file_in(layout, message)
    line = re.search(r"CSV Error on Line: (\d+)", message)
    if file is None or line is None:
        place = layout.source.name if file is None else str(file)
        if "state machine reached an invalid state" in message:
            raise ValueError(
                f"{place}: line endings or quotes are mixed, so that rows cannot be told apart. "
                "Write the file with one kind of line ending and doubled quotes."
            )
        raise ValueError(f"{place}: cannot be read ({message.splitlines()[0]}).")
    where = f"{file}, line {line_of(layout, file, int(line.group(1)) - 1, blanks=True)}"
    if found := re.search(
        r'converting column "(.*)"\. Could not convert string "(.*)" to', message
    ):
        column, text = found.groups()
        kind = "a time" if layout.types.get(column) == "TIMESTAMP" else "a number"
        raise ValueError(f"{where}: {column} is {_short(text)!r}, not {kind}. Correct the row.")
    if found := re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message):
        raise ValueError(
            f"{where}: {found.group(2)} fields where the header has {found.group(1)}. Complete the "
            "row, or quote fields that hold the delimiter."
        )
    if "quote" in message and "unterminated" in message:
        raise ValueError(f"{where}: a quote is not closed. Double the quotes inside a field.")
    if "unicode" in message:
        raise ValueError(f"{where}: the text is not UTF-8. Save the file as UTF-8.")
    reason = message.splitlines()[0]
    raise ValueError(f"{where}: the row cannot be read ({reason}). Correct the row.")


def _file_in(layout: Layout, message: str) -> Path | None:
    files = layout.source.files
    found = re.search(r"^\s*file = (.*)$", message, re.MULTILINE)
    if len(files) == 1 or found is None:
        return files[0] if len(files) == 1 else None
    listed = found.group(1).strip()
    plain = re.sub(r"\[(.)\]", r"\1", listed)
    return next((path for path in files if str(path) in (listed, plain)), None)


def _short(text: str, most: int = 60) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def line_of(layout: Layout, file: Path, record: int, *, blanks: bool) -> int:
    """Return the line on which a record of a CSV starts; the first after the header is record 1.

    ``blanks`` says whether blank lines were counted as records.
    """
    if record > EXACT_RECORDS:
        return record + 1
    delimiter = next(part.delimiter for part in layout.source.parts if file in part.files)
    seen, start = -1, 1
    try:
        with open_text(file) as text:
            reader = csv.reader(text, delimiter=delimiter)
            for fields in reader:
                seen += bool(fields) or blanks
                if seen == record:
                    break
                start = reader.line_num + 1
    except csv.Error:
        return record + 1
    return start


def first_row(
    connection: Connection, layout: Layout, condition: str, shown: str
) -> tuple[str, Any]:
    """Return where the first row that meets an SQL condition lies, and what ``shown`` is there."""
    files = layout.source.files
    for source in [layout.source.only(path) for path in files] or [layout.source]:
        here = replace(layout, source=source)
        # An aggregate's own FILTER is not handed down to the files, whose statistics know no NaN.
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
        return f"{file}, row {row}"
    return f"{file}, line {line_of(layout, file, row, blanks=False)}"
