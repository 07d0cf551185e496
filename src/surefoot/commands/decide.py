"""``surefoot decide``: what a run says to do in one state, or in each line of a file."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surefoot.commands.command import check_new, command, examples
from surefoot.commands.console import Output, table
from surefoot.commands.options import Force, RunPath
from surefoot.pipeline.setting import FILE, WHOLE

if TYPE_CHECKING:
    from surefoot.pipeline.runs import Run

SHOWN = 50
"""At most this many lines of a file are printed; --out writes all of them."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app, "decide",
        epilog=examples(
            "surefoot decide run --state condition='wear 4'",
            "surefoot decide run --state age=old --state pressure=high --json",
            "surefoot decide run --states patients.csv --out advice.csv",
            "surefoot decide run --state condition=worn --step 3",
        ),
    )(decide)  # fmt: skip


def decide(
    output: Output,
    run: RunPath,
    state: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=VALUE", help="The state; repeat for several columns."),
    ] = None,
    states: Annotated[
        Path | None,
        typer.Option(metavar=FILE, help="CSV with a state in each line; other columns are kept."),
    ] = None,
    step: Annotated[
        int | None,
        typer.Option(
            metavar=WHOLE,
            help="The step, counted from 0, for a policy that depends on it; a file may have a "
            "column step instead.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar=FILE, help="Write the answers to --states here."),
    ] = None,
    force: Force = False,
) -> None:
    """Say what to do in a state: the action, how often it was tried there, the log's habit.

    A state that the log never shows is exit code 1; in a file its line says known=no.
    """
    from surefoot.pipeline.decision import ENDS
    from surefoot.pipeline.finished_runs import load_run

    if (not state) == (states is None):
        raise ValueError("name a state with --state COLUMN=VALUE, or a file of them with --states.")
    if out is not None and states is None:
        raise ValueError("--out goes with --states.")
    check_new(out, force=force)
    made = load_run(run)
    if made.certificate.withheld:
        output.note(f"NOT CERTIFIED. {' '.join(made.certificate.failures)}")
    if states is not None:
        return _many(output, made, states, out, step)
    answer = made.advice.on(_given(state or [], made.advice.names.columns), step)
    if answer.reason not in ("", ENDS):
        raise ValueError(answer.sentence)
    return output.result(answer.to_mapping(), answer.sentence)


def _given(options: Sequence[str], columns: Sequence[str]) -> dict[str, str]:
    """Return the columns of a state from the options; a single column needs no name."""
    given: dict[str, str] = {}
    for option in options:
        name, sign, value = option.partition("=")
        if not sign and len(columns) == 1:
            name, value = columns[0], option
        elif not sign:
            raise ValueError(f"--state {option}; write COLUMN=VALUE ({', '.join(columns)}).")
        if name in given:
            raise ValueError(f"--state names {name} twice; ask about many states with --states.")
        given[name] = value
    return given


def _many(output: Output, made: "Run", path: Path, out: Path | None, step: int | None) -> None:
    """Answer every line of a file."""
    from surefoot._display import number_of
    from surefoot.pipeline.answers import answer_file

    settings = made.settings
    answers = answer_file(made.advice, path, settings.columns.action, step, settings.log_format)
    size = len(answers.rows)
    told = f"{number_of(size, 'state')}, {answers.unknown} of them without advice."
    if out is not None:
        answers.write(out)
        facts = {"out": str(out), "states": size, "unknown": answers.unknown}
        return output.result(facts, f"{told} Answers: {out}")
    if size > SHOWN:
        told = f"The first {SHOWN} of {told} --out FILE writes all of them."
    return output.result(
        [one.to_mapping() for one in answers.decisions],
        table(answers.head, answers.rows[:SHOWN]), "", told,
    )  # fmt: skip
