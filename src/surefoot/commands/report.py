"""``surefoot report``: write the report of a run again, or one page about several runs."""

from pathlib import Path
from typing import Annotated

import typer

from surefoot.commands.command import check_new, command, examples
from surefoot.commands.console import Output
from surefoot.commands.options import Cluster, Force
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
    cluster: Cluster = None,
    force: Force = False,
) -> None:
    """Write the report of a run again, or one page that compares several runs."""
    from surefoot.pipeline.finished_runs import report_run
    from surefoot.pipeline.journal import Watched
    from surefoot.pipeline.several_runs import compare_report

    if (len(runs) > 1) != (out is not None):
        raise ValueError(
            "a page about several runs needs a name: pass --out FILE."
            if out is None
            else "--out names the page about several runs; the report of one is in its folder."
        )
    if out is not None and cluster is not None:
        raise ValueError("--cluster is for the report of one run; a page about several draws none.")
    check_new(out, force=force)
    with output.stage("Writing the report") as stage:
        if out is None:
            path = report_run(runs[0], cluster=cluster, told=Watched(stage).parts)
        else:
            path = compare_report(runs, out)
    output.result({"report": str(path)}, f"Report: {path}")
