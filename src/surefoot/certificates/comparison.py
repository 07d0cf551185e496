"""Two policies on the same draws: what the difference may be promised to be."""

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import beta

from surefoot._display import Shown
from surefoot._order_statistics import lower_rank
from surefoot._rounding import chance_text, lower_text, near_text
from surefoot.certificates import planning, provenance
from surefoot.certificates.certificate import conditions, percent
from surefoot.certificates.certifying import check_levels
from surefoot.model.mdp import MDP
from surefoot.model.policies import check_policy
from surefoot.posterior.protocol import Posterior
from surefoot.solvers.evaluation.returns import policy_returns
from surefoot.solvers.evaluation.rewards import rewards_of


@dataclass(frozen=True, kw_only=True, repr=False)
class Comparison(Shown):
    """How much better policy a is than policy b (for costs: cheaper), paired draw by draw.

    Attributes
    ----------
    probability_a_better
        Share of draws in which a is better.
    probability_lower_bound
        A lower bound on that posterior probability, at certainty ``1 - eta``.
    difference_lower_bound
        With probability at least ``1 - delta`` a is better by this much.
    mean_difference
        The average over the draws.
    delta, eta, draws, seed, assumptions
        As in a certificate.

    Examples
    --------
    >>> Comparison(
    ...     probability_a_better=0.998, probability_lower_bound=0.996, mean_difference=13.891,
    ...     difference_lower_bound=7.029422, delta=0.05, eta=0.001, draws=2000, seed="0",
    ... )
    Comparison(a better by at least 7.029, delta 0.05, eta 0.001, 2,000 draws)
    """

    probability_a_better: float
    probability_lower_bound: float
    difference_lower_bound: float
    mean_difference: float
    delta: float
    eta: float
    draws: int
    seed: str
    assumptions: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The comparison in one sentence."""
        bound = lower_text(self.difference_lower_bound, 4)
        claim = f"better than policy b by at least {bound}"
        if self.difference_lower_bound < 0:
            claim = f"worse than policy b by at most {bound.removeprefix('-')}, and perhaps better"
        given = conditions("bayesian", self.assumptions)
        return (
            f"With {percent(self.delta)} confidence, {given}, policy a is {claim}; it is better "
            f"with probability {chance_text(self.probability_a_better)}."
        )

    def _headline(self) -> str:
        return self.sentence

    def _facts(self) -> list[tuple[str, str]]:
        surely = lower_text(self.probability_lower_bound, 4)
        return [
            ("difference on average", near_text(self.mean_difference, 4)),
            ("probability that a is better", f"{self.probability_a_better:.3f}, surely {surely}"),
            ("posterior draws", f"{self.draws:,}, the same models for both"),
        ]

    def __repr__(self) -> str:
        bound = lower_text(self.difference_lower_bound, 4)
        return (
            f"Comparison(a better by at least {bound}, delta {self.delta:g}, eta {self.eta:g}, "
            f"{self.draws:,} draws)"
        )


def compare(
    policy_a: ArrayLike,
    policy_b: ArrayLike,
    posterior: Posterior,
    mdp: MDP,
    *,
    delta: float = 0.05,
    eta: float = 0.001,
    draws: int = 20_000,
    rng: np.random.Generator,
    objective: str = "max",
) -> Comparison:
    """Compare two fixed policies on the same posterior draws.

    Examples
    --------
    >>> import numpy as np
    >>> from surefoot import DirichletPosterior, compare, riverswim
    >>> counts = riverswim().simulate(50, np.random.default_rng(0))
    >>> mdp, posterior = counts.to_mdp(discount=0.99, prior=1.0), DirichletPosterior(counts)
    >>> right, left = np.ones(6, dtype=int), np.zeros(6, dtype=int)
    >>> result = compare(right, left, posterior, mdp, draws=500, rng=np.random.default_rng(1))
    >>> result.probability_a_better, result.difference_lower_bound > 0
    (1.0, True)
    """
    delta, eta = check_levels(delta, eta)
    provenance.check_objective(posterior, objective)
    posterior.check_matches(mdp)
    available = posterior.num_draws
    n = planning.check_draws(posterior, min(draws, available or draws), delta, eta)
    rewards = rewards_of(mdp, posterior, objective=objective)
    # Equal generators give equal draws of every row, so the two policies meet the same models.
    twin = deepcopy(rng)
    a = policy_returns(posterior, mdp, check_policy(mdp, policy_a), n, rng, rewards=rewards)
    b = policy_returns(posterior, mdp, check_policy(mdp, policy_b), n, twin, rewards=rewards)
    at_least = np.sort(a.lower - b.upper)
    better = int(np.count_nonzero(at_least > 0))
    return Comparison(
        probability_a_better=better / n,
        probability_lower_bound=float(beta.ppf(eta, better, n - better + 1)) if better else 0.0,
        difference_lower_bound=float(at_least[lower_rank(n, delta, eta) - 1]),
        mean_difference=float(np.mean((a.lower + a.upper - b.lower - b.upper) / 2)),
        delta=delta,
        eta=eta,
        draws=n,
        seed=provenance.seed_of(rng),
        assumptions=provenance.of_difference(provenance.assumptions_of(posterior, mdp)[0]),
    )
