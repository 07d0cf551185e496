"""The files of a run's log: their names, sizes and times, and whether they were read before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from surefoot.pipeline.setting import toml_text

MADE = "made"
"""The table of a configuration that says how it was made; it is not read as settings."""


def stamp_of(file: Path) -> dict[str, Any]:
    """Return the name, the size and the modification time of a file."""
    about = file.stat()
    return {"name": str(file), "bytes": about.st_size, "modified": about.st_mtime_ns}


def looks_like(file: Path, stamp: Mapping[str, Any]) -> bool:
    """Return whether a file exists and has the size and modification time of a stamp."""
    if not file.is_file():
        return False
    now = stamp_of(file)
    return all(now[name] == stamp.get(name) for name in ("bytes", "modified"))


def toml_stamps(name: str) -> list[str]:
    """Return the stamps of the log's files as TOML lines, to recognise unchanged files later."""
    lines: list[str] = []
    for file in files_of_log([name]):
        lines += [f"[[{MADE}.files]]"]
        lines += [f"{key} = {toml_text(value)}" for key, value in stamp_of(file).items()]
    return lines


def files_of_log(names: Iterable[str]) -> list[Path]:
    """Return the files of the log, in the order in which they are read."""
    return [file for name in names for file in _files(name)]


def _files(name: str) -> list[Path]:
    from surefoot.data.log_files import log_files  # not needed for --help

    try:
        return [file.resolve() for file in log_files(name).files]
    except FileNotFoundError:
        return []


def read_twice(names: Iterable[str], add: str | None, *, together: bool = False) -> list[str]:
    """Return files that would count twice: named twice, or already read by the run ``add``.

    Files that are read ``together`` are read once, however often they are named.
    """
    files = [str(file) for file in files_of_log(names)]
    files = list(dict.fromkeys(files)) if together else files
    earlier = set() if add is None else _read_by(Path(add))
    return sorted({file for file in files if file in earlier or files.count(file) > 1})


def _read_by(folder: Path) -> set[str]:
    """Return the unchanged files that a run and the runs it was added to were made from."""
    import tomllib  # not needed for --help

    try:
        content = tomllib.loads((folder / "config.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    found = {
        str(Path(str(listed.get("name"))).resolve())
        for listed in content.get(MADE, {}).get("files", [])
        if looks_like(Path(str(listed.get("name"))), listed)
    }
    before = content.get("add")
    return found | (_read_by(Path(before)) if isinstance(before, str) else set())
