"""``surefoot coverage``: how often sentences are false where the truth is known."""

from pathlib import Path
from typing import Annotated, Any

import typer

from surefoot._cluster_argument import working_on
from surefoot.commands.command import ExitCode, announce_compiling, command, examples
from surefoot.commands.console import Output, table
from surefoot.commands.options import Cluster

PRIOR = "With --domain: models drawn from the prior of a domain"
"""Title of the options that are only for --domain."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app, "coverage",
        epilog=examples(
            "surefoot coverage --quick",
            "surefoot coverage --set test --processes 8 --out counted",
            "surefoot coverage --cells lake4-greedy,survival-greedy --methods default,0.1",
            "surefoot coverage --domain machine --support log --replications 200",
        ),
    )(coverage)  # fmt: skip


def coverage(
    output: Output,
    part: Annotated[
        str | None,
        typer.Option("--set", metavar="WORD", help="development, test or all. [development]"),
    ] = None,
    cells: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Worlds with a log, by name. [all of the set]"),
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="The methods whose sentences are counted. [default]"),
    ] = None,
    replications: Annotated[
        int | None,
        typer.Option(metavar="N", help="Logs of each. [400, slow ones 50; domains 100]", min=1),
    ] = None,
    processes: Annotated[
        int, typer.Option(metavar="N", help="How many processes to use.", min=1)
    ] = 1,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where records are kept. [surefoot-coverage]"),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A few logs of small worlds, to check that it works.")
    ] = False,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of all random numbers.", min=0)] = 0,
    cluster: Cluster = None,
    domain: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Domains, one option each.", rich_help_panel=PRIOR),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", help="Claimed failure rate. [.05]", rich_help_panel=PRIOR),
    ] = None,
    support: Annotated[
        str | None,
        typer.Option(
            metavar="WORD", help="true: known successors; log: found in the log. [log]",
            rich_help_panel=PRIOR,
        ),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Transitions per pair. [20]", min=1, rich_help_panel=PRIOR
        ),
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Posterior draws for a bound. [2000]", min=1, rich_help_panel=PRIOR
        ),
    ] = None,
) -> ExitCode:  # fmt: skip
    """Count sentences that are false in worlds whose truth is known.

    Exit code 3 if some are false too often. It can be stopped at any time and continues where it
    was, unless the code has changed.
    """
    zoo = {"set": part, "cells": cells, "methods": methods, "out": out, "quick": quick or None}
    prior = {"delta": delta, "support": support, "samples": samples, "draws": draws}
    if domain:
        _refuse(zoo, "is about the worlds of the zoo: it does not go with --domain.")
        given = {name: value for name, value in prior.items() if value is not None}
        with working_on(cluster):
            return _by_prior(output, domain, replications or 100, seed, given)
    _refuse(prior, "goes with --domain only.")
    with working_on(cluster):
        return _in_zoo(
            output, part or "development", _names(cells), _names(methods) or ["default"],
            replications, processes=processes, out=out or Path("surefoot-coverage"), quick=quick,
            seed=seed,
        )  # fmt: skip


def _refuse(options: dict[str, Any], why: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise ValueError(f"--{name} {why}")


def _names(given: list[str] | None) -> list[str] | None:
    """Return names that were given one by one or separated by commas."""
    return [name for part in given for name in part.split(",")] if given else None


def _in_zoo(
    output: Output, part: str, names: list[str] | None, methods: list[str],
    replications: int | None, *, processes: int, out: Path, quick: bool, seed: int,
) -> ExitCode:  # fmt: skip
    """Count in the worlds of the zoo, and write records and table to the folder."""
    from surefoot.studies.zoo.cells import SMOKE, SMOKE_REPLICATIONS, find_cells
    from surefoot.studies.zoo.methods import find_method
    from surefoot.studies.zoo.replications import Record, count, jobs_of, other_files, read_records
    from surefoot.studies.zoo.table import HEAD, markdown, tabulate

    chosen = find_cells(None if part == "all" else part, names)
    if quick:
        replications = replications or SMOKE_REPLICATIONS
        chosen = chosen if names else tuple(cell for cell in chosen if cell.name in SMOKE)
    for name in methods:
        find_method(name)
    jobs = jobs_of(chosen, methods, replications, seed)
    for file in other_files(out):
        output.note(f"{file}: records of other code, kept but not counted.")
    announce_compiling(output)
    done = len(set(jobs) & {record.job for record in read_records(out)})
    with output.stage(f"{len(jobs):,} replications", len(jobs)) as stage:

        def told(record: Record) -> None:
            nonlocal done
            done += 1
            false = [f"{one.kind} at {one.delta:g}" for one in record.sentences if one.broken]
            stage.update(done, f"{record.job.cell}: {', '.join(false) or 'nothing'} broken")

        records = count(jobs, out, processes=processes, told=told)
    lines = tabulate(records)
    (out / "table.md").write_text(markdown(lines), encoding="utf-8")
    failed = sum(not line.holds for line in lines)
    judged = sum(line.judged for line in lines)
    verdict = f"{failed} of {judged} sentences are broken more often than claimed."
    output.result(
        [line.facts for line in lines], table(HEAD, [line.row for line in lines]), "",
        verdict if failed else f"No sentence of {judged} is broken more often than claimed.",
        f"Records and table: {out}",
    )  # fmt: skip
    return ExitCode.NOT_VERIFIED if failed else ExitCode.OK


def _by_prior(
    output: Output, names: list[str], replications: int, seed: int, given: dict[str, Any]
) -> ExitCode:
    """Count broken promises where the truth is drawn from the prior of a domain."""
    from dataclasses import asdict

    import numpy as np

    from surefoot.domains.catalogue import make_domain
    from surefoot.studies.certificate_coverage import study

    asked: dict[str, Any] = {"delta": 0.05, "support": "log", "samples": 20, "draws": 2000} | given
    domains = [make_domain(name) for name in names]
    announce_compiling(output)
    results = []
    for item in domains:
        with output.stage(f"{item.name}, {replications} logs"):
            rng = np.random.default_rng(seed)
            results.append(study(item, replications=replications, rng=rng, **asked))
    facts = [asdict(r) | {"allowed": r.allowed, "holds": r.holds} for r in results]
    rows = [
        (
            r.domain,
            f"{r.failures} of {r.replications}",
            r.allowed,
            f"{r.mean_promise:.5g}",
            f"{r.mean_earned:.5g}",
            f"{r.mean_upper:.5g}",
            "yes" if r.holds else "NO",
        )
        for r in results
    ]
    head = ("domain", "broken promises", "allowed", "promised", "earned", "limit", "holds")
    output.result(
        facts,
        f"Promises claimed to fail with probability {asked['delta']:g}; averages over "
        f"{replications} logs of {asked['samples']} transitions per pair:\n",
        table(head, rows),
    )
    return ExitCode.OK if all(r.holds for r in results) else ExitCode.NOT_VERIFIED
