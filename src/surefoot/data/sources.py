"""The source of a log: files, folders and globs of them, a database, a table in memory."""

import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from surefoot._cores import available_cores
from surefoot._display import printable
from surefoot._findings import Finding
from surefoot.data.databases import VIEW

Connection = duckdb.DuckDBPyConnection

MEMORY_LIMIT = "500MB"
"""How much memory DuckDB may use; beyond that it writes to a temporary folder."""
FIRST_BYTES = 1 << 22
"""How much DuckDB reads of a CSV at a time where a few rows are enough, instead of 32 MB."""

KINDS = {"csv": "CSV", "parquet": "Parquet", "sheet": "spreadsheets", "database": "databases"}
"""The names of kinds of files in messages."""


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
        """The columns of the files, and those that folder names add."""
        return (*self.header, *(name for name, _ in self.keys))


@dataclass(frozen=True, kw_only=True, eq=False)
class Source:
    """A log that DuckDB can scan, any number of times.

    Attributes
    ----------
    kind
        ``"csv"``, ``"parquet"`` or ``"memory"``.
    name
        Its name in messages.
    files
        The files, in order; empty for a table in memory.
    parts
        The same files grouped by header (CSV).
    types
        The DuckDB type of each column; ``"VARCHAR"`` for all columns of a CSV.
    findings
        Findings about the files: skipped, recoded.
    joined_digits
        Whether an underscore joins two digits somewhere (CSV), as in 1_000.
    rows
        The number of rows to expect, where all files were copied before reading; else None.
    lasting
        Whether the source can be read in another session: no copies, no database, no view.
    hive
        Whether Parquet files get columns from the names of their folders.

    Notes
    -----
    DuckDB knows a table in memory, or of a database, under the same name (``VIEW``), and only in
    the session that found it.
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
        """Whether row numbers are stored in the source; else they are counted on one thread."""
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
        """Return the file that is actually read for one of the files: itself or a copy."""
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
                "threads": available_cores(),
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

    In a notebook without ipywidgets the bar is off already, and DuckDB refuses the setting.
    """
    with suppress(duckdb.InvalidInputException):
        connection.execute("SET enable_progress_bar = false")


def scan(
    source: Source, types: Mapping[str, str], *, rows: bool = False, first: int | None = None
) -> str:
    """Return the SQL of a table with these columns, read from the source.

    Parameters
    ----------
    types
        The columns wanted, and the DuckDB type that a CSV column is read as.
    rows
        Add the row's position (from 1) as ``"row number"``, in the order of the log.
    first
        Return only this many rows, from the start of the log; None means all.
    """
    if first is not None:
        return f"SELECT * FROM ({_scan(source, types, rows, FIRST_BYTES)}) LIMIT {first}"
    return _scan(source, types, rows)


def _scan(source: Source, types: Mapping[str, str], rows: bool, buffer: int | None = None) -> str:
    number = ', row_number() OVER () AS "row number"' if rows else ""
    columns = ", ".join(quote_name(name) for name in types)
    if source.kind == "memory":
        return f"SELECT {columns}{number} FROM {VIEW}"
    if source.kind == "parquet":
        flag = ""
        if rows and source.numbered:
            number, flag = ', file_row_number + 1 AS "row number"', ", file_row_number=true"
        files = file_list(source.files)
        return (
            f"SELECT {columns}{number} FROM read_parquet({files}, union_by_name=true, "
            f"hive_partitioning={str(source.hive).lower()}{flag})"
        )
    union = " UNION ALL ".join(
        f"SELECT {_csv_columns(part, types)} FROM {_read_csv(part, types, buffer)}"
        for part in source.parts
    )
    return f"SELECT *{number} FROM ({union})" if rows else union


def _csv_columns(part: CsvPart, types: Mapping[str, str]) -> str:
    keys = dict(part.keys)
    return ", ".join(
        f"{quote_text(keys[name])}::{kind} AS {quote_name(name)}" if name in keys
        else quote_name(name)
        for name, kind in types.items()
    )  # fmt: skip


def _read_csv(part: CsvPart, types: Mapping[str, str], buffer: int | None) -> str:
    size = "" if buffer is None else f", buffer_size={buffer}"
    listed = ", ".join(
        f"{quote_text(name)}: {quote_text(types.get(name, 'VARCHAR'))}" for name in part.header
    )
    # Nothing is detected: a detected header or type could turn '007' into 7, or a label into NULL.
    return (
        f"read_csv({file_list(part.read)}, header=true, auto_detect=false, "
        f"delim={quote_text(part.delimiter)}, quote='\"', escape='\"', nullstr='', "
        "allow_quoted_nulls=false, strict_mode=true, null_padding=false, "
        f"columns={{{listed}}}{size})"
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


def file_list(files: tuple[Path, ...]) -> str:
    """Return files as an SQL list."""
    # Square brackets and stars in a plain file name must not act as a glob.
    return "[" + ", ".join(quote_text(_literal(path)) for path in files) + "]"


def _literal(path: Path) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in str(path))
