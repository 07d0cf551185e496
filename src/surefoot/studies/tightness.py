"""How loose a promise from a log is, compared with one that knows the possible transitions.

Uses the same logs of known worlds twice, with a fixed number of tries per pair: once as they are,
once with the true successors declared. The gap between optimum and promise in the first case,
divided by the gap in the second, is the price of not knowing the successors.
"""

from dataclasses import dataclass

import numpy as np
import typer

from surefoot.studies.options import Domains, Replications, Seed
from surefoot.studies.table import markdown_row, markdown_table
from surefoot.studies.zoo.catalogue import make_world
from surefoot.studies.zoo.cells import Cell
from surefoot.studies.zoo.replications import Job, play

DELTA, TRIES = 0.05, 20
WANTED = {"machine": 2.5, "inventory": 3.5, "riverswim": 1.3, "population": 2.4}
HEAD = ("world", "logs", "optimum", "from the log", "declared", "broken", "ratio", "wanted")


@dataclass(frozen=True, kw_only=True)
class Tightness:
    """Promises about one world.

    Attributes
    ----------
    world
        Its name.
    optimum
        Return of the best policy.
    learned, declared
        Promises from logs as they are, and with the true successors declared, log by log.
    broken
        How many of all these promises are false.
    """

    world: str
    optimum: float
    learned: tuple[float, ...]
    declared: tuple[float, ...]
    broken: int

    @property
    def ratio(self) -> float:
        """Mean gap to the optimum of the learned promises, divided by that of the declared ones.

        Examples
        --------
        >>> Tightness(
        ...     world="x", optimum=10.0, learned=(4.0, 6.0), declared=(8.0, 8.0), broken=0
        ... ).ratio
        2.5
        """
        learned, declared = (self.optimum - np.mean(ends) for ends in (self.learned, self.declared))
        return float(learned / declared)

    @property
    def row(self) -> tuple[str, ...]:
        """The row of the table."""
        means = (self.optimum, np.mean(self.learned), np.mean(self.declared))
        wanted = WANTED.get(self.world)
        return (
            self.world, str(len(self.learned)), *(f"{mean:.5g}" for mean in means),
            f"{self.broken} of {2 * len(self.learned)}", f"{self.ratio:.2f}",
            "-" if wanted is None else f"{wanted:g}",
        )  # fmt: skip


def tightness(name: str, *, logs: int, seed: int) -> Tightness:
    """Return the promises of runs on logs of a world, with and without declared successors."""
    world = make_world(name, 0)
    found: dict[tuple[str, ...], list[float]] = {(): [], ("support",): []}
    optimum, broken = 0.0, 0
    for turn in range(logs):
        for declared, values in found.items():
            cell = Cell(
                name=f"{name}-tight", world=name, behaviour="tries", size=TRIES, declared=declared
            )
            record = play(Job(cell.name, turn, "default", seed), cell, world)
            (promise,) = (
                said for said in record.sentences if (said.kind, said.delta) == ("promise", DELTA)
            )
            optimum = record.optimum
            broken += promise.broken
            values.append(np.nan if promise.claimed is None else promise.claimed)
    learned, declared_too = (tuple(values) for values in found.values())
    return Tightness(
        world=name, optimum=optimum, learned=learned, declared=declared_too, broken=broken
    )


def command(domain: Domains = None, logs: Replications = 8, seed: Seed = 0) -> None:
    """Compare promises from logs with those that know the successors, at 20 tries per pair."""
    for line in markdown_table(HEAD, [], words=1):
        typer.echo(line)
    for name in domain or WANTED:
        typer.echo(markdown_row(tightness(name, logs=logs, seed=seed).row))
