"""``surefoot what-if``: what a run would promise with one setting changed."""

from pathlib import Path
from typing import Annotated

import typer

from surefoot.commands.command import announce_compiling, check_new, command, examples
from surefoot.commands.console import Output, table
from surefoot.commands.options import Cluster, Device, Force, RunPath
from surefoot.pipeline.setting import FILE, NUMBER, WORD


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app, "what-if",
        epilog=examples(
            "surefoot what-if run --out what-if.html",
            "surefoot what-if run --discount 0.9 --discount 0.99 --forbid repair",
        ),
    )(what_if)  # fmt: skip


def what_if(
    output: Output,
    run: RunPath,
    discount: Annotated[
        list[float] | None,
        typer.Option(metavar=NUMBER, help="Another discount; repeat for several."),
    ] = None,
    delta: Annotated[
        list[float] | None, typer.Option(metavar=NUMBER, help="Another failure probability.")
    ] = None,
    forbid: Annotated[
        list[str] | None,
        typer.Option(metavar="ACTION", help="An action that is no longer allowed."),
    ] = None,
    prior: Annotated[
        list[float] | None, typer.Option(metavar=NUMBER, help="Another prior.")
    ] = None,
    unseen: Annotated[
        list[str] | None,
        typer.Option(metavar=WORD, help="Another rule for the unseen: worst, absorbing."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar=FILE, help="Write a page with a picture here."),
    ] = None,
    cluster: Cluster = None,
    device: Device = None,
    force: Force = False,
) -> None:
    """Solve a run again with one setting changed at a time, without its log.

    Without options: the usual changes of discount, delta, actions, prior and unseen rule.
    """
    from surefoot.pipeline.what_if import ALONE
    from surefoot.pipeline.what_if import what_if as ask

    check_new(out, force=force)
    announce_compiling(output)
    made = ask(
        run, discount=discount or (), delta=delta or (), forbidden=forbid or (), prior=prior or (),
        unseen=unseen or (), teller=output, cluster=cluster, device=device,
    )  # fmt: skip
    if out is not None:
        made.write_page(out)
    where = [] if out is None else ["", f"Page: {out}"]
    output.result(made.to_mapping(), table(made.HEAD, made.rows), "", ALONE, *where)
