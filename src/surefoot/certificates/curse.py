"""The curse of choosing, measured by the log itself.

A policy chosen on part of a log looks better there than on the rest: by how much is an estimate of
what the choice owes to luck. ``c = mean of v_X(pi_X) - v_Y(pi_X)`` over random halves (X, Y) of the
log, each used both ways, and not below 0. There is no proof behind it: how much it leaves broken is
counted, not derived (docs/guarantee.md).
"""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from surefoot.certificates.evidence import Curse
from surefoot.certificates.halves import Log, with_rows_of
from surefoot.data.buckets import NUM_BUCKETS
from surefoot.solvers.solver import evaluate

DEFAULT_HALVES = 6
"""Pairs of halves; each gives two differences."""
FEW_HALVES, MANY_ROWS = 2, 5000
"""Larger models have fewer, which cost as much; their luck averages over more rows."""
WHOLE = 0.5**0.5
"""Luck shrinks with the root of the data, and a half has half of them."""

Floats = NDArray[np.float64]


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


def curse_of_choosing(log: Log, *, halves: int | None = None, seed: int) -> Curse:
    """Choose on one half of a log, value on both, and return the difference.

    A half values rows that it never tried as the other does: of those it can say nothing.
    """
    if halves is None:
        halves = DEFAULT_HALVES if log.mdp.num_rows <= MANY_ROWS else FEW_HALVES
    found: list[float] = []
    for chosen in balanced_halves(halves, seed):
        rest = np.setdiff1d(np.arange(NUM_BUCKETS), chosen)
        sides = log.half(np.array(chosen)), log.half(rest)
        for own, other in (sides, sides[::-1]):
            policy = log.choose(own)
            seen = evaluate(own.mdp, policy).return_lower
            checked = evaluate(with_rows_of(other, own), policy).return_lower
            found.append(seen - checked)
    return summarize(np.array(found))


def summarize(differences: Floats) -> Curse:
    """Return what choosing on the whole log costs, and its standard error.

    The two differences of one pair depend on each other; the standard error is therefore that of
    as many differences as there are pairs.

    Examples
    --------
    >>> curse = summarize(np.array([0.1, 0.3, 0.3, 0.5]))
    >>> round(curse.mean, 3), round(curse.spread, 3)
    (0.212, 0.071)
    """
    pairs = differences.reshape(-1, 2).mean(axis=1)
    error = float(pairs.std(ddof=1) / np.sqrt(len(pairs))) if len(pairs) > 1 else 0.0
    mean = max(0.0, float(differences.mean()))
    return Curse(mean=WHOLE * mean, spread=WHOLE * error, differences=differences)
