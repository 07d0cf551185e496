"""Promises without a prior: the robust value of a set that contains the true model."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot._display import Shown
from surefoot._findings import Finding
from surefoot.ambiguity.confidence import Confidence
from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.calibration.frequentist import frequentist_set, split_counts
from surefoot.certificates import provenance
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.costs import as_rewards
from surefoot.data.counts import Counts
from surefoot.data.reward_uncertainty import uncertain_rewards
from surefoot.model.mdp import MDP
from surefoot.model.policies import as_given
from surefoot.solvers.evaluation.returns import usual_tolerance
from surefoot.solvers.solver import counted, evaluate, solve


def certify_frequentist(
    policy: ArrayLike, ambiguity: AmbiguitySet, mdp: MDP, *, objective: str = "max",
    horizon: int | None = None, final_reward: ArrayLike | None = None,
) -> Certificate:  # fmt: skip
    """Promise the robust value of a frequentist set: no prior, no posterior draws.

    With probability at least ``1 - delta`` over the data, the set contains the true model. Then the
    policy earns at least its worst case in the set, and no policy earns more than the best case.
    The kind of the set must have been fixed before the data (Clopper-Pearson boxes are the tightest
    on small rows). A set whose delta is shared over the rows of one policy says something about
    that policy only. Uncertain mean rewards are taken at the end of their interval that is worse
    for the claim.

    Parameters
    ----------
    policy
        ``(S,)`` action ids or ``(S, A)`` probabilities; with a horizon also a policy by step. It
        may have been chosen on the same data: the set holds for all rows at once.
    ambiguity
        From `frequentist_set`.
    mdp
        The model the set was made for.
    objective
        ``"max"`` for rewards, ``"min"`` for costs.
    horizon, final_reward
        As for `solve`: count at most this many steps.

    Examples
    --------
    >>> import numpy as np
    >>> from surefoot import certify_frequentist, frequentist_set, riverswim, solve
    >>> counts = riverswim().simulate(500, np.random.default_rng(0))
    >>> mdp = counts.to_mdp(discount=0.95)
    >>> box = frequentist_set(
    ...     counts, mdp, delta=0.05, kind="clopper_pearson", fixed_design=True
    ... )
    >>> certificate = certify_frequentist(solve(mdp, box).policy, box, mdp)
    >>> certificate.basis, certificate.lower_bound < certificate.nominal_return
    ('frequentist', True)
    """
    confidence = frequentist_confidence(ambiguity, objective)
    mdp = counted(mdp, horizon, final_reward)
    near = usual_tolerance(mdp)
    poor, rich = at_reward_ends(mdp, ambiguity, objective)
    worst = evaluate(poor, policy, ambiguity, tolerance=near)
    nominal = evaluate(as_rewards(mdp, objective), policy, tolerance=near)
    best = solve(rich, ambiguity, nature="best", tolerance=near)
    made = Certificate(
        lower_bound=worst.return_lower,
        upper_bound=best.return_upper,
        marginal_bound=None,
        scope="no policy",
        delta=confidence.delta,
        eta=0.0,
        draws=0,
        other_draws=0,
        seed="",
        basis="frequentist",
        prior=f"{confidence.kind} sets, delta shared over {_shared_over(confidence)}",
        objective="max",
        policy=as_given(mdp, policy),
        nominal_return=nominal.return_lower,
        robust_return=worst.return_lower,
        numerical_error=2 * worst.error_bound,
        data_fingerprint=confidence.seal,
        model_fingerprint=provenance.model_fingerprint(mdp),
        findings=(
            *provenance.assumed(confidence.support, declared=confidence.reward_law == "bounded"),
            *provenance.about_reward_law(confidence.reward_law),
            *confidence.findings,
        ),
        versions=provenance.versions(),
        horizon=mdp.horizon,
        discount=mdp.discount,
    )
    return made if objective == "max" else made.mirrored()


def frequentist_confidence(ambiguity: AmbiguitySet, objective: str) -> Confidence:
    """Return the confidence of a frequentist set; refuse a set that supports no such promise."""
    confidence = ambiguity.confidence
    if confidence is None or confidence.basis != "frequentist":
        found = "was made by hand" if confidence is None else "rests on a prior"
        raise ValueError(
            f"this set {found}; a frequentist certificate needs one from frequentist_set(...)."
        )
    provenance.check_costs(objective, filled_low=confidence.filled_low)
    return confidence


def at_reward_ends(mdp: MDP, ambiguity: AmbiguitySet, objective: str = "max") -> tuple[MDP, MDP]:
    """Return the model with mean rewards at the worse and at the better end of their intervals.

    Both are in rewards; costs (``"min"``) are negated.

    Examples
    --------
    >>> from surefoot.domains import riverswim
    >>> mdp = riverswim().mdp
    >>> ball = AmbiguitySet.from_arrays(mdp, norm="l1", budget=0.2)
    >>> low, high = at_reward_ends(mdp, ball)  # nothing is said about rewards
    >>> low is mdp, high is mdp
    (True, True)
    """
    if ambiguity.reward_lower is None or ambiguity.reward_upper is None:
        signed = as_rewards(mdp, objective)
        return signed, signed
    ends = [ambiguity.reward_lower, ambiguity.reward_upper]
    worse, better = (
        as_rewards(dataclasses.replace(mdp, reward=end, reward_per_entry=True), objective)
        for end in (ends if objective == "max" else reversed(ends))
    )
    return worse, better


def _shared_over(confidence: Confidence) -> str:
    return {"policy": "the policy's own rows"}.get(confidence.union, "all uncertain rows")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SplitResult(Shown):
    """A policy chosen on one part of the data, and its promise from the other part.

    Examples
    --------
    >>> from surefoot import certify_split, riverswim
    >>> counts = riverswim().simulate(500, np.random.default_rng(0))
    >>> result = certify_split(
    ...     counts, discount=0.95, delta=0.05, rng=np.random.default_rng(1), fixed_design=True
    ... )
    >>> result.ambiguity
    AmbiguitySet(box, 12 rows, frequentist, delta 0.05)
    """

    policy: NDArray[np.int64]
    certificate: Certificate
    ambiguity: AmbiguitySet

    def _headline(self) -> str:
        return self.certificate.sentence

    def _facts(self) -> list[tuple[str, str]]:
        return [("set on the second part", repr(self.ambiguity)), *self.certificate._facts()]

    def _remarks(self) -> tuple[Finding, ...]:
        return self.certificate._remarks()

    def __repr__(self) -> str:
        return f"SplitResult({self.certificate!r})"


def certify_split(
    counts: Counts,
    *,
    discount: float,
    delta: float,
    rng: np.random.Generator,
    kind: str = "clopper_pearson",
    share: float = 0.5,
    initial: ArrayLike | str = "uniform",
    fixed_design: bool = False,
) -> SplitResult:
    """Choose a policy on one part of the data and certify it on the other.

    The policy is the robust one on the first part. The set on the second part then needs to hold
    only for that policy's own rows, so that delta is shared over one row per state.

    Parameters
    ----------
    counts
        Counts with a declared support, or counts that will be put on the default support.
    discount, initial
        As for ``counts.to_mdp``.
    delta
        Failure probability of the promise.
    rng
        Assigns the transitions to the two parts.
    kind
        Kind of set, fixed before the data.
    share
        Share of the transitions on which the policy is chosen.
    fixed_design
        Whether the number of samples of every row was fixed beforehand.

    Examples
    --------
    >>> import numpy as np
    >>> from surefoot import certify_split, riverswim
    >>> counts = riverswim().simulate(500, np.random.default_rng(0))
    >>> result = certify_split(
    ...     counts, discount=0.95, delta=0.05, rng=np.random.default_rng(1), fixed_design=True
    ... )
    >>> result.policy.tolist(), result.certificate.basis
    ([1, 1, 1, 1, 1, 1], 'frequentist')
    """
    placed = counts.on_support()
    if uncertain_rewards(placed).any():
        raise ValueError(
            "mean rewards are uncertain in these counts, and this promise takes them as exact. "
            "Give a table of rewards, or read the log with rewards='fixed'."
        )
    choosing, sizing = split_counts(placed, rng, share=share)
    # Rewards are those of the whole log: this promise takes them as exact.
    first = choosing.to_mdp(discount=discount, initial=initial)
    second = sizing.to_mdp(discount=discount, initial=initial)
    scout = frequentist_set(choosing, first, delta=delta, kind=kind, fixed_design=fixed_design)
    policy = np.asarray(solve(first, scout).policy, dtype=np.int64)
    ambiguity = frequentist_set(
        sizing, second, delta=delta, kind=kind, fixed_design=fixed_design, policy=policy
    )
    certificate = certify_frequentist(policy, ambiguity, second)
    # The other rows are unconstrained, so the best case says nothing about other policies.
    certificate = dataclasses.replace(certificate, upper_bound=float("inf"))
    return SplitResult(policy=policy, certificate=certificate, ambiguity=ambiguity)
