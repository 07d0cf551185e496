"""One data set: counts and draws are made once, then a set and a robust solution per cell."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.calibration.weights import successor_values
from surefoot.data.counts import Counts
from surefoot.domains.catalogue import make_domain
from surefoot.domains.domain import Domain
from surefoot.model.mdp import MDP
from surefoot.posterior.protocol import Posterior
from surefoot.solvers.solver import solve
from surefoot.studies import paper_setting, valid_setting
from surefoot.studies.cells import CellResult, TableCell
from surefoot.studies.posteriors import POSTERIORS, StudyFit, fit_dirichlet

Floats = NDArray[np.float64]

RELATIVE_TOLERANCE = 1e-6
"""Share of the largest possible return; data sets differ from each other by far more."""


@dataclass(eq=False)
class Clock:
    """Seconds by stage since the last call of `take`."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time of a ``with`` block to a stage."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

    def take(self) -> dict[str, float]:
        """Return the times and start again."""
        taken, self.seconds = self.seconds, {}
        return taken


@dataclass(frozen=True, eq=False)
class DataSet:
    """The counts of one data set and what the paper's setting derives from them."""

    cell: TableCell
    domain: Domain
    counts: Counts
    clock: Clock
    fit: StudyFit = fit_dirichlet

    @property
    def truth(self) -> MDP:
        """The domain's true model."""
        return self.domain.mdp

    @cached_property
    def posterior(self) -> Posterior:
        """The posterior on the true successors."""
        with self.clock.stage("draws"):
            return self.fit(self.counts, self.domain, self.cell.rng(2))

    @cached_property
    def draws(self) -> Floats:
        """``(n, E)``: the draws of the paper's setting."""
        posterior = self.posterior
        with self.clock.stage("draws"):
            return posterior.sample(self.cell.draws, self.cell.rng(1))

    @cached_property
    def nominal(self) -> MDP:
        """The paper's nominal model: mean of the draws, or the empirical rows."""
        if self.cell.method.basis == "bayesian":
            return paper_setting.nominal_of_draws(self.draws, self.truth)
        return replace(self.truth, probability=self.counts.count / self.cell.samples)

    @cached_property
    def values(self) -> Floats:
        """``(E,)``: the values of the successors in the nominal model."""
        nominal = self.nominal
        with self.clock.stage("set"):
            return successor_values(nominal, solve(nominal).value)


def run_data_set(
    cells: Sequence[TableCell], domain: Domain | None = None, fit: StudyFit | None = None
) -> Iterator[tuple[TableCell, CellResult]]:
    """Compute cells that share a data set, one after another.

    Without ``domain`` and ``fit`` the cells name a domain of the catalogue and a posterior of
    :data:`surefoot.studies.posteriors.POSTERIORS`.

    Examples
    --------
    >>> from surefoot.studies.published import Method
    >>> method = Method("bayesian", "l1", "uniform")
    >>> cell = TableCell(setting="paper", domain="machine", method=method, delta=0.05, samples=20,
    ...                  draws=20, seed=0)
    >>> [(_, outcome)] = run_data_set([cell])
    >>> -60 < outcome.guarantee < -25
    True
    """
    first, clock = cells[0], Clock()
    known = make_domain(first.domain) if domain is None else domain
    with clock.stage("data"):
        counts = known.simulate(first.samples, first.rng(0))
    fit = POSTERIORS[first.posterior] if fit is None else fit
    data = DataSet(cell=first, domain=known, counts=counts, clock=clock, fit=fit)
    for cell in cells:
        ambiguity, draws = BUILDERS[cell.setting, cell.method.basis](data, cell)
        with clock.stage("solve"):
            tolerance = RELATIVE_TOLERANCE * largest_return(known.mdp)
            # Value iteration is the simplest method, and fast at these sizes and tolerances.
            solution = solve(
                ambiguity.mdp, ambiguity, algorithm="value_iteration", tolerance=tolerance
            )
        yield (
            cell,
            CellResult(
                guarantee=solution.return_lower,
                converged=solution.converged,
                draws=draws,
                seconds=clock.take(),
            ),
        )


def largest_return(mdp: MDP) -> float:
    """Return a bound on the absolute value of any return, the unit of tolerances.

    Examples
    --------
    >>> round(largest_return(make_domain("machine").mdp))
    400
    """
    return max(1e-12, float(np.abs(mdp.reward).max())) / (1 - mdp.discount)


def _paper_bayesian(data: DataSet, cell: TableCell) -> tuple[AmbiguitySet, int]:
    draws, mdp, values = data.draws, data.nominal, data.values
    with data.clock.stage("set"):
        found = paper_setting.paper_bayesian_set(draws, mdp, values, cell.method, cell.delta)
    return found, len(draws)


def _paper_frequentist(data: DataSet, cell: TableCell) -> tuple[AmbiguitySet, int]:
    mdp, values = data.nominal, data.values
    bound = "bernstein" if cell.setting == "bernstein" else "hoeffding"
    with data.clock.stage("set"):
        found = paper_setting.paper_frequentist_set(
            cell.samples, mdp, values, cell.method, cell.delta, bound
        )
    return found, 0


def _valid_bayesian(data: DataSet, cell: TableCell) -> tuple[AmbiguitySet, int]:
    posterior = data.posterior
    with data.clock.stage("set"):
        return valid_setting.bayesian_set(posterior, data.truth, cell)


def _valid_frequentist(data: DataSet, cell: TableCell) -> tuple[AmbiguitySet, int]:
    with data.clock.stage("set"):
        return valid_setting.confidence_set(data.counts, data.truth, cell), 0


Builder = Callable[[DataSet, TableCell], tuple[AmbiguitySet, int]]

BUILDERS: dict[tuple[str, str], Builder] = {
    ("paper", "bayesian"): _paper_bayesian,
    ("paper", "frequentist"): _paper_frequentist,
    ("bernstein", "frequentist"): _paper_frequentist,
    ("valid", "bayesian"): _valid_bayesian,
    ("valid", "frequentist"): _valid_frequentist,
}
