"""Normal mean rewards, pooled within each row and across the rows of each action.

A search for the best policy prefers rows that were lucky. Where the means of an action scatter
little, a mean far from the others is mostly luck, and its posterior must reflect that. For entry
``e`` of row ``r`` of one action, seen ``n_e`` times with mean ``x_e``::

    x_e ~ N(mean_e, sigma^2 / n_e)
    mean_e ~ N(row_r, within sigma^2)
    row_r ~ N(level, between sigma^2)

with flat priors of level, log sigma and, on a grid, the logarithms of the two ratios. Given the
ratios, everything else is conjugate. So a draw picks a pair of ratios by its exact weight, then
draws sigma, level, rows and means: draws are independent, without a Markov chain.
"""

from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from surefoot.data.counts import Counts
from surefoot.data.reward_uncertainty import mean_rewards, pooled_variance, uncertain_rewards
from surefoot.posterior.dirichlet_kernels import BLOCK_DRAWS
from surefoot.posterior.normal_kernels import normal_columns
from surefoot.posterior.of_counts import Key
from surefoot.posterior.rows import Floats, Ints

GRID = 27
"""Number of values of each ratio, evenly spaced in their logarithm."""
LEAST_RATIO = 1e-4
MOST_RATIO = 1e4
"""The ends of the grid; the upper end is larger where the observed means scatter more."""


class Common(NamedTuple):
    """Draws ``(n, A)`` of what an action's entries share; ``place`` is the index of ``within``."""

    place: Ints
    within: Floats
    between: Floats
    sigma: Floats
    level: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class PooledRewards:
    """The pooled posterior of the mean rewards of all rows and actions.

    Attributes
    ----------
    row_action, num_entries
        The action of each row; the number of entries, whose streams come before those of rows.
    ratio
        ``(A, G)``; the grid of both ratios.
    row_mean, row_precision
        ``(G, R)``; a row's mean and its precision times sigma^2, for each ``within``.
    cumulative
        ``(A, G^2)``; cumulative posterior probabilities of pairs of ratios.
    level, precision, square
        ``(A, G^2)``; given a pair, ``level ~ N(level, sigma^2 / precision)`` and
        ``sigma^2 = square / chi-square(freedom)``.
    freedom
        ``(A,)``; degrees of freedom of sigma^2.
    """

    row_action: Ints
    num_entries: int
    ratio: Floats
    row_mean: Floats
    row_precision: Floats
    cumulative: Floats
    level: Floats
    precision: Floats
    square: Floats
    freedom: Floats

    def common(self, key: Key, begin: int, last: int) -> Common:
        """Return draws ``begin..last-1`` of what entries share; ``begin`` starts a block."""
        blocks = range(begin // BLOCK_DRAWS, -(-last // BLOCK_DRAWS))
        uniform, chi, normal = (
            np.concatenate(part)[: last - begin]
            for part in zip(*(self._variates(key, block) for block in blocks), strict=True)
        )
        actions = np.arange(len(self.freedom))
        pair = np.stack(
            [np.searchsorted(self.cumulative[a, :-1], uniform[:, a]) for a in actions], 1
        )
        sigma = np.sqrt(self.square[actions, pair] / chi)
        level = self.level[actions, pair] + sigma / np.sqrt(self.precision[actions, pair]) * normal
        place = pair // GRID
        return Common(
            place, self.ratio[actions, place], self.ratio[actions, pair % GRID], sigma, level
        )

    def rows(self, key: Key, begin: int, last: int, common: Common, rows: Ints) -> Floats:
        """Return draws of the means of some rows; their streams come after those of all entries."""
        normal = np.empty((last - begin, len(rows)))
        normal_columns(self.num_entries + rows, np.arange(len(rows)), *key, begin, last, normal)
        action = self.row_action[rows]
        place, between = common.place[:, action], common.between[:, action]
        mean = self.row_mean[place, rows]
        pull = 1.0 / (1.0 + between * self.row_precision[place, rows])
        spread = common.sigma[:, action] * np.sqrt(between * pull)
        return np.asarray(mean + pull * (common.level[:, action] - mean) + spread * normal)

    def _variates(self, key: Key, block: int) -> tuple[Floats, Floats, Floats]:
        rng = np.random.default_rng([*map(int, key), block])
        size = (BLOCK_DRAWS, len(self.freedom))
        return rng.random(size), rng.chisquare(self.freedom, size), rng.standard_normal(size)


class _RowSums(NamedTuple):
    """Statistics of rows with uncertain entries at one ``within``, entry means integrated out.

    ``apart`` is the weighted sum of squares of entries around their row, ``log_weight`` the
    logarithm of the normalising constants without sigma.
    """

    mean: Floats
    precision: Floats
    apart: Floats
    log_weight: Floats


class _Actions(NamedTuple):
    """The same for actions, with rows integrated out too: ``(A, G)``, a column per ``between``."""

    level: Floats
    precision: Floats
    apart: Floats
    log_weight: Floats


_pooled: WeakKeyDictionary[Counts, PooledRewards] = WeakKeyDictionary()


def pool_rewards(counts: Counts) -> PooledRewards:
    """Return the pooled posterior of the uncertain entries, cached as long as the counts live."""
    if counts not in _pooled:
        _pooled[counts] = _pool(counts)
    return _pooled[counts]


def pooled_means(counts: Counts) -> Floats:
    """Return ``(R,)``: the mean of each row's uncertain rewards, by the tries, after pooling.

    It is NaN where a row has none. O(GRID entries + GRID^2 rows).

    Examples
    --------
    >>> from surefoot.data.transitions import read_transitions
    >>> log = {"state": [0, 0, 1, 1, 2, 2], "action": [0] * 6, "next_state": [1, 1, 2, 2, 0, 0],
    ...        "reward": [0.0, 1.0, 0.0, 1.0, 1.0, 1.0]}
    >>> pooled_means(read_transitions(log)).round(2).tolist()  # two ones are luck, mostly
    [0.62, 0.62, 0.76]
    """
    pooled, which = pool_rewards(counts), np.flatnonzero(uncertain_rewards(counts))
    row, action = counts.entry_row[which].astype(np.int64), counts.entry_action[which]
    size, seen = counts.count[which].astype(np.float64), mean_rewards(counts)[which]
    weight = np.diff(pooled.cumulative, axis=1, prepend=0.0).reshape(-1, GRID, GRID)
    level = pooled.level.reshape(weight.shape)
    total = np.zeros(counts.num_rows)
    for place in range(GRID):
        pull = 1.0 / (1.0 + pooled.ratio[action, place] * size)
        own = np.bincount(row, size * (1.0 - pull) * seen, counts.num_rows)
        shared = np.bincount(row, size * pull, counts.num_rows)
        for other in range(GRID):
            chance = weight[counts.row_action, place, other]
            mean = pooled.row_mean[place]
            toward = 1.0 / (
                1.0 + pooled.ratio[counts.row_action, other] * pooled.row_precision[place]
            )
            mean = mean + toward * (level[counts.row_action, place, other] - mean)
            total += chance * (own + shared * mean)
    tries = np.bincount(row, size, counts.num_rows)
    return np.asarray(np.divide(total, tries, out=np.full_like(total, np.nan), where=tries > 0))


def _pool(counts: Counts) -> PooledRewards:
    """Return the pooled posterior of the uncertain entries. O(GRID entries + GRID^2 rows)."""
    which = np.flatnonzero(uncertain_rewards(counts))
    used, row = np.unique(counts.entry_row[which], return_inverse=True)
    action = counts.row_action[used]
    size, means = counts.count[which].astype(np.float64), mean_rewards(counts)[which]
    variance, freedom = pooled_variance(counts)
    ratio = _grid(action[row], means, variance)
    rows = [_sum_out_entries(row, size, means, ratio[action, j][row]) for j in range(GRID)]
    pairs = [_sum_out_rows(action, part, ratio) for part in rows]
    level, precision, apart, log_weight = (
        np.concatenate(part, axis=1) for part in zip(*pairs, strict=True)
    )
    square = (freedom * variance)[:, None] + apart
    # An action without uncertain entries is never drawn; 1 keeps its arithmetic harmless.
    square[square <= 0] = 1.0
    number = np.bincount(action[row], minlength=counts.num_actions)
    freedom = freedom + np.maximum(number - 1, 0)
    log_weight -= 0.5 * freedom[:, None] * np.log(square)
    weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
    cumulative = np.cumsum(weight, axis=1)
    row_mean, row_precision = np.zeros((2, GRID, counts.num_rows))
    row_mean[:, used] = [part.mean for part in rows]
    row_precision[:, used] = [part.precision for part in rows]
    return PooledRewards(
        row_action=counts.row_action, num_entries=counts.num_entries, ratio=ratio,
        row_mean=row_mean, row_precision=row_precision,
        cumulative=cumulative / cumulative[:, -1:], level=level, precision=precision,
        square=square, freedom=freedom,
    )  # fmt: skip


def _sum_out_entries(row: Ints, size: Floats, means: Floats, within: Floats) -> _RowSums:
    def sums(values: Floats) -> Floats:
        return np.bincount(row, values).astype(np.float64)

    share = 1.0 / (within + 1.0 / size)
    precision = sums(share)
    mean = sums(share * means) / precision
    apart = sums(share * (means - mean[row]) ** 2)
    return _RowSums(mean, precision, apart, 0.5 * (sums(np.log(share)) - np.log(precision)))


def _sum_out_rows(action: Ints, rows: _RowSums, between: Floats) -> _Actions:
    def sums(values: Floats) -> Floats:
        return np.stack([np.bincount(action, part, len(between)) for part in values.T], axis=1)

    share = 1.0 / (between[action] + 1.0 / rows.precision[:, None])
    precision = sums(share)
    precision[precision <= 0] = 1.0
    mean = rows.mean[:, None]
    level = sums(share * mean) / precision
    apart = sums(share * (mean - level[action]) ** 2 + rows.apart[:, None])
    log_weight = sums(0.5 * np.log(share) + rows.log_weight[:, None]) - 0.5 * np.log(precision)
    return _Actions(level, precision, apart, log_weight)


def _grid(action: Ints, means: Floats, variance: Floats) -> Floats:
    """Return ``(A, G)`` ratios, reaching high enough for the scatter of the observed means."""
    low, high = np.full((2, len(variance)), np.nan)
    np.fmin.at(low, action, means)
    np.fmax.at(high, action, means)
    reach = np.nan_to_num(high - low) ** 2
    most = np.divide(reach, variance, out=np.zeros_like(reach), where=variance > 0)
    return np.geomspace(LEAST_RATIO, np.maximum(MOST_RATIO, 100.0 * most), GRID, axis=1)
