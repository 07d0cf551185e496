"""A hash of the code: numbers of different code versions are never counted together."""

import ast
import hashlib
from functools import cache
from importlib.resources import files
from pathlib import Path

WORDS_ONLY = ("commands", "report", "_doubt_texts.py", "_finding_texts.py", "_log_texts.py")
"""Rooms and modules that only make texts: no number of a replication depends on them."""
DIGITS = 12


@cache
def code_version() -> str:
    """Return a hash of the package's source and tables, as they were at the first call.

    Examples
    --------
    >>> len(code_version())
    12
    """
    return source_hash(Path(str(files("surefoot"))))


def source_hash(package: Path) -> str:
    """Return a hash of all source and tables in a folder that a number can depend on.

    Comments, docstrings and line breaks do not count.
    """
    made = hashlib.sha256()
    for file in sorted((*package.rglob("*.py"), *package.rglob("*.npz"))):
        place = file.relative_to(package)
        if place.parts[0] not in WORDS_ONLY:
            content = _statements(file) if file.suffix == ".py" else file.read_bytes()
            made.update(f"{place.as_posix()} {hashlib.sha256(content).hexdigest()}\n".encode())
    return made.hexdigest()[:DIGITS]


def _statements(file: Path) -> bytes:
    """Return the syntax tree of a source file as bytes, without strings that stand alone."""
    tree = ast.parse(file.read_bytes())
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not _is_docstring(one)]  # type: ignore[attr-defined]
    return ast.dump(tree).encode()


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
