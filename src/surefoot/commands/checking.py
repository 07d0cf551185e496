"""``certify``, ``compare``, ``verify``, ``report``, ``inspect``: about logs, policies and runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surefoot.commands.command import ExitCode, check_new, command, examples
from surefoot.commands.console import Output
from surefoot.commands.options import (
    Config,
    Force,
    LogOrRun,
    LogPath,
    RunPath,
    settings_from,
    with_options,
)
from surefoot.commands.solving import announce_compiling
from surefoot.pipeline.setting import COMPUTING, FILE, MODEL, PROMISE, READING

if TYPE_CHECKING:
    from surefoot.model.policies import AnyPolicy
    from surefoot.pipeline.model import Model

PolicyPath = Annotated[
    Path,
    typer.Option(
        "--policy",
        metavar=FILE,
        help="CSV with the columns of state and action, perhaps probability; or a run folder.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(
        app, "inspect",
        epilog=examples("surefoot inspect log.csv", "surefoot inspect 'logs/*.parquet' --json"),
    )(inspect)  # fmt: skip
    command(
        app, "certify",
        epilog=examples(
            "surefoot certify log.csv --discount 0.95 --policy mine.csv",
            "surefoot certify run --policy mine.csv --out mine.json",
        ),
    )(certify)  # fmt: skip
    command(
        app, "compare",
        epilog=examples(
            "surefoot compare run --policy mine.csv --with run",
            "surefoot compare log.csv --discount 0.95 --policy mine.csv",
        ),
    )(compare)  # fmt: skip
    command(
        app, "verify",
        epilog=examples("surefoot verify run", "surefoot verify run --log 'new/*.csv'"),
    )(verify)  # fmt: skip
    command(
        app, "report",
        epilog=examples("surefoot report run", "surefoot report june july --out both.html"),
    )(report)  # fmt: skip


@with_options(PROMISE, READING, MODEL, COMPUTING)
def certify(
    output: Output,
    policy: PolicyPath,
    log: LogOrRun = None,
    config: Config = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar=FILE, help="Write the certificate here, as JSON."),
    ] = None,
    force: Force = False,
    **given: Any,
) -> None:
    """Say what may be promised about a policy you bring."""
    import json

    from surefoot.pipeline import promising
    from surefoot.pipeline.journal import Watched
    from surefoot.pipeline.running import computing

    check_new(out, force=force)
    model = _model(output, log, config, given)
    chosen = _policy(policy, model)
    announce_compiling(output)
    with (
        output.stage("Certifying the policy") as stage,
        computing(model.settings, Watched(stage).parts),
    ):
        certificate = promising.certify_policy(model, chosen)
    if out is not None:
        certificate.save(out)
    where = [] if out is None else ["", f"Certificate: {out}"]
    output.result(json.loads(certificate.to_json()), certificate.summary(), *where)


@with_options(PROMISE, READING, MODEL, COMPUTING)
def compare(
    output: Output,
    policy: PolicyPath,
    log: LogOrRun = None,
    other: Annotated[
        Path | None,
        typer.Option("--with", metavar=FILE, help="The other policy. [what was done in the log]"),
    ] = None,
    config: Config = None,
    **given: Any,
) -> None:
    """Bound how much better one policy is than another, or than what was done in the log."""
    from dataclasses import replace

    from surefoot.pipeline import promising
    from surefoot.pipeline.journal import Watched
    from surefoot.pipeline.running import BEHAVIOUR, computing

    model = _model(output, log, config, given)
    first = _policy(policy, model)
    second = model.behaviour if other is None else _policy(other, model)
    announce_compiling(output)
    with output.stage("Comparing") as stage, computing(model.settings, Watched(stage).parts):
        made = promising.difference(model, first, second, log=promising.dealt_log(model))
    made = replace(made, a=str(policy), b=BEHAVIOUR if other is None else str(other))
    output.result(made.to_mapping(), made.sentence)


def verify(
    output: Output,
    run: RunPath,
    log: Annotated[
        list[str] | None,
        typer.Option(
            "--log", metavar="LOG",
            help="All data that came after the run: does the promise agree with them? Ask as often "
            "as you like; repeat the option for several files.",
        ),
    ] = None,
) -> ExitCode:  # fmt: skip
    """Check the certificate of a run again on new draws; exit code 3 if it does not stand.

    With --log, also ask whether the promise agrees with new data.
    """
    from dataclasses import asdict

    from surefoot.pipeline.agreeing import agreement_with
    from surefoot.pipeline.loading import verify_run

    announce_compiling(output)
    with output.stage("Checking the certificate"):
        verdict = verify_run(run)
    facts, lines, holds = asdict(verdict), [verdict.message], verdict.stands
    if log:
        with output.stage("Reading the new data"):
            found = agreement_with(run, log)
        facts["agreement"] = asdict(found) | {"message": found.message}
        lines.append(found.message)
        holds = holds and found.agrees
    output.result(facts, *lines)
    return ExitCode.OK if holds else ExitCode.NOT_VERIFIED


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
    from surefoot.pipeline.comparing import compare_report
    from surefoot.pipeline.loading import report_run

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


@with_options(READING, MODEL)
def inspect(output: Output, log: LogPath = None, config: Config = None, **given: Any) -> None:
    """Show what a log holds: sizes, visits, rewards, checks, warnings."""
    from surefoot.pipeline.model import place, read_log
    from surefoot.pipeline.option_text import log_words

    settings = settings_from(log, config, given)
    with output.stage("Reading the log"):
        counts = read_log(settings)
        placed = place(settings, counts)
    found = [finding.mirrored() if settings.costs else finding for finding in placed.findings]
    summary = log_words(placed, costs=settings.costs)
    facts = {
        "transitions": float(counts.count.sum()),
        "states": counts.num_states,
        "actions": counts.num_actions,
        "pairs_tried": int((counts.visits > 0).sum()),
        "least_visits": float(counts.visits[counts.visits > 0].min()),
        "episodes": None if counts.log is None else counts.log.episodes,
        "checks": [
            {"name": check.name, "p_value": check.p_value, "sentence": check.sentence}
            for check in counts.checks
        ],
        "findings": [finding.to_mapping() for finding in found],
        "warnings": [finding.text for finding in found if finding.level == "warning"],
        "summary": summary,
    }
    output.result(facts, summary)


def _model(
    output: Output, log: list[str] | None, config: str | None, given: dict[str, Any]
) -> "Model":
    """Build the model of a log, or of a run folder with its settings."""
    from surefoot.pipeline.folder import is_run
    from surefoot.pipeline.manifest import check_brought
    from surefoot.pipeline.model import build_model, read_log
    from surefoot.pipeline.running import earlier_counts

    if log and len(log) == 1 and is_run(log[0]):
        how = "use surefoot.load_run(..., posterior=...) and surefoot.certify from Python"
        check_brought(Path(log[0]), brought=False, how=how)
        settings = settings_from(None, config, given, log[0])
        return build_model(settings, earlier_counts(log[0]))
    settings = settings_from(log, config, given)
    _ = settings.discounted
    with output.stage("Reading the log"):
        return build_model(settings, read_log(settings))


def _policy(path: Path, model: "Model") -> "AnyPolicy":
    from surefoot.certificates.policies import read_policy

    file = path / "policy.csv" if path.is_dir() else path
    settings = model.settings
    return read_policy(
        file, model.mdp, columns=settings.columns, how=settings.reading, by_step=settings.by_step
    )
