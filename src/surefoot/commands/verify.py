"""``surefoot verify``: check the promise of a run again, also against new data."""

from typing import Annotated

import typer

from surefoot.commands.command import ExitCode, announce_compiling, command, examples
from surefoot.commands.console import Output
from surefoot.commands.options import Cluster, Device, RunPath


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app, "verify",
        epilog=examples("surefoot verify run", "surefoot verify run --log 'new/*.csv'"),
    )(verify)  # fmt: skip


def verify(
    output: Output,
    run: RunPath,
    log: Annotated[
        list[str] | None,
        typer.Option(
            "--log", metavar="LOG",
            help="All data since the run, to check whether the promise agrees with them, as often "
            "as you like; repeat the option for several files.",
        ),
    ] = None,
    cluster: Cluster = None,
    device: Device = None,
) -> ExitCode:  # fmt: skip
    """Check the certificate of a run again on new draws; exit code 3 if it does not stand.

    With --log, also check whether the promise agrees with new data.
    """
    from dataclasses import asdict

    from surefoot.pipeline.agreement import agreement_with
    from surefoot.pipeline.finished_runs import verify_run
    from surefoot.pipeline.journal import Watched

    announce_compiling(output)
    with output.stage("Checking the certificate") as stage:
        verdict = verify_run(run, cluster=cluster, device=device, told=Watched(stage).parts)
    facts, lines, holds = asdict(verdict), [verdict.message], verdict.stands
    if log:
        with output.stage("Reading the new data"):
            found = agreement_with(run, log)
        facts["agreement"] = asdict(found) | {"message": found.message}
        lines.append(found.message)
        holds = holds and found.agrees
    output.result(facts, *lines)
    return ExitCode.OK if holds else ExitCode.NOT_VERIFIED
