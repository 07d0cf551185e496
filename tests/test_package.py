"""The house rules that a program can check."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import surefoot

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "surefoot"
FILES = sorted(SOURCE.rglob("*.py"))

ROOMS = ("data", "model", "posterior", "ambiguity", "solve", "certify", "report")
"""In the order in which a log walks through them; a room imports only from those before it."""

BESIDE = {"domains": {"data", "model"}, "studies": {*ROOMS, "domains"}}
"""Rooms off the path, and what they may use."""

HALL = {"_compile", "_rounding", "_version", "_writing"}
"""Single files that every room may use, and that use no room."""

PUBLIC = []


def test_public_names_are_pinned():
    assert sorted(surefoot.__all__) == sorted(PUBLIC)
    for name in PUBLIC:
        assert getattr(surefoot, name).__doc__, f"{name} has no docstring"
    assert set(PUBLIC) <= set(dir(surefoot))


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="nonsense"):
        _ = surefoot.nonsense


def imports_on_loading(path: Path) -> Iterator[str]:
    """Yield the surefoot modules that a file imports when it is loaded.

    Imports inside functions happen later, and those under TYPE_CHECKING never.
    """
    pending: list[ast.AST] = list(ast.parse(path.read_text(encoding="utf-8")).body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: write imports in full"
            # "from surefoot import solve" and "from surefoot.solve import solver" alike
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        pending.extend(ast.iter_child_nodes(node))


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_rooms_import_only_from_earlier_rooms(path):
    room = room_of(path)
    if room in HALL:
        allowed = set(HALL)
    elif room in ROOMS:
        allowed = {*HALL, *ROOMS[: ROOMS.index(room) + 1]}
    elif room in BESIDE:
        allowed = {*HALL, *BESIDE[room], room}
    else:
        return  # the public page and the command line, at the end of the path
    for name in imports_on_loading(path):
        if name.startswith("surefoot."):
            assert name.split(".")[1] in allowed, f"{room} must not import {name}"


def test_every_room_has_its_place():
    folders = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    assert folders <= {*ROOMS, *BESIDE}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_kernels_live_in_kernel_files(path):
    if path.name.endswith("kernels.py") or path.name == "_compile.py":
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    compiled = {"kernel", "njit", "jit", "vectorize", "guvectorize", "prange", "intrinsic"}
    named = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
             if node.module in ("numba", "surefoot._compile", "numba.extending")
             for alias in node.names}  # fmt: skip
    reached = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in ("numba", "nb")
    }
    assert not compiled & (named | reached), "compiled code belongs in a file named *kernels.py"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_stay_small(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


def test_the_readme_has_two_commands_and_ci_runs_the_second():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"```bash\n(.*?)\n```", readme, flags=re.DOTALL)
    assert len(commands) == 2
    assert commands[0].endswith("surefoot demo")
    assert commands[1] in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_dependencies_are_not_locked_to_addresses():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert "exclude-newer" in text
    assert "://" not in text
