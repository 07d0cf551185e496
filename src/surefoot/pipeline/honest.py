"""A true split: one part of the log chooses the policy, the other certifies it.

Luck in choosing cannot inflate the promise of the certifying part. The price is that both the
policy and the promise rest on half of the data.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot._findings import Finding
from surefoot.certificates.by_step import Policy
from surefoot.certificates.certification import certify
from surefoot.certificates.evidence import Split
from surefoot.certificates.optimize import Result, optimize
from surefoot.certificates.usual import chosen_at
from surefoot.data.buckets import NUM_BUCKETS, BucketCounts, part
from surefoot.data.counts import Counts
from surefoot.model.policies import AnyPolicy
from surefoot.model.step_policy import StepPolicy
from surefoot.pipeline.model import Model, build_model
from surefoot.pipeline.parts import LogParts
from surefoot.pipeline.posteriors import Own
from surefoot.pipeline.settings import Settings

CHOOSING = np.arange(NUM_BUCKETS // 2)
CERTIFYING = np.arange(NUM_BUCKETS // 2, NUM_BUCKETS)


def model_for(
    settings: Settings, counts: Counts, buckets: BucketCounts | None, own: Own | None = None
) -> Model:
    """Return the model that promises rest on: that of the whole log or of its certifying part."""
    if not settings.honest:
        return build_model(settings, counts, own=own)
    if buckets is None:
        raise ValueError("honest=True needs a log of whole transitions, to divide it.")
    return certifying_model(settings, counts, buckets, own)


def certifying_model(
    settings: Settings, counts: Counts, buckets: BucketCounts, own: Own | None = None
) -> Model:
    """Return the model of the part that certifies."""
    sizes = np.bincount(buckets.bucket, buckets.count, NUM_BUCKETS)
    if not (sizes[CHOOSING].any() and sizes[CERTIFYING].any()):
        raise ValueError(
            "honest=True divides the log, and one of the parts would be empty. Use a log with more "
            "episodes, or leave honest out."
        )
    bins = () if counts.log is None else counts.log.bins
    made = build_model(settings, part(counts, buckets, CERTIFYING), own=own)
    return replace(made, bins=bins)


def find_honestly(
    model: Model, counts: Counts, parts: LogParts, buckets: BucketCounts, progress: Any,
    streams: list[np.random.Generator],
) -> Result:  # fmt: skip
    """Choose on one part of the log and certify on the other; in the rewards of the model.

    ``model`` is that of the certifying part. The policy is chosen among pairs that both parts have
    tried, so that it can be certified; in a state where they share none, it plays the action that
    the certifying part tried most.
    """
    settings = model.settings
    chooser = build_model(settings, part(counts, buckets, CHOOSING), own=model.own)
    both = _shared(chooser, model)
    found = optimize(
        chooser.choosing, chooser.mdp, delta=settings.delta, rng=streams[0],
        time_budget=settings.time_budget, steps=settings.search_steps, allowed=both,
        eta=settings.eta, draws=settings.draws, progress=progress, holdout=chooser.posterior,
        stationary=settings.one_rule, keep_usual=True, device=settings.device,
        choose_delta=chosen_at(settings.delta),
    )  # fmt: skip
    policy = played_by(found.certificate.policy, chooser, model)
    made = certify(
        policy, model.posterior, model.mdp, delta=settings.delta, eta=settings.eta,
        draws=settings.draws, rng=streams[2], device=settings.device,
        limit_effort=settings.limit_effort,
    )  # fmt: skip
    sizes = np.bincount(buckets.bucket, buckets.count, NUM_BUCKETS)
    by, unit = "transitions", sizes
    if parts.episodes:
        by = "episodes"
        unit = parts.episodes_in_parts()
    split = Split(
        by=by, choosing=int(unit[CHOOSING].sum()), certifying=int(unit[CERTIFYING].sum()),
        seed=settings.seed,
    )  # fmt: skip
    certificate = replace(made, split=split)
    if found.stopped_early:
        certificate = certificate.adding(Finding.of("stopped_early"))
    return replace(found, certificate=certificate, holdout=model.posterior)


def _shared(chooser: Model, certifier: Model) -> NDArray[np.bool_]:
    """Return ``(S, A)``: the chooser's pairs that both parts have tried, at least one per state."""
    available = np.asarray(chooser.mdp.available)
    size = min(len(available), certifier.mdp.num_states)
    both = available.copy()
    both[:size] &= certifier.mdp.available[:size]
    if chooser.considered is not None:
        both &= chooser.considered
    none = ~both.any(axis=1)
    both[none] = available[none]
    return both


def played_by(policy: AnyPolicy, chooser: Model, certifier: Model) -> Policy:
    """Return the policy on the states of the certifying part; a policy by step stays one."""
    if isinstance(policy, StepPolicy):
        known = [_actions(policy.actions_at(t), chooser, certifier) for t in range(policy.horizon)]
        return StepPolicy.from_array(np.array(known))
    return _actions(policy, chooser, certifier)


def _actions(policy: NDArray[Any], chooser: Model, certifier: Model) -> NDArray[np.int64]:
    mdp = certifier.mdp
    usual = np.argmax(np.where(mdp.available, certifier.behaviour, -1.0), axis=1)
    played = usual.astype(np.int64)
    size = min(len(policy), mdp.num_states)
    can = np.asarray(mdp.available)[np.arange(size), policy[:size]]
    acted = np.diff(chooser.mdp.state_start)[:size] > 0
    kept = np.flatnonzero(can & acted)
    played[kept] = policy[kept]
    return np.asarray(played)
