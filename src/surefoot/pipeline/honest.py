"""A true split: one part of the log chooses the policy, the other certifies it.

What the certifying part promises owes nothing to luck in choosing. The price is half of the data on
either side: a policy from less, and a promise from less.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot._atomic import replacing
from surefoot.certificates.certifying import certify
from surefoot.certificates.evidence import Split
from surefoot.certificates.optimize import Result, optimize
from surefoot.data.buckets import NUM_BUCKETS, BucketCounts, part
from surefoot.data.counts import Counts
from surefoot.model.step_policy import StepPolicy
from surefoot.pipeline.model import Model, build_model
from surefoot.pipeline.parts import LogParts
from surefoot.pipeline.settings import Settings

CHOOSING = np.arange(NUM_BUCKETS // 2)
CERTIFYING = np.arange(NUM_BUCKETS // 2, NUM_BUCKETS)

_ARRAYS = ("entry", "bucket", "count", "reward_mean", "reward_var", "starts")


def save_parts(path: Path, buckets: BucketCounts) -> None:
    """Write the parts of a log."""
    arrays = {name: getattr(buckets, name) for name in _ARRAYS}
    with replacing(path, "wb") as file:
        np.savez_compressed(file, **{k: v for k, v in arrays.items() if v is not None})


def load_parts(path: Path) -> BucketCounts:
    """Read the parts of a log back."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return BucketCounts(**{name: file[name] for name in _ARRAYS if name in file})
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise ValueError(f"{path}: these are not the parts of a log ({problem}).") from None


def certifying_model(settings: Settings, counts: Counts, buckets: BucketCounts) -> Model:
    """Return the model of the part that certifies."""
    sizes = np.bincount(buckets.bucket, buckets.count, NUM_BUCKETS)
    if not (sizes[CHOOSING].any() and sizes[CERTIFYING].any()):
        raise ValueError(
            "honest=True divides the log, and one of the parts would be empty. Use a log of more "
            "episodes, or leave it out."
        )
    return build_model(settings, part(counts, buckets, CERTIFYING))


def find_honestly(
    model: Model, counts: Counts, parts: LogParts, buckets: BucketCounts, progress: Any,
    streams: list[np.random.Generator],
) -> Result:  # fmt: skip
    """Choose on one part of the log and certify on the other; in the rewards of the model.

    ``model`` is that of the certifying part. Only pairs that both parts have tried are chosen from,
    so that everything chosen can be certified; where they share none, the certifying part's most
    tried action is played.
    """
    settings = model.settings
    chooser = build_model(settings, part(counts, buckets, CHOOSING))
    both = _shared(chooser, model)
    found = optimize(
        chooser.posterior, chooser.mdp, delta=settings.delta, rng=streams[0],
        time_budget=settings.time_budget, allowed=both, eta=settings.eta, draws=settings.draws,
        progress=progress, stationary=settings.one_rule,
    )  # fmt: skip
    policy = _played(found.certificate.policy, chooser, model)
    made = certify(
        policy, model.posterior, model.mdp, delta=settings.delta, eta=settings.eta,
        draws=settings.draws, rng=streams[2],
    )  # fmt: skip
    sizes = np.bincount(buckets.bucket, buckets.count, NUM_BUCKETS)
    by, unit = "transitions", sizes
    if parts.episodes:
        by = "episodes"
        unit = np.sum(
            [np.bincount(one.bucket, minlength=NUM_BUCKETS) for one in parts.episodes], axis=0
        )
    split = Split(
        by=by, choosing=int(unit[CHOOSING].sum()), certifying=int(unit[CERTIFYING].sum()),
        seed=settings.seed,
    )  # fmt: skip
    certificate = replace(made, split=split)
    return replace(found, certificate=certificate, holdout=model.posterior)


def _shared(chooser: Model, certifier: Model) -> NDArray[np.bool_]:
    """Return ``(S, A)``: the chooser's pairs that both parts have tried, one a state at least."""
    available = np.asarray(chooser.mdp.available)
    size = min(len(available), certifier.mdp.num_states)
    both = available.copy()
    both[:size] &= certifier.mdp.available[:size]
    if chooser.allowed is not None:
        both &= chooser.allowed
    none = ~both.any(axis=1)
    both[none] = available[none]
    return both


def _played(policy: Any, chooser: Model, certifier: Model) -> Any:
    """Return the policy in the states of the certifying part, by step if it was."""
    if isinstance(policy, StepPolicy):
        known = [_played(policy.actions_at(t), chooser, certifier) for t in range(policy.horizon)]
        return StepPolicy.from_array(np.array(known))
    mdp = certifier.mdp
    usual = np.argmax(np.where(mdp.available, certifier.behaviour, -1.0), axis=1)
    played = usual.astype(np.int64)
    size = min(len(policy), mdp.num_states)
    can = np.asarray(mdp.available)[np.arange(size), policy[:size]]
    acted = np.diff(chooser.mdp.state_start)[:size] > 0
    kept = np.flatnonzero(can & acted)
    played[kept] = policy[kept]
    return np.asarray(played)
