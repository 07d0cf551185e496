"""``surefoot solve`` and ``surefoot demo``: from a log to a run folder."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surefoot._display import remark
from surefoot.commands.command import ExitCode, announce_compiling, command, examples
from surefoot.commands.console import Output
from surefoot.commands.options import (
    Config,
    Force,
    LogPath,
    settings_from,
    with_options,
)
from surefoot.pipeline.option_text import as_options
from surefoot.pipeline.setting import COMPUTING, MODEL, OWN, PROMISE, READING, SEARCH

if TYPE_CHECKING:
    from surefoot.pipeline.runs import Run

SOLVE_EXAMPLES = examples(
    "surefoot solve log.csv --discount 0.95 --delta 0.05 --out run",
    "surefoot solve log.parquet --state level --state season --reward profit \\",
    "    --discount 0.99 --out run",
    "surefoot solve week2.csv --add run --out run2",
    "surefoot solve --config run/config.toml --out again",
)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "solve", epilog=SOLVE_EXAMPLES)(solve)
    command(app, "demo", epilog=examples("surefoot demo", "surefoot demo --out try"))(demo)


@with_options(OWN, PROMISE, READING, MODEL, SEARCH, COMPUTING)
def solve(
    output: Output,
    log: LogPath = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="RUN",
            help="The run folder to make. [no default]",
            show_default=False,
        ),
    ] = None,
    config: Config = None,
    force: Force = False,
    **given: Any,
) -> ExitCode:
    """Find a policy from a log, certify it, and write a run folder with a report."""
    if out is None:
        raise ValueError("no folder was named for the result: pass --out RUN.")
    from surefoot.pipeline.folder import check_free, check_is_run
    from surefoot.pipeline.kernel_warmup import warming
    from surefoot.pipeline.runs import run

    add = given["add"]
    if add is not None:
        check_is_run(add)
    settings = settings_from(log, config, given, add)
    check_free(out, force=force)
    announce_compiling(output)
    with warming(settings.threads):
        made = run(settings, out, teller=output, force=force)
    show_run(output, made)
    doubtful = made.stopped_early or made.certificate.withheld
    return ExitCode.DOUBTFUL if made.settings.strict and doubtful else ExitCode.OK


def demo(
    output: Output,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="RUN", help="The run folder to make; an old one is replaced."
        ),
    ] = Path("surefoot-demo"),
) -> None:
    """Do a whole job on a bundled log: machines that wear, and when to repair them."""
    from surefoot.demo import STORY, as_command, demo_settings
    from surefoot.pipeline.folder import check_free
    from surefoot.pipeline.kernel_warmup import warming
    from surefoot.pipeline.runs import run

    settings = demo_settings()
    check_free(out, force=True)
    output.note(STORY)
    output.note("\nThe same as:\n")
    for line in as_command(settings, out).splitlines():
        output.note(line)
    output.note("")
    announce_compiling(output)
    with warming():
        made = run(settings, out, teller=output, force=True)
    show_run(output, made)
    output.note("Open it in a browser. Your own log: surefoot solve LOG --discount 0.95 --out RUN")


def show_run(output: Output, made: "Run") -> None:
    """Print the rule, the promise, the comparison, the warnings and where the files are."""
    from surefoot.certificates.tables import tilted_grid
    from surefoot.pipeline.rule_lines import rule_lines

    remarks = [as_options(remark(finding)) for finding in made._remarks()]
    lines = ["", *(f"{text[0].upper()}{text[1:]}" for text in remarks)]
    if remarks:
        lines.append("")
    tilted = tilted_grid(made.certificate.tilted)
    if tilted is not None:
        lines += [tilted.text(), ""]
    lines += [*rule_lines(made), "", made.certificate.sentence]
    if made.comparison:
        lines += ["", made.comparison]
    lines += ["", f"Report: {made.folder / 'report.html'} (all files are in {made.folder})"]
    output.result(made.facts(), *lines)
