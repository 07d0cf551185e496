"""Options that several studies share."""

from typing import Annotated

import typer

Domains = Annotated[
    list[str] | None, typer.Option("--domain", metavar="NAME", help="Domains, one option each.")
]
Delta = Annotated[float, typer.Option(metavar="NUMBER", help="Failure probability claimed.")]
Samples = Annotated[
    int, typer.Option(metavar="N", min=1, help="Transitions per state-action pair.")
]
Replications = Annotated[int, typer.Option(metavar="N", min=1, help="Data sets per line.")]
Draws = Annotated[int, typer.Option(metavar="N", min=1, help="Posterior draws.")]
Seed = Annotated[int, typer.Option(metavar="N", min=0, help="Seed of all random numbers.")]
Only = Annotated[str, typer.Option(metavar="TEXT", help="Only cases whose name contains this.")]
