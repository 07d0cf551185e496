"""``surefoot plan``: where the doubt of a run comes from, and what to measure next."""

from pathlib import Path
from typing import Annotated, Any

import typer

from surefoot.commands.command import announce_compiling, check_new, command, examples
from surefoot.commands.console import Output, table
from surefoot.commands.options import Cluster, Force, RunPath
from surefoot.pipeline.setting import NUMBER


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app, "plan",
        epilog=examples(
            "surefoot plan run",
            "surefoot plan run --samples 500 --target 190 --out next",
        ),
    )(plan)  # fmt: skip


def plan(
    output: Output,
    run: RunPath,
    samples: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many more samples to allocate.")
    ] = 100,
    target: Annotated[
        float | None,
        typer.Option(metavar=NUMBER, help="The promise you want: what would it take?"),
    ] = None,
    episodes: Annotated[
        bool,
        typer.Option(
            "--episodes", help="Samples come as whole episodes only, not as single tries."
        ),
    ] = False,
    simulations: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, help="How many futures to simulate; 0 leaves forecasts out."
        ),
    ] = 19,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FOLDER", help="Write plan.csv, plan.json and plan.html here."
        ),
    ] = None,
    cluster: Cluster = None,
    force: Force = False,
) -> None:
    """Say where the doubt of a run comes from, what to try next, and what that would bring.

    The log is not needed. Futures are simulated from the posterior of the run.
    """
    from surefoot.pipeline.plan import plan as make
    from surefoot.pipeline.plan_result import NOT_USED

    check_new(out, force=force)
    announce_compiling(output)
    made = make(
        run, samples=samples, target=target, episodes=episodes, simulations=simulations,
        teller=output, cluster=cluster,
    )  # fmt: skip
    if out is not None:
        made.write(out)
    told = [made.target_words, *(found.text for found in made.findings)]
    lines: list[Any] = [line for text in told if text for line in (text, "")]
    grid = made.row_grid
    lines += [f"Where the doubt comes from, and how to allocate {samples:,} samples",
              table(grid.head, grid.rows), ""]  # fmt: skip
    if made.episode_words:
        lines += [made.episode_words, ""]
    for title, grid in (
        ("What more data would bring", made.forecast_grid),
        ("What to ask an expert", made.question_grid),
    ):
        if grid.rows:
            lines += [title, table(grid.head, grid.rows), ""]
    lines.append(NOT_USED)
    if made.unused:
        lines.append(table(made.unused_grid.head, made.unused_grid.rows))
    where = [] if out is None else ["", f"Plan: {out}"]
    output.result(made.to_mapping(), *lines, *where)
