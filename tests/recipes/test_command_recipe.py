"""CONTRIBUTING, "A new command", followed literally: ``surefoot states``."""

import json
import sys
from typing import Annotated

import pytest
import typer

from surefoot.cli import main
from surefoot.commands.catalogue import COMMANDS
from surefoot.commands.command import ExitCode, command, examples
from surefoot.commands.console import Output


def register(group: typer.Typer) -> None:
    command(group, "states", epilog=examples("surefoot states riverswim"))(states)


def states(
    output: Output,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The domain.")],
    most: Annotated[int, typer.Option(metavar="N", help="More are too many.")] = 100,
) -> ExitCode:
    """Count the states of a domain; exit code 3 if there are too many."""
    from surefoot.domains.catalogue import make_domain

    count = make_domain(name).mdp.num_states
    output.result({"name": name, "states": count}, f"{name} has {count} states.")
    return ExitCode.OK if count <= most else ExitCode.NOT_VERIFIED


@pytest.fixture(autouse=True)
def listed(monkeypatch):
    """Stand in for the file ``commands/states.py`` and its line in the catalogue."""
    monkeypatch.setitem(sys.modules, "surefoot.commands.states", sys.modules[__name__])
    monkeypatch.setitem(COMMANDS, "states", ("states", "Count the states of a domain."))


@pytest.mark.parametrize(
    ("arguments", "code", "shown"),
    [
        (["states", "riverswim"], 0, "riverswim has 6 states."),
        (["states", "riverswim", "--most", "5"], 3, "riverswim has 6 states."),
        (["states", "riverswim", "--most", "x"], 2, "--most"),
        (["states", "lake"], 1, "surefoot: there is no domain 'lake'"),
        (["states", "--help"], 0, "surefoot states riverswim"),
        (["--help"], 0, "states     Count the states of a domain."),
    ],
)
def test_results_and_exit_codes(arguments, code, shown, capsys):
    assert main(arguments) == code
    captured = capsys.readouterr()
    assert shown in captured.out + captured.err


def test_json_holds_the_facts(capsys):
    assert main(["states", "riverswim", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"name": "riverswim", "states": 6}
