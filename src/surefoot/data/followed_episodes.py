"""The result of following the episodes of a log: paths, and what each episode earned."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from surefoot._rows import Ints, freeze_fields
from surefoot.data.buckets import NUM_BUCKETS, BucketCounts

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Paths:
    """Whole episodes, step by step, as numbers.

    Attributes
    ----------
    start
        ``(N+1,)``; the steps of path ``i`` are ``start[i]:start[i+1]``.
    entry
        ``(M,)``; the entry of the counts that each step is an instance of.
    reward
        ``(M,)``; the reward of each step.
    bucket
        ``(N,)``; the part of the log each path belongs to.
    """

    start: Ints
    entry: Ints
    reward: Floats
    bucket: Ints

    def __post_init__(self) -> None:
        freeze_fields(self)


@dataclass(frozen=True, kw_only=True, eq=False)
class Episodes:
    """The episodes of a log: what each earned and how it ended.

    Attributes
    ----------
    discount, seed
        The discount of the returns, and the seed that labels were hashed with.
    identity
        ``(N,)`` hashed labels, increasing.
    earned
        ``(N,)``: the discounted return, as far as the episode can be followed.
    steps
        ``(N,)``: the number of steps followed.
    ended
        ``(N,)``: whether it reached a terminal state, or the horizon; otherwise the rest of its
        return is unknown.
    first, reached
        ``(N,)``: the ids of the first state and of the state after the last step.
    until
        ``(N,)``: the position after the last step followed, as a number or a time in microseconds:
        the step of the next row, or of the last row itself where rows name their next states. NaN
        where no step could be followed.
    parts
        How often each transition happened in each bucket.
    paths
        A sample of whole episodes; all of them in a log of up to four million rows.
    horizon
        The number of steps that count at most; None for all.
    """

    discount: float
    seed: int
    identity: NDArray[np.uint64]
    earned: Floats
    steps: Ints
    ended: NDArray[np.bool_]
    first: Ints
    reached: Ints
    until: Floats
    parts: BucketCounts
    paths: Paths
    horizon: int | None = None

    def __post_init__(self) -> None:
        freeze_fields(self)

    def __len__(self) -> int:
        return len(self.identity)

    @property
    def bucket(self) -> Ints:
        """``(N,)``: the bucket of each episode."""
        return (self.identity % np.uint64(NUM_BUCKETS)).astype(np.int64)

    def without(self, known: NDArray[np.uint64]) -> "Episodes":
        """Return the episodes without the returns and starts of those that began before the log."""
        fresh = ~np.isin(self.identity, known)
        if fresh.all() or self.parts.starts is None:
            return self
        starts, began = np.array(self.parts.starts), ~fresh & (self.steps > 0)
        np.subtract.at(starts, (self.bucket[began], self.first[began]), 1)
        names = ("identity", "earned", "steps", "ended", "first", "reached", "until")
        fields = {name: getattr(self, name)[fresh] for name in names}
        return replace(self, **fields, parts=self.parts.with_starts(starts))

    @property
    def time_limit(self) -> int | None:
        """The length at which every unfinished episode was cut, where it is the same for all."""
        cut = self.steps[~self.ended]
        same = len(cut) > 0 and cut.min() == cut.max() == self.steps.max()
        return int(cut[0]) if same else None
