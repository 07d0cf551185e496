"""The paper's tables, reproduced: every cell over several data sets, with the published numbers."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import numpy as np

from surefoot._workers import current, each_part
from surefoot.domains.domain import Domain
from surefoot.model.mdp import MDP
from surefoot.pipeline.journal import OnStep
from surefoot.solvers.solver import solve
from surefoot.studies.cells import CellResult, TableCell, load, store
from surefoot.studies.data_set import run_data_set
from surefoot.studies.posteriors import StudyFit
from surefoot.studies.published import (
    Method,
    normalised_loss,
    printed_loss,
    published_guarantee,
)
from surefoot.studies.request import Request


@dataclass(frozen=True, kw_only=True)
class Spread:
    """One cell of a table over its data sets."""

    mean: float
    sd: float
    data_sets: int


@dataclass(frozen=True, kw_only=True)
class PublishedLine:
    """One published number and ours.

    Attributes
    ----------
    domain, method, delta
        The place in the tables.
    nominal
        Optimum of our true model.
    published
        The paper's number; None if it has none.
    ours
        Our numbers, by setting.
    """

    domain: str
    method: Method
    delta: float
    nominal: float
    published: float | None
    ours: dict[str, Spread]

    def guarantee(self, column: str) -> float | None:
        """Return the guarantee of a setting, or the ``"published"`` one."""
        if column == "published":
            return self.published
        spread = self.ours.get(column)
        return None if spread is None else spread.mean

    def loss(self, column: str) -> float | None:
        """Return a normalised loss.

        ``column`` is a setting; ``"printed"`` for the loss printed in tables 1 and 2; or
        ``"published"`` for the loss that follows from the guarantees of the appendix, which is not
        always the same.
        """
        if column == "printed":
            return printed_loss(self.domain, self.method, self.delta)
        found = self.guarantee(column)
        nominal = None if column == "published" else self.nominal
        return None if found is None else normalised_loss(self.domain, found, nominal)


@dataclass(frozen=True, kw_only=True, eq=False)
class Reproduction:
    """All lines, the cells behind them, and the time each stage took.

    Attributes
    ----------
    request
        The request.
    lines
        One per domain, method and delta.
    outcomes
        The result of every cell.
    seconds
        Time by domain, setting and stage.
    """

    request: Request
    lines: list[PublishedLine]
    outcomes: dict[TableCell, CellResult]
    seconds: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """``"published"``, and the settings that have at least one number."""
        settings = self.request.settings
        return ("published", *(s for s in settings if any(s in line.ours for line in self.lines)))

    @property
    def delta(self) -> float:
        """The smallest delta, for which losses and improvements are reported."""
        return min(self.request.deltas)

    def line(self, domain: str, method: Method) -> PublishedLine | None:
        """Return the line of a method at the smallest delta; None if there is none."""
        place = (domain, method, self.delta)
        return next((ln for ln in self.lines if (ln.domain, ln.method, ln.delta) == place), None)

    def improvement(self, column: str, basis: str, norms: Sequence[str]) -> float | None:
        """Return the geometric mean of loss(uniform) / loss(analytic) over the domains."""
        logs = []
        for domain in self.request.names:
            for norm in norms:
                uniform, optimised = (
                    None if line is None else line.loss(column)
                    for line in self._pair(domain, basis, norm)
                )
                if uniform is None or optimised is None or not min(uniform, optimised) > 0:
                    return None
                logs.append(math.log(uniform / optimised))
        return math.exp(sum(logs) / len(logs)) if logs else None

    def gain(self, column: str, domain: str, basis: str, norm: str) -> float | None:
        """Return (analytic - uniform) / |uniform| of the guarantees; None if one is missing."""
        uniform, optimised = (
            None if line is None else line.guarantee(column)
            for line in self._pair(domain, basis, norm)
        )
        if uniform is None or optimised is None or uniform == 0:
            return None
        return (optimised - uniform) / abs(uniform)

    def _pair(
        self, domain: str, basis: str, norm: str
    ) -> tuple[PublishedLine | None, PublishedLine | None]:
        uniform, optimised = (
            self.line(domain, Method(basis, norm, weights)) for weights in ("uniform", "analytic")
        )
        return uniform, optimised


def reproduce(
    request: Request, cache: Path | None = None, progress: OnStep | None = None
) -> Reproduction:
    """Compute every requested cell, and compare with the published tables.

    Parameters
    ----------
    request
        What to compute.
    cache
        A folder with a file per cell: cells found there are not computed again. Nothing is kept if
        this is None, or if the posterior is a function, since it may have changed.
    progress
        Called with the number of cells done and the name of the last one.

    Examples
    --------
    >>> found = reproduce(Request(domains=("machine",), settings=("paper",), bases=("bayesian",),
    ...                           deltas=(0.05,), seeds=2))
    >>> found.lines[0].published, -60 < found.lines[0].ours["paper"].mean < -30
    (-42.0, True)
    """
    outcomes: dict[TableCell, CellResult] = {}
    if not isinstance(request.posterior, str):
        cache = None
    todo: list[tuple[list[TableCell], Domain]] = []
    for _, group in groupby(request.cells(), key=lambda cell: cell.data_set):
        missing = []
        for cell in group:
            domain = request.worlds[cell.domain]
            kept = load(cache, cell, domain) if cache is not None else None
            if kept is None:
                missing.append(cell)
            else:
                outcomes[cell] = kept
        if missing:
            todo.append((missing, domain))
    for domain, cell, outcome in _computed(todo, request.fit):
        if cache is not None:
            store(cache, cell, domain, outcome)
        outcomes[cell] = outcome
        if progress is not None:
            progress(len(outcomes), f"{cell.setting}, {cell.domain}, {cell.method.title}")
    # In the order of the request, not of completion.
    return _summarise(request, {cell: outcomes[cell] for cell in request.cells()})


def _computed(
    todo: list[tuple[list[TableCell], Domain]], fit: StudyFit
) -> Iterator[tuple[Domain, TableCell, CellResult]]:
    """Yield the outcome of each cell; cells of one data set are computed together."""
    if current() is None:  # without workers, each cell is stored as soon as it is computed
        for cells, domain in todo:
            for cell, outcome in run_data_set(cells, domain, fit):
                yield domain, cell, outcome
        return
    for place, found in each_part(_data_set, (fit,), todo):
        for cell, outcome in found:
            yield todo[place][1], cell, outcome


def _data_set(
    fit: StudyFit, cells: list[TableCell], domain: Domain
) -> list[tuple[TableCell, CellResult]]:
    return list(run_data_set(cells, domain, fit))


def _summarise(request: Request, outcomes: dict[TableCell, CellResult]) -> Reproduction:
    found: dict[tuple[str, float, Method], dict[str, list[float]]] = {}
    seconds: dict[tuple[str, str], dict[str, float]] = {}
    for cell, outcome in outcomes.items():
        place = found.setdefault((cell.domain, cell.delta, cell.method), {})
        place.setdefault(cell.setting, []).append(outcome.guarantee)
        stages = seconds.setdefault((cell.domain, cell.setting), {})
        for stage, spent in outcome.seconds.items():
            stages[stage] = stages.get(stage, 0.0) + spent
    nominal = {name: nominal_return(domain.mdp) for name, domain in request.worlds.items()}
    lines = [
        PublishedLine(
            domain=domain,
            method=method,
            delta=delta,
            nominal=nominal[domain],
            published=published_guarantee(domain, method, delta),
            ours={setting: _spread(numbers) for setting, numbers in by_setting.items()},
        )
        for (domain, delta, method), by_setting in found.items()
    ]
    return Reproduction(request=request, lines=lines, outcomes=outcomes, seconds=seconds)


def nominal_return(mdp: MDP) -> float:
    """Return the optimum of a domain's true model.

    Examples
    --------
    >>> from surefoot.domains import riverswim
    >>> round(nominal_return(riverswim().mdp), 2)
    63080.09
    """
    return solve(mdp).return_lower


def _spread(numbers: Sequence[float]) -> Spread:
    sd = float(np.std(numbers, ddof=1)) if len(numbers) > 1 else 0.0
    return Spread(mean=float(np.mean(numbers)), sd=sd, data_sets=len(numbers))
