"""Which code made a number: numbers of different code are never counted together."""

import hashlib
from functools import cache
from importlib.resources import files
from pathlib import Path

WORDS_ONLY = ("commands", "report")
"""Rooms that print what others found: no number of a replication comes from them."""
DIGITS = 12


@cache
def code_version() -> str:
    """Return a hash of the package's source and tables, as they were when first asked for.

    Examples
    --------
    >>> len(code_version())
    12
    """
    return source_hash(Path(str(files("surefoot"))))


def source_hash(package: Path) -> str:
    """Return a hash of all source and tables in a folder that a number can depend on."""
    made = hashlib.sha256()
    for file in sorted((*package.rglob("*.py"), *package.rglob("*.npz"))):
        place = file.relative_to(package)
        if place.parts[0] not in WORDS_ONLY:
            content = hashlib.sha256(file.read_bytes()).hexdigest()
            made.update(f"{place.as_posix()} {content}\n".encode())
    return made.hexdigest()[:DIGITS]
