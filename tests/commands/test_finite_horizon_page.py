"""The commands of docs/finite-horizon.md run as they stand there."""

import re
import shlex
from pathlib import Path

from surefoot.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "finite-horizon.md"


def test_the_commands_of_the_page_run(tmp_path, monkeypatch, capsys):
    text = PAGE.read_text("utf-8")
    found = re.findall(r"^```(\w+)\n(.*?)^```$", text, flags=re.DOTALL | re.M)
    names: dict[str, object] = {}
    exec(next(block for language, block in found if language == "python"), names)
    names["write_visits"](tmp_path / "visits.csv")  # type: ignore[operator]
    monkeypatch.chdir(tmp_path)
    commands = [line for kind, block in found if kind == "bash" for line in block.splitlines()]
    assert len(commands) == 4
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "surefoot"
        assert main(arguments) == 0, command
    said = capsys.readouterr().out
    assert "with a rule for each step, the policy's expected return over at most 6 steps" in said
    assert "with one rule for all steps, the policy's expected return over at most 6 steps" in said
    assert "The certificate stands" in said
    assert "run earns at" in said
