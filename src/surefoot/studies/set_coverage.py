"""How often sets contain the true model, and how often the robust return is earned.

Bayesian sets: each replication draws a true model from the prior, data from it, and builds the set
from the posterior. Frequentist sets: the true model is that of the domain, only the data are drawn.
The study counts *containment* failures (the true model lies outside the set of some row; if delta
is shared over states only, of some row that the robust policy plays) and *guarantee* failures (the
robust policy earns less than its robust return). A claim at level delta is refuted if that many
failures out of N have probability below 0.001: more than 35 of 400 at delta 0.05.
"""

import dataclasses
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import typer

from surefoot.ambiguity.sets import AmbiguitySet, contains
from surefoot.calibration.credible import credible_set
from surefoot.calibration.frequentist import KINDS, frequentist_set, split_counts
from surefoot.data.counts import Counts
from surefoot.domains.catalogue import make_domain
from surefoot.domains.domain import Domain
from surefoot.model.mdp import MDP
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.solvers.solver import evaluate, solve
from surefoot.studies.chance import refutes
from surefoot.studies.data_set import largest_return
from surefoot.studies.options import Delta, Domains, Only, Replications, Samples, Seed
from surefoot.studies.table import markdown_table
from surefoot.studies.true_models import from_prior

DOMAINS = ("riverswim", "machine")
TOLERANCE = 1e-7
"""Tolerance of returns, as a share of the largest possible return."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """One way to build a set.

    Attributes
    ----------
    name
        Its name in the table.
    basis
        ``"bayesian"`` or ``"frequentist"``: where the true model comes from.
    build
        Makes the set from counts, the domain they came from, delta and a generator.
    proven
        False for sets without a proof: they are shown but claim nothing.
    """

    name: str
    basis: str
    build: Callable[[Counts, Domain, float, np.random.Generator], AmbiguitySet]
    proven: bool = True


@dataclass(kw_only=True, eq=False)
class CaseTally:
    """Counts and returns of one case."""

    domain: str
    case: Case
    delta: float
    replications: int = 0
    outside: int = 0
    broken: int = 0
    promised: list[float] = field(default_factory=list)
    earned: list[float] = field(default_factory=list)

    @property
    def refuted(self) -> bool:
        """Whether the containment or the guarantee failures refute the claim."""
        return self.outside_refuted or self.broken_refuted

    @property
    def outside_refuted(self) -> bool:
        """Whether the containment failures refute the claim."""
        return refutes(self.outside, self.replications, self.delta)

    @property
    def broken_refuted(self) -> bool:
        """Whether the guarantee failures refute the claim."""
        return refutes(self.broken, self.replications, self.delta)


def _credible(name: str, **options: Any) -> Case:
    def build(
        counts: Counts, domain: Domain, delta: float, rng: np.random.Generator
    ) -> AmbiguitySet:
        truth, prior = domain.mdp, domain.prior
        mdp = counts.to_mdp(discount=truth.discount, initial=truth.initial, prior=prior)
        posterior = DirichletPosterior(counts, prior=prior)
        return credible_set(posterior, mdp, delta=delta, rng=rng, **options)

    return Case(name=name, basis="bayesian", build=build)


def _frequentist(name: str, *, split: bool = False, proven: bool = True, **options: Any) -> Case:
    def build(
        counts: Counts, domain: Domain, delta: float, rng: np.random.Generator
    ) -> AmbiguitySet:
        given, truth = dict(options), domain.mdp
        if split:
            first, counts = split_counts(counts, rng)
            given["shape"] = first.to_mdp(discount=truth.discount, initial=truth.initial)
        mdp = counts.to_mdp(discount=truth.discount, initial=truth.initial)
        return frequentist_set(counts, mdp, delta=delta, **given)

    return Case(name=name, basis="frequentist", build=build, proven=proven)


CASES = (
    _credible("L1, uniform"),
    _credible("L1, uniform, all rows", union="all"),
    _credible("L1, uniform, states", union="states"),
    _credible("L1, uniform, joint", union="joint"),
    _credible("L1, uniform, marginal rule", rule="marginal", draws=4000),
    _credible("L1, uniform, joint, marginal rule", union="joint", rule="marginal", draws=4000),
    _credible("L1, analytic", weights="analytic"),
    _credible("L1, analytic, searched centre", weights="analytic", center="search"),
    _credible("L1, analytic, three passes", weights="analytic", passes=3),
    _credible("L1, analytic, joint", weights="analytic", union="joint"),
    _credible("L1, SOCP", weights="socp"),
    _credible("L-infinity, uniform", norm="linf"),
    _credible("L-infinity, analytic", norm="linf", weights="analytic"),
    _credible("L-infinity, analytic, states", norm="linf", weights="analytic", union="states"),
    *(_frequentist(kind, kind=kind, fixed_design=True) for kind in KINDS),
    *(_frequentist(f"{kind}, any design", kind=kind) for kind in ("weighted_l1", "kl")),
    *(
        _frequentist(
            f"{kind}, analytic, split", split=True, kind=kind, weights="analytic", fixed_design=True
        )
        for kind in ("weighted_l1", "hoeffding_linf")
    ),
    _frequentist(
        "weighted_l1, analytic, data reused", proven=False, kind="weighted_l1",
        weights="analytic", reuse=True, fixed_design=True,
    ),
)  # fmt: skip
"""Every kind of set; a case added here is counted in the same way."""


def study(
    domain: Domain,
    *,
    samples: int,
    replications: int,
    delta: float,
    rng: np.random.Generator,
    cases: Sequence[Case] = CASES,
    shrink: float = 1.0,
) -> list[CaseTally]:
    """Return one tally per case, all cases on the same true models and data.

    ``shrink`` multiplies the budgets of norm and KL balls afterwards: with a value below 1 the
    study should find failures.

    Examples
    --------
    >>> from surefoot.domains import riverswim
    >>> rng = np.random.default_rng(0)
    >>> tallies = study(riverswim(discount=0.9), samples=20, replications=3, delta=0.05, rng=rng,
    ...                 cases=CASES[:1])
    >>> tallies[0].replications, tallies[0].refuted
    (3, False)
    """
    tallies = [CaseTally(domain=domain.name, case=case, delta=delta) for case in cases]
    seed = int(rng.integers(2**63))
    for replication in range(replications):
        rng = np.random.default_rng([seed, replication])
        truths = {"bayesian": from_prior(domain, rng), "frequentist": domain}
        data = {basis: truth.simulate(samples, rng) for basis, truth in truths.items()}
        for tally in tallies:
            basis = tally.case.basis
            # Seeded by name: a case sees the same draws whichever other cases run.
            own = np.random.default_rng([seed, replication, zlib.crc32(tally.case.name.encode())])
            made = tally.case.build(data[basis], truths[basis], delta, own)
            record(tally, made if shrink == 1.0 else _shrunk(made, shrink), truths[basis].mdp)
    return tallies


def record(tally: CaseTally, made: AmbiguitySet, truth: MDP) -> None:
    """Solve for the robust policy, and count failures of the set and of the promise."""
    largest = largest_return(truth)
    solution = solve(made.mdp, made, tolerance=TOLERANCE * largest)
    inside = contains(made, truth.probability)
    known = made.confidence
    if known is not None and known.union == "states":
        rows = [truth.row_of(s, int(a)) for s, a in enumerate(np.asarray(solution.policy))]
        inside = inside[rows]
    earned = evaluate(truth, solution.policy, tolerance=TOLERANCE * largest)
    tally.replications += 1
    tally.outside += int(not inside.all())
    tally.broken += int(earned.return_upper < solution.return_lower)
    tally.promised.append(solution.return_lower)
    tally.earned.append(earned.return_lower)


def _shrunk(made: AmbiguitySet, factor: float) -> AmbiguitySet:
    """Return a set of the same shape and another size; it has no confidence."""
    if made.budget is None:
        return made
    return dataclasses.replace(made, budget=factor * made.budget, confidence=None)


HEAD = ("domain", "basis", "set", "outside", "promise broken", "mean promise", "mean earned")


def table(tallies: Sequence[CaseTally]) -> Iterator[str]:
    """Yield the lines of a Markdown table; counts that refute a claim are in bold."""
    yield from markdown_table(HEAD, [_row(tally) for tally in tallies], words=3)


def _row(tally: CaseTally) -> tuple[str, ...]:
    counted = ((tally.outside, tally.outside_refuted), (tally.broken, tally.broken_refuted))
    failed = (f"{failures}/{tally.replications}" for failures, _ in counted)
    shown = (
        f"**{text}**" if refuted else text
        for text, (_, refuted) in zip(failed, counted, strict=True)
    )
    name = tally.case.name if tally.case.proven else f"{tally.case.name} (no proof)"
    means = (f"{np.mean(numbers):.5g}" for numbers in (tally.promised, tally.earned))
    return (tally.domain, tally.case.basis, name, *shown, *means)


def command(
    domain: Domains = None,
    samples: Samples = 20,
    replications: Replications = 400,
    delta: Delta = 0.05,
    seed: Seed = 0,
    shrink: Annotated[
        float, typer.Option(metavar="NUMBER", help="Multiply all budgets; 0.7 must fail.")
    ] = 1.0,
    only: Only = "",
) -> None:
    """Count how often sets hold the true model and promises hold; exits with 1 if a claim fails."""
    cases = [case for case in CASES if only in f"{case.basis} {case.name}"]
    tallies: list[CaseTally] = []
    for name in domain or DOMAINS:
        started = time.perf_counter()
        # Seeded by name: a domain sees the same data whichever other domains run.
        place = DOMAINS.index(name) if name in DOMAINS else zlib.crc32(name.encode())
        tallies += study(
            make_domain(name), samples=samples, replications=replications, delta=delta,
            rng=np.random.default_rng([seed, place]), cases=cases, shrink=shrink,
        )  # fmt: skip
        typer.echo(f"{name}: done after {time.perf_counter() - started:.0f} s", err=True)
    for line in table(tallies):
        typer.echo(line)
    refuted = [tally for tally in tallies if tally.case.proven and tally.refuted]
    verdict = f"{len(refuted)} of {len(tallies)} claims refuted" if refuted else "all claims hold"
    typer.echo(f"\n{verdict} (delta {delta:g}).")
    raise typer.Exit(int(bool(refuted)))
