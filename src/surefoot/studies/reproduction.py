"""The paper's tables again: every cell over several data sets, beside the published numbers."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import numpy as np

from surefoot.domains.catalogue import make_domain
from surefoot.solvers.solver import solve
from surefoot.studies.cells import SETTINGS, Cell, Outcome, load, store
from surefoot.studies.published import (
    BASES,
    DELTAS,
    METHODS,
    NOMINAL,
    Method,
    normalised_loss,
    published_guarantee,
)
from surefoot.studies.running import run_data_set

SAMPLES, DRAWS = 20, 20
"""What the paper states."""
RIVERSWIM_SAMPLES = {"bayesian": 500, "frequentist": 590}
RIVERSWIM_DRAWS = 1000
"""What its RiverSwim numbers invert to."""

Progress = Callable[[int, str], None]


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to reproduce.

    Attributes
    ----------
    bases
        ``"bayesian"`` (table 1 and the rows B of the appendix), ``"frequentist"`` (table 2, rows
        H), or both.
    domains, deltas, settings
        Which of them.
    seeds
        How many data sets.
    samples, draws
        Per state-action pair, and posterior draws; None means what the published numbers fit
        (paper) and what the rules need (valid).

    Examples
    --------
    >>> len(list(Request(domains=("machine",), settings=("paper",), seeds=2).cells()))
    40
    """

    bases: tuple[str, ...] = BASES
    domains: tuple[str, ...] = tuple(NOMINAL)
    deltas: tuple[float, ...] = DELTAS
    settings: tuple[str, ...] = SETTINGS
    seeds: int = 5
    samples: int | None = None
    draws: int | None = None

    def __post_init__(self) -> None:
        for name, allowed in (("bases", BASES), ("domains", NOMINAL), ("settings", SETTINGS)):
            wrong = [given for given in getattr(self, name) if given not in allowed]
            if wrong:
                raise ValueError(f"{name}: {wrong[0]!r}; choose from {', '.join(allowed)}.")
        for delta in self.deltas:
            if not 0 < delta < 1:
                raise ValueError(f"delta={delta}; it must lie between 0 and 1.")
        for name in ("seeds", "samples", "draws"):
            number = getattr(self, name)
            if number is not None and not number >= 1:
                raise ValueError(f"{name}={number}; it must be a whole number, 1 or more.")

    def cells(self) -> Iterator[Cell]:
        """Yield every cell; those of one data set follow each other."""
        for domain in self.domains:
            for setting in self.settings:
                for basis in self.bases:
                    methods = [method for method in METHODS if method.basis == basis]
                    for seed in range(self.seeds):
                        for delta in self.deltas:
                            for method in methods:
                                yield self._cell(setting, domain, method, delta, seed)

    def _cell(self, setting: str, domain: str, method: Method, delta: float, seed: int) -> Cell:
        river, bayesian = domain == "riverswim", method.basis == "bayesian"
        samples = RIVERSWIM_SAMPLES[method.basis] if river else SAMPLES
        stated = RIVERSWIM_DRAWS if river else DRAWS
        draws = self.draws or (stated if setting == "paper" else 0)
        return Cell(
            setting=setting,
            domain=domain,
            method=method,
            delta=delta,
            samples=self.samples or samples,
            draws=draws if bayesian else 0,
            seed=seed,
        )


@dataclass(frozen=True, kw_only=True)
class Spread:
    """One cell of a table over its data sets."""

    mean: float
    sd: float
    data_sets: int


@dataclass(frozen=True, kw_only=True)
class Line:
    """One published number and ours.

    Attributes
    ----------
    domain, method, delta
        The place in the tables.
    nominal
        Optimum of our true model.
    published
        None where the paper has no number.
    ours
        By setting.
    certificate
        What a certificate promises for the policy found; None while there is none.
    """

    domain: str
    method: Method
    delta: float
    nominal: float
    published: float | None
    ours: dict[str, Spread]
    certificate: Spread | None = None

    def loss(self, column: str) -> float | None:
        """Return the normalised loss of a setting, or of ``"published"``."""
        if column == "published":
            found = self.published
            return None if found is None else normalised_loss(self.domain, found)
        spread = self.ours.get(column)
        return None if spread is None else normalised_loss(self.domain, spread.mean, self.nominal)


@dataclass(frozen=True, kw_only=True, eq=False)
class Reproduction:
    """All lines, the cells behind them, and the time each stage took.

    Attributes
    ----------
    request
        What was asked for.
    lines
        One per domain, method and delta.
    outcomes
        What was found in every cell.
    seconds
        By domain, setting and stage.
    """

    request: Request
    lines: list[Line]
    outcomes: dict[Cell, Outcome]
    seconds: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """Published and the settings."""
        return ("published", *self.request.settings)

    def improvement(self, column: str, basis: str, norms: Sequence[str]) -> float | None:
        """Return the geometric mean of loss(uniform) / loss(analytic) at the smallest delta."""
        delta = min(self.request.deltas)
        losses = {
            (line.domain, line.method): line.loss(column)
            for line in self.lines
            if line.delta == delta
        }
        logs = []
        for domain in self.request.domains:
            for norm in norms:
                uniform = losses.get((domain, Method(basis, norm, "uniform")))
                optimised = losses.get((domain, Method(basis, norm, "analytic")))
                if uniform is None or optimised is None or not min(uniform, optimised) > 0:
                    return None
                logs.append(math.log(uniform / optimised))
        return math.exp(sum(logs) / len(logs)) if logs else None


def reproduce(
    request: Request, cache: Path | None = None, progress: Progress | None = None
) -> Reproduction:
    """Compute every cell asked for, and compare with the published tables.

    Parameters
    ----------
    request
        What to compute.
    cache
        A folder with a file per cell: cells found there are not computed again. None keeps nothing.
    progress
        Called with the number of cells done and the name of the last one.

    Examples
    --------
    >>> found = reproduce(Request(domains=("machine",), settings=("paper",), bases=("bayesian",),
    ...                           deltas=(0.05,), seeds=2))
    >>> found.lines[0].published, -60 < found.lines[0].ours["paper"].mean < -30
    (-42.0, True)
    """
    outcomes: dict[Cell, Outcome] = {}
    for _, group in groupby(request.cells(), key=lambda cell: cell.data_set):
        missing = []
        for cell in group:
            kept = load(cache, cell) if cache is not None else None
            if kept is None:
                missing.append(cell)
            else:
                outcomes[cell] = kept
        for cell, outcome in run_data_set(missing) if missing else ():
            if cache is not None:
                store(cache, cell, outcome)
            outcomes[cell] = outcome
            if progress is not None:
                progress(len(outcomes), f"{cell.setting}, {cell.domain}, {cell.method.title}")
    return _summarise(request, outcomes)


def _summarise(request: Request, outcomes: dict[Cell, Outcome]) -> Reproduction:
    found: dict[tuple[str, float, Method], dict[str, list[float]]] = {}
    seconds: dict[tuple[str, str], dict[str, float]] = {}
    for cell, outcome in outcomes.items():
        place = found.setdefault((cell.domain, cell.delta, cell.method), {})
        place.setdefault(cell.setting, []).append(outcome.guarantee)
        stages = seconds.setdefault((cell.domain, cell.setting), {})
        for stage, spent in outcome.seconds.items():
            stages[stage] = stages.get(stage, 0.0) + spent
    nominal = {domain: nominal_return(domain) for domain in request.domains}
    lines = [
        Line(
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


def nominal_return(domain: str) -> float:
    """Return the optimum of a domain's true model.

    Examples
    --------
    >>> round(nominal_return("riverswim"), 2)
    63080.09
    """
    return solve(make_domain(domain).mdp).return_lower


def _spread(numbers: Sequence[float]) -> Spread:
    sd = float(np.std(numbers, ddof=1)) if len(numbers) > 1 else 0.0
    return Spread(mean=float(np.mean(numbers)), sd=sd, data_sets=len(numbers))
