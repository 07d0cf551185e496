"""The files of a run's log: which they are, how they looked, and whether they were read before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surefoot.pipeline.setting import toml_text

if TYPE_CHECKING:
    from surefoot.pipeline.settings import Settings

MADE = "made"
"""The table of a configuration that says how it came about; it is not read back."""


def stamps(name: str) -> list[str]:
    """Return how the files of the log looked, to tell whether they are still the same."""
    lines: list[str] = []
    for file in _files(name):
        about = file.stat()
        lines += [
            f"[[{MADE}.files]]",
            f"name = {toml_text(str(file))}",
            f"bytes = {about.st_size}",
            f"modified = {about.st_mtime_ns}",
        ]
    return lines


def _files(name: str) -> list[Path]:
    from surefoot.data.log_files import log_files as files_of  # --help has no use for it

    try:
        return [file.resolve() for file in files_of(name).files]
    except FileNotFoundError:
        return []


def log_files(settings: Settings) -> list[Path]:
    """Return the files of the log, in the order in which they are read."""
    return [file for name in settings.log for file in _files(name)]


def read_twice(settings: Settings, *, together: bool = False) -> list[str]:
    """Return files that would count twice: named twice, or read by the run that is added to.

    Files that are read ``together`` are read once, however often they are named.
    """
    files = [str(file) for file in log_files(settings)]
    files = list(dict.fromkeys(files)) if together else files
    earlier = set() if settings.add is None else _read_by(Path(settings.add))
    return sorted({file for file in files if file in earlier or files.count(file) > 1})


def _read_by(folder: Path) -> set[str]:
    """Return the files behind a run that still look as they did, and those it was added to."""
    import tomllib  # --help has no use for it

    try:
        content = tomllib.loads((folder / "config.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    found = {
        str(Path(str(listed.get("name"))).resolve())
        for listed in content.get(MADE, {}).get("files", [])
        if _looks_like(Path(str(listed.get("name"))), listed)
    }
    before = content.get("add")
    return found | (_read_by(Path(before)) if isinstance(before, str) else set())


def _looks_like(file: Path, listed: Mapping[str, Any]) -> bool:
    if not file.is_file():
        return False
    about = file.stat()
    return (about.st_size, about.st_mtime_ns) == (listed.get("bytes"), listed.get("modified"))
