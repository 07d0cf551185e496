"""Whether the early part of an episode predicts its late part, given state and action.

In a Markov world, what a step brings, ``z = r + discount v(s')``, has the same mean whenever its
row (state and action) is played: what came before in the episode does not help to predict it. If
something that stays with an episode (such as a type of patient) is missing from the state, steps
that came out better than their rows' means are followed by more such steps, or by fewer.

The statistic is ``T = sum over episodes of g``, ``g = sum_t u_t h_t``, ``h_t = sum_{k<t} w_k``: the
residual of a step times the sum of the earlier residuals of its episode. Both are residuals within
rows, so that behaviour may choose actions in any way, even by learning. Row means come from *other*
episodes, and those of ``u`` and of ``w`` from two different halves of the log: with one common mean
both factors would contain the same error, and a row that is played often would seem to have memory.
``T / sqrt(sum g^2)`` is then approximately normal (by a martingale central limit theorem).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

FEWEST = 30
"""With fewer informative episodes there is no p-value.

Heavy tails of ``g`` make the tails of the statistic lighter, not heavier, because it is divided by
its own spread (for symmetric ``g``, ``P[T / sqrt(sum g^2) > x] <= exp(-x^2/2)`` in any sample).
"""

ROUNDING = 1e-9
"""Residuals below this share of the largest value are rounding errors of sums, not noise."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Whether the past of an episode predicts its future.

    Attributes
    ----------
    statistic
        About standard normal without memory; positive if good steps follow good steps.
    p_value
        Two-sided; None if too few episodes are informative.
    informative
        How many episodes are informative: they have a past, in rows that others played too.
    """

    statistic: float
    p_value: float | None
    informative: int


def early_and_late(start: Ints, row: Ints, value: Floats, half: NDArray[np.bool_]) -> Memory:
    """Test whether earlier residuals of an episode predict later ones, row by row.

    Parameters
    ----------
    start
        ``(N+1,)``; episode ``i`` owns the steps ``start[i]:start[i+1]``, in order.
    row
        ``(M,)``; the state-action pair of each step.
    value
        ``(M,)``; what the step brought: the reward plus the discounted value of the next state,
        from any fixed value function. One estimated from the log as a whole will do.
    half
        ``(N,)``; a random split of the episodes in two, such as by their buckets.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> start, row = np.arange(0, 1001, 10), np.zeros(1000, dtype=int)
    >>> half, noise = np.arange(100) % 2 == 0, rng.normal(size=1000)
    >>> early_and_late(start, row, noise, half).p_value > 0.05
    True
    >>> kind = np.repeat(rng.normal(size=100), 10)  # stays with the episode, not in the state
    >>> early_and_late(start, row, noise + kind, half).p_value < 1e-3
    True
    """
    lengths = np.diff(start)
    episode = np.repeat(np.arange(len(lengths)), lengths)
    inside = half[episode]
    parts = np.zeros(len(lengths))
    for side in (inside, ~inside):
        own = _residuals(episode, row, value, side)
        past = _earlier(start, lengths, _residuals(episode, row, value, ~side))
        parts += np.bincount(episode, np.where(side, own * past, 0.0), len(lengths))
    square = float((parts**2).sum())
    if square == 0:
        return Memory(statistic=0.0, p_value=None, informative=0)
    informative = int(np.count_nonzero(parts))
    statistic = float(parts.sum()) / np.sqrt(square)
    p_value = 2 * float(stats.norm.sf(abs(statistic)))
    return Memory(
        statistic=statistic,
        p_value=p_value if informative >= FEWEST else None,
        informative=informative,
    )


def _residuals(episode: Ints, row: Ints, value: Floats, use: NDArray[np.bool_]) -> Floats:
    """Return each step's value minus the mean of its row over the *other* episodes in ``use``.

    0 where no other episode in ``use`` played the row.
    """
    rows = int(row.max(initial=-1)) + 1
    weight = use.astype(np.float64)
    _, visit = np.unique(row * (int(episode[-1]) + 1) + episode, return_inverse=True)
    own_count, own_sum = np.bincount(visit, weight), np.bincount(visit, weight * value)
    count = np.bincount(row, weight, rows)[row] - own_count[visit]
    total = np.bincount(row, weight * value, rows)[row] - own_sum[visit]
    residual = np.where(count > 0.5, value - total / np.maximum(count, 1.0), 0.0)
    # If a row always brings the same, its residuals are rounding errors, which have patterns.
    least = ROUNDING * float(np.abs(value).max(initial=0.0))
    return np.where(np.abs(residual) > least, residual, 0.0)


def _earlier(start: Ints, lengths: Ints, residual: Floats) -> Floats:
    """Return the sum of the residuals before each step of the same episode."""
    before = np.cumsum(residual) - residual
    filled = lengths > 0
    return before - np.repeat(before[start[:-1][filled]], lengths[filled])
