"""``surefoot export``: the policy of a run as SQL or as a spreadsheet."""

from pathlib import Path
from typing import Annotated

import typer

from surefoot.commands.command import check_new, command, examples
from surefoot.commands.console import Output
from surefoot.commands.options import Force, RunPath
from surefoot.pipeline.setting import FILE


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app, "export",
        epilog=examples("surefoot export run policy.sql", "surefoot export run policy.xlsx"),
    )(export)  # fmt: skip


def export(
    output: Output,
    run: RunPath,
    path: Annotated[
        Path, typer.Argument(metavar=FILE, help="A new file that ends in .sql or .xlsx.")
    ],
    force: Force = False,
) -> None:
    """Write the policy of a run as an SQL expression (CASE) or as .xlsx."""
    from surefoot.pipeline.export import export_policy
    from surefoot.pipeline.finished_runs import load_run

    check_new(path, force=force)
    made = load_run(run)
    export_policy(made, path)
    states = len({line.state for line in made.policy})
    output.result(
        {"path": str(path), "states": states},
        f"Policy: {path} ({states} states)",
    )
