"""A log in sixteen buckets: any half of the log is a sum over buckets, without another scan."""

from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot._atomic import replacing
from surefoot._display import reason_of
from surefoot._rows import Ints, freeze_fields, pack
from surefoot.data.counts import Counts
from surefoot.data.rewards import RewardStatistics, pool, range_per_action

NUM_BUCKETS = 16
"""Number of buckets. 16 have 6435 different halves, and each holds enough of a small log."""
MOST_HYPERGEOMETRIC = 10**9
"""NumPy's hypergeometric draws are limited to fewer items than this."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class BucketCounts:
    """How often each transition happened in each bucket.

    Attributes
    ----------
    entry, bucket
        ``(M,)``; the entry of the counts and the bucket, sorted in this order; pairs that never
        happened are not listed.
    count
        ``(M,)``; how often the transition happened in the bucket.
    reward_mean, reward_var
        ``(M,)``; mean and sample variance of its rewards there (NaN for the variance of one).
    starts
        ``(16, S)``; how many episodes of a bucket started in each state; None when unknown.
    """

    entry: Ints
    bucket: Ints
    count: Ints
    reward_mean: Floats
    reward_var: Floats
    starts: Ints | None = None

    def __post_init__(self) -> None:
        freeze_fields(self)

    def save(self, path: Path) -> None:
        """Write everything to one ``.npz`` file, without pickles."""
        arrays = {field.name: getattr(self, field.name) for field in fields(self)}
        with replacing(path) as file:
            np.savez_compressed(file, **{k: v for k, v in arrays.items() if v is not None})

    @staticmethod
    def load(path: Path) -> "BucketCounts":
        """Read what :meth:`save` wrote."""
        names = [field.name for field in fields(BucketCounts)]
        try:
            with np.load(path, allow_pickle=False) as file:
                return BucketCounts(**{name: file[name] for name in names if name in file})
        except Exception as problem:  # a damaged file can fail anywhere, in any way
            reason = reason_of(problem)
            raise ValueError(f"{path}: these are not the parts of a log ({reason}).") from None

    def with_starts(self, starts: Ints) -> "BucketCounts":
        """Return the same counts with the episode starts of each bucket."""
        return replace(self, starts=starts)

    def __add__(self, other: "BucketCounts") -> "BucketCounts":
        """Add two parts of one log; starts are known only if both parts know theirs."""
        joined = [
            np.concatenate((getattr(self, name), getattr(other, name)))
            for name in ("entry", "bucket", "count", "reward_mean", "reward_var")
        ]
        entry, bucket, count, mean, variance = joined
        keys, group = np.unique(entry * NUM_BUCKETS + bucket, return_inverse=True)
        pooled = pool(group, count, RewardStatistics(mean, variance), len(keys))
        return BucketCounts(
            entry=keys // NUM_BUCKETS,
            bucket=keys % NUM_BUCKETS,
            count=np.bincount(group, count, len(keys)).astype(np.int64),
            reward_mean=pooled.mean,
            reward_var=pooled.variance,
            starts=None
            if self.starts is None or other.starts is None
            else self.starts + other.starts,
        )


def gather(entry: Ints, bucket: Ints, reward: Floats) -> BucketCounts:
    """Count single transitions by entry and bucket; O(n log n)."""
    kept, where, number = np.unique(
        entry * NUM_BUCKETS + bucket, return_inverse=True, return_counts=True
    )
    mean = np.bincount(where, reward, len(kept)) / number
    square = np.bincount(where, (reward - mean[where]) ** 2, len(kept))
    # A sum of n equal rewards is off by up to n roundings: that is not variation.
    noise = number * (number * np.spacing(np.abs(mean))) ** 2
    variance = np.where(square <= noise, 0.0, square) / np.maximum(number - 1, 1)
    return BucketCounts(
        entry=kept // NUM_BUCKETS,
        bucket=kept % NUM_BUCKETS,
        count=number,
        reward_mean=mean,
        reward_var=np.where(number > 1, variance, np.nan),
    )


def deal(counts: Counts, seed: int) -> BucketCounts:
    """Deal the transitions of a log without episodes into equal buckets, at random.

    The draw is hypergeometric, like dealing shuffled cards, and depends on the seed. Only the mean
    and variance of an entry's rewards are known: the means of its buckets are drawn as those of
    normal rewards with this sum and variance, so that they vary as in real parts of a log.

    Examples
    --------
    >>> counts = Counts.from_arrays([[[300, 100]], [[0, 240]]])
    >>> parts = deal(counts, seed=1)
    >>> {int(size) for size in np.bincount(parts.bucket, parts.count)}
    {40}
    """
    whole = np.floor(counts.count).astype(np.int64)
    if not np.array_equal(whole, counts.count):
        raise ValueError("counts that are not whole numbers cannot be dealt into parts.")
    rng = np.random.default_rng([seed, int(whole.sum())])
    dealt, left = np.zeros((len(whole), NUM_BUCKETS), dtype=np.int64), whole.copy()
    for bucket in range(NUM_BUCKETS):
        dealt[:, bucket] = _hand(left, NUM_BUCKETS - bucket, rng)
        left -= dealt[:, bucket]
    entry, bucket_of = np.nonzero(dealt)
    nothing = np.full(len(whole), np.nan)
    mean = nothing if counts.reward_mean is None else counts.reward_mean
    variance = nothing if counts.reward_var is None else counts.reward_var
    number = dealt[entry, bucket_of]
    scattered = mean[entry] + _scatter(entry, number, np.nan_to_num(variance), rng)
    if counts.reward_low is not None and counts.reward_high is not None:
        action = counts.entry_action[entry]
        scattered = np.clip(scattered, counts.reward_low[action], counts.reward_high[action])
    return BucketCounts(
        entry=entry,
        bucket=bucket_of,
        count=number,
        reward_mean=scattered,
        reward_var=variance[entry],
    )


def _scatter(entry: Ints, number: Ints, variance: Floats, rng: np.random.Generator) -> Floats:
    """Return how far bucket means lie from the mean of their entry; their weighted sum is 0."""
    size = len(variance)
    apart = rng.standard_normal(len(entry)) / np.sqrt(number)
    total = np.bincount(entry, number, size)
    middle = np.bincount(entry, number * apart, size) / np.maximum(total, 1)
    spread = np.sqrt(variance[entry])
    return np.where(spread > 0, spread * (apart - middle[entry]), 0.0)


def _hand(left: Ints, players: int, rng: np.random.Generator) -> Ints:
    total = int(left.sum())
    if players == 1 or total == 0:
        return left.copy()
    if total >= MOST_HYPERGEOMETRIC:  # the size of a bucket hardly varies then
        return np.asarray(rng.binomial(left, 1 / players), dtype=np.int64)
    drawn = rng.multivariate_hypergeometric(left, total // players, method="marginals")
    return np.asarray(drawn, dtype=np.int64)


def part(counts: Counts, parts: BucketCounts, chosen: ArrayLike) -> Counts:
    """Return the counts of some buckets: only what was seen there, with the states of the whole.

    States and actions keep their ids, so that a policy from one part can be played in another.
    The range of rewards is that of the part, or that of the whole log if any transition of the log
    shows several rewards.

    Examples
    --------
    >>> counts = Counts.from_arrays([[[300, 100]], [[0, 240]]])
    >>> parts = deal(counts, seed=1)
    >>> half = part(counts, parts, range(8))
    >>> int(half.visits.sum()), (half.visits + part(counts, parts, range(8, 16)).visits).tolist()
    (320, [400, 240])
    """
    wanted = np.zeros(NUM_BUCKETS, dtype=np.bool_)
    wanted[np.asarray(chosen, dtype=np.int64)] = True
    here = wanted[parts.bucket]
    entry, count = parts.entry[here], parts.count[here]
    total = np.bincount(entry, count, counts.num_entries).astype(np.int64)
    seen = np.flatnonzero(total)
    successor = counts.successor[seen].astype(np.int64)
    rows = pack(
        counts.entry_state[seen], counts.entry_action[seen], successor,
        counts.num_states, counts.num_actions,
    )  # fmt: skip
    starts = None if parts.starts is None else parts.starts[wanted].sum(axis=0)
    smaller = replace(
        counts, **rows._asdict(), count=total[seen], starts=starts, reward_mean=None,
        reward_var=None, log=None, report=None,
    )  # fmt: skip
    if counts.reward_mean is None:
        return smaller
    statistics = RewardStatistics(parts.reward_mean[here], parts.reward_var[here])
    pooled = pool(entry, count, statistics, counts.num_entries)
    low, high = counts.reward_low, counts.reward_high
    if not counts.rewards_vary:
        low, high = range_per_action(smaller.entry_action, pooled.mean[seen], counts.num_actions)
    return replace(
        smaller, reward_mean=pooled.mean[seen], reward_var=pooled.variance[seen],
        reward_low=low, reward_high=high,
    )  # fmt: skip
