"""From a model to a policy and its certificate."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from surefoot._findings import Finding
from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.certificates import draw_plan
from surefoot.certificates.by_step import endless, usual_rule
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.certification import certify
from surefoot.certificates.comparison import Comparison, compare, compare_frequentist
from surefoot.certificates.curse import curse_of_choosing, curse_of_preferring
from surefoot.certificates.evidence import Curse
from surefoot.certificates.frequentist import at_reward_ends, certify_frequentist
from surefoot.certificates.halves import LogBuckets
from surefoot.certificates.optimize import Result, certified_at, optimize
from surefoot.certificates.search import Candidate, OnCandidate
from surefoot.certificates.usual import chosen_at
from surefoot.certificates.verification import Verification, verify
from surefoot.data.buckets import deal
from surefoot.data.counts import Counts
from surefoot.model.mdp import MDP
from surefoot.model.policies import AnyPolicy, check_policy
from surefoot.model.step_policy import StepPolicy
from surefoot.pipeline.deductions import for_first_state, past, weigh, weigh_split
from surefoot.pipeline.first_state import first_state_doubt_between
from surefoot.pipeline.honest import find_honestly
from surefoot.pipeline.journal import OnStep
from surefoot.pipeline.model import Model, build_model, frequentist
from surefoot.pipeline.parts import LogParts, log_of
from surefoot.pipeline.practice import practice_without_prior
from surefoot.pipeline.robust import with_robust
from surefoot.pipeline.settings import Settings
from surefoot.posterior.protocol import at_most
from surefoot.solvers.evaluation.rewards import rewards_of
from surefoot.solvers.solver import evaluate, solve
from surefoot.solvers.steps import counted_steps
from surefoot.solvers.unseen import lead_to_best

NO_PARTS = LogParts(buckets=None)
"""A log that is not divided."""
COMPARED = 20_000
"""Most draws on which two policies are compared."""


def streams(seed: int) -> list[np.random.Generator]:
    """Return independent generators: search, robust set, comparison, report, the log's own word."""
    return np.random.default_rng(seed).spawn(5)


def find(
    model: Model, parts: LogParts, told: OnStep, counts: Counts | None = None, *,
    in_full: bool = True, searched: Result | None = None,
) -> Result:  # fmt: skip
    """Find a policy and certify it; the result is in costs where costs were given.

    What the log itself says against the promise (``parts``) is taken off or said. With the setting
    ``honest``, ``model`` is that of the certifying part and ``counts`` the whole log. ``in_full``
    is that of `weigh`. ``searched``: what was found at another delta, for which policies are chosen
    alike (`chosen_at`), so that the search need not be repeated.
    """
    if not model.bayesian:
        return _shown(model, _find_frequentist(model, parts))
    settings = model.settings
    progress = _progress(settings, told)
    if settings.honest:
        if parts.buckets is None or counts is None:
            raise ValueError("honest=True needs a log of whole transitions, to divide it.")
        result = find_honestly(
            model, counts, parts, parts.buckets, progress, streams(settings.seed)
        )
        weighed = weigh_split(
            model, build_model(settings, counts, own=model.own), parts, result.certificate,
            streams(settings.seed)[4],
        )  # fmt: skip
    else:
        result = _found_at(model, searched) if searched else _searched(model, progress)
        weighed = weigh(
            model, parts, result.certificate, streams(settings.seed)[4], in_full=in_full
        )
    weighed = weighed.adding(*model.findings, *_left_out(model))
    return _shown(model, replace(result, certificate=weighed))


def _searched(model: Model, progress: OnCandidate) -> Result:
    settings = model.settings
    return optimize(
        model.choosing, model.mdp, delta=settings.delta, rng=streams(settings.seed)[0],
        time_budget=settings.time_budget, steps=settings.search_steps, allowed=model.allowed,
        considered=model.considered, eta=settings.eta, draws=settings.draws, progress=progress,
        holdout=model.posterior, stationary=settings.one_rule, keep_usual=True,
        device=settings.device, choose_delta=chosen_at(settings.delta),
        limit_effort=settings.limit_effort,
    )  # fmt: skip


def _found_at(model: Model, searched: Result) -> Result:
    """Return what was found at another delta, certified at the model's own."""
    settings = model.settings
    return certified_at(
        model.shown(searched), model.mdp, delta=settings.delta, rng=streams(settings.seed)[0],
        eta=settings.eta, draws=settings.draws, allowed=model.allowed, device=settings.device,
        limit_effort=settings.limit_effort,
    )  # fmt: skip


def _left_out(model: Model) -> list[Finding]:
    """Return how many pairs were tried too seldom to be chosen."""
    if model.considered is None or model.considered is model.allowed:
        return []
    offered = model.mdp.available if model.allowed is None else model.allowed
    pairs = int((offered & model.mdp.available & ~model.considered).sum())
    return [Finding.of("hardly_tried", pairs=pairs, tries=model.settings.least_tries)]


def _progress(settings: Settings, told: OnStep) -> OnCandidate:
    done = 0

    def progress(name: str, best: float) -> None:
        nonlocal done
        done += 1
        sign = -1.0 if settings.costs else 1.0
        told(done, f"best so far {sign * best:.6g} ({name})")

    return progress


def _shown(model: Model, result: Result) -> Result:
    """Return a result in the units of the log."""
    turned = model.shown(result)
    return replace(turned, certificate=_named(model, turned.certificate))


def _named(model: Model, certificate: Certificate) -> Certificate:
    """Return a certificate that says what it is measured in and where the first state is from."""
    made = replace(certificate, unit=model.settings.unit, starts=model.starts)
    return made.adding(*_kept_apart(model))


def _kept_apart(model: Model) -> list[Finding]:
    return [Finding.of("rows_by_step")] if model.settings.by_step else []


def _find_frequentist(model: Model, parts: LogParts) -> Result:
    center, ambiguity = frequentist(model)
    policy = _robust_policy(model, _discouraged(center, model.allowed), ambiguity)
    certificate = certify_frequentist(policy, ambiguity, center).adding(*past(model, parts))
    certificate = practice_without_prior(model, parts, certificate, center, ambiguity)
    candidate = Candidate(
        name=f"robust, {ambiguity.confidence.kind if ambiguity.confidence else 'set'}",
        percentile=certificate.lower_bound,
        nominal_return=certificate.nominal_return,
        selected=True,
        policy=certificate.policy,
    )
    return Result(certificate=certificate, candidates=(candidate,), selection_draws=0)


def _robust_policy(model: Model, mdp: MDP, ambiguity: AmbiguitySet) -> AnyPolicy:
    """Return the robust policy; of one rule for all steps, the best of three."""
    policy = solve(mdp, ambiguity).policy
    if not (model.settings.one_rule and isinstance(policy, StepPolicy)):
        return policy
    rules = [policy.actions_at(0), usual_rule(mdp, policy), solve(endless(mdp), ambiguity).policy]
    return max(rules, key=lambda rule: evaluate(mdp, rule, ambiguity).return_lower)


def _discouraged(mdp: MDP, allowed: NDArray[np.bool_] | None) -> MDP:
    """Return the model with pairs that are not allowed made so poor that nobody picks them."""
    if allowed is None:
        return mdp
    low, high = float(mdp.reward.min()), float(mdp.reward.max())
    final = 0.0 if mdp.final_reward is None else float(np.ptp(mdp.final_reward))
    floor = low - (high - low + 1.0) * counted_steps(mdp) - final
    row = ~allowed[mdp.row_state, mdp.row_action]
    worse = row[mdp.entry_row] if mdp.reward_per_entry else row
    return replace(mdp, reward=np.where(worse, floor, mdp.reward))


def certify_policy(model: Model, policy: AnyPolicy) -> Certificate:
    """Certify a policy that somebody brought, in costs where costs were given."""
    settings = model.settings
    if not model.bayesian:
        center, ambiguity = frequentist(model)
        made = certify_frequentist(policy, ambiguity, center).adding(*past(model, NO_PARTS))
        return _named(model, model.shown(made))
    made = certify(
        policy, model.posterior, model.mdp, delta=settings.delta, eta=settings.eta,
        draws=settings.draws, rng=streams(settings.seed)[0], device=settings.device,
        limit_effort=settings.limit_effort,
    )  # fmt: skip
    # Only `find` measures what choosing owes to luck: here somebody else chose, on other data.
    made = for_first_state(model, made).adding(Finding.of("chosen_elsewhere"))
    shown = _named(model, model.shown(made.adding(*past(model, NO_PARTS))))
    certain = policy.ndim == 1 or isinstance(policy, StepPolicy)
    return with_robust(model, shown, streams(settings.seed)[1]) if certain else shown


def difference(
    model: Model, policy: AnyPolicy, other: AnyPolicy, curse: Curse | None = None,
    log: LogBuckets | None = None,
) -> Comparison:  # fmt: skip
    """Bound from below how much better a policy is than another one.

    What choosing on this log is worth is taken off, since policies mostly were chosen on it:
    ``curse``, or what halves of the ``log`` show in comparison with the other policy, if that is
    more. So is what is not known about the first state.
    """
    settings = model.settings
    if not model.bayesian:
        center, ambiguity = frequentist(model)
        made = compare_frequentist(policy, other, ambiguity, center)
        made = made.adding(*past(model, NO_PARTS))
        return replace(model.shown(made), unit=settings.unit)
    made = compare(
        policy, other, model.posterior, model.mdp, delta=settings.delta, eta=settings.eta,
        draws=settings.draws or _compared(model, policy, other), rng=streams(settings.seed)[2],
        mdp_b=lead_to_best(model.mdp, model.placed),
        luck=_luck(curse, log, policy, other, settings.seed), device=settings.device,
    ).adding(*past(model, NO_PARTS))  # fmt: skip
    reach = made.mean_difference - made.difference_lower_bound
    less = first_state_doubt_between(model, policy, other, reach=reach, delta=settings.delta)
    made = replace(made, difference_lower_bound=made.difference_lower_bound - less)
    return replace(model.shown(made), unit=settings.unit)


def _luck(
    curse: Curse | None, log: LogBuckets | None, policy: AnyPolicy, other: AnyPolicy, seed: int
) -> float:
    """Return what to take off how much better a policy looks than another."""
    found = [] if curse is None else [curse]
    if log is not None:
        found += [curse_of_choosing(log, seed=seed)] if curse is None else []
        found.append(curse_of_preferring(log, other, policy, seed=seed))
    return max((one.mean + one.spread for one in found), default=0.0)


def dealt_log(model: Model) -> LogBuckets | None:
    """Return the log of a model, its transitions dealt into parts; None where they cannot be."""
    if not model.bayesian or not np.array_equal(np.floor(model.counts.count), model.counts.count):
        return None
    return log_of(model, deal(model.counts, model.settings.seed))


def _compared(model: Model, *policies: AnyPolicy) -> int:
    """Return on how many draws to compare policies: fewer where they would take minutes."""
    settings, mdp = model.settings, model.mdp
    rewards = rewards_of(mdp, model.posterior, objective="max")
    work = sum(draw_plan.policy_work(mdp, rewards, check_policy(mdp, one)) for one in policies)
    least = draw_plan.least_draws(settings.delta, settings.eta, work)
    return at_most(model.posterior, draw_plan.affordable_draws(work, least, COMPARED))


def check_again(
    model: Model, certificate: Certificate, rng: np.random.Generator | None = None,
    device: str = "auto",
) -> Verification:  # fmt: skip
    """Check a certificate of this model on new draws, or by computing its worst case again."""
    if certificate.objective != ("min" if model.settings.costs else "max"):
        return falls("it speaks of costs where the run has rewards, or the other way round.")
    if certificate.basis != model.settings.basis or certificate.delta != model.settings.delta:
        return falls("basis or delta differ from those of the run's configuration.")
    stored = model.shown(certificate)  # back in the rewards of the model
    if certificate.basis == "bayesian":
        return verify(stored, model.posterior, model.mdp, rng=rng, device=device)
    center, ambiguity = frequentist(model)
    again = certify_frequentist(stored.policy, ambiguity, center)
    for what in ("data_fingerprint", "model_fingerprint"):
        if getattr(again, what) != getattr(stored, what):
            return falls(f"it was made for another {what.removesuffix('_fingerprint')}.")
    # The worst case lies below the upper end of its bracket: a higher promise is wrong.
    low_rewards = at_reward_ends(center, ambiguity)[0]
    worst = evaluate(low_rewards, stored.policy, ambiguity).return_upper
    if not stored.lower_bound <= worst:
        return falls(f"the worst case of the set is {worst:.9g}, below the promise.")
    return Verification(
        stands=True,
        message="The certificate stands: the worst case of the set was computed again.",
        below=0,
        draws=0,
        p_value=1.0,
    )


def with_failures(verdict: Verification, certificate: Certificate) -> Verification:
    """Return a verdict that does not hide that the run itself took its promise back."""
    if not (verdict.stands and certificate.withheld):
        return verdict
    why = " ".join(certificate.failures)
    words = f"NOT CERTIFIED when it was made: {why} Its number is what was computed. "
    return replace(verdict, message=words + verdict.message)


def falls(why: str) -> Verification:
    """Return the verdict that a certificate does not stand."""
    return Verification(
        stands=False,
        message=f"The certificate does not stand: {why}",
        below=0,
        draws=0,
        p_value=0.0,
    )
