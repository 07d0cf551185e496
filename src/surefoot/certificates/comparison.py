"""Comparing two policies in the same models: a lower bound on their difference."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import beta

from surefoot._cluster_argument import on_cluster
from surefoot._display import Shown
from surefoot._findings import Finding, WithFindings
from surefoot._order_statistics import lower_rank
from surefoot._rounding import lower_text, near_text
from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.certificates import draw_plan, provenance, sentences
from surefoot.certificates.certification import check_levels
from surefoot.certificates.costs import as_rewards
from surefoot.certificates.frequentist import at_reward_ends, frequentist_confidence
from surefoot.certificates.json_fields import to_plain
from surefoot.model.mdp import MDP
from surefoot.model.policies import as_step_policy, check_policy, row_shares
from surefoot.model.step_policy import StepPolicy
from surefoot.posterior.protocol import Posterior, stream_key
from surefoot.solvers.evaluation.missed_losses import missed_by_luck, missed_losses
from surefoot.solvers.evaluation.returns import policy_returns
from surefoot.solvers.evaluation.rewards import rewards_of
from surefoot.solvers.evaluation.visits import plays_of_rows
from surefoot.solvers.gpu.choice import choose_engine
from surefoot.solvers.solver import counted, evaluate


@dataclass(frozen=True, kw_only=True, repr=False)
class Comparison(WithFindings, Shown):
    """How much better policy a is than policy b (for costs: cheaper) in the same models.

    Attributes
    ----------
    probability_a_better
        Share of draws in which a is better, after numerical error and luck; None without draws.
    probability_lower_bound
        A lower bound on that posterior probability, at certainty ``1 - eta``; None without draws.
    difference_lower_bound
        a is better by this much, except with probability ``delta``.
    mean_difference
        The average difference over the draws; without draws, the difference in the nominal model.
    delta, eta, draws, seed, basis, objective, unit
        As in a certificate.
    findings
        What the bound assumes, and the checks of the log that failed.
    a, b
        The names of the two policies.
    same
        Whether both do the same in every state, so that their returns are equal in every model.

    Examples
    --------
    >>> Comparison(
    ...     probability_a_better=0.998, probability_lower_bound=0.996, mean_difference=13.891,
    ...     difference_lower_bound=7.029422, delta=0.05, eta=0.001, draws=2000, seed="0",
    ... )
    Comparison(a better by at least 7.029, delta 0.05, eta 0.001, 2,000 draws)
    """

    probability_a_better: float | None
    probability_lower_bound: float | None
    difference_lower_bound: float
    mean_difference: float
    delta: float
    eta: float
    draws: int
    seed: str
    basis: str = "bayesian"
    objective: str = "max"
    unit: str | None = None
    findings: tuple[Finding, ...] = ()
    a: str = "policy a"
    b: str = "policy b"
    same: bool = False

    @property
    def sentence(self) -> str:
        """The comparison in one sentence."""
        if self.same:
            return sentences.no_difference(self.a, self.b)
        claim = sentences.difference(
            self.difference_lower_bound, a=self.a, b=self.b, objective=self.objective,
            unit=self.unit, mean=self.mean_difference, chance=self.probability_a_better,
        )  # fmt: skip
        said = sentences.surely(self.delta, self.basis, self.findings, claim)
        return sentences.not_certified(self.failures, said) if self.withheld else said

    def mirrored(self) -> Comparison:
        """Convert a comparison of rewards into one of costs, or back; "better" is unchanged."""
        turned = tuple(found.mirrored() for found in self.findings)
        other = "min" if self.objective == "max" else "max"
        return replace(self, objective=other, findings=turned)

    def to_mapping(self) -> dict[str, Any]:
        """Return all fields as plain values, with the sentence and version 0.1's field names."""
        return {
            **to_plain(self),
            "lower_bound": self.difference_lower_bound,
            "mean": self.mean_difference,
            "probability_better": self.probability_a_better,
            "assumptions": list(self.assumptions),
            "withheld": self.withheld,
            "sentence": self.sentence,
        }

    _pictured = True

    def _headline(self) -> str:
        return self.sentence

    def _facts(self) -> list[tuple[str, str]]:
        facts = [("difference on average", near_text(self.mean_difference, 4))]
        if self.probability_a_better is None or self.probability_lower_bound is None:
            return facts
        surely = lower_text(self.probability_lower_bound, 4)
        return [
            *facts,
            ("probability that a is better", f"{self.probability_a_better:.3f}, surely {surely}"),
            ("posterior draws", f"{self.draws:,}, the same models for both"),
        ]

    def __repr__(self) -> str:
        bound = lower_text(self.difference_lower_bound, 4)
        made = f"eta {self.eta:g}, {self.draws:,} draws" if self.draws else self.basis
        return f"Comparison(a better by at least {bound}, delta {self.delta:g}, {made})"


@on_cluster
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
    mdp_b: MDP | None = None,
    luck: float = 0.0,
    horizon: int | None = None,
    final_reward: ArrayLike | None = None,
    cluster: str | None = None,  # noqa: ARG001
    device: str = "auto",
) -> Comparison:
    """Compare two fixed policies on the same posterior draws.

    Where the unseen is taken at its worst, one policy may meet it more often than the other, and
    that penalty would count as an advantage of the other policy. ``mdp_b`` is the same model with
    the unseen at its best, for the second policy. ``luck`` is subtracted from the difference in
    every draw: how much the first policy is flattered by having been chosen on the same data.
    ``horizon`` and ``final_reward`` are those of `solve`, ``cluster`` and ``device`` those of
    `certify`.

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
    mdp = counted(mdp, horizon, final_reward)
    mdp_b = None if mdp_b is None else counted(mdp_b, horizon, final_reward)
    posterior.check_matches(mdp)
    if same_policy(mdp, policy_a, policy_b):
        return _no_difference(delta, "bayesian", objective, chance=0.0)
    available = posterior.num_draws
    n = draw_plan.check_draws(posterior, min(draws, available or draws), delta, eta)
    rewards = rewards_of(mdp, posterior, objective=objective)
    # Equal generators give equal draws of every row: both policies are evaluated in equal models.
    twin = deepcopy(rng)
    engine, on_device = choose_engine(device, mdp, posterior)
    play_a = check_policy(mdp, policy_a)
    a = policy_returns(posterior, mdp, play_a, n, rng, rewards=rewards, engine=engine, missed=False)
    kind = mdp if mdp_b is None else mdp_b
    play_b = check_policy(kind, policy_b)
    paid = rewards if mdp_b is None else rewards_of(mdp_b, posterior, objective=objective)
    b = policy_returns(posterior, kind, play_b, n, twin, rewards=paid, engine=engine, missed=False)
    gap = a.lower - b.upper
    if rewards.may_have_missed:
        more = plays_of_rows(mdp, play_a) - plays_of_rows(kind, play_b)
        losses = missed_losses(mdp, more, rewards.of_one_policy)
        missed = losses.total(missed_by_luck(stream_key(rng.spawn(1)[0]), n))
        gap = np.nextafter(gap - missed, -np.inf)
    at_least = np.sort(gap) - luck
    better = int(np.count_nonzero(at_least > 0))
    made = Comparison(
        probability_a_better=better / n,
        probability_lower_bound=float(beta.ppf(eta, better, n - better + 1)) if better else 0.0,
        difference_lower_bound=float(at_least[lower_rank(n, delta, eta) - 1]),
        mean_difference=float(np.mean((a.lower + a.upper - b.lower - b.upper) / 2)),
        delta=delta,
        eta=eta,
        draws=n,
        seed=provenance.seed_of(rng),
        findings=(
            *provenance.of_difference(
                provenance.findings_of(posterior, mdp), both_ways=mdp_b is not None
            ),
            *on_device,
        ),
    )
    return made if objective == "max" else made.mirrored()


def compare_frequentist(
    policy_a: ArrayLike,
    policy_b: ArrayLike,
    ambiguity: AmbiguitySet,
    mdp: MDP,
    *,
    objective: str = "max",
    horizon: int | None = None,
    final_reward: ArrayLike | None = None,
) -> Comparison:
    """Compare two policies without a prior: the worst case of a minus the best case of b.

    Both bounds hold in every model of the set.

    Examples
    --------
    >>> from surefoot import frequentist_set, riverswim
    >>> counts = riverswim().simulate(500, np.random.default_rng(0))
    >>> mdp = counts.to_mdp(discount=0.95)
    >>> box = frequentist_set(counts, mdp, delta=0.05, kind="clopper_pearson")
    >>> right, left = np.ones(6, dtype=int), np.zeros(6, dtype=int)
    >>> compare_frequentist(right, left, box, mdp).difference_lower_bound > 0
    True
    """
    confidence = frequentist_confidence(ambiguity, objective)
    mdp = counted(mdp, horizon, final_reward)
    if same_policy(mdp, policy_a, policy_b):
        return _no_difference(confidence.delta, "frequentist", objective, chance=None)
    worse, better = at_reward_ends(mdp, ambiguity, objective)
    low = evaluate(worse, policy_a, ambiguity).return_lower
    high = evaluate(better, policy_b, ambiguity, nature="best").return_upper
    nominal = as_rewards(mdp, objective)
    assumed = (
        *provenance.assumed(confidence.support, declared=confidence.reward_law == "bounded"),
        *provenance.about_reward_law(confidence.reward_law),
    )
    made = Comparison(
        probability_a_better=None,
        probability_lower_bound=None,
        difference_lower_bound=low - high,
        mean_difference=evaluate(nominal, policy_a).return_lower
        - evaluate(nominal, policy_b).return_lower,
        delta=confidence.delta,
        eta=0.0,
        draws=0,
        seed="",
        basis="frequentist",
        findings=provenance.of_difference(assumed),
    )
    return made if objective == "max" else made.mirrored()


def same_policy(mdp: MDP, policy_a: ArrayLike, policy_b: ArrayLike) -> bool:
    """Return whether two policies do the same in every state, randomised or not.

    Examples
    --------
    >>> from surefoot import riverswim
    >>> same_policy(riverswim().mdp, [0] * 6, np.eye(2)[[0] * 6])
    True
    """
    steps = [as_step_policy(mdp, policy) for policy in (policy_a, policy_b)]
    if mdp.horizon is not None and any(one is not None for one in steps):
        ranges = [_ranges(mdp, policy) for policy in (policy_a, policy_b)]
        return ranges[0] is not None and ranges[0] == ranges[1]
    return np.array_equal(row_shares(mdp, policy_a), row_shares(mdp, policy_b))


def _ranges(mdp: MDP, policy: Any) -> tuple[bytes, bytes] | None:
    """Return a key that is equal for equal policies by step only; None for a randomised policy."""
    found = as_step_policy(mdp, policy)
    if found is None:
        given = np.asarray(policy)
        if given.ndim != 1:
            return None
        found = StepPolicy.constant(mdp.horizon or 1, given)
    return found.first_step.tobytes(), found.action.tobytes()


def _no_difference(delta: float, basis: str, objective: str, chance: float | None) -> Comparison:
    return Comparison(
        probability_a_better=chance,
        probability_lower_bound=chance,
        difference_lower_bound=0.0,
        mean_difference=0.0,
        delta=delta,
        eta=0.0,
        draws=0,
        seed="",
        basis=basis,
        objective=objective,
        same=True,
    )
