"""The files of a log that a path, a folder or a glob stands for, each listed once."""

import os
from collections.abc import Iterable
from glob import glob, has_magic
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from surefoot._display import printable
from surefoot._findings import Finding

SUFFIXES = {
    ".csv": "csv",
    ".csv.gz": "csv",
    ".tsv": "csv",
    ".tsv.gz": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".xlsx": "sheet",
    ".xlsm": "sheet",
    ".xls": "sheet",
    ".ods": "sheet",
    ".duckdb": "database",
    ".sqlite": "database",
    ".sqlite3": "database",
    ".db": "database",
}
"""The kind of file for each ending of a name."""


class LogFiles(NamedTuple):
    """The files to read, in order, and findings about those that were skipped."""

    files: tuple[Path, ...]
    findings: tuple[Finding, ...] = ()


def log_files(*places: str | os.PathLike[str]) -> LogFiles:
    """Return the files that paths, folders or globs stand for.

    A folder stands for the logs in it and below, except hidden ones (such as
    ``.ipynb_checkpoints``, where editors keep copies). A file that is reached by two names, through
    links or ``..``, is listed once.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("a.csv", ".a.csv"):
    ...         _ = (Path(folder) / name).write_text("state")
    ...     files, found = log_files(folder, f"{folder}/../{Path(folder).name}/a.csv")
    >>> [file.name for file in files], len(found)
    (['a.csv'], 2)
    """
    found = [path for place in places for path in _listed(os.fspath(place))]
    hidden = [path for place in places for path in _hidden(Path(place))]
    files = tuple({path.resolve(): path for path in reversed(found)}.values())[::-1]
    return LogFiles(files, (*_about_hidden(hidden), *_about_repeated(found, files)))


def kind_of(path: Path) -> str | None:
    """Return "csv", "parquet", "sheet" or "database" by the name of a file; None for others."""
    name = path.name.lower()
    return next((kind for suffix, kind in SUFFIXES.items() if name.endswith(suffix)), None)


def _listed(place: str) -> list[Path]:
    path = Path(place)
    if path.is_dir():
        found = [file for file in _logs_below(path) if not _is_hidden(file, path)]
        if not found:
            raise FileNotFoundError(
                f"{printable(place)}: the folder holds no log. Logs end in {', '.join(SUFFIXES)}."
            )
        return found
    if path.exists():
        return [path]
    if has_magic(place):
        # Path.glob refuses absolute patterns, which users write.
        matches = sorted(glob(place, recursive=True))  # noqa: PTH207
        found = [path for path in map(Path, matches) if path.is_file()]
        if found:
            return found
        raise FileNotFoundError(f"{printable(place)}: no file matches.")
    raise FileNotFoundError(f"{printable(place)}: there is no such file or folder.")


def _hidden(place: Path) -> list[Path]:
    if not place.is_dir():
        return []
    return [file for file in _logs_below(place) if _is_hidden(file, place)]


def _logs_below(folder: Path) -> Iterable[Path]:
    # A database must be named explicitly, since one of its tables must be chosen. Excel leaves
    # ~$name.xlsx next to a sheet that is open.
    kinds = (None, "database")
    return [
        path
        for path in sorted(folder.rglob("*"))
        if kind_of(path) not in kinds and path.is_file() and not path.name.startswith("~$")
    ]


def folder_keys(path: Path) -> tuple[tuple[str, str], ...]:
    """Return the keys and values in the names of a file's folders (``key=value``).

    Examples
    --------
    >>> folder_keys(Path("logs/year=2026/month=03/part.csv"))
    (('year', '2026'), ('month', '03'))
    """
    pairs = [part.partition("=") for part in path.parent.parts]
    return tuple((unquote(key), unquote(value)) for key, equals, value in pairs if equals and key)


def _is_hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(folder).parts)


def _about_hidden(hidden: list[Path]) -> tuple[Finding, ...]:
    if not hidden:
        return ()
    return (Finding.of("hidden_files", files=len(hidden), example=printable(hidden[0])),)


def _about_repeated(found: list[Path], files: tuple[Path, ...]) -> tuple[Finding, ...]:
    again = [path for path in found if path not in files]
    more = len(found) - len(files)
    if not more:
        return ()
    named = again[0] if again else found[0]
    return (Finding.of("files_named_twice", files=more, example=printable(named)),)
