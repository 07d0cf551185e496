"""CONTRIBUTING, "A new command", followed literally: ``surefoot states``."""

import json
from typing import Annotated

import pytest
import typer

from surefoot.commands.command import ExitCode, command, examples, run_app
from surefoot.commands.console import Output

app = typer.Typer(rich_markup_mode=None)


@app.callback()
def _shared() -> None:
    """Keep the name of the command although it is the only one."""


def register(group: typer.Typer) -> None:
    command(
        group, "states", short_help="Count the states of a domain.",
        epilog=examples("surefoot states riverswim"),
    )(states)  # fmt: skip


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


register(app)


@pytest.mark.parametrize(
    ("arguments", "code", "shown"),
    [
        (["states", "riverswim"], 0, "riverswim has 6 states."),
        (["states", "riverswim", "--most", "5"], 3, "riverswim has 6 states."),
        (["states", "riverswim", "--most", "x"], 2, "--most"),
        (["states", "lake"], 1, "surefoot: there is no domain 'lake'"),
        (["states", "--help"], 0, "surefoot states riverswim"),
    ],
)
def test_results_and_exit_codes(arguments, code, shown, capsys):
    assert run_app(app, arguments) == code
    captured = capsys.readouterr()
    assert shown in captured.out + captured.err


def test_json_holds_the_facts(capsys):
    assert run_app(app, ["states", "riverswim", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"name": "riverswim", "states": 6}
