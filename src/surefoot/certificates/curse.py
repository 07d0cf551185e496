"""The curse of choosing, measured by the log itself.

A policy chosen on part of a log looks better there than on the rest: by how much is an estimate of
what the choice owes to luck. ``c = mean of v_X(pi_X) - v_Y(pi_X)`` over random halves (X, Y) of the
log, each used both ways, and not below 0. There is no proof behind it: how much it leaves broken is
counted, not derived (docs/guarantee.md).
"""

from collections.abc import Callable
from itertools import combinations
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from surefoot.certificates.evidence import Curse
from surefoot.data.buckets import NUM_BUCKETS, BucketCounts, part
from surefoot.data.counts import Counts

DEFAULT_HALVES = 8
"""Pairs of halves; each gives two differences."""

Floats = NDArray[np.float64]
Policy = TypeVar("Policy")


def balanced_halves(number: int, seed: int) -> list[tuple[int, ...]]:
    """Return distinct halves of the buckets, at random; none is another's complement.

    Examples
    --------
    >>> halves = balanced_halves(4, seed=0)
    >>> len({half for half in halves}), {len(half) for half in halves}
    (4, {8})
    """
    # Bucket 0 is always in X: that picks one of each pair of complements.
    every = list(combinations(range(1, NUM_BUCKETS), NUM_BUCKETS // 2 - 1))
    if not 1 <= number <= len(every):
        raise ValueError(f"number={number}; there are 1 to {len(every)} pairs of halves.")
    chosen = np.random.default_rng(seed).choice(len(every), size=number, replace=False)
    return [(0, *every[i]) for i in chosen]


def curse_of_choosing(
    counts: Counts,
    parts: BucketCounts,
    *,
    choose: Callable[[Counts], Policy],
    value: Callable[[Policy, Counts], float],
    halves: int = DEFAULT_HALVES,
    seed: int = 0,
) -> Curse:
    """Choose on one half of a log, value on both, and return the difference.

    Parameters
    ----------
    counts, parts
        The whole log, and the same by buckets.
    choose
        Returns a policy for the counts of a half, by the rule used for the whole log.
    value
        Returns a policy's value according to the counts of a half. The half may lack what the
        policy does: how that is valued is for this function to say, the same for both halves.
    halves
        How many pairs of halves.
    seed
        Which ones.

    Examples
    --------
    >>> from surefoot.data.buckets import deal
    >>> counts = Counts.from_arrays(np.full((2, 3, 2), 40))
    >>> def better(half):  # the action that led to state 1 most often, from state 0
    ...     share = half.count.reshape(2, 3, 2) / half.visits.reshape(2, 3, 1)
    ...     return int(np.argmax(share[0, :, 1]))
    >>> def share(action, half):
    ...     return half.count[2 * action + 1] / half.visits[action]
    >>> curse = curse_of_choosing(counts, deal(counts, 0), choose=better, value=share)
    >>> bool(0 < curse.mean < 0.2), len(curse.differences)
    (True, 16)
    """
    found: list[float] = []
    for half in balanced_halves(halves, seed):
        rest = [bucket for bucket in range(NUM_BUCKETS) if bucket not in half]
        sides = part(counts, parts, half), part(counts, parts, rest)
        for own, other in (sides, sides[::-1]):
            policy: Any = choose(own)
            found.append(float(value(policy, own)) - float(value(policy, other)))
    return summarize(np.array(found))


def summarize(differences: Floats) -> Curse:
    """Return mean and spread of the differences between halves.

    The two differences of one pair, and overlapping halves, depend on each other; the standard
    error is therefore the one of as many differences as there are pairs.

    Examples
    --------
    >>> curse = summarize(np.array([0.1, 0.3, 0.1, 0.3]))
    >>> round(curse.mean, 3), round(curse.spread, 3)
    (0.2, 0.115)
    """
    if not np.all(np.isfinite(differences)):
        raise ValueError(
            "a half of the log has no finite value for the policy chosen on the other."
        )
    sd = float(differences.std(ddof=1))
    pairs = differences.reshape(-1, 2).mean(axis=1)
    error = float(pairs.std(ddof=1)) / np.sqrt(len(pairs)) if len(pairs) > 1 else sd
    return Curse(
        mean=max(0.0, float(differences.mean())),
        spread=float(np.hypot(sd, error)),
        differences=differences,
    )
