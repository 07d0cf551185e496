"""How often a bound claimed at level delta fails when the support is guessed from a log.

Each replication draws a true model from the domain's prior and a log from it with a fixed number of
samples per state-action pair. It guesses successors from the log, forms the posterior, takes the
policy that is optimal for the posterior mean, and claims the delta-quantile of that policy's return
over the posterior. The claim fails if the true return is lower.
"""

import math
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from surefoot.data.counts import Counts
from surefoot.domains.catalogue import make_domain
from surefoot.domains.domain import Domain
from surefoot.model.mdp import MDP
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.solvers.evaluation.dense import solve_dense
from surefoot.solvers.evaluation.return_kernels import write_systems
from surefoot.studies.chance import refutes
from surefoot.studies.options import Delta, Domains, Draws, Only, Replications, Seed
from surefoot.studies.support_choices import CHOICES, TRUE_SUPPORT, SupportChoice
from surefoot.studies.table import markdown_table, number_text
from surefoot.studies.true_models import as_logged, from_prior

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
EFFORT = {"machine": 5, "inventory": 1, "riverswim": 5, "population": 1}
"""Replications of each domain, as multiples of ``replications``: small domains are cheap."""
SAMPLES = (1, 5, 20, 100)
SURE = 0.01
"""A cell breaks its claim if, at level delta, that many failures have a probability below this."""


@dataclass(frozen=True, kw_only=True)
class ChoiceResult:
    """The result of one choice on one domain with one number of samples per row.

    Attributes
    ----------
    domain, samples, choice
        The cell.
    delta
        The claimed failure probability.
    replications, failures
        How many claims were made, and how many of them were wrong.
    claimed, achieved, optimal
        Means over replications: the claimed bound, the true return of the policy, and the best
        return possible in the true model.
    """

    domain: str
    samples: int
    choice: SupportChoice
    delta: float
    replications: int
    failures: int
    claimed: float
    achieved: float
    optimal: float

    @property
    def rate(self) -> float:
        """The observed failure rate."""
        return self.failures / self.replications

    @property
    def holds(self) -> bool:
        """Whether chance explains the failures at the claimed level."""
        return not refutes(self.failures, self.replications, self.delta, sure=SURE)

    @property
    def loss(self) -> float:
        """How far the claim lies below the optimum, as a share of it."""
        return (self.optimal - self.claimed) / abs(self.optimal)


def coverage(
    domain: Domain,
    samples: int,
    replications: int,
    *,
    delta: float,
    rng: np.random.Generator,
    choices: Sequence[SupportChoice] = CHOICES,
    draws: int = 399,
) -> list[ChoiceResult]:
    """Return one cell per choice for logs with ``samples`` transitions per state-action pair.

    The claim is the order statistic ``floor(delta (draws + 1))`` of the returns of ``draws``
    posterior models: with the right prior it fails with a probability of exactly delta (less where
    ``delta (draws + 1)`` is not a whole number).

    Examples
    --------
    >>> from surefoot.domains import riverswim
    >>> cells = coverage(riverswim(), 20, 5, delta=0.05, rng=np.random.default_rng(0))
    >>> cells[0].choice.support, cells[0].replications
    ('true', 5)
    """
    rank = math.floor(delta * (draws + 1))
    if rank < 1:
        raise ValueError(
            f"draws={draws} is too few for delta={delta}; take at least {math.ceil(1 / delta) - 1}."
        )
    results = np.empty((replications, len(choices), 3))
    for replication in range(replications):
        world = from_prior(domain, rng)
        truth, declared = world.mdp, world.simulate(samples, rng)
        log = as_logged(declared)
        best = _true_return(truth, optimal_rows(truth))
        for j, choice in enumerate(choices):
            counts = declared if choice.support == TRUE_SUPPORT else log.on_support(choice.support)
            bound, actions = claim(counts, choice, truth, rank, draws, rng)
            rows = np.array([truth.row_of(s, a) for s, a in enumerate(actions)])
            results[replication, j] = bound, _true_return(truth, rows), best
    failures = np.count_nonzero(results[:, :, 1] < results[:, :, 0], axis=0)
    means = results.mean(axis=0)
    return [
        ChoiceResult(
            domain=domain.name, samples=samples, choice=choice, delta=delta,
            replications=replications, failures=int(failures[j]),
            claimed=float(means[j, 0]), achieved=float(means[j, 1]), optimal=float(means[j, 2]),
        )
        for j, choice in enumerate(choices)
    ]  # fmt: skip


def claim(
    counts: Counts,
    choice: SupportChoice,
    truth: MDP,
    rank: int,
    draws: int,
    rng: np.random.Generator,
) -> tuple[float, Ints]:
    """Return the claimed bound and the action of each true state."""
    posterior = DirichletPosterior(counts, prior=choice.parameters(counts))
    mdp = counts.to_mdp(
        discount=truth.discount, initial=truth.initial, prior=choice.parameters(counts),
        unseen=choice.unseen,
    )  # fmt: skip
    rows = optimal_rows(mdp)
    drawn = np.concatenate(list(posterior.stream(draws, rng, rows=rows, threads=1)))
    returns = np.sort(_returns(mdp, rows, drawn))
    return float(returns[rank - 1]), mdp.row_action[rows[: truth.num_states]]


def optimal_rows(mdp: MDP) -> Ints:
    """Return the row of an optimal action in every state, by Howard's policy iteration.

    Examples
    --------
    >>> from surefoot.domains import riverswim
    >>> mdp = riverswim().mdp
    >>> mdp.row_action[optimal_rows(mdp)].tolist()
    [1, 1, 1, 1, 1, 1]
    """
    reward = mdp.entry_reward
    gain = np.add.reduceat(mdp.probability * reward, mdp.row_start[:-1])
    transitions = np.zeros((mdp.num_rows, mdp.num_states))
    transitions[mdp.entry_row, mdp.successor] = mdp.probability
    rows = mdp.state_start[:-1].copy()
    while True:
        system = np.eye(mdp.num_states) - mdp.discount * transitions[rows]
        value = np.linalg.solve(system, gain[rows])
        quality = gain + mdp.discount * (transitions @ value)
        best = np.maximum.reduceat(quality, mdp.state_start[:-1])
        better = best > quality[rows] + 1e-9 * (1.0 + np.abs(best))
        if not better.any():
            return rows
        first = np.flatnonzero(quality == best[mdp.row_state])
        rows = np.where(better, first[np.searchsorted(first, mdp.state_start[:-1])], rows)


def _true_return(mdp: MDP, rows: Ints) -> float:
    entries = mdp.entries_of(rows)
    return float(_returns(mdp, rows, mdp.probability[entries][None])[0])


def _returns(mdp: MDP, rows: Ints, draws: Floats) -> Floats:
    """Return the policy's return in each drawn model; draws are those of its rows."""
    entries = mdp.entries_of(rows)
    starts = np.append(0, np.cumsum(np.diff(mdp.row_start)[rows]))
    reward = mdp.entry_reward[entries]
    size = mdp.num_states
    matrices, values = np.empty((len(draws), size, size)), np.empty((len(draws), size))
    write_systems(
        draws, reward[None], np.arange(size + 1), starts, np.ones(size),
        mdp.successor[entries].astype(np.int64), mdp.discount, 0, matrices, values,
    )  # fmt: skip
    solve_dense(matrices, values)
    returns: Floats = values @ mdp.initial
    return returns


def tightest(cells: Sequence[ChoiceResult]) -> SupportChoice | None:
    """Return the choice with the smallest mean loss among those that hold in every cell.

    The reference that knows the true successors is excluded. None if no choice holds.
    """
    groups: dict[tuple[str, str], list[ChoiceResult]] = {}
    for cell in cells:
        if cell.choice.support != TRUE_SUPPORT:
            groups.setdefault((cell.choice.support, cell.choice.prior), []).append(cell)
    holding = [group for group in groups.values() if all(cell.holds for cell in group)]
    if not holding:
        return None
    return min(holding, key=lambda group: np.mean([cell.loss for cell in group]))[0].choice


def table(cells: Sequence[ChoiceResult]) -> Iterator[str]:
    """Yield the lines of two Markdown tables: failure rates, then mean claimed bounds.

    A rate that breaks the claim is in bold.
    """
    places = list(dict.fromkeys((cell.domain, cell.samples) for cell in cells))
    choices = list(dict.fromkeys((cell.choice.support, cell.choice.prior) for cell in cells))
    by_place = {
        (cell.choice.support, cell.choice.prior, cell.domain, cell.samples): cell for cell in cells
    }
    titles = tuple(f"{chosen}: {prior}" for chosen, prior in choices)
    lines = {place: [by_place[(*choice, *place)] for choice in choices] for place in places}
    rates = [(name, f"{samples}", *map(_rate, line)) for (name, samples), line in lines.items()]
    yield from markdown_table(("domain", "samples", *titles), rates, words=1)
    yield ""
    claims = [
        (name, f"{samples}", *(number_text(cell.claimed) for cell in line),
         number_text(line[0].optimal))
        for (name, samples), line in lines.items()
    ]  # fmt: skip
    yield from markdown_table(("domain", "samples", *titles, "optimum"), claims, words=1)
    yield ""


def _rate(cell: ChoiceResult) -> str:
    return f"{cell.rate:.1%}" if cell.holds else f"**{cell.rate:.1%}**"


def command(
    domain: Domains = None,
    samples: Annotated[
        list[int] | None, typer.Option(metavar="N", help="Per pair. [1, 5, 20 and 100]")
    ] = None,
    replications: Replications = 400,
    draws: Draws = 399,
    only: Only = "",
    delta: Delta = 0.05,
    seed: Seed = 0,
) -> None:
    """Find which guess of the successors keeps its claim; 5 times the work on small domains."""
    cells: list[ChoiceResult] = []
    choices = [choice for choice in CHOICES if only in choice.prior]
    started = time.perf_counter()
    for name in domain or EFFORT:
        place = list(EFFORT).index(name) if name in EFFORT else zlib.crc32(name.encode())
        for number in samples or SAMPLES:
            cells += coverage(
                make_domain(name), number, EFFORT.get(name, 1) * replications, delta=delta,
                rng=np.random.default_rng([seed, place, number]), draws=draws, choices=choices,
            )  # fmt: skip
            elapsed = time.perf_counter() - started
            typer.echo(f"{name}, {number} samples per row: done after {elapsed:.0f} s", err=True)
    for line in table(cells):
        typer.echo(line)
    winner = tightest(cells)
    verdict = "none" if winner is None else f"support {winner.support!r}, prior {winner.prior}"
    typer.echo(f"\nTightest choice that holds in every cell: {verdict}.")
