"""How often a bound claimed at level delta fails when the support is guessed from a log.

Each replication draws a true model from Dirichlet(1) on the true successors, a log from it with a
fixed number of samples per state-action pair, guesses successors from the log, forms the posterior,
takes the policy that is optimal for its mean and claims the delta-quantile of that policy's return
over the posterior. The claim fails when the true return is lower.
"""

import argparse
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from surefoot.data.counts import Counts
from surefoot.domains.catalogue import make_domain
from surefoot.domains.domain import Domain
from surefoot.model.mdp import MDP
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.solvers.evaluation.dense import solve_dense
from surefoot.solvers.evaluation.return_kernels import write_systems
from surefoot.studies.support_choices import CHOICES, TRUE_SUPPORT, Choice

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
EFFORT = {"machine": 5, "inventory": 1, "riverswim": 5, "population": 1}
"""Replications of each domain, in multiples of those asked for: the small ones are cheap."""
SAMPLES = (1, 5, 20, 100)
SURE = 0.01
"""A cell breaks its claim when so many failures would come about this rarely at the level delta."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What one choice did on one domain at one number of samples per row.

    Attributes
    ----------
    domain, samples, choice
        Where.
    delta
        The claimed failure probability.
    replications, failures
        How many claims, how many of them wrong.
    claimed, achieved, optimal
        Means over replications: the claimed bound, the true return of the policy, and the best
        return possible in the true model.
    """

    domain: str
    samples: int
    choice: Choice
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
        """Whether the failures are no more than chance allows at the claimed level."""
        return bool(binom.sf(self.failures - 1, self.replications, self.delta) > SURE)

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
    choices: Sequence[Choice] = CHOICES,
    draws: int = 399,
) -> list[Cell]:
    """Return one cell per choice for logs with ``samples`` transitions per state-action pair.

    The claim is the order statistic ``floor(delta (draws + 1))`` of the returns of ``draws``
    posterior models: with the right prior it fails with probability delta, exactly.

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
        truth = _drawn_from_prior(domain.mdp, rng)
        declared = Domain(name=domain.name, mdp=truth).simulate(samples, rng)
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
        Cell(
            domain=domain.name, samples=samples, choice=choice, delta=delta,
            replications=replications, failures=int(failures[j]),
            claimed=float(means[j, 0]), achieved=float(means[j, 1]), optimal=float(means[j, 2]),
        )
        for j, choice in enumerate(choices)
    ]  # fmt: skip


def as_logged(declared: Counts) -> Counts:
    """Return what a log shows of declared counts: seen successors and seen rewards alone.

    Examples
    --------
    >>> from surefoot.domains import riverswim
    >>> declared = riverswim().simulate(1, np.random.default_rng(0))
    >>> declared.num_entries, as_logged(declared).num_entries
    (22, 12)
    """
    if declared.reward_mean is None:
        raise ValueError("these counts have no rewards; simulate them from a domain.")
    rows = declared.entry_row
    index = (declared.row_state[rows], declared.row_action[rows], declared.successor)
    shape = (declared.num_states, declared.num_actions, declared.num_states)
    counts, rewards = np.zeros(shape, dtype=np.int64), np.full(shape, np.nan)
    counts[index] = declared.count
    rewards[index] = np.where(declared.count > 0, declared.reward_mean, np.nan)
    return Counts.from_arrays(
        counts,
        rewards=rewards,
        state_labels=declared.state_labels,
        action_labels=declared.action_labels,
    )


def claim(
    counts: Counts, choice: Choice, truth: MDP, rank: int, draws: int, rng: np.random.Generator
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
    reward = mdp.reward if mdp.reward_per_entry else mdp.reward[mdp.entry_row]
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


def _drawn_from_prior(mdp: MDP, rng: np.random.Generator) -> MDP:
    """Return the model with its rows replaced by draws from Dirichlet(1) on their successors."""
    nothing = Counts.on_rows_of(mdp, np.zeros(mdp.num_entries, dtype=np.int64))
    drawn = DirichletPosterior(nothing, prior=1.0).sample(1, rng)[0]
    return nothing.to_mdp(discount=mdp.discount, initial=mdp.initial, prior=drawn)


def _true_return(mdp: MDP, rows: Ints) -> float:
    entries = np.concatenate([np.arange(*mdp.row_start[row : row + 2]) for row in rows])
    return float(_returns(mdp, rows, mdp.probability[entries][None])[0])


def _returns(mdp: MDP, rows: Ints, draws: Floats) -> Floats:
    """Return what a policy earns in each drawn model of its rows."""
    entries = np.concatenate([np.arange(*mdp.row_start[row : row + 2]) for row in rows])
    starts = np.append(0, np.cumsum(np.diff(mdp.row_start)[rows]))
    reward = mdp.reward[entries] if mdp.reward_per_entry else mdp.reward[mdp.entry_row[entries]]
    size = mdp.num_states
    matrices, values = np.empty((len(draws), size, size)), np.empty((len(draws), size))
    write_systems(
        draws, reward[None], np.arange(size + 1), starts, np.ones(size),
        mdp.successor[entries].astype(np.int64), mdp.discount, 0, matrices, values,
    )  # fmt: skip
    solve_dense(matrices, values)
    returns: Floats = values @ mdp.initial
    return returns


def tightest(cells: Sequence[Cell]) -> Choice | None:
    """Return the choice with the smallest mean loss among those that hold in every cell.

    The reference that knows the true successors does not take part. None when nothing holds.
    """
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        if cell.choice.support != TRUE_SUPPORT:
            groups.setdefault((cell.choice.support, cell.choice.prior), []).append(cell)
    holding = [group for group in groups.values() if all(cell.holds for cell in group)]
    if not holding:
        return None
    return min(holding, key=lambda group: np.mean([cell.loss for cell in group]))[0].choice


def table(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield the lines of two Markdown tables: failure rates, then mean claimed bounds.

    A rate that breaks the claim is set in bold.
    """
    places = list(dict.fromkeys((cell.domain, cell.samples) for cell in cells))
    choices = list(dict.fromkeys((cell.choice.support, cell.choice.prior) for cell in cells))
    by_place = {
        (cell.choice.support, cell.choice.prior, cell.domain, cell.samples): cell for cell in cells
    }
    titles = " | ".join(f"{chosen}: {prior}" for chosen, prior in choices)

    def rate(cell: Cell) -> str:
        return f"{cell.rate:.1%}" if cell.holds else f"**{cell.rate:.1%}**"

    def claimed(cell: Cell) -> str:
        return _number(cell.claimed)

    for show in (rate, claimed):
        best = show is claimed
        yield f"| domain | samples | {titles} |{' optimum |' if best else ''}"
        yield "|---|---:|" + "---:|" * (len(choices) + best)
        for name, samples in places:
            line = [by_place[(*choice, name, samples)] for choice in choices]
            shown = " | ".join(map(show, line))
            last = f" {_number(line[0].optimal)} |" if best else ""
            yield f"| {name} | {samples} | {shown} |{last}"
        yield ""


def _number(value: float) -> str:
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study and print its table."""
    parser = argparse.ArgumentParser(prog="python -m surefoot.studies.support", description=__doc__)
    parser.add_argument("--domains", nargs="+", choices=list(EFFORT), default=list(EFFORT))
    parser.add_argument("--samples", nargs="+", type=int, default=list(SAMPLES))
    parser.add_argument(
        "--replications",
        type=int,
        default=400,
        help="of the larger domains; 5 times for the others",
    )
    parser.add_argument("--draws", type=int, default=399)
    parser.add_argument(
        "--only", default="", help="choices whose prior, as the tables call it, contains this"
    )
    parser.add_argument("--delta", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    cells: list[Cell] = []
    choices = [choice for choice in CHOICES if options.only in choice.prior]
    started = time.perf_counter()
    for name in options.domains:
        for samples in options.samples:
            rng = np.random.default_rng([options.seed, list(EFFORT).index(name), samples])
            cells += coverage(
                make_domain(name), samples, EFFORT[name] * options.replications,
                delta=options.delta, rng=rng, draws=options.draws, choices=choices,
            )  # fmt: skip
            elapsed = time.perf_counter() - started
            sys.stderr.write(f"{name}, {samples} samples per row: done after {elapsed:.0f} s\n")
    sys.stdout.write("\n".join(table(cells)) + "\n")
    winner = tightest(cells)
    verdict = "none" if winner is None else f"support {winner.support!r}, prior {winner.prior}"
    sys.stdout.write(f"\nTightest choice that holds in every cell: {verdict}.\n")


if __name__ == "__main__":
    main()
