"""A certificate weighed against the log: luck of the choice, held-out part, past, practice."""

from dataclasses import replace
from typing import Any

import numpy as np

from surefoot._findings import Finding
from surefoot.certificates.by_step import Policy
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.evidence import Backtest, Curse
from surefoot.certificates.halves import LogBuckets
from surefoot.certificates.held_out import luck_and_backtest
from surefoot.data.buckets import BucketCounts
from surefoot.model.step_policy import StepPolicy
from surefoot.pipeline.beyond_state import look_beyond
from surefoot.pipeline.doubt_causes import explained
from surefoot.pipeline.first_state import first_state_doubt
from surefoot.pipeline.model import Model
from surefoot.pipeline.parts import LogParts, log_of, memory_of, steps_alike
from surefoot.pipeline.practice import practice, return_limits
from surefoot.pipeline.reward_ends import least_return
from surefoot.pipeline.rough_promises import about_split, about_whole

FEW_TRANSITIONS = 30
"""With fewer, a promise comes with a warning: it is mostly the assumptions that hold it up."""
FAILS = 0.01
"""A check of the log that falls below this takes the promise back: the two that look for memory
and the backtest together do so for at most 3% of the logs that deserve none of it."""


def weigh(
    model: Model, parts: LogParts, certificate: Certificate, rng: np.random.Generator, *,
    chosen_here: bool = True, in_full: bool = True,
) -> Certificate:  # fmt: skip
    """Return a Bayesian certificate with all that the log itself says of it, in rewards.

    ``chosen_here``: the policy was chosen on the data that certify it, so that what the choice owes
    to luck is measured and taken off. Without ``in_full``, what is said about the promise and
    changes nothing in it is left out: where its doubt comes from, what a split would promise.
    """
    test_rng, practice_rng, doubt_rng, other_rng, beyond_rng = rng.spawn(5)
    curse: Curse | None = None
    made = certificate.adding(*_few(model))
    tested = _tested(model, parts.buckets, _one_action(certificate), test_rng)
    if tested is not None:
        _, luck, held = tested
        curse = luck if chosen_here else None
        made = replace(made, backtest=held).adding(*_verdict(held))
    elif parts.buckets is not None:
        made = made.adding(Finding.of("posterior_of_whole_logs"))
    elif certificate.split is None:
        made = made.adding(Finding.of("curse_not_measured"))
    made = for_first_state(model, lowered(made, curse, least_return(model)))
    made = practice(model, parts, made.adding(*past(model, parts)), curse, practice_rng)
    made = explained(model, made, doubt_rng) if in_full else made
    made = look_beyond(model, parts, made, beyond_rng)
    if curse is None or parts.buckets is None or not in_full:
        return made
    return made.adding(*_other("split", about_split(model, parts.buckets, other_rng)))


def weigh_split(
    model: Model, whole: Model, parts: LogParts, certificate: Certificate,
    rng: np.random.Generator,
) -> Certificate:  # fmt: skip
    """Return the certificate of a true split with all that the log says of it, in rewards.

    ``model`` is that of the certifying part; checks and backtest look at the ``whole`` log.
    """
    test_rng, practice_rng, doubt_rng, other_rng, beyond_rng = rng.spawn(5)
    # What the checks found in the whole log holds for each of its parts.
    warned = [check.finding for check in whole.counts.checks if check.warns]
    made = for_first_state(model, certificate).adding(*warned, *_few(whole), *past(whole, parts))
    made = practice(model, parts, made, None, practice_rng, limits=return_limits(whole))
    made = look_beyond(whole, parts, explained(model, made, doubt_rng), beyond_rng)
    tested = _tested(whole, parts.buckets, None, test_rng)
    if tested is None:
        return made
    log, luck, held = tested
    made = replace(made, backtest=held).adding(*_verdict(held))
    return made.adding(*_other("whole", about_whole(whole, log, luck, other_rng)))


def _few(model: Model) -> list[Finding]:
    """Return the warning that a log shows next to nothing, if it is that small."""
    transitions = int(model.counts.count.sum())
    if transitions >= FEW_TRANSITIONS:
        return []
    return [Finding.of("few_transitions", transitions=transitions)]


def _tested(
    model: Model, buckets: BucketCounts | None, policy: Policy | None,
    rng: np.random.Generator,
) -> tuple[LogBuckets, Curse, Backtest] | None:  # fmt: skip
    """Return a log in halves, the luck of choosing on it, and its backtest."""
    log = log_of(model, buckets)
    if log is None or buckets is None:
        return None
    seed = model.settings.seed
    return log, *luck_and_backtest(log, model.counts, buckets, policy, rng, seed=seed)


def _other(way: str, promise: float | None) -> list[Finding]:
    """Return what the other way of dividing the log would promise, where that is known."""
    return [] if promise is None else [Finding.of(f"{way}_would_promise", promise=promise)]


def _one_action(certificate: Certificate) -> Policy | None:
    """Return a policy that plays one action in each state (and step); None for a random one."""
    policy = certificate.policy
    if isinstance(policy, StepPolicy):
        return policy
    return policy.astype(np.int64) if policy.ndim == 1 else None


def lowered(certificate: Certificate, curse: Curse | None, least: float) -> Certificate:
    """Take the curse of choosing off the promise, down to the least that can be earned."""
    if curse is None:
        return certificate
    promise = certificate.lower_bound
    less = min(curse.mean + curse.spread, max(0.0, promise - least))
    made = _less(replace(certificate, curse=curse), less)
    told = Finding.of("curse_taken_off", mean=curse.mean, spread=curse.spread, promise=promise)
    return made.adding(told)


def _less(certificate: Certificate, amount: float) -> Certificate:
    marginal = certificate.marginal_bound
    return replace(
        certificate,
        lower_bound=certificate.lower_bound - amount,
        marginal_bound=None if marginal is None else marginal - amount,
    )


def for_first_state(model: Model, certificate: Certificate) -> Certificate:
    """Take off what is not known about the first state."""
    reach = certificate.nominal_return - certificate.lower_bound
    amount = first_state_doubt(model, certificate.policy, reach=reach, delta=certificate.delta)
    if amount == 0.0 or model.placed.starts is None:
        return certificate
    starts = int(model.placed.starts.sum())
    amount = min(amount, max(0.0, certificate.lower_bound - least_return(model)))
    told = Finding.of("first_state_unsure", starts=starts, amount=amount)
    return _less(certificate, amount).adding(told)


def _verdict(held: Backtest) -> list[Finding]:
    """Return which tests of the held-out part failed, each at its part of the level; or none."""
    found = []
    new, steps, rewards = held.new_successors, held.advantage, held.rewards
    if new is not None and held.fails(new):
        values = {"p_value": new.p_value, "seen": new.seen, "expected": new.expected}
        found.append(Finding.of("backtest_new_successors", **values))
    if steps is not None and held.fails(steps):
        short = abs(steps.statistic)
        found.append(Finding.of("backtest_steps_worse", p_value=steps.p_value, short=short))
    if rewards is not None and held.fails(rewards):
        short = abs(rewards.statistic)
        found.append(Finding.of("backtest_rewards_worse", p_value=rewards.p_value, short=short))
    if not found and held.p_value is not None:
        told: dict[str, Any] = {"p_value": held.p_value}
        if new is not None:
            told |= {"new": new.seen, "expected": new.expected}
        if steps is not None:
            told["better"] = steps.statistic
        found.append(Finding.of("backtest_passed", **told))
    return found


def past(model: Model, parts: LogParts) -> list[Finding]:
    """Return whether the log shows that its states lack something, or that the step matters."""
    found = steps_alike(model, parts)
    memory = memory_of(model, parts)
    if memory is not None and memory.p_value is not None and memory.p_value < FAILS:
        found.append(
            Finding.of("past_matters", p_value=memory.p_value, episodes=memory.informative)
        )
    for check in model.counts.checks:
        if check.name == "memory" and check.p_value is not None and check.p_value < FAILS:
            found.append(Finding.of("not_markov", p_value=check.p_value))
    return found
