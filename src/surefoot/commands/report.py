"""``surefoot report``: the report of a run again, or one page about several runs."""

from pathlib import Path
from typing import Annotated

import typer

from surefoot.commands.command import check_new, command, examples
from surefoot.commands.console import Output
from surefoot.commands.options import Force
from surefoot.pipeline.setting import FILE


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app, "report",
        epilog=examples("surefoot report run", "surefoot report june july --out both.html"),
    )(report)  # fmt: skip


def report(
    output: Output,
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="The folders of finished runs.")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar=FILE, help="The page about several runs. [no default]"),
    ] = None,
    force: Force = False,
) -> None:
    """Write the report of a run again, or one page that compares several runs."""
    from surefoot.pipeline.finished_runs import report_run
    from surefoot.pipeline.several_runs import compare_report

    if (len(runs) > 1) != (out is not None):
        raise ValueError(
            "a page about several runs needs a name: pass --out FILE."
            if out is None
            else "--out names the page about several runs; the report of one lies in its folder."
        )
    check_new(out, force=force)
    with output.stage("Writing the report"):
        path = report_run(runs[0]) if out is None else compare_report(runs, out)
    output.result({"report": str(path)}, f"Report: {path}")
