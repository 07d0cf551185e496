"""The stories of the docs, as a reader would follow them: every block in order, in one folder."""

import shlex
from pathlib import Path

import pytest

from surefoot.cli import main

STORIES = Path(__file__).parents[1] / "docs" / "stories"


def blocks(path):
    """Yield (language, text) of the fenced blocks of a page, in order."""
    language, lines = None, []
    for line in path.read_text("utf-8").splitlines():
        if line.startswith("```") and language is None:
            language, lines = line[3:], []
        elif line.startswith("```"):
            yield language, "\n".join(lines)
            language = None
        else:
            lines.append(line)


@pytest.mark.parametrize("name", sorted(path.stem for path in STORIES.glob("*.md")))
def test_a_story_can_be_followed(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    said = ""
    for language, text in blocks(STORIES / f"{name}.md"):
        if language == "py":
            exec(compile(text, name, "exec"), {})
        elif language == "bash":
            for line in text.splitlines():
                program, *arguments = shlex.split(line)
                assert program == "surefoot"
                assert main(arguments) == 0, line
                said += capsys.readouterr().out
        elif language == "text":
            said += "".join(path.read_text("utf-8") for path in tmp_path.glob("*/policy.csv"))
            assert text in said
    assert said
