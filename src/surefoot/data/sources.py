"""Where a log lies: CSV and Parquet files, folders and globs of them, tables in memory."""

import csv
import gzip
import os
import tempfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from surefoot._display import printable
from surefoot._findings import Finding
from surefoot.data import tables
from surefoot.data.csv_bytes import inspect
from surefoot.data.log_files import SUFFIXES, LogFiles, kind_of, log_files
from surefoot.model.csv_lines import open_csv

Connection = duckdb.DuckDBPyConnection

MEMORY_LIMIT = "500MB"
"""What DuckDB may keep in memory; beyond that it writes to a temporary folder."""

DELIMITERS = (",", "\t", ";", "|")


@dataclass(frozen=True, kw_only=True)
class CsvPart:
    """CSV files that share one header."""

    files: tuple[Path, ...]
    header: tuple[str, ...]
    delimiter: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Source:
    """A log that DuckDB can scan, any number of times.

    Attributes
    ----------
    kind
        ``"csv"``, ``"parquet"`` or ``"memory"``.
    name
        What messages call it.
    files
        The files, in order; empty for a table in memory.
    parts
        The same files grouped by header (CSV).
    types
        The DuckDB type of each column; ``"VARCHAR"`` for all columns of a CSV.

    Notes
    -----
        Sentences about files that were passed over.
    joined_digits
        Whether an underscore joins two digits somewhere (CSV), as in 1_000.

    A table in memory is known to DuckDB as ``log``, in the session that found it.
    """

    kind: str
    name: str
    types: Mapping[str, str]
    files: tuple[Path, ...] = ()
    parts: tuple[CsvPart, ...] = ()
    findings: tuple[Finding, ...] = ()
    joined_digits: bool = False

    @property
    def size(self) -> int:
        """Bytes on disk; 0 for a table in memory."""
        return sum(path.stat().st_size for path in self.files)

    @property
    def numbered(self) -> bool:
        """Whether the source knows the numbers of its rows; else they are counted on one thread."""
        return self.kind == "parquet" and len(self.files) == 1

    def only(self, path: Path) -> "Source":
        """Return the source cut down to one of its files."""
        parts = tuple(
            CsvPart(files=(path,), header=part.header, delimiter=part.delimiter)
            for part in self.parts
            if path in part.files
        )
        return Source(
            kind=self.kind, name=printable(path), types=self.types, files=(path,), parts=parts
        )


@contextmanager
def session() -> Iterator[Connection]:
    """Open a private DuckDB that spills to a temporary folder."""
    with (
        tempfile.TemporaryDirectory(prefix="surefoot-", ignore_cleanup_errors=True) as spill,
        duckdb.connect(
            config={
                "memory_limit": MEMORY_LIMIT,
                "temp_directory": spill,
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                "python_enable_replacements": False,
            }
        ) as connection,
    ):
        _hide_progress(connection)
        yield connection


def _hide_progress(connection: Connection) -> None:
    """Turn off DuckDB's progress bar, which writes to standard output.

    In a notebook without ipywidgets the bar is off already, and DuckDB refuses to hear of it.
    """
    with suppress(duckdb.InvalidInputException):
        connection.execute("SET enable_progress_bar = false")


def find(connection: Connection, source: Any, wanted: Collection[str]) -> Source:
    """Return what to read: one path, folder or glob, or the wanted columns of a table in memory."""
    if isinstance(source, (str, os.PathLike)):
        return _from_files(connection, log_files(source), printable(source), wanted)
    if isinstance(source, (list, tuple)) and source and all(map(_is_path, source)):
        found = log_files(*source)
        return _from_files(connection, found, f"{len(found.files)} files", wanted)
    return _from_memory(connection, source, wanted)


def _is_path(thing: Any) -> bool:
    return isinstance(thing, (str, os.PathLike))


def scan(source: Source, types: Mapping[str, str], *, rows: bool = False) -> str:
    """Return the SQL of a table with these columns, read from the source.

    Parameters
    ----------
    types
        The columns wanted, and the DuckDB type that a CSV column is read as.
    rows
        Add the row's position (from 1) as ``"row number"``, in the order of the log.
    """
    number = ', row_number() OVER () AS "row number"' if rows else ""
    columns = ", ".join(quote_name(name) for name in types)
    if source.kind == "memory":
        return f"SELECT {columns}{number} FROM log"
    if source.kind == "parquet":
        flag = ""
        if rows and source.numbered:
            number, flag = ', file_row_number + 1 AS "row number"', ", file_row_number=true"
        files = _file_list(source.files)
        return (
            f"SELECT {columns}{number} FROM read_parquet({files}, union_by_name=true, "
            f"hive_partitioning=false{flag})"
        )
    union = " UNION ALL ".join(
        f"SELECT {columns} FROM {_read_csv(part, types)}" for part in source.parts
    )
    return f"SELECT *{number} FROM ({union})" if rows else union


def _read_csv(part: CsvPart, types: Mapping[str, str]) -> str:
    listed = ", ".join(
        f"{quote_text(name)}: {quote_text(types.get(name, 'VARCHAR'))}" for name in part.header
    )
    # Nothing is guessed: a sniffed header or type would turn '007' into 7, or a label into NULL.
    return (
        f"read_csv({_file_list(part.files)}, header=true, auto_detect=false, "
        f"delim={quote_text(part.delimiter)}, quote='\"', escape='\"', nullstr='', "
        f"allow_quoted_nulls=false, strict_mode=true, null_padding=false, columns={{{listed}}})"
    )


def list_names(names: Collection[str]) -> str:
    """Return column names for a message; long names and long lists are cut short."""
    shown = [repr(name if len(name) <= 60 else f"{name[:57]}...") for name in list(names)[:40]]
    return ", ".join(shown) + (f" and {len(names) - 40} more" if len(names) > 40 else "")


def quote_name(name: str) -> str:
    """Return a column name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """Return text as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def _file_list(files: tuple[Path, ...]) -> str:
    # Square brackets and stars in a plain file name must not act as a glob.
    return "[" + ", ".join(quote_text(_literal(path)) for path in files) + "]"


def _literal(path: Path) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in str(path))


def _from_files(
    connection: Connection, found: LogFiles, name: str, wanted: Collection[str]
) -> Source:
    files, findings = found
    odd_name = next((path for path in files if not _is_unicode(str(path))), None)
    if odd_name is not None:
        raise ValueError(f"{str(odd_name)!a}: the name of the file is not UTF-8. Rename it.")
    kinds = {path: kind_of(path) for path in files}
    for path, kind in kinds.items():
        if kind is None:
            raise ValueError(
                f"{printable(path)}: unknown kind of file. Logs end in {', '.join(SUFFIXES)}; "
                "tables in "
                "memory (pandas, polars, Arrow, a dict of arrays) are taken as they are."
            )
    if len(set(kinds.values())) > 1:
        odd = {kind: path for path, kind in reversed(kinds.items())}
        raise ValueError(
            f"{name}: holds both CSV ({odd['csv'].name}) and Parquet ({odd['parquet'].name}). Pass "
            "a glob that picks one kind, and add the two counts."
        )
    if kinds[files[0]] == "parquet":
        types = _parquet_types(connection, files)
        return Source(kind="parquet", name=name, files=files, types=types, findings=findings)
    parts = _csv_parts(files)
    joined = [inspect(path) for path in files]
    for column in wanted:
        lacks = [part for part in parts if column not in part.header]
        if 0 < len(lacks) < len(parts):
            raise ValueError(
                f"{printable(lacks[0].files[0])}: there is no column {column!r}, which other "
                "files have; the "
                f"columns are {list_names(lacks[0].header)}."
            )
    columns = [column for column in parts[0].header if all(column in p.header for p in parts)]
    return Source(
        kind="csv", name=name, files=files, parts=parts, types=dict.fromkeys(columns, "VARCHAR"),
        findings=findings, joined_digits=any(joined),
    )  # fmt: skip


def _parquet_types(connection: Connection, files: tuple[Path, ...]) -> dict[str, str]:
    """Return the type of every column that all files have; a type that changes is an error."""
    types: dict[str, str] = {}
    for i, path in enumerate(files):
        if path.stat().st_size == 0:
            raise ValueError(f"{printable(path)}: the file is empty. Write the log again.")
        table = f"read_parquet({_file_list((path,))}, hive_partitioning=false)"
        try:
            here = {
                row[0]: str(row[1])
                for row in connection.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()
            }
        except duckdb.Error as problem:
            reason = printable(str(problem).splitlines()[0])
            raise ValueError(
                f"{printable(path)}: not a readable Parquet file ({reason})."
            ) from None
        for column, kind in here.items():
            if column in types and tables.family(types[column]) != tables.family(kind):
                raise ValueError(
                    f"{printable(path)}: column {column!r} has type {kind}, but {types[column]} in "
                    f"{printable(files[0])}. One column needs one type in all files: convert it "
                    "first."
                )
        types = here if i == 0 else {c: k for c, k in types.items() if c in here}
    return types


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _csv_parts(files: tuple[Path, ...]) -> tuple[CsvPart, ...]:
    groups: dict[tuple[tuple[str, ...], str], list[Path]] = {}
    for path in files:
        groups.setdefault(_read_header(path), []).append(path)
    return tuple(
        CsvPart(files=tuple(paths), header=header, delimiter=delimiter)
        for (header, delimiter), paths in groups.items()
    )


def _read_header(path: Path) -> tuple[tuple[str, ...], str]:
    """Return the header and the delimiter: tab in a .tsv, else the one that splits it most."""
    try:
        with open_csv(path, errors="replace") as lines:
            first = lines.readline()
            if not first.strip():
                what = "line 1 is blank" if first else "the file is empty"
                raise ValueError(
                    f"{printable(path)}: {what}. The first line must name the columns."
                )
            tab = ".tsv" in path.name.lower()
            best = "\t" if tab else max(DELIMITERS, key=lambda d: len(_fields(first, d)))
            lines.seek(0)
            header = tuple(next(csv.reader(lines, delimiter=best)))
    except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
        raise ValueError(f"{printable(path)}: the file is not readable text ({problem}).") from None
    except csv.Error as problem:
        raise ValueError(
            f"{printable(path)}, line 1: the names of the columns cannot be read ({problem})."
        ) from None
    # A header that ends in a comma, as Excel writes it, has a column without a name.
    header = tuple(name or f"column {i}" for i, name in enumerate(header, 1))
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        raise ValueError(
            f"{printable(path)}, line 1: column {twice!r} is named twice. Rename one of them."
        )
    spelled = {name.casefold(): name for name in header}
    other = next((name for name in header if spelled[name.casefold()] != name), None)
    if other is not None:
        raise ValueError(
            f"{printable(path)}, line 1: columns {other!r} and {spelled[other.casefold()]!r} "
            "differ in case "
            "only. Rename one of them."
        )
    return header, best


def _fields(line: str, delimiter: str) -> list[str]:
    return next(csv.reader([line], delimiter=delimiter), [])


def _from_memory(connection: Connection, table: Any, wanted: Collection[str]) -> Source:
    prepared, names, title = tables.prepare(table, wanted)
    types = dict.fromkeys(names, "not read")
    if any(name in wanted for name in names):
        connection.register("log", prepared)
        described = connection.execute("DESCRIBE log").fetchall()
        types |= {row[0]: str(row[1]) for row in described}
    return Source(kind="memory", name=title, types=types)
