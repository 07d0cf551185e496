"""Rough estimates of what the log would promise if it were divided differently.

A run promises either from the whole log, minus the measured luck of choosing, or (``honest``) from
one part of the log about a policy chosen on the other. These functions estimate what the other way
would give, with a cautious policy instead of a search and with fewer draws, so that both numbers
can be shown side by side. They are estimates, not promises.
"""

import numpy as np
from numpy.typing import NDArray

from surefoot._order_statistics import draws_needed
from surefoot.certificates import draw_plan
from surefoot.certificates.by_step import Policy
from surefoot.certificates.certification import certify
from surefoot.certificates.evidence import Curse
from surefoot.certificates.halves import LogBuckets
from surefoot.data.buckets import NUM_BUCKETS, BucketCounts, deal, part
from surefoot.data.counts import Counts
from surefoot.model.policies import check_policy
from surefoot.pipeline.first_state import first_state_doubt
from surefoot.pipeline.honest import CERTIFYING, CHOOSING, played_by
from surefoot.pipeline.model import Model, build_model
from surefoot.pipeline.parts import log_of
from surefoot.pipeline.posteriors import can_refit
from surefoot.solvers.evaluation.rewards import rewards_of

MOST_DRAWS, WORK = 1000, 1e9
"""The most draws of an estimate, and the operations they may cost (about a second)."""
MOST_ENTRIES = 100_000
"""Larger models are not built again for an estimate: that would take a tenth of the run."""


def about_whole(
    model: Model, log: LogBuckets, curse: Curse, rng: np.random.Generator
) -> float | None:  # fmt: skip
    """Estimate what the whole log promises, minus the luck of choosing; None if unknown."""
    if model.allowed is not None:  # the cautious choice does not handle allowed pairs
        return None
    policy = log.choose(log.half(np.arange(NUM_BUCKETS)))
    return _bound(model, policy, rng, less=curse.mean + curse.spread)


def about_split(model: Model, buckets: BucketCounts, rng: np.random.Generator) -> float | None:
    """Estimate what a true split promises; None if unknown. ``model`` is of the whole log."""
    counts, settings = model.counts, model.settings
    sizes = np.bincount(buckets.bucket, buckets.count, NUM_BUCKETS)
    if not can_refit(model.own):
        return None
    parted = sizes[CHOOSING].any() and sizes[CERTIFYING].any() and not counts.declared
    if not parted or model.allowed is not None or model.mdp.num_entries > MOST_ENTRIES:
        return None
    first = _first(model, counts)
    chooser, certifier = (
        build_model(settings, part(counts, buckets, half), first, model.own)
        for half in (CHOOSING, CERTIFYING)
    )
    log = log_of(chooser, deal(chooser.counts, settings.seed))
    if log is None:
        return None
    chosen = log.choose(log.half(np.arange(NUM_BUCKETS)))
    return _bound(certifier, played_by(chosen, chooser, certifier), rng)


def _first(model: Model, counts: Counts) -> NDArray[np.float64] | None:
    """Return the initial distribution of the whole log; None if its parts have their own."""
    if model.placed.starts is not None:
        return None
    first = np.asarray(model.mdp.initial)[: counts.num_states]
    return np.asarray(first / first.sum())


def _bound(model: Model, policy: Policy, rng: np.random.Generator, less: float = 0.0) -> float:
    settings, mdp = model.settings, model.mdp
    rewards = rewards_of(mdp, model.posterior, objective="max")
    work = draw_plan.policy_work(mdp, rewards, check_policy(mdp, policy))
    least = 2 * draws_needed(settings.delta, settings.eta)
    made = certify(
        policy, model.posterior, mdp, delta=settings.delta, eta=settings.eta,
        draws=draw_plan.affordable_draws(work, least, MOST_DRAWS, WORK), rng=rng, upper=False,
        device=settings.device,
    )  # fmt: skip
    bound = made.lower_bound - less
    reach = made.nominal_return - bound
    return bound - first_state_doubt(model, policy, reach=reach, delta=settings.delta)
