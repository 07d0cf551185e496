"""``surefoot coverage``: how often promises are broken where the truth is known."""

from typing import Annotated

import typer

from surefoot.commands.command import ExitCode, command, examples
from surefoot.commands.console import Output, table
from surefoot.commands.solving import announce_compiling


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app, "coverage", short_help="How often promises are broken where the truth is known.",
        epilog=examples("surefoot coverage --domain machine --support log --replications 200"),
    )(coverage)  # fmt: skip


def coverage(
    output: Output,
    domain: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Domains, one option each. [riverswim, machine]"),
    ] = None,
    delta: Annotated[
        float, typer.Option(metavar="NUMBER", help="Failure probability that is claimed.")
    ] = 0.05,
    support: Annotated[
        str, typer.Option(metavar="WORD", help="true: known successors; log: found in the log.")
    ] = "log",
    samples: Annotated[
        int, typer.Option(metavar="N", help="Transitions per state-action pair.", min=1)
    ] = 20,
    replications: Annotated[int, typer.Option(metavar="N", help="Logs per domain.", min=1)] = 100,
    draws: Annotated[
        int, typer.Option(metavar="N", help="Posterior draws for each bound.", min=1)
    ] = 2000,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of all random numbers.", min=0)] = 0,
) -> ExitCode:
    """Count broken promises on logs from known models; exit code 3 if there are too many."""
    from dataclasses import asdict

    import numpy as np

    from surefoot.domains.catalogue import make_domain
    from surefoot.studies.certificate_coverage import study

    domains = [make_domain(name) for name in domain or ("riverswim", "machine")]
    announce_compiling(output)
    results = []
    for item in domains:
        with output.stage(f"{item.name}, {replications} logs"):
            results.append(
                study(
                    item, samples=samples, replications=replications, delta=delta,
                    support=support, draws=draws, rng=np.random.default_rng(seed),
                )
            )  # fmt: skip
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
        f"Promises claimed to fail with probability {delta:g}; averages over {replications} logs "
        f"of {samples} transitions per pair:\n",
        table(head, rows),
    )
    return ExitCode.OK if all(r.holds for r in results) else ExitCode.NOT_VERIFIED
