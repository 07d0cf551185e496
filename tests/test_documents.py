"""README, docs and examples do what they say.

A python block in a document is run; what it prints must equal the text block that follows it.
"""

import importlib
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def short(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(path: Path) -> list[tuple[str, str]]:
    """Return (language, text) of the fenced blocks of a document."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", path.read_text("utf-8"), flags=re.DOTALL | re.M)


@pytest.mark.parametrize("path", DOCUMENTS, ids=short)
def test_python_blocks_run_and_print_what_follows(path, capsys):
    found = blocks(path)
    names: dict[str, object] = {}
    for i, (language, text) in enumerate(found):
        if language != "python":
            continue
        exec(compile(text, short(path), "exec"), names)
        printed = capsys.readouterr().out
        if i + 1 < len(found) and found[i + 1][0] == "text":
            assert printed == found[i + 1][1]


@pytest.mark.parametrize("path", DOCUMENTS, ids=short)
def test_documents_use_no_prompts(path):
    # Outside a fence a page shows ">>>" as a quotation; inside one it cannot be copied and run.
    assert ">>> " not in path.read_text("utf-8")


def test_the_readme_example_is_short():
    example = next(text for language, text in blocks(ROOT / "README.md") if language == "python")
    assert len([line for line in example.splitlines() if line.strip()]) <= 10


@pytest.mark.parametrize("path", EXAMPLES, ids=short)
def test_examples_run(path, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out
    assert not list(tmp_path.iterdir()), "an example must not leave files behind"


@pytest.mark.parametrize("path", DOCUMENTS, ids=short)
def test_links_lead_somewhere(path):
    text = re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{target} does not exist"


@pytest.mark.parametrize("path", DOCUMENTS, ids=short)
def test_names_in_the_documents_exist(path):
    for name in re.findall(r"`(surefoot(?:\.\w+)+)`", path.read_text("utf-8")):
        parts = name.split(".")
        for split in range(len(parts), 0, -1):
            try:
                thing = importlib.import_module(".".join(parts[:split]))
            except ModuleNotFoundError:
                continue
            for part in parts[split:]:
                thing = getattr(thing, part)
            break


@pytest.mark.parametrize("path", DOCUMENTS, ids=short)
def test_files_named_in_the_documents_exist(path):
    for name in re.findall(r"`((?:\w+/)+\w+\.(?:py|md|toml))`", path.read_text("utf-8")):
        places = [ROOT, ROOT / "src" / "surefoot", path.parent]
        assert any((place / name).exists() for place in places), f"{name} does not exist"
