"""Temporary UTF-8 CSV copies of files that DuckDB cannot read.

They are made of text in other encodings, spreadsheets and SQLite databases: DuckDB's extensions for
these are not part of its package. Values are quoted and missing values are not, so that an empty
text differs from a missing value.
"""

import codecs
import csv
import datetime
import gzip
import sqlite3
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from surefoot._display import printable
from surefoot.data.csv_bytes import CHUNK, open_bytes

ROWS_AT_ONCE = 10_000


def recoded(path: Path, encoding: str, copy: Path) -> None:
    """Write a copy of a text file in UTF-8."""
    decoder = codecs.getincrementaldecoder(encoding)()
    done = 0
    try:
        with open_bytes(path) as file, copy.open("w", encoding="utf-8", newline="") as out:
            while chunk := file.read(CHUNK):
                out.write(decoder.decode(chunk))
                done += len(chunk)
            out.write(decoder.decode(b"", True))
    except UnicodeDecodeError as problem:
        raise ValueError(
            f"{printable(path)}: byte {done + problem.start:,} is not {encoding} text "
            f"({problem.reason}). Name another encoding with encoding=."
        ) from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
        raise ValueError(
            f"{printable(path)}: the file is damaged ({problem}). Copy or compress it again."
        ) from None


def count_records(copy: Path, delimiter: str) -> int | None:
    """Return how many rows a copy has below its header; None where Python cannot parse it."""
    try:
        with copy.open(encoding="utf-8-sig", newline="") as file:
            return sum(1 for fields in csv.reader(file, delimiter=delimiter) if fields) - 1
    except csv.Error:
        return None


def from_sheet(path: Path, sheet: str | None, copy: Path) -> None:
    """Write one sheet of a spreadsheet as CSV, row for row, so that row numbers stay the same."""
    try:
        import python_calamine
    except ImportError:
        raise ValueError(
            f"{printable(path)}: reading spreadsheets needs the extra excel: "
            "pip install 'surefoot[excel]'. Or save the sheet as CSV."
        ) from None
    try:
        book = python_calamine.load_workbook(str(path))
        name = choose_name(path, "sheet", list(book.sheet_names), sheet)
        rows = list(book.get_sheet_by_name(name).iter_rows())
    except (python_calamine.CalamineError, OSError) as problem:
        raise ValueError(
            f"{printable(path)}: not a readable spreadsheet ({printable(str(problem))})."
        ) from None
    if not any(map(_filled, rows)):
        raise ValueError(f"{printable(path)}: the sheet {name!r} is empty.")
    if not _filled(rows[0]):
        raise ValueError(
            f"{printable(path)}: row 1 of the sheet {name!r} is empty. The first row must name the "
            "columns."
        )
    width = max(i for i, cell in enumerate(rows[0]) if cell != "") + 1
    beyond = next((i for i, row in enumerate(rows, 1) if _filled(row[width:])), None)
    if beyond is not None:
        raise ValueError(
            f"{printable(path)}, row {beyond}: there are values beyond the last named column. Name "
            "every column in row 1."
        )
    # An empty row becomes a blank line: it counts as a row of the sheet, not of the log.
    lines = ([None if c == "" else c for c in row[:width]] if _filled(row) else [] for row in rows)
    _write(copy, lines)


def _filled(row: Sequence[Any]) -> bool:
    return any(cell != "" for cell in row)


def from_sqlite(path: Path, table: str | None, query: str | None, copy: Path) -> str:
    """Write a table or the rows of a query as CSV, and return its name for messages.

    The file is opened for reading only; nothing can be attached or loaded.
    """
    place = f"file:{quote(str(path.absolute()))}?mode=ro"
    try:
        connection = sqlite3.connect(place, uri=True)
    except sqlite3.Error as problem:
        raise ValueError(f"{printable(path)}: cannot be opened ({problem}).") from None
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        name = "the query"
        if query is None:
            listed = connection.execute(
                "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
                "AND name NOT LIKE 'sqlite_%' ORDER BY name"
            ).fetchall()
            chosen = choose_name(path, "table", [row[0] for row in listed], table)
            name, query = f"table {chosen}", 'SELECT * FROM "{}"'.format(chosen.replace('"', '""'))
        elif not query.lstrip().lower().startswith(("select", "with", "values")):
            raise ValueError(f"query={query!r}; it must be a SELECT.")
        found = connection.execute(query)
        header = [column[0] for column in found.description]
        _write(copy, _sqlite_rows(path, header, found))
    except sqlite3.Error as problem:
        raise ValueError(
            f"{printable(path)}: cannot be read ({printable(str(problem))})."
        ) from None
    finally:
        connection.close()
    return name


def _sqlite_rows(path: Path, header: list[str], found: sqlite3.Cursor) -> Iterable[Sequence[Any]]:
    yield header
    for row in found:
        blob = next((i for i, value in enumerate(row) if isinstance(value, bytes)), None)
        if blob is not None:
            raise ValueError(
                f"{printable(path)}: column {header[blob]!r} holds bytes, which cannot be used. "
                "Leave it out with query=."
            )
        yield row


def choose_name(path: Path, what: str, listed: list[str], wanted: str | None) -> str:
    """Return the wanted sheet or table, or the only one there is."""
    names = ", ".join(map(repr, listed)) or "none"
    if wanted is not None and wanted in listed:
        return wanted
    if wanted is not None:
        raise ValueError(f"{printable(path)}: there is no {what} {wanted!r}; there are {names}.")
    if len(listed) != 1:
        raise ValueError(
            f"{printable(path)}: there are {len(listed)} {what}s ({names}). Say which one with "
            f"{what}=."
        )
    return listed[0]


def _write(copy: Path, rows: Iterable[Sequence[Any]]) -> None:
    with copy.open("w", encoding="utf-8", newline="") as file:
        for row in rows:
            file.write(",".join(map(_field, row)) + "\n")


def _field(value: Any) -> str:
    if value is None:
        return ""
    return '"' + _text(value).replace('"', '""') + '"'


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))  # spreadsheets store all numbers as decimals
    if isinstance(value, datetime.datetime):
        midnight = value.time() == datetime.time()
        return value.date().isoformat() if midnight else value.isoformat(sep=" ")
    if isinstance(value, datetime.timedelta):
        return str(value.total_seconds())
    return str(value)
