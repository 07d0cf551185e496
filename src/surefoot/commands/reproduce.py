"""``surefoot reproduce``: the paper's tables, with the published numbers."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surefoot._cluster_argument import working_on
from surefoot.commands.command import announce_compiling, command, examples
from surefoot.commands.console import Output
from surefoot.commands.console import table as grid
from surefoot.commands.options import Cluster

if TYPE_CHECKING:
    from surefoot.domains.domain import Domain
    from surefoot.studies.promises import Promises


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app, "reproduce",
        epilog=examples("surefoot reproduce --table bayesian --domain riverswim --seeds 12"),
    )(reproduce)  # fmt: skip


def reproduce(
    output: Output,
    table: Annotated[
        str,
        typer.Option(metavar="WORD", help="bayesian (table 1), frequentist (table 2) or all."),
    ] = "all",
    domain: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Domains, one option each. [all five]")
    ] = None,
    delta: Annotated[
        list[float] | None,
        typer.Option(metavar="NUMBER", help="Failure probabilities. [0.5 and 0.05]"),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Transitions per state-action pair. [20; RiverSwim 500 and 590]"
        ),
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Posterior draws. [paper: 20, RiverSwim 1000; valid: as many as needed]",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(metavar="N", help="Data sets.")] = 5,
    setting: Annotated[
        str,
        typer.Option(metavar="WORD", help="paper (its own rules, no guarantee), valid or both."),
    ] = "both",
    prior: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", help="Dirichlet parameter of every successor. [1]"),
    ] = None,
    posterior: Annotated[
        str,
        typer.Option(
            metavar="WORD",
            help="dirichlet; pooled or growth (for the population domain; both need extra mcmc).",
        ),
    ] = "dirichlet",
    certificates: Annotated[
        bool, typer.Option(help="Also certify one data set of each domain (valid setting).")
    ] = True,
    cluster: Cluster = None,
    out: Annotated[
        Path,
        typer.Option(metavar="FOLDER", help="Folder for the results and cells computed so far."),
    ] = Path("reproduction"),
) -> None:
    """Compute the paper's tables again, and show them next to the published numbers."""
    from surefoot.studies.promises import promises_table
    from surefoot.studies.reproduction_job import read_options, reproduce_to

    request, left_out = read_options(
        table, domain, delta, samples, draws, seeds, setting, prior, posterior
    )
    for problem in left_out:
        output.note(problem)
    announce_compiling(output)
    total = sum(1 for _ in request.cells())
    with working_on(cluster), output.stage("Reproducing", total=total) as stage:
        job = reproduce_to(out, request, stage.update)
    made, facts = job.tables, job.facts
    wanted = certificates and "valid" in request.settings and "bayesian" in request.bases
    if wanted and posterior != "dirichlet":
        output.note("The table of promises is for Dirichlet rows; it is left out.")
    elif wanted:
        found = _certified(output, list(request.worlds.values()), min(request.deltas))
        facts["promises"] = [asdict(one) for one in found]
        made.append(promises_table(found))
    shown: list[Any] = []
    for one in made:
        shown += [f"\n{one.title}\n", grid(one.head, one.rows), *one.remarks]
    written = ", ".join(str(path) for path in job.written)
    output.result(facts, *shown, f"\nWrote {written}.")


def _certified(output: Output, domains: "Sequence[Domain]", delta: float) -> "list[Promises]":
    """Return the robust, VaR and certified promises of one data set of each domain."""
    from surefoot.studies.promises import chosen_settings, promises

    chosen = chosen_settings(domains)
    found = []
    with output.stage("Certifying", total=len(chosen)) as stage:
        for done, (domain, samples) in enumerate(chosen, start=1):
            found.append(promises(domain, samples, delta=delta, seed=0))
            stage.update(done)
    return found
