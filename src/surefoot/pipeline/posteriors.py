"""The posterior behind a run: learned, Dirichlet, or one that the user passes from Python."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot._findings import Finding
from surefoot.certificates.models import split_draws
from surefoot.data.counts import Counts
from surefoot.model.mdp import MDP
from surefoot.pipeline.settings import Settings
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.posterior.learned import LearnedPosterior
from surefoot.posterior.protocol import Posterior, check_posterior

Fit = Callable[[Counts], Posterior]
"""A function from the counts of a run, on all possible successors, to a posterior."""
Own = Posterior | Fit
"""What ``run(posterior=...)`` takes."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Fitted:
    """The posterior of a model, in two halves if it has finitely many draws.

    Attributes
    ----------
    choosing
        The posterior that policies are chosen on.
    certifying
        The posterior that promises rest on: the same, or the other half of its draws.
    """

    choosing: Posterior
    certifying: Posterior

    @classmethod
    def of(cls, posterior: Posterior, mdp: MDP, seed: int) -> "Fitted":
        """Split a posterior of finitely many draws; the split depends on the seed alone."""
        rng = np.random.default_rng([seed, 2])
        choosing, certifying = split_draws(posterior, mdp, rng)
        return cls(choosing=choosing, certifying=certifying)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """How the draws were split, if they were."""
        one, other = self.choosing.num_draws, self.certifying.num_draws
        if one is None or other is None:
            return ()
        return (Finding.of("draws_split", draws=one + other, choosing=one, certifying=other),)


def is_fit(own: Own) -> bool:
    """Return whether ``own`` is a class or function that makes a posterior from counts."""
    return isinstance(own, type) or (callable(own) and not hasattr(own, "sample"))


def can_refit(own: Own | None) -> bool:
    """Return whether a posterior of other counts can be made in the same way."""
    return own is None or is_fit(own)


def check_own(settings: Settings, own: Own | None) -> None:
    """Refuse a posterior that no run could use, before a long log is read."""
    if own is None:
        return
    if settings.basis != "bayesian":
        raise ValueError(
            f"posterior= goes with basis='bayesian'; basis={settings.basis!r} uses no posterior."
        )
    if settings.prior is not None:
        raise ValueError(
            f"prior={settings.prior:g} belongs to the built-in posterior, and posterior= replaces "
            "it. Leave one of them out."
        )
    if is_fit(own):
        return
    check_posterior(own)  # type: ignore[arg-type]
    if settings.honest:
        raise ValueError(
            "honest=True fits a posterior to each part of the log. Pass posterior= a function from "
            "counts to a posterior, not one posterior."
        )


def name_of_own(own: Own) -> str:
    """Return the qualified name of the function or class that made a posterior.

    Examples
    --------
    >>> name_of_own(LearnedPosterior)
    'surefoot.posterior.learned.LearnedPosterior'
    """
    named: Any = own if hasattr(own, "__qualname__") else type(own)
    return f"{named.__module__}.{named.__qualname__}"


def fit(settings: Settings, placed: Counts, own: Own | None) -> Posterior:
    """Return the posterior of counts that are placed on all possible successors."""
    if own is None:
        prior = settings.prior
        return LearnedPosterior(placed) if prior is None else DirichletPosterior(placed, prior)
    if not is_fit(own):
        return own  # type: ignore[return-value]
    return check_posterior(own(placed))  # type: ignore[operator]
