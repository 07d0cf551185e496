"""The log once more, episode by episode: what each earned, and the log in parts."""

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
    """A log in sixteen parts, and its episodes where it tells them apart.

    Attributes
    ----------
    buckets
        How often each transition happened in each part; None where counts are not whole numbers.
    episodes
        What the episodes of each file showed; none without the columns for it.
    returns
        What each episode earned, those of earlier runs included; None where no episode is known.
    final
        ``(S,)``: what last states are worth, in the numbers of the log; None for nothing.
    lacking
        Why it is not known what the episodes of the earlier run earned; "" where it is.
    """

    buckets: BucketCounts | None
    episodes: tuple[Episodes, ...] = ()
    returns: Returns | None = None
    final: Any = None
    lacking: str = ""

    @property
    def followed(self) -> Returns | None:
        """What the episodes earned, with what their last states are worth."""
        if self.returns is None or self.final is None:
            return self.returns
        return self.returns.with_final(self.final)

    def episodes_in_parts(self) -> NDArray[np.int64]:
        """Return how many episodes went to each part."""
        identity = np.zeros(0, dtype=np.uint64) if self.returns is None else self.returns.identity
        return np.bincount((identity % np.uint64(NUM_BUCKETS)).astype(int), minlength=NUM_BUCKETS)


def has_episodes(settings: Settings) -> bool:
    """Tell whether a log tells its episodes apart, and the order of their steps."""
    return settings.episode is not None and settings.step is not None and settings.count is None


def divide_log(
    settings: Settings, counts: Counts, sources: tuple[Any, ...] | None = None
) -> LogParts:
    """Divide a log: by whole episodes where it has them, else transition by transition.

    ``sources`` are tables in memory where the log is not in files.
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
    """Return the log in parts, on the model's entries; None where parts cannot be looked at.

    A posterior of the user's may not be able to say what part of a log alone would say. Asked
    again, the same model returns the same log, which remembers what its halves lost.
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
    counted = step < settings.horizon  # what comes after the horizon is pooled too, and must agree
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
    """Ask whether the early part of an episode predicts its late part, given state and action."""
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
