"""A certificate weighed against the log: luck of the choice, held-out part, past, practice."""

from dataclasses import replace
from typing import Any

import numpy as np

from surefoot._findings import Finding
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.curse import curse_of_choosing
from surefoot.certificates.evidence import Backtest, Curse
from surefoot.certificates.halves import Log
from surefoot.certificates.held_out import backtest
from surefoot.pipeline.first_state import first_state_doubt
from surefoot.pipeline.model import Model
from surefoot.pipeline.parts import LogParts, memory_of, steps_alike
from surefoot.pipeline.practice import practice

FAILS = 0.001
"""A check of the log that falls below this takes the promise back; .01 is a warning."""


def weigh(
    model: Model, parts: LogParts, certificate: Certificate, rng: np.random.Generator, *,
    chosen_here: bool = True,
) -> Certificate:  # fmt: skip
    """Return a Bayesian certificate with all that the log itself says of it, in rewards.

    ``chosen_here``: the policy was chosen on the data that certify it, so that what the choice owes
    to luck is measured and taken off.
    """
    test_rng, practice_rng = rng.spawn(2)
    curse: Curse | None = None
    made = certificate
    if parts.buckets is not None:
        settings = model.settings
        log = Log.of(
            model.posterior, model.mdp, model.counts, parts.buckets, costs=settings.costs,
            delta=settings.delta, stationary=settings.one_rule,
        )  # fmt: skip
        luck = curse_of_choosing(log, seed=settings.seed)
        curse = luck if chosen_here else None
        held = backtest(log, model.counts, parts.buckets, luck, test_rng, seed=settings.seed)
        made = replace(made, backtest=held).adding(*_verdict(held))
    elif certificate.split is None:
        made = made.adding(Finding.of("curse_not_measured"))
    made = for_first_state(model, _lowered(made, curse))
    return practice(model, parts, made.adding(*past(model, parts)), curse, practice_rng)


def _lowered(certificate: Certificate, curse: Curse | None) -> Certificate:
    """Take the curse of choosing off the promise."""
    if curse is None:
        return certificate
    less = curse.mean + curse.spread
    promise = certificate.lower_bound
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
    told = Finding.of("first_state_unsure", starts=starts, amount=amount)
    return _less(certificate, amount).adding(told)


def _verdict(held: Backtest) -> list[Finding]:
    """Return which tests of the held-out part failed, each at its part of the level; or none."""
    found = []
    new, steps = held.new_successors, held.advantage
    ran = [test for test in (new, steps) if test is not None and test.p_value is not None]
    level = held.level / max(1, len(ran))
    if new is not None and new.p_value < level:
        values = {"p_value": new.p_value, "seen": new.seen, "expected": new.expected}
        found.append(Finding.of("backtest_new_successors", **values))
    if steps is not None and steps.p_value is not None and steps.p_value < level:
        found.append(
            Finding.of("backtest_steps_worse", p_value=steps.p_value, short=abs(steps.statistic))
        )
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
