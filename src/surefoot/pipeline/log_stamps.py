"""How the files of a log looked when a run read them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from surefoot.pipeline.setting import toml_text

MADE = "made"
"""The table of a configuration that says how it came about; it is not read back."""


def stamps(name: str) -> list[str]:
    """Return how the files of the log looked, to tell whether they are still the same."""
    lines: list[str] = []
    for file in files_named(name):
        about = file.stat()
        lines += [
            f"[[{MADE}.files]]",
            f"name = {toml_text(str(file))}",
            f"bytes = {about.st_size}",
            f"modified = {about.st_mtime_ns}",
        ]
    return lines


def files_named(name: str) -> list[Path]:
    """Return the files that a name stands for; none where there are none."""
    from surefoot.data.log_files import log_files  # --help has no use for it

    try:
        return [file.resolve() for file in log_files(name).files]
    except FileNotFoundError:
        return []


def files_behind(folder: Path) -> set[str]:
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
    return found | (files_behind(Path(before)) if isinstance(before, str) else set())


def _looks_like(file: Path, listed: Mapping[str, Any]) -> bool:
    if not file.is_file():
        return False
    about = file.stat()
    return (about.st_size, about.st_mtime_ns) == (listed.get("bytes"), listed.get("modified"))
