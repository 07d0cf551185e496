"""The doubt of a run by cause, and what a wide declared range of rewards costs."""

from copy import deepcopy
from dataclasses import replace

import numpy as np

from surefoot._findings import Finding
from surefoot._work import begin
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.doubt import RESAMPLED, doubt_of
from surefoot.certificates.evidence import Doubt
from surefoot.data.counts import Counts
from surefoot.data.rewards import range_declared
from surefoot.model.policies import check_policy
from surefoot.pipeline.model import Model, build_model
from surefoot.pipeline.posteriors import can_refit
from surefoot.solvers.evaluation.returns import policy_returns
from surefoot.solvers.evaluation.rewards import rewards_of


def explained(model: Model, certificate: Certificate, rng: np.random.Generator) -> Certificate:
    """Add where the doubt of a Bayesian promise about rewards comes from."""
    begin("doubt")
    again = deepcopy(rng)
    doubt = doubt_of(certificate, model.posterior, model.mdp, rng)
    if doubt is None:
        return certificate
    made = replace(certificate, doubt=doubt).adding(_told(doubt, certificate.lower_bound))
    if not (wider_than_seen(model.placed) and can_refit(model.own)):
        return made
    return made.adding(_range_costs(model, certificate, doubt.draws, again))


def _told(doubt: Doubt, promise: float) -> Finding:
    values: dict[str, float] = {}
    for name, cause in doubt.causes.items():
        if cause.amount != 0.0:
            values |= {name: cause.amount, f"{name}_without": cause.promise_without}
    error = max(cause.error for cause in doubt.causes.values())
    return Finding.of(
        "doubt_by_cause", as_seen=doubt.as_seen, promise=promise, error=error, draws=doubt.draws,
        **values,
    )  # fmt: skip


def wider_than_seen(counts: Counts) -> bool:
    """Return whether a declared range of rewards goes beyond what was seen."""
    if not range_declared(counts) or counts.reward_range is None:
        return False
    low, high = _seen(counts)
    return counts.reward_range[0] < low or counts.reward_range[1] > high


def _seen(counts: Counts) -> tuple[float, float]:
    if counts.reward_low is None or counts.reward_high is None:
        raise ValueError("these counts have no rewards.")
    return float(np.nanmin(counts.reward_low)), float(np.nanmax(counts.reward_high))


def _range_costs(
    model: Model, certificate: Certificate, draws: int, rng: np.random.Generator
) -> Finding:
    """Return what the declared range costs: the same draws with the range seen in its place."""
    other = build_model(
        replace(model.settings, reward_range=()),
        replace(model.counts, reward_range=None),
        np.asarray(model.mdp.initial),
        model.own,
    )
    found = []
    for one in (model, other):
        rewards = rewards_of(one.mdp, one.posterior, objective="max")
        rows = check_policy(one.mdp, certificate.policy)
        found.append(
            policy_returns(
                one.posterior, one.mdp, rows, draws, deepcopy(rng), rewards=rewards
            ).lower
        )
    difference, error = _lower_by(found[0], found[1], certificate.delta)
    low, high = model.placed.reward_range or (np.nan, np.nan)
    seen_low, seen_high = _seen(model.placed)
    return Finding.of(
        "range_costs", low=low, high=high, seen_low=seen_low, seen_high=seen_high,
        less=difference, promise=certificate.lower_bound + difference, error=error,
    )  # fmt: skip


def _lower_by(declared: np.ndarray, seen: np.ndarray, delta: float) -> tuple[float, float]:
    """Return how far the declared range's quantile lies below the other, and its standard error."""

    def lower(which: np.ndarray) -> float:
        ends = (np.quantile(values[which], delta) for values in (seen, declared))
        return float(next(ends) - next(ends))

    n, rng = len(seen), np.random.default_rng(0)
    again = [lower(rng.integers(0, n, n)) for _ in range(RESAMPLED)]
    return lower(np.arange(n)), float(np.std(again))
