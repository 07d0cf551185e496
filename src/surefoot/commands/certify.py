"""``surefoot certify`` and ``surefoot compare``: what may be promised about your own policies."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surefoot.commands.command import announce_compiling, check_new, command, examples
from surefoot.commands.console import Output
from surefoot.commands.options import (
    Config,
    Force,
    LogOrRun,
    settings_from,
    with_options,
)
from surefoot.pipeline.setting import COMPUTING, FILE, MODEL, PROMISE, READING

if TYPE_CHECKING:
    from surefoot._findings import Finding
    from surefoot.model.policies import AnyPolicy
    from surefoot.pipeline.model import Model

PolicyPath = Annotated[
    Path,
    typer.Option(
        "--policy",
        metavar=FILE,
        help="CSV with the state and action columns, optionally probability; or a run folder.",
    ),
]

BEHAVIOUR = "a policy that takes each action as often as the log did"


def register(app: typer.Typer) -> None:
    """Add the commands."""
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
    """Say what may be promised about your own policy."""
    import json

    from surefoot.pipeline import promises
    from surefoot.pipeline.journal import Watched
    from surefoot.pipeline.runs import computing

    check_new(out, force=force)
    model = _model(output, log, config, given)
    chosen = _policy(policy, model)
    announce_compiling(output)
    with (
        output.stage("Certifying the policy") as stage,
        computing(model.settings, Watched(stage).parts),
    ):
        certificate = promises.certify_policy(model, chosen).adding(*_failures(log))
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

    from surefoot.pipeline import promises
    from surefoot.pipeline.journal import Watched
    from surefoot.pipeline.runs import computing

    model = _model(output, log, config, given)
    first = _policy(policy, model)
    second = model.behaviour if other is None else _policy(other, model)
    announce_compiling(output)
    with output.stage("Comparing") as stage, computing(model.settings, Watched(stage).parts):
        made = promises.difference(model, first, second, log=promises.dealt_log(model))
    made = made.adding(*_failures(log))
    made = replace(made, a=str(policy), b=BEHAVIOUR if other is None else str(other))
    output.result(made.to_mapping(), made.sentence)


def _model(
    output: Output, log: list[str] | None, config: str | None, given: dict[str, Any]
) -> "Model":
    """Build the model of a log, or of a run folder with its settings."""
    from surefoot.pipeline.folder import is_run
    from surefoot.pipeline.manifest import check_brought
    from surefoot.pipeline.model import build_model, read_log
    from surefoot.pipeline.runs import earlier_counts

    if log and len(log) == 1 and is_run(log[0]):
        how = "use surefoot.load_run(..., posterior=...) and surefoot.certify from Python"
        check_brought(Path(log[0]), brought=False, how=how)
        settings = settings_from(None, config, given, log[0])
        return build_model(settings, earlier_counts(log[0]))
    settings = settings_from(log, config, given)
    _ = settings.discounted
    with output.stage("Reading the log"):
        return build_model(settings, read_log(settings))


def _failures(log: list[str] | None) -> "tuple[Finding, ...]":
    """Return the checks of its log that a run failed: they apply to other policies as well."""
    from surefoot.pipeline.folder import is_run
    from surefoot.pipeline.run_files import read_certificate

    if not (log and len(log) == 1 and is_run(log[0])):
        return ()
    stored = read_certificate(Path(log[0]) / "certificate.json")
    return tuple(found for found in stored.findings if found.level == "failed")


def _policy(path: Path, model: "Model") -> "AnyPolicy":
    from surefoot.certificates.policies import read_policy

    file = path / "policy.csv" if path.is_dir() else path
    settings = model.settings
    return read_policy(
        file, model.mdp, columns=settings.columns, how=settings.log_format, by_step=settings.by_step
    )
