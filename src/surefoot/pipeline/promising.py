"""From a model to a policy and its certificate."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot._rounding import chance_text, lower_text, near_text
from surefoot.certificates import planning, provenance
from surefoot.certificates.candidates import CLIMB_SHARES, ROBUST_SCALES, VAR_LEVELS
from surefoot.certificates.certificate import Certificate, conditions, percent
from surefoot.certificates.certifying import certify
from surefoot.certificates.comparison import Comparison, compare
from surefoot.certificates.frequentist import at_reward_ends, certify_frequentist
from surefoot.certificates.optimize import STARTS, optimize
from surefoot.certificates.verification import Verification, verify
from surefoot.model.mdp import MDP
from surefoot.model.policies import check_policy
from surefoot.pipeline.model import Model, frequentist
from surefoot.pipeline.robust import with_robust
from surefoot.pipeline.wording import in_cost_words
from surefoot.solvers.evaluation.rewards import rewards_of
from surefoot.solvers.solver import evaluate, solve

WEIGHTS = {"coordinate ascent": 3, "local search": 4}
"""What kinds of candidates cost, in candidates of the other kinds; about."""
SEARCH_STEPS = (
    1 + len(ROBUST_SCALES) + VAR_LEVELS + WEIGHTS["coordinate ascent"] * (2 + len(CLIMB_SHARES))
    + WEIGHTS["local search"] * STARTS
)  # fmt: skip
STEPS = SEARCH_STEPS + 6
"""Steps of a search with its certificate: enough to tell how far it is."""
COMPARED = 20_000
"""Most draws on which two policies are compared."""

EARLY = "the time budget ended the search; the promise holds, and a longer search may find more."
"""The note of a search that was stopped."""

Told = Callable[[int, str], None]


@dataclass(frozen=True, kw_only=True)
class CandidateLine:
    """A policy that was considered, as the report shows it."""

    name: str
    percentile: float
    nominal_return: float
    selected: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """A policy, what is promised about it, and what it was chosen from."""

    certificate: Certificate
    candidates: tuple[CandidateLine, ...]
    notes: tuple[str, ...] = ()

    @property
    def policy(self) -> NDArray[Any]:
        """The policy."""
        return self.certificate.policy


def streams(seed: int) -> list[np.random.Generator]:
    """Return independent generators: search and certificate, robust set, comparison, report."""
    return np.random.default_rng(seed).spawn(4)


def find(model: Model, told: Told) -> Found:
    """Find a policy and certify it."""
    if not model.bayesian:
        return _find_frequentist(model)
    settings = model.settings
    done = 0

    def progress(name: str, best: float) -> None:
        nonlocal done
        done += next((steps for kind, steps in WEIGHTS.items() if name.startswith(kind)), 1)
        sign = -1.0 if settings.costs else 1.0
        told(min(done, SEARCH_STEPS), f"best so far {sign * best:.6g} ({name})")

    result = optimize(
        model.posterior, model.mdp, delta=settings.delta, rng=streams(settings.seed)[0],
        time_budget=settings.time_budget, allowed=model.allowed, eta=settings.eta,
        draws=settings.draws, progress=progress,
    )  # fmt: skip
    lines = tuple(
        CandidateLine(
            name=c.name, percentile=c.percentile, nominal_return=c.nominal_return,
            selected=c.selected,
        )
        for c in result.candidates
    )  # fmt: skip
    return Found(
        certificate=result.certificate,
        candidates=lines,
        notes=(*result.notes, *((EARLY,) if result.stopped_early else ())),
    )


def _find_frequentist(model: Model) -> Found:
    center, ambiguity = frequentist(model)
    policy = solve(_discouraged(center, model.allowed), ambiguity).policy
    certificate = certify_frequentist(policy, ambiguity, center)
    line = CandidateLine(
        name=f"robust, {ambiguity.confidence.kind if ambiguity.confidence else 'set'}",
        percentile=certificate.lower_bound,
        nominal_return=certificate.nominal_return,
        selected=True,
    )
    return Found(certificate=certificate, candidates=(line,))


def _discouraged(mdp: MDP, allowed: NDArray[np.bool_] | None) -> MDP:
    """Return the model with pairs that are not allowed made so poor that nobody picks them."""
    if allowed is None:
        return mdp
    low, high = float(mdp.reward.min()), float(mdp.reward.max())
    floor = low - (high - low + 1.0) / (1.0 - mdp.discount)
    row = ~allowed[mdp.row_state, mdp.row_action]
    worse = row[mdp.entry_row] if mdp.reward_per_entry else row
    return replace(mdp, reward=np.where(worse, floor, mdp.reward))


def certify_policy(model: Model, policy: NDArray[Any]) -> Certificate:
    """Certify a policy that somebody brought, in the rewards of the model."""
    settings = model.settings
    if model.bayesian:
        made = certify(
            policy, model.posterior, model.mdp, delta=settings.delta, eta=settings.eta,
            draws=settings.draws, rng=streams(settings.seed)[0],
        )  # fmt: skip
        robust_rng = streams(settings.seed)[1]
        return with_robust(model, made, robust_rng) if policy.ndim == 1 else made
    center, ambiguity = frequentist(model)
    return certify_frequentist(policy, ambiguity, center)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How much better one policy is than another (for costs: cheaper), with confidence.

    ``left_out`` pairs of the log are missing in the model, and so in a policy read off the log.
    ``same``: the two do the same in every state, so that no model tells them apart.
    """

    lower_bound: float
    mean: float
    probability_better: float | None
    delta: float
    basis: str
    draws: int
    left_out: int = 0
    assumptions: tuple[str, ...] = ()
    same: bool = False

    @classmethod
    def from_mapping(cls, values: dict[str, Any]) -> "Difference":
        """Return a difference from what JSON kept of it."""
        return cls(**values | {"assumptions": tuple(values.get("assumptions", ()))})

    def sentence(self, *, subject: str, other: str, costs: bool) -> str:
        """Return the difference in one sentence."""
        if self.same:
            return f"There is no difference: {subject} does the same as {other}."
        given = conditions(self.basis, self.assumptions)
        if costs:
            given = given.replace(ASSUMED_REWARD, ASSUMED_COST)
        verb, gain, loss = ("costs", "less", "more") if costs else ("earns", "more", "less")
        bound = lower_text(self.lower_bound, 4)
        if self.lower_bound >= 0:
            claim = f"{subject} {verb} at least {bound} {gain} than {other}"
        else:
            claim = (
                f"{subject} {verb} at most {bound.removeprefix('-')} {loss} than {other}, and "
                f"perhaps {gain}"
            )
        tail = ""
        if self.probability_better is not None:
            way = gain if self.mean >= 0 else loss
            tail = (
                f" (on average {near_text(abs(self.mean), 4)} {way}, better with probability "
                f"{chance_text(self.probability_better)})"
            )
        return f"With {percent(self.delta)} confidence, {given}, {claim}{tail}."


def difference(model: Model, policy: NDArray[Any], other: NDArray[Any]) -> Difference:
    """Bound from below how much better a policy is than another one."""
    settings = model.settings
    if np.array_equal(_shares(model, policy), _shares(model, other)):
        return Difference(
            lower_bound=0.0, mean=0.0, probability_better=None, delta=settings.delta,
            basis=settings.basis, draws=0, same=True,
        )  # fmt: skip
    if model.bayesian:
        made: Comparison = compare(
            policy, other, model.posterior, model.mdp, delta=settings.delta, eta=settings.eta,
            draws=settings.draws or _compared(model, policy, other), rng=streams(settings.seed)[2],
        )  # fmt: skip
        return Difference(
            lower_bound=made.difference_lower_bound, mean=made.mean_difference,
            probability_better=made.probability_a_better, delta=settings.delta,
            basis="bayesian", draws=made.draws, assumptions=made.assumptions,
        )  # fmt: skip
    # Both hold at once, in every model of the set.
    center, ambiguity = frequentist(model)
    known = ambiguity.confidence
    assumed = () if known is None else provenance.assumed(known.support)
    low_rewards, high_rewards = at_reward_ends(center, ambiguity)
    low = evaluate(low_rewards, policy, ambiguity).return_lower
    high = evaluate(high_rewards, other, ambiguity, nature="best").return_upper
    nominal = evaluate(center, policy).return_lower - evaluate(center, other).return_lower
    return Difference(
        lower_bound=low - high, mean=nominal, probability_better=None, delta=settings.delta,
        basis="frequentist", draws=0, assumptions=provenance.of_difference(assumed),
    )  # fmt: skip


def _shares(model: Model, policy: NDArray[Any]) -> NDArray[Any]:
    """Return ``(S, A)``: how often a policy takes each action."""
    if policy.ndim == 2:
        return policy
    return np.asarray(np.eye(model.mdp.num_actions)[policy])


def _compared(model: Model, *policies: NDArray[Any]) -> int:
    """Return on how many draws to compare policies: fewer where they would take minutes."""
    settings, mdp = model.settings, model.mdp
    rewards = rewards_of(mdp, model.posterior, objective="max")
    work = sum(planning.policy_work(mdp, rewards, check_policy(mdp, one)) for one in policies)
    least = planning.least_draws(settings.delta, settings.eta, work)
    return planning.affordable_draws(work, least, COMPARED)


ASSUMED_REWARD, ASSUMED_COST = "the lowest reward seen", "the highest cost seen"


def in_costs(certificate: Certificate) -> Certificate:
    """Return a certificate about rewards as one about costs, and the other way round."""
    old, new = ASSUMED_REWARD, ASSUMED_COST
    if certificate.objective == "min":
        old, new = new, old

    def minus(value: float | None) -> float | None:
        return None if value is None else 0.0 - value

    return replace(
        certificate,
        lower_bound=0.0 - certificate.upper_bound,
        upper_bound=0.0 - certificate.lower_bound,
        marginal_bound=minus(certificate.marginal_bound),
        nominal_return=0.0 - certificate.nominal_return,
        robust_return=minus(certificate.robust_return),
        objective="min" if certificate.objective == "max" else "max",
        assumptions=tuple(text.replace(old, new) for text in certificate.assumptions),
        warnings=tuple(map(in_cost_words, certificate.warnings)),
    )


def check_again(
    model: Model, certificate: Certificate, rng: np.random.Generator | None = None
) -> Verification:
    """Check a certificate of this model on new draws, or by computing its worst case again."""
    shown = in_costs(certificate) if certificate.objective == "min" else certificate
    if certificate.objective != ("min" if model.settings.costs else "max"):
        return falls("it speaks of costs where the run has rewards, or the other way round.")
    if certificate.basis != model.settings.basis or certificate.delta != model.settings.delta:
        return falls("basis or delta differ from those of the run's configuration.")
    if certificate.basis == "bayesian":
        return verify(shown, model.posterior, model.mdp, rng=rng)
    center, ambiguity = frequentist(model)
    again = certify_frequentist(shown.policy, ambiguity, center)
    for what in ("data_fingerprint", "model_fingerprint"):
        if getattr(again, what) != getattr(shown, what):
            return falls(f"it was made for another {what.removesuffix('_fingerprint')}.")
    # The worst case lies below the upper end of its bracket: a higher promise is wrong.
    low_rewards = at_reward_ends(center, ambiguity)[0]
    worst = evaluate(low_rewards, shown.policy, ambiguity).return_upper
    if not shown.lower_bound <= worst:
        return falls(f"the worst case of the set is {worst:.9g}, below the promise.")
    return Verification(
        stands=True,
        message="The certificate stands: the worst case of the set was computed again.",
        below=0,
        draws=0,
        p_value=1.0,
    )


def falls(why: str) -> Verification:
    """Return the verdict that a certificate does not stand."""
    return Verification(
        stands=False,
        message=f"The certificate does not stand: {why}",
        below=0,
        draws=0,
        p_value=0.0,
    )
