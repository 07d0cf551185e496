"""Posteriors for the tables, by name: how the counts of a domain become a posterior."""

from collections.abc import Callable

import numpy as np

from surefoot.data.counts import Counts
from surefoot.domains.domain import Domain
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.posterior.growth import fit_population
from surefoot.posterior.pooled import fit_pooled
from surefoot.posterior.protocol import Posterior

StudyFit = Callable[[Counts, Domain, np.random.Generator], Posterior]
"""Makes a posterior on a domain's rows from counts, the domain and a generator."""


def fit_dirichlet(counts: Counts, domain: Domain, _: np.random.Generator) -> Posterior:
    """Return independent Dirichlet rows with the domain's prior on every successor."""
    return DirichletPosterior(counts, prior=domain.prior)


def _pooled(counts: Counts, _: Domain, rng: np.random.Generator) -> Posterior:
    return fit_pooled(counts, rng=rng, progress=False)


def _growth(counts: Counts, _: Domain, rng: np.random.Generator) -> Posterior:
    return fit_population(counts, rng=rng, progress=False)


DIRICHLET, OWN = "dirichlet", "own"
POSTERIORS: dict[str, StudyFit] = {DIRICHLET: fit_dirichlet, "pooled": _pooled, "growth": _growth}
"""Dirichlet rows; rows pooled within each action; the growth model of the population domain."""
