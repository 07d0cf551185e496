"""Find a policy with a high certified return, and certify it on draws that did not choose it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot._cluster_argument import on_cluster
from surefoot._display import Grid, Shown
from surefoot._findings import Finding
from surefoot._rounding import column_texts
from surefoot._work import begin
from surefoot.certificates.by_step import Policy
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.certification import certify, check_effort, check_levels
from surefoot.certificates.clock import SearchClock
from surefoot.certificates.device_search import CHOICE_DRAWS, search_on_device
from surefoot.certificates.models import (
    Ints,
    affordable,
    allowed_rows,
    children,
    choosing_rng,
    draw_models,
    mark_chosen_on,
    split_draws,
)
from surefoot.certificates.provenance import check_objective
from surefoot.certificates.search import Candidate, OnCandidate, search
from surefoot.model.mdp import MDP
from surefoot.model.step_policy import StepPolicy
from surefoot.posterior.protocol import Posterior, check_draws_wanted
from surefoot.solvers.evaluation.rewards import rewards_of
from surefoot.solvers.gpu.choice import OnDevice, choose_engine
from surefoot.solvers.solver import counted

LEAST_DRAWS, MOST_DRAWS = 2000, 20_000
"""The fewest and the most draws to choose on if the caller gives no number."""
FAVOURED_VALUES = 2**22
"""Batches of up to this many probabilities are cheap, so that small models get more draws."""
ONLY = "the only policy"
"""The name of the candidate where every state has one action."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Result(Shown):
    """The best policy found, its certificate, and what it was chosen from.

    Attributes
    ----------
    certificate
        The promise, from draws that were not used to choose the policy.
    candidates
        All policies considered, in the order in which they were made.
    selection_draws
        How many draws they were compared on.
    search_steps
        Steps of the search that were done; ``optimize(steps=...)`` repeats them.
    holdout
        The posterior that certified; if draws are finitely many, those not used for the choice.
        Certify other policies with it, not with the posterior that chose. None without a prior.

    Examples
    --------
    >>> from surefoot import DirichletPosterior, machine_replacement, optimize
    >>> counts = machine_replacement().simulate(20, np.random.default_rng(1))
    >>> posterior, mdp = DirichletPosterior(counts), counts.to_mdp(discount=0.95, prior=1.0)
    >>> result = optimize(posterior, mdp, draws=500, rng=np.random.default_rng(2))
    >>> result.candidates[0].name, len(result.policy), result.stopped_early
    ('nominal', 10, False)
    """

    certificate: Certificate
    candidates: tuple[Candidate, ...]
    selection_draws: int
    holdout: Posterior | None = None
    search_steps: int = 0

    @property
    def policy(self) -> NDArray[Any] | StepPolicy:
        """``(S,)`` action ids, or with a horizon a policy by step."""
        return self.certificate.policy

    @property
    def stopped_early(self) -> bool:
        """Whether the time budget ended the search."""
        return self.certificate.has("stopped_early")

    @property
    def notes(self) -> tuple[str, ...]:
        """What was not done as requested, and what else is good to know, in sentences."""
        return self.certificate.notes

    def mirrored(self) -> Result:
        """Convert a result in rewards into one in costs, or back."""
        turned = tuple(candidate.mirrored() for candidate in self.candidates)
        return replace(self, certificate=self.certificate.mirrored(), candidates=turned)

    _pictured = True

    def _headline(self) -> str:
        return self.certificate.sentence

    def _facts(self) -> list[tuple[str, str]]:
        return self.certificate._facts()

    def _grid(self) -> Grid:
        numbers = zip(
            column_texts([c.percentile for c in self.candidates]),
            column_texts([c.nominal_return for c in self.candidates]),
            strict=True,
        )
        rows = [
            (c.name, *texts, "selected" if c.selected else "")
            for c, texts in zip(self.candidates, numbers, strict=True)
        ]
        return Grid(
            head=("candidate", "percentile", "nominal return", ""), rows=rows, total=len(rows)
        )

    def _remarks(self) -> tuple[Finding, ...]:
        return self.certificate._remarks()

    def __repr__(self) -> str:
        chosen = next(c.name for c in self.candidates if c.selected)
        early = ", stopped early" if self.stopped_early else ""
        return (
            f"Result({self.certificate!r}, {chosen!r} out of {len(self.candidates)} candidates"
            f"{early})"
        )


@on_cluster
def optimize(
    posterior: Posterior,
    mdp: MDP,
    *,
    delta: float = 0.05,
    rng: np.random.Generator,
    time_budget: float | None = None,
    steps: int | None = None,
    allowed: ArrayLike | None = None,
    considered: ArrayLike | None = None,
    eta: float = 0.001,
    draws: int | None = None,
    limit_effort: float = 1.0,
    objective: str = "max",
    progress: OnCandidate | None = None,
    holdout: Posterior | None = None,
    horizon: int | None = None,
    final_reward: ArrayLike | None = None,
    stationary: bool = False,
    keep_usual: bool = False,
    choose_delta: float | None = None,
    cluster: str | None = None,  # noqa: ARG001
    device: str = "auto",
) -> Result:
    """Find a policy whose return is high with probability ``1 - delta``, and certify it.

    Candidates (nominal, robust, VaR, coordinate ascent) are compared by their empirical percentile
    on one batch of draws, the best are improved by local search there, and the winner alone is
    certified, on fresh draws. Without a time budget the result depends on the seed alone. If every
    state has one action, there is nothing to choose, and no draws are made for choosing.

    Parameters
    ----------
    posterior
        What the data say about the transition probabilities. Finitely many draws are split once,
        unless there is a ``holdout``: one half chooses, the other certifies.
    mdp
        The model with the same rows: rewards, discount, initial distribution.
    delta
        Failure probability of the promise.
    rng
        Source of all draws; choosing and certifying use separate generators.
    time_budget
        Seconds for the search, exceeded by at most one evaluation of a policy. The certificate
        comes after that (about ten seconds on one core for each bound, or 2000 draws if these take
        longer). The nominal policy is always considered, whatever the budget.
    steps
        Steps of the search to do, instead of using the clock: `Result.search_steps` of a search
        that was ended by its time budget repeats it bit for bit.
    allowed
        ``(S, A)`` booleans or (state, action) pairs that policies may use; None allows all. The
        limit then covers only policies that use these pairs.
    considered
        The same, for the allowed pairs that the search considers; the limit covers the other
        allowed pairs, too. None considers all that are allowed.
    eta
        Failure probability of the Monte Carlo behind each bound of the certificate.
    draws
        Posterior draws for the choice and for each bound of the certificate; None chooses them.
    limit_effort
        As for `certify`: how much work goes into the bound on what any policy could be promised.
    objective
        ``"max"`` for rewards, ``"min"`` for costs.
    progress
        Called after each candidate with its name and the best percentile so far.
    holdout
        The posterior to certify with, made from other data or with separate draws. None certifies
        with ``posterior``.
    horizon, final_reward
        As for `solve`: count at most this many steps. The policy may depend on the step.
    stationary
        With a horizon: look for one rule for all steps, which is easier to follow and may earn
        less.
    keep_usual
        Keep the action that was tried most in a state, unless another action is better even at its
        lower end (its mean value minus as many standard deviations as belong to delta). For logs of
        behaviour: departures that merely look better are mostly luck. Needs counts; has no effect
        on one rule for all steps.
    choose_delta
        The delta that the policy is chosen for, if it should be more cautious (or bolder) than the
        promise; None: ``delta``. Runs choose for .05 at most.
    cluster
        Where the work is done: None in this process, ``"local"`` by workers on this machine,
        ``"auto"`` or an address on a Ray cluster (extra ``cluster``). The answer is the same, bit
        for bit.
    device
        As for `certify`. On a GPU the candidates are nominal, robust and cautious policies, without
        local search.

    Examples
    --------
    >>> from surefoot.domains import machine_replacement
    >>> from surefoot.posterior.dirichlet import DirichletPosterior
    >>> counts = machine_replacement().simulate(20, np.random.default_rng(1))
    >>> posterior = DirichletPosterior(counts)
    >>> mdp = counts.to_mdp(discount=0.95, prior=1.0)
    >>> result = optimize(posterior, mdp, delta=0.05, draws=1000, rng=np.random.default_rng(2))
    >>> result.certificate.lower_bound < result.certificate.upper_bound
    True
    """
    delta, eta = check_levels(delta, eta)
    aim = delta if choose_delta is None else check_levels(choose_delta, eta)[0]
    limit_effort = check_effort(limit_effort)
    check_objective(posterior, objective)
    mdp = counted(mdp, horizon, final_reward)
    posterior.check_matches(mdp)
    if time_budget is not None and not time_budget >= 0:
        raise ValueError(f"time_budget={time_budget!r}; it must be 0 seconds or more, or None.")
    if steps is not None and not steps >= 0:
        raise ValueError(f"steps={steps!r}; it must be a whole number, 0 or more, or None.")
    rows = allowed_rows(mdp, allowed)
    if considered is not None:
        rows = np.intersect1d(rows, allowed_rows(mdp, considered))
        _check_considered(mdp, rows)
    rewards = rewards_of(mdp, posterior, objective=objective)
    clock = SearchClock(time_budget, steps)
    split_rng, search_rng, certify_rng = children(rng, 3)
    begin("search")
    if holdout is not None:
        check_objective(holdout, objective)
        holdout.check_matches(mdp)

    def certified(policy: Policy, certifying: Posterior) -> Certificate:
        return certify(
            policy, certifying, mdp, delta=delta, eta=eta, draws=draws, rng=certify_rng,
            objective=objective, allowed=allowed, device=device, limit_effort=limit_effort,
        )  # fmt: skip

    if len(rows) == mdp.num_states:
        only = certified(mdp.row_action[rows], holdout or posterior)
        return _only_policy(only, progress, holdout or posterior)
    choosing, certifying = posterior, holdout
    if certifying is None:
        choosing, certifying = split_draws(posterior, mdp, split_rng)
    n, found = selection_draws(choosing, mdp, rows, draws)
    if choosing is not posterior:
        parts = {"choosing": choosing.num_draws, "certifying": certifying.num_draws}
        found.append(Finding.of("draws_split", draws=posterior.num_draws, **parts))
    mark_chosen_on(posterior, choosing)
    source, told = choosing_rng(search_rng), _told(progress, objective)
    engine = choose_engine(device, mdp, choosing).engine
    visits = _visits(choosing, mdp) if keep_usual else None
    if isinstance(engine, OnDevice):
        n = CHOICE_DRAWS if draws is None else draws
        candidates = search_on_device(
            choosing, mdp, rewards, rows, n, source, engine, aim, clock, told, visits
        )
        found = [Finding.of("device_search", candidates=len(candidates))]
    else:
        batch = draw_models(choosing, mdp, rewards, rows, n, source)
        candidates = search(batch, aim, clock, told, stationary=stationary, visits=visits)
        del batch  # up to a quarter of a gigabyte that the certificate does not need
    if clock.stopped:
        found.append(Finding.of("stopped_early"))
    policy = next(c.policy for c in candidates if c.selected and c.policy is not None)
    found += _kept(candidates)
    if objective == "min":
        candidates = tuple(candidate.mirrored() for candidate in candidates)
    return Result(
        certificate=certified(policy, certifying).adding(*found),
        candidates=candidates,
        selection_draws=n,
        holdout=certifying,
        search_steps=clock.steps,
    )


def certified_at(
    result: Result, mdp: MDP, *, delta: float, rng: np.random.Generator, **more: Any
) -> Result:
    """Return a result whose policy is certified at another delta, without another search.

    `optimize` with the same ``rng`` and ``choose_delta`` would choose the same policy and return
    the same certificate. ``more`` are arguments of `certify`.
    """
    certify_rng = children(rng, 3)[2]
    holdout = result.holdout
    if holdout is None:
        raise ValueError("A result without a posterior has no other delta.")
    made = certify(result.policy, holdout, mdp, delta=delta, rng=certify_rng, **more)
    return replace(result, certificate=made.adding(*_of_search(result)))


def _of_search(result: Result) -> list[Finding]:
    """Return the findings of a result that its search made."""
    codes = ("fewer_draws", "draws_split", "device_search", "stopped_early", "usual_kept")
    return [finding for finding in result.certificate.findings if finding.code in codes]


def _visits(posterior: Posterior, mdp: MDP) -> Ints | None:
    """Return ``(R,)``: how often every row was tried; None if that is not known."""
    if posterior.counts is None:
        return None
    return np.add.reduceat(posterior.counts.count, mdp.row_start[:-1])


def _kept(candidates: tuple[Candidate, ...]) -> list[Finding]:
    """Return a finding if the usual action was kept against the search, with how many states."""
    preferred = max(candidates, key=lambda one: one.percentile)
    selected = next(one for one in candidates if one.selected)
    states = _differing(preferred.policy, selected.policy)
    return [Finding.of("usual_kept", states=states)] if states else []


def _differing(one: Policy | None, other: Policy | None) -> int:
    """Return in how many states two policies differ, at one step or more."""
    if isinstance(one, StepPolicy) and isinstance(other, StepPolicy):
        steps = range(one.horizon)
        differ = [one.actions_at(step) != other.actions_at(step) for step in steps]
        return int(np.any(differ, axis=0).sum())
    return int((np.asarray(one) != np.asarray(other)).sum())


def _check_considered(mdp: MDP, rows: Ints) -> None:
    left = np.setdiff1d(np.arange(mdp.num_states), mdp.row_state[rows])
    if len(left):
        raise ValueError(
            f"considered leaves no allowed action in state {mdp.state_name(int(left[0]))}. Name "
            "one for every state."
        )


def _told(progress: OnCandidate | None, objective: str) -> OnCandidate | None:
    """Return the progress function; for costs it gets negated percentiles."""
    if progress is None or objective == "max":
        return progress
    return lambda name, best: progress(name, -best)


def _only_policy(
    certificate: Certificate, progress: OnCandidate | None, holdout: Posterior
) -> Result:
    """Return the result if every state has one action: a certificate without a search."""
    marginal = certificate.marginal_bound
    reached = certificate.promise if marginal is None else marginal
    if progress is not None:
        progress(ONLY, reached)
    candidate = Candidate(
        name=ONLY, percentile=reached, nominal_return=certificate.nominal_return, selected=True,
        policy=certificate.policy,
    )  # fmt: skip
    return Result(
        certificate=certificate, candidates=(candidate,), selection_draws=0, holdout=holdout
    )


def selection_draws(
    posterior: Posterior, mdp: MDP, rows: Ints, wanted: int | None
) -> tuple[int, list[Finding]]:
    """Return how many draws to choose on, and a finding if they are fewer than requested."""
    limits = [(affordable(mdp, rows), "memory")]
    if posterior.num_draws is not None:
        limits.append((posterior.num_draws, "posterior"))
    limit, reason = min(limits)
    if wanted is None:
        entries = int(np.diff(mdp.row_start)[rows].sum())
        n = min(max(FAVOURED_VALUES // entries, LEAST_DRAWS), MOST_DRAWS)
        return min(n, limit), []
    n = min(check_draws_wanted(wanted), limit)
    if n == wanted:
        return n, []
    return n, [Finding.of("fewer_draws", draws=n, wanted=int(wanted), reason=reason)]
