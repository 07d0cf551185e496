"""Where a log lies: files, folders and globs of them, a database, tables in memory."""

import codecs
import csv
import gzip
import os
import tempfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb

from surefoot._display import printable
from surefoot._findings import Finding
from surefoot.data import tables
from surefoot.data.copies import count_records, from_sheet, from_sqlite, recoded
from surefoot.data.csv_bytes import best_delimiter, encoding_of, inspect, is_marked
from surefoot.data.databases import VIEW, attach, engine_of
from surefoot.data.log_files import SUFFIXES, LogFiles, folder_keys, kind_of, log_files
from surefoot.data.reading import Reading
from surefoot.model.csv_lines import open_csv

Connection = duckdb.DuckDBPyConnection

MEMORY_LIMIT = "500MB"
"""What DuckDB may keep in memory; beyond that it writes to a temporary folder."""


KINDS = {"csv": "CSV", "parquet": "Parquet", "sheet": "spreadsheets", "database": "databases"}
"""What messages call kinds of files."""


@dataclass(frozen=True, kw_only=True)
class CsvPart:
    """CSV files that share one header, and the keys in the names of their folders (month=3).

    ``read`` are the files that DuckDB reads: copies in UTF-8 where the files themselves are not.
    """

    files: tuple[Path, ...]
    read: tuple[Path, ...]
    header: tuple[str, ...]
    delimiter: str
    keys: tuple[tuple[str, str], ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the files, and those that folders add."""
        return (*self.header, *(name for name, _ in self.keys))


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

    findings
        What to say about the files: passed over, recoded.
    joined_digits
        Whether an underscore joins two digits somewhere (CSV), as in 1_000.
    rows
        How many rows there must be, where files were written again before they are read.
    lasting
        Whether the source can be read in another session: no copies, no database, no view.
    hive
        Whether Parquet files get columns from the names of their folders.

    Notes
    -----
    A table in memory and one of a database are known to DuckDB under one name, in the session
    that found them.
    """

    kind: str
    name: str
    types: Mapping[str, str]
    files: tuple[Path, ...] = ()
    parts: tuple[CsvPart, ...] = ()
    findings: tuple[Finding, ...] = ()
    joined_digits: bool = False
    rows: int | None = None
    lasting: bool = True
    hive: bool = False

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
        if self.kind == "memory":
            return self
        parts = tuple(
            replace(part, files=(path,), read=(part.read[part.files.index(path)],))
            for part in self.parts
            if path in part.files
        )
        return replace(self, name=printable(path), files=(path,), parts=parts, findings=())

    def read_path(self, path: Path) -> Path:
        """Return the file that is read in place of one of the files."""
        found = [dict(zip(part.files, part.read, strict=True)) for part in self.parts]
        return next((one[path] for one in found if path in one), path)


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


def find(
    connection: Connection, source: Any, wanted: Collection[str], how: Reading | None = None
) -> Source:
    """Return what to read: one path, folder or glob, or the wanted columns of a table in memory."""
    how = how or Reading()
    if isinstance(source, (str, os.PathLike)):
        return _from_files(connection, log_files(source), printable(source), wanted, how)
    if isinstance(source, (list, tuple)) and source and all(map(_is_path, source)):
        found = log_files(*source)
        return _from_files(connection, found, f"{len(found.files)} files", wanted, how)
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
        return f"SELECT {columns}{number} FROM {VIEW}"
    if source.kind == "parquet":
        flag = ""
        if rows and source.numbered:
            number, flag = ', file_row_number + 1 AS "row number"', ", file_row_number=true"
        files = _file_list(source.files)
        return (
            f"SELECT {columns}{number} FROM read_parquet({files}, union_by_name=true, "
            f"hive_partitioning={str(source.hive).lower()}{flag})"
        )
    union = " UNION ALL ".join(
        f"SELECT {_csv_columns(part, types)} FROM {_read_csv(part, types)}" for part in source.parts
    )
    return f"SELECT *{number} FROM ({union})" if rows else union


def _csv_columns(part: CsvPart, types: Mapping[str, str]) -> str:
    keys = dict(part.keys)
    return ", ".join(
        f"{quote_text(keys[name])}::{kind} AS {quote_name(name)}" if name in keys
        else quote_name(name)
        for name, kind in types.items()
    )  # fmt: skip


def _read_csv(part: CsvPart, types: Mapping[str, str]) -> str:
    listed = ", ".join(
        f"{quote_text(name)}: {quote_text(types.get(name, 'VARCHAR'))}" for name in part.header
    )
    # Nothing is guessed: a sniffed header or type would turn '007' into 7, or a label into NULL.
    return (
        f"read_csv({_file_list(part.read)}, header=true, auto_detect=false, "
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
    connection: Connection, found: LogFiles, name: str, wanted: Collection[str], how: Reading
) -> Source:
    files, findings = found
    odd_name = next((path for path in files if not _is_unicode(str(path))), None)
    if odd_name is not None:
        raise ValueError(f"{str(odd_name)!a}: the name of the file is not UTF-8. Rename it.")
    kind = _one_kind(files, name)
    if kind == "database":
        return _from_database(connection, files, how)
    if kind == "parquet":
        types, hive = _parquet_types(connection, files)
        return Source(
            kind="parquet", name=name, files=files, types=types, findings=findings, hive=hive
        )
    return _from_csv(connection, LogFiles(files, findings), name, wanted, how)


def _one_kind(files: tuple[Path, ...], name: str) -> str:
    kinds = {path: kind_of(path) for path in files}
    for path, kind in kinds.items():
        if kind is None:
            raise ValueError(
                f"{printable(path)}: unknown kind of file. Logs end in {', '.join(SUFFIXES)}; "
                "tables in "
                "memory (pandas, polars, Arrow, a dict of arrays) are taken as they are."
            )
    first = str(kinds[files[0]])
    found = {str(kind): path.name for path, kind in reversed(kinds.items())}
    if len(found) > 1:
        shown = [f"{KINDS[kind]} ({found[kind]})" for kind in KINDS if kind in found]
        raise ValueError(
            f"{name}: holds both {shown[0]} and {shown[1]}. Pass a glob that picks one kind, and "
            "add the two counts."
        )
    if first == "database" and len(files) > 1:
        raise ValueError(f"{name}: these are {len(files)} databases. Read them one by one.")
    return first


def _from_database(connection: Connection, files: tuple[Path, ...], how: Reading) -> Source:
    path = files[0]
    if engine_of(path) == "sqlite":
        copy = scratch(connection) / "table.csv"
        title = from_sqlite(path, how.table, how.query, copy)
        named = f"{printable(path)}, {title}"
        return _csv_source(LogFiles(files, ()), named, {path: copy}, (), joined=False)
    title = attach(connection, path, how.table, how.query)
    described = connection.execute(f"DESCRIBE {VIEW}").fetchall()
    types = {row[0]: str(row[1]) for row in described}
    return Source(
        kind="memory", name=f"{printable(path)}, {title}", files=files, types=types, lasting=False
    )


def scratch(connection: Connection) -> Path:
    """Return the temporary folder of a session."""
    found = connection.execute("SELECT current_setting('temp_directory')").fetchall()[0][0]
    Path(found).mkdir(exist_ok=True)
    return Path(found)


def _from_csv(
    connection: Connection, found: LogFiles, name: str, wanted: Collection[str], how: Reading
) -> Source:
    """Return text files or spreadsheets as a source; what DuckDB cannot read is written again."""
    copies: dict[Path, Path] = {}
    said, joined = list(found.findings), False
    for i, path in enumerate(found.files):
        copy = scratch(connection) / f"{i}.csv"
        if kind_of(path) == "sheet":
            from_sheet(path, how.sheet, copy)
            copies[path] = copy
            continue
        seen = None if is_marked(path) else inspect(path)
        encoding = _encoding(path, how.encoding, is_utf8=seen is not None and seen.is_utf8)
        if encoding is not None:
            recoded(path, encoding, copy)
            copies[path], seen = copy, inspect(copy)
            if how.encoding is None:
                said.append(Finding.of("recoded", file=printable(path.name), encoding=encoding))
        joined = joined or seen is None or seen.joined_digits
    found = LogFiles(found.files, tuple(said))
    return _csv_source(found, name, copies, wanted, joined=joined)


def _encoding(path: Path, asked: str | None, *, is_utf8: bool) -> str | None:
    """Return how a file is encoded that must be written again; None for UTF-8."""
    if asked is not None:
        same = codecs.lookup(asked).name in ("utf-8", "utf-8-sig", "ascii")
        return None if same else asked
    return None if is_utf8 else encoding_of(path)


def _csv_source(
    found: LogFiles, name: str, copies: Mapping[Path, Path], wanted: Collection[str], *,
    joined: bool,
) -> Source:  # fmt: skip
    files = found.files
    parts = _csv_parts(files, copies)
    for column in wanted:
        lacks = [part for part in parts if column not in part.columns]
        if 0 < len(lacks) < len(parts):
            raise ValueError(
                f"{printable(lacks[0].files[0])}: there is no column {column!r}, which other "
                "files have; the "
                f"columns are {list_names(lacks[0].columns)}."
            )
    columns = [column for column in parts[0].columns if all(column in p.columns for p in parts)]
    return Source(
        kind="csv", name=name, files=files, parts=parts, types=dict.fromkeys(columns, "VARCHAR"),
        findings=found.findings, rows=_rows(parts) if len(copies) == len(files) else None,
        joined_digits=joined, lasting=not copies,
    )  # fmt: skip


def _rows(parts: tuple[CsvPart, ...]) -> int | None:
    numbers = [count_records(copy, part.delimiter) for part in parts for copy in part.read]
    return None if None in numbers else sum(number or 0 for number in numbers)


def _parquet_types(connection: Connection, files: tuple[Path, ...]) -> tuple[dict[str, str], bool]:
    """Return the type of every column that all files have, and whether folders add some.

    A type that changes is an error.
    """
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
    keys = [dict(folder_keys(path)) for path in files]
    if not keys[0] or any(one.keys() != keys[0].keys() for one in keys) or keys[0].keys() & types:
        return types, False
    table = f"read_parquet({_file_list(files)}, union_by_name=true, hive_partitioning=true)"
    found = connection.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()
    return types | {row[0]: str(row[1]) for row in found if row[0] in keys[0]}, True


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _csv_parts(files: tuple[Path, ...], copies: Mapping[Path, Path]) -> tuple[CsvPart, ...]:
    groups: dict[tuple[Any, ...], list[Path]] = {}
    for path in files:
        header, delimiter = _read_header(path, copies.get(path, path))
        keys = tuple((key, value) for key, value in folder_keys(path) if key not in header)
        groups.setdefault((header, delimiter, keys), []).append(path)
    return tuple(
        CsvPart(
            files=tuple(paths), read=tuple(copies.get(path, path) for path in paths),
            header=header, delimiter=delimiter, keys=keys,
        )
        for (header, delimiter, keys), paths in groups.items()
    )  # fmt: skip


def _read_header(path: Path, read: Path) -> tuple[tuple[str, ...], str]:
    """Return the header and the delimiter: tab in a .tsv, else the one that splits it most."""
    try:
        with open_csv(read, errors="replace") as lines:
            first = lines.readline()
            if not first.strip():
                what = "line 1 is blank" if first else "the file is empty"
                raise ValueError(
                    f"{printable(path)}: {what}. The first line must name the columns."
                )
            best = "\t" if ".tsv" in path.name.lower() else best_delimiter(first)
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


def _from_memory(connection: Connection, table: Any, wanted: Collection[str]) -> Source:
    prepared, names, title = tables.prepare(table, wanted)
    types = dict.fromkeys(names, "not read")
    if any(name in wanted for name in names):
        connection.register(VIEW, prepared)
        described = connection.execute(f"DESCRIBE {VIEW}").fetchall()
        types |= {row[0]: str(row[1]) for row in described}
    return Source(kind="memory", name=title, types=types)
