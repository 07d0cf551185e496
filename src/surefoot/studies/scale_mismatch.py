"""What a mismatch of scales does: the published optimised columns, and the coverage behind them.

Budgets are computed with weights of 2-norm 1, taken from the value function over *all* states. The
*mismatched* sets are then solved with weights of 1. On RiverSwim this reproduces the published
optimised columns, Bayesian and frequentist, as far as the numbers tell (the code behind the tables
is not public), and gives sets that contain the model far less often than claimed. The *consistent*
sets keep the weights their budgets were computed with. The mismatched variant exists here only;
elsewhere in the package a set's weights are those its budget was computed with.

It does not explain every column: see ``misses``.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.calibration.concentration import norm_budget
from surefoot.calibration.weights import POWER
from surefoot.domains.catalogue import as_domain
from surefoot.domains.domain import Domain
from surefoot.model.mdp import MDP
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.solvers.solver import solve
from surefoot.studies.cells import TableCell
from surefoot.studies.data_set import largest_return
from surefoot.studies.paper_setting import distances, nominal_of_draws, paper_credible_budget
from surefoot.studies.published import BASES, DELTAS, METHODS, Method, published_guarantee
from surefoot.studies.request import usual_draws, usual_samples

Floats = NDArray[np.float64]

FRESH_DRAWS, FRESH_VALUES = 4000, 4_000_000
"""Draws on which the coverage of Bayesian sets is counted, and the most probabilities in them."""
TOLERANCE = 1e-8
"""Share of the largest possible return."""
FITS = 0.1
"""A mean counts as an explanation if it differs from the published number by at most this share."""


class Place(NamedTuple):
    """A column of the study; ``"mismatched"`` and ``"consistent"`` sets have optimised weights."""

    variant: str
    method: Method
    delta: float


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One variant of a published column over all data sets.

    Attributes
    ----------
    domain
        Its name.
    variant
        ``"uniform"``, ``"mismatched"`` or ``"consistent"``.
    method
        Basis, norm and weights of the published column.
    delta
        Failure probability of the sets.
    published
        What the paper prints for the column; None if it has no number.
    mean, sd
        Mean and standard deviation of the guaranteed return over the data sets.
    coverage
        Share of fresh posterior draws that lie in the sets of all rows (Bayesian), or of data sets
        whose sets contain the true model (frequentist); 1 - delta is claimed.
    data_sets
        Number of data sets.
    """

    domain: str
    variant: str
    method: Method
    delta: float
    published: float | None
    mean: float
    sd: float
    coverage: float
    data_sets: int

    @property
    def difference(self) -> float | None:
        """Difference between the mean and the published number, as a share of the latter."""
        if self.published is None:
            return None
        return (self.mean - self.published) / abs(self.published)

    @property
    def fits(self) -> bool | None:
        """Whether this variant may have produced the published number (of one data set).

        True if the mean differs by at most two standard deviations, or a tenth of that number.
        """
        if self.published is None or self.difference is None:
            return None
        allowed = 2 * self.sd * np.sqrt(1 + 1 / self.data_sets)
        near = abs(self.mean - self.published) <= allowed
        return bool(near or abs(self.difference) <= FITS)


Found = dict[Place, tuple[float, float]]
"""Guarantee and coverage of every column."""


def scale_mismatch(
    domain: str | Domain,
    seeds: int,
    *,
    samples: int | None = None,
    draws: int | None = None,
    fresh: int = FRESH_DRAWS,
    bases: Sequence[str] = BASES,
) -> list[Variant]:
    """Return every variant, method and delta over ``seeds`` data sets of a domain.

    ``samples`` and ``draws`` default to those that fit the published numbers.

    Examples
    --------
    >>> found = scale_mismatch("riverswim", 2, fresh=500, bases=["bayesian"])
    >>> {f.variant: f.coverage > 0.9 for f in found
    ...  if (f.delta, f.method.sets) == (0.05, "L-infinity B")}
    {'uniform': True, 'mismatched': False, 'consistent': True}
    """
    if not seeds >= 2:
        raise ValueError(f"seeds={seeds}; a standard deviation needs at least 2 data sets.")
    world = as_domain(domain)
    results: dict[Place, list[tuple[float, float]]] = {}
    for basis in bases:
        number = samples or usual_samples(world.name, basis)
        for seed in range(seeds):
            cell = TableCell(
                setting="paper", domain=world.name, method=Method(basis, "l1", "uniform"),
                delta=DELTAS[0], samples=number, draws=draws or usual_draws(world.name), seed=seed,
            )  # fmt: skip
            found = (
                _bayesian(world, cell, fresh) if basis == "bayesian" else _frequentist(world, cell)
            )
            for place, result in found.items():
                results.setdefault(place, []).append(result)
    return [_summary(world.name, place, np.array(all_)) for place, all_ in results.items()]


def _bayesian(domain: Domain, cell: TableCell, fresh: int) -> Found:
    """Return guarantee and coverage of every credible set on one data set.

    Data and draws are those of the reproduction's cells with the same seed.
    """
    posterior = DirichletPosterior(domain.simulate(cell.samples, cell.rng(0)), prior=domain.prior)
    rng = cell.rng(1)
    drawn = posterior.sample(cell.draws, rng)
    mdp = nominal_of_draws(drawn, domain.mdp)
    test = posterior.sample(max(1, min(fresh, FRESH_VALUES // mdp.num_entries)), rng)

    def budget(norm: str, weights: Floats | None, delta: float) -> Floats:
        sizing = None if weights is None else weights[mdp.successor]
        return paper_credible_budget(drawn, mdp, norm, sizing, delta)

    return _variants("bayesian", mdp, test, budget)


def _frequentist(domain: Domain, cell: TableCell) -> Found:
    """Return guarantee and coverage (0 or 1) of every Hoeffding set on one data set."""
    truth, samples = domain.mdp, cell.samples
    counts = domain.simulate(samples, cell.rng(0))
    mdp = replace(truth, probability=counts.count / samples)
    level = 1.0 / (truth.num_states * truth.num_actions)

    def budget(norm: str, weights: Floats | None, delta: float) -> Floats:
        sizing = np.ones(truth.num_states) if weights is None else weights
        size = norm_budget(f"hoeffding_{norm}", sizing, samples=samples, level=delta * level)
        return np.full(truth.num_rows, size)

    return _variants("frequentist", mdp, truth.probability[None], budget)


def _variants(
    basis: str, mdp: MDP, test: Floats, budget: Callable[[str, Floats | None, float], Floats]
) -> Found:
    over_states = solve(mdp).value
    tolerance = TOLERANCE * largest_return(mdp)
    found: Found = {}
    for method in (method for method in METHODS if method.basis == basis):
        norm, plain = method.norm, method.weights == "uniform"
        weights = None if plain else weights_over_states(over_states, norm, method.weights)
        for variant in ("uniform",) if plain else ("mismatched", "consistent"):
            keep = weights is not None and variant == "consistent"
            solving = weights[mdp.successor] if weights is not None and keep else None
            distance = distances(test, mdp, norm, solving)
            for delta in DELTAS:
                size = budget(norm, weights, delta)
                inside = (distance <= size).all(axis=1)
                built = AmbiguitySet(mdp=mdp, norm=norm, budget=size, weights=solving)
                guarantee = solve(mdp, built, tolerance=tolerance).return_lower
                found[Place(variant, method, delta)] = (guarantee, float(inside.mean()))
    return found


def weights_over_states(value: Floats, norm: str, weights: str = "analytic") -> Floats:
    """Return weights of 2-norm 1 over all states, reachable or not, from a value function.

    They grow with the distance from the midrange (L1) or the median (L-infinity); ``"socp"``
    weights with that from the mean.

    Examples
    --------
    >>> weights_over_states(np.array([0.0, 1.0, 4.0]), "l1").round(3).tolist()
    [0.667, 0.333, 0.667]
    """
    if weights == "socp":
        center = value.mean()
    else:
        center = (value.max() + value.min()) / 2 if norm == "l1" else np.median(value)
    raw = np.abs(value - center) ** POWER[norm]
    return np.asarray(raw / np.linalg.norm(raw))


def _summary(domain: str, place: Place, results: Floats) -> Variant:
    return Variant(
        domain=domain,
        variant=place.variant,
        method=place.method,
        delta=place.delta,
        published=published_guarantee(domain, place.method, place.delta),
        mean=float(results[:, 0].mean()),
        sd=float(results[:, 0].std(ddof=1)),
        coverage=float(results[:, 1].mean()),
        data_sets=len(results),
    )


def misses(found: Iterable[Variant]) -> list[Variant]:
    """Return the mismatched columns that do not reproduce the published number."""
    return [f for f in found if f.variant == "mismatched" and f.fits is False]
