"""The stories of docs/stories: their commands run, one after the other, and print what is shown.

A line ``surefoot ...`` runs in this process; other lines of a bash block run in bash. The comment
``# exit code N`` says how a command ends. A py block makes the files that a story starts from. A
text block is what the commands before it printed, or the policy that they wrote.
"""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import nbclient
import nbformat
import pytest

from surefoot.cli import main

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "docs" / "stories" / "notebook.md"
STORIES = [
    ROOT / "docs" / "first-hour.md",
    *sorted({*(ROOT / "docs" / "stories").glob("*.md")} - {NOTEBOOK}),
]
EXPECTED = re.compile(r"#\s*exit code (\d+)\s*$")


def blocks(path: Path) -> list[tuple[str, str]]:
    return re.findall(r"^```(\w+)\n(.*?)^```$", path.read_text("utf-8"), flags=re.DOTALL | re.M)


def play(block: str, capfd) -> str:
    """Run a bash block and return what it prints to the standard output."""
    printed, script = "", ""
    for line in block.replace("\\\n", " ").splitlines():
        if not line.startswith("surefoot "):
            script += line + "\n"
            continue
        printed += in_bash(script)
        script = ""
        expected = EXPECTED.search(line)
        capfd.readouterr()
        code = main(shlex.split(line, comments=True)[1:])
        shown = capfd.readouterr()
        assert code == int(expected[1] if expected else 0), shown.err
        printed += shown.out
    return printed + in_bash(script)


def in_bash(script: str) -> str:
    if not script.strip():
        return ""
    alias = f'python() {{ {shlex.quote(sys.executable)} "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-euc", alias + script], stdout=subprocess.PIPE, text=True, check=True, timeout=60
    )
    return done.stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_the_story_goes_as_it_is_told(path, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    said = ""
    for language, text in blocks(path):
        if language == "py":
            exec(compile(text, path.name, "exec"), {})
        elif language == "bash":
            said += play(text, capfd)
        elif language == "text":
            written = "".join(file.read_text("utf-8") for file in tmp_path.glob("*/policy.csv"))
            assert text in said + written
    assert said


@pytest.mark.filterwarnings("default")
def test_the_notebook_runs_in_a_kernel(tmp_path):
    found = blocks(NOTEBOOK)
    cells = [nbformat.v4.new_code_cell(text) for language, text in found if language == "python"]
    shown = [text for language, text in found if language == "text"]
    cells[1].source += "\nfirst"  # a card
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    printed = [
        "".join(out["text"] for out in cell.outputs if out["output_type"] == "stream")
        for cell in notebook.cells
    ]
    assert printed == shown
    assert "<table" in notebook.cells[1].outputs[-1]["data"]["text/html"]
