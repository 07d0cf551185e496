"""Find the source that DuckDB scans, from a path, a list of paths or a table."""

import codecs
import csv
import gzip
import os
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import duckdb

from surefoot._display import printable
from surefoot._findings import Finding
from surefoot.data import tables
from surefoot.data.csv_bytes import best_delimiter, encoding_of, inspect, is_marked
from surefoot.data.csv_copies import count_records, from_sheet, from_sqlite, recoded
from surefoot.data.databases import VIEW, attach, engine_of
from surefoot.data.log_files import SUFFIXES, LogFiles, folder_keys, kind_of, log_files
from surefoot.data.log_format import LogFormat
from surefoot.data.sources import KINDS, Connection, CsvPart, Source, file_list, list_names
from surefoot.model.csv_lines import open_csv


def find(
    connection: Connection, source: Any, wanted: Collection[str], how: LogFormat | None = None
) -> Source:
    """Return the source to read: the files of paths, folders or globs, or a table in memory."""
    how = how or LogFormat()
    if isinstance(source, (str, os.PathLike)):
        return _from_files(connection, log_files(source), printable(source), wanted, how)
    if isinstance(source, (list, tuple)) and source and all(map(_is_path, source)):
        found = log_files(*source)
        return _from_files(connection, found, f"{len(found.files)} files", wanted, how)
    return _from_memory(connection, source, wanted)


def _is_path(thing: Any) -> bool:
    return isinstance(thing, (str, os.PathLike))


def _from_files(
    connection: Connection, found: LogFiles, name: str, wanted: Collection[str], how: LogFormat
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


def _from_database(connection: Connection, files: tuple[Path, ...], how: LogFormat) -> Source:
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
    connection: Connection, found: LogFiles, name: str, wanted: Collection[str], how: LogFormat
) -> Source:
    """Return text files or spreadsheets as a source; files DuckDB cannot read are copied first."""
    copies: dict[Path, Path] = {}
    said, joined = list(found.findings), False
    for i, path in enumerate(found.files):
        if kind_of(path) == "sheet":
            copies[path] = scratch(connection) / f"{i}.csv"
            from_sheet(path, how.sheet, copies[path])
            continue
        seen = None if is_marked(path) else inspect(path)
        encoding = _encoding(path, how.encoding, is_utf8=seen is not None and seen.is_utf8)
        if encoding is not None:
            copies[path] = scratch(connection) / f"{i}.csv"
            recoded(path, encoding, copies[path])
            seen = inspect(copies[path])
            if how.encoding is None:
                said.append(Finding.of("recoded", file=printable(path.name), encoding=encoding))
        joined = joined or seen is None or seen.joined_digits
    found = LogFiles(found.files, tuple(said))
    return _csv_source(found, name, copies, wanted, joined=joined)


def _encoding(path: Path, asked: str | None, *, is_utf8: bool) -> str | None:
    """Return the encoding of a file that must be recoded; None for UTF-8."""
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
    """Return the type of every column that all files have, and whether folder names add columns.

    A column whose type changes between files is an error.
    """
    types: dict[str, str] = {}
    for i, path in enumerate(files):
        if path.stat().st_size == 0:
            raise ValueError(f"{printable(path)}: the file is empty. Write the log again.")
        table = f"read_parquet({file_list((path,))}, hive_partitioning=false)"
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
    table = f"read_parquet({file_list(files)}, union_by_name=true, hive_partitioning=true)"
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
