"""The house rules that a program can check."""

import ast
import doctest
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import surefoot

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "surefoot"
FILES = sorted(SOURCE.rglob("*.py"))

ROOMS = (
    "model",
    "data",
    "domains",
    "posterior",
    "ambiguity",
    "solvers",
    "calibration",
    "certificates",
    "report",
    "pipeline",
)
"""In the order in which a log walks through them; a room imports only from those before it."""

BESIDE = {
    "studies": {*ROOMS},
    "commands": {*ROOMS, "studies", "demo"},
}
"""Rooms off the path, and what they may use."""

HALL = {
    "_arguments",
    "_assumption_texts",
    "_atomic",
    "_cluster",
    "_cluster_argument",
    "_compile",
    "_cores",
    "_display",
    "_doubt_texts",
    "_finding_codes",
    "_finding_texts",
    "_findings",
    "_fingerprint",
    "_hooks",
    "_log_texts",
    "_order_statistics",
    "_pool_facts",
    "_rounding",
    "_rows",
    "_version",
    "_waits",
    "_work",
    "_workers",
}
"""Single files that every room may use, and that use no room."""

STILL_WRONG: dict[str, str] = {}
"""Known exceptions, "file imports name", and what will end each of them."""

PUBLIC = (
    "AmbiguitySet",
    "Candidate",
    "Certificate",
    "Comparison",
    "Confidence",
    "Counts",
    "Decision",
    "DirichletPosterior",
    "Discretization",
    "Domain",
    "Finding",
    "GuaranteeCurve",
    "HierarchicalPosterior",
    "LearnedPosterior",
    "MDP",
    "Plan",
    "Posterior",
    "PosteriorDraws",
    "Result",
    "Run",
    "Settings",
    "Solution",
    "SplitResult",
    "Status",
    "StepPolicy",
    "VarSolution",
    "Verification",
    "WorstCase",
    "__version__",
    "behaviour_policy",
    "cartpole",
    "certify",
    "certify_frequentist",
    "certify_split",
    "collect",
    "compare",
    "credible_set",
    "discretize",
    "evaluate",
    "fit_pooled",
    "fit_population",
    "frequentist_set",
    "garnet",
    "guarantee_curve",
    "inventory",
    "load_run",
    "loss_bound",
    "machine_replacement",
    "optimize",
    "plan",
    "plot_comparison",
    "plot_guarantee_curve",
    "plot_policy",
    "plot_promise",
    "plot_returns",
    "plot_simplex",
    "population_growth",
    "read_mdp",
    "read_minari",
    "read_policy",
    "read_transitions",
    "river_chain",
    "riverswim",
    "run",
    "solve",
    "spans",
    "split_counts",
    "var_solve",
    "verify",
    "verify_run",
    "what_if",
    "worst_case",
    "write_mdp",
)
"""What users import from surefoot; a change here is a change for them."""


def test_public_names_are_pinned():
    assert sorted(surefoot.__all__) == sorted(PUBLIC)
    for name in PUBLIC:
        assert getattr(surefoot, name).__doc__, f"{name} has no docstring"
    assert set(PUBLIC) <= set(dir(surefoot))


def test_every_public_name_has_an_example_that_runs():
    """Doctests run with the other tests; here each public name must have one of its own."""
    finder = doctest.DocTestFinder(recurse=False)
    missing = []
    for name in set(PUBLIC) - {"__version__"}:
        tests = finder.find(getattr(surefoot, name), name)
        shown = [example for test in tests for example in test.examples if example.want]
        if not shown:  # an example without a result shows nothing
            missing.append(name)
    assert missing == []


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="nonsense"):
        _ = surefoot.nonsense


def imports_of(path: Path) -> Iterator[str]:
    """Yield what a file imports: on loading, inside functions and for type checkers alike."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: write imports in full"
            # "from surefoot import solve" and "from surefoot.solvers import solver" alike
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def allowed_rooms(room: str) -> set[str] | None:
    """Return what a room may import; None for what stands at the end of the path."""
    if room in HALL:
        return set(HALL)
    if room in ROOMS:
        return {*HALL, *ROOMS[: ROOMS.index(room) + 1]}
    if room in BESIDE:
        return {*HALL, *BESIDE[room], room}
    return None


def test_rooms_import_only_from_earlier_rooms():
    wrong = {
        f"{path.relative_to(SOURCE)} imports {name}"
        for path in FILES
        if (allowed := allowed_rooms(room_of(path))) is not None
        for name in imports_of(path)
        if name.startswith("surefoot.") and name.split(".")[1] not in allowed
    }
    assert wrong == set(STILL_WRONG)


def module_of(path: Path) -> str:
    return ".".join(("surefoot", *path.relative_to(SOURCE).with_suffix("").parts))


def test_no_module_imports_itself_by_way_of_others():
    """Nor does a type checker have to: what two modules share lies in a third, before both."""
    modules = {module_of(path): path for path in FILES}
    imports = {
        name: {
            module
            for found in imports_of(path)
            for module in (found, found.rpartition(".")[0])
            if module in modules and module != name
        }
        for name, path in modules.items()
    }
    while ready := [name for name, needed in imports.items() if not needed & imports.keys()]:
        for name in ready:
            del imports[name]
    assert sorted(imports) == []


def test_imports_are_found_wherever_they_stand(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(
        "from typing import TYPE_CHECKING\n"
        "import surefoot.cli\n"
        "if TYPE_CHECKING:\n    from surefoot.types import x\n"
        "try:\n    from surefoot.solvers import solver\nexcept ImportError:\n    pass\n"
        "def later():\n    from surefoot.later import y\n"
    )
    found = {name for name in imports_of(path) if name.startswith("surefoot")}
    assert found == {
        "surefoot.cli",
        "surefoot.types.x",
        "surefoot.solvers.solver",
        "surefoot.later.y",
    }


def test_every_room_has_its_place():
    folders = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    assert folders <= {*ROOMS, *BESIDE}


def test_a_noun_is_one_thing():
    """No two classes share a name, not even with an underscore before one of them."""
    places: dict[str, list[str]] = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                place = str(path.relative_to(SOURCE))
                places.setdefault(node.name.lstrip("_"), []).append(place)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


COMPILING = re.compile(
    r"surefoot\._compile\.kernel|(numba|nb)\.(\w+\.)*(n?jit|g?u?vectorize|prange|intrinsic)"
)


def compiles(path: Path) -> bool:
    """Tell whether a file compiles functions of its own."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = {f"{module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Attribute):
            names = {ast.unparse(node)}
        else:
            continue
        if any(COMPILING.fullmatch(name) for name in names):
            return True
    return False


def test_kernels_live_in_kernel_files():
    compiling = {path.name for path in FILES if compiles(path)} - {"_compile.py"}
    assert compiling
    assert [name for name in compiling if not name.endswith("kernels.py")] == []


def test_files_stay_small():
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert [str(path.relative_to(SOURCE)) for path in FILES if lines[path] > 400] == []


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
