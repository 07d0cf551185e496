"""A second pass over the log: what each episode earned, and the log divided into parts."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot._findings import Finding
from surefoot.certificates.halves import LogBuckets
from surefoot.certificates.memory import Memory, early_and_late
from surefoot.certificates.usual import chosen_at
from surefoot.data.buckets import NUM_BUCKETS, BucketCounts, deal
from surefoot.data.check import ALARM
from surefoot.data.checks import independence
from surefoot.data.counts import Counts
from surefoot.data.episodes import read_episodes
from surefoot.data.followed_episodes import Episodes
from surefoot.data.returns import Returns, together
from surefoot.pipeline.carried_episodes import Carried, carried
from surefoot.pipeline.model import Model, log_sources, source_of
from surefoot.pipeline.settings import Settings
from surefoot.pipeline.side_files import final_of
from surefoot.posterior.protocol import is_divisible
from surefoot.solvers.solver import solve
from surefoot.solvers.steps import largest_value


@dataclass(frozen=True, kw_only=True, eq=False)
class LogParts:
    """A log in sixteen parts, and its episodes if it tells them apart.

    Attributes
    ----------
    buckets
        How often each transition happened in each part; None if counts are not whole numbers.
    episodes
        The episodes of each file; empty without the columns that tell them apart.
    returns
        What each episode earned, including those of earlier runs; None if no episode is known.
    final
        ``(S,)``: the final rewards of states, in the units of the log; None for none.
    lacking
        Why the returns of the earlier run's episodes are not known; "" if they are.
    """

    buckets: BucketCounts | None
    episodes: tuple[Episodes, ...] = ()
    returns: Returns | None = None
    final: Any = None
    lacking: str = ""

    @property
    def followed(self) -> Returns | None:
        """What the episodes earned, including the final rewards of their last states."""
        if self.returns is None or self.final is None:
            return self.returns
        return self.returns.with_final(self.final)

    def episodes_in_parts(self) -> NDArray[np.int64]:
        """Return how many episodes went to each part."""
        identity = np.zeros(0, dtype=np.uint64) if self.returns is None else self.returns.identity
        return np.bincount((identity % np.uint64(NUM_BUCKETS)).astype(int), minlength=NUM_BUCKETS)


def has_episodes(settings: Settings) -> bool:
    """Return whether a log tells its episodes apart and gives the order of their steps."""
    return settings.episode is not None and settings.step is not None and settings.count is None


def divide_log(
    settings: Settings, counts: Counts, sources: tuple[Any, ...] | None = None
) -> LogParts:
    """Divide a log: by whole episodes if it has them, otherwise transition by transition.

    ``sources`` are tables in memory, for a log that is not in files.
    """
    whole = np.array_equal(np.floor(counts.count), counts.count)
    if not whole:
        return LogParts(buckets=None)
    if not has_episodes(settings):
        return LogParts(buckets=deal(counts, settings.seed))
    before = carried(settings, counts)
    found = _episodes(settings, counts, sources, before)
    episodes = tuple(one.without(before.lost) for one in found)
    buckets = before.buckets
    for one in episodes:
        buckets = one.parts if buckets is None else buckets + one.parts
    if buckets is None:
        return LogParts(buckets=deal(counts, settings.seed))
    rest = counts.count - np.bincount(buckets.entry, buckets.count, counts.num_entries)
    if rest.any():  # counts that were added from an earlier run, without their episodes
        buckets = buckets + deal(replace(counts, count=rest.astype(np.int64)), settings.seed)
    return LogParts(
        buckets=buckets, episodes=episodes,
        returns=together(episodes, before.begun, before.reason),
        final=final_of(replace(settings, costs=False), counts), lacking=before.reason,
    )  # fmt: skip


def _episodes(
    settings: Settings, counts: Counts, sources: tuple[Any, ...] | None, before: Carried
) -> list[Episodes]:
    """Follow the episodes of each file."""
    logs = log_sources(settings) if sources is None else sources
    whole = len(logs) == 1 and settings.add is None
    return [
        read_episodes(
            source, counts, discount=settings.discounted, seed=settings.seed, whole=whole,
            horizon=settings.horizon, begun=before.begun, **roles,
        )
        for source, roles in (source_of(settings, one) for one in logs)
    ]  # fmt: skip


def log_of(model: Model, parts: BucketCounts | None) -> LogBuckets | None:
    """Return the log in parts on the model's entries; None if the posterior cannot use parts.

    A user's posterior may have no method that gives the posterior of a part of the log. The result
    is cached in the model, together with what it remembers about its halves.
    """
    if parts is None or not is_divisible(model.posterior):
        return None
    settings = model.settings
    if parts not in model.logs:
        tries = 1 if settings.unvisited == "prior" else settings.least_tries
        model.logs[parts] = LogBuckets.of(
            model.posterior, model.mdp, model.counts, parts, costs=settings.costs,
            delta=chosen_at(settings.delta), stationary=settings.one_rule, least_tries=tries,
            keeps_usual=True,
        )  # fmt: skip
    return model.logs[parts]


def steps_alike(model: Model, parts: LogParts) -> list[Finding]:
    """Test whether rows may be pooled over steps: whether the step matters, given the row."""
    settings, counts = model.settings, model.counts
    paths = [one.paths for one in parts.episodes if len(one.paths.entry)]
    if settings.horizon is None or settings.by_step or not paths:
        return []
    path = max(paths, key=lambda one: len(one.entry))
    begun = np.repeat(path.start[:-1], np.diff(path.start))
    step = np.arange(len(path.entry)) - begun
    counted = step < settings.horizon  # later steps are pooled too, so they must agree
    row = counts.entry_row[path.entry].astype(np.int64)
    when = np.where(counted, step, settings.horizon)
    found = independence(row, when, path.entry.astype(np.int64), np.ones(len(row)))
    if found.tried == 0:
        return []
    values = {"p_value": found.p_value, "tried": found.tried}
    if found.p_value >= ALARM:
        return [Finding.of("steps_alike", **values)]
    worst = found.worst_row
    return [
        Finding.of(
            "steps_differ",
            **values,
            state=counts.state_name(counts.row_state[worst]),
            action=counts.action_name(counts.row_action[worst]),
        )
    ]


def memory_of(model: Model, parts: LogParts) -> Memory | None:
    """Test whether the early part of an episode predicts its late part, given state and action."""
    paths = [one.paths for one in parts.episodes if len(one.paths.entry)]
    if not paths:
        return None
    path = max(paths, key=lambda one: len(one.entry))
    counts = model.counts
    scale = largest_value(model.mdp)
    value = solve(model.mdp, tolerance=max(1e-6 * scale, 1e-300)).value
    successor = counts.successor[path.entry]
    sign = -1.0 if model.settings.costs else 1.0
    z = sign * path.reward + model.mdp.discount * value[successor]
    half = path.bucket < NUM_BUCKETS // 2
    return early_and_late(path.start, counts.entry_row[path.entry].astype(np.int64), z, half)
