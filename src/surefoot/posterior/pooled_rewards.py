"""Normal mean rewards that know of each other: the mean rewards of one action scatter too.

A search prefers entries that were lucky. Where means of one action are known to scatter little, a
mean far from the others is mostly luck, and its law must say so. For entry ``e`` of an action,
seen ``n_e`` times with mean ``x_e``::

    x_e ~ N(mean_e, sigma^2 / n_e),   mean_e ~ N(level, ratio sigma^2)

with a flat prior of level and log sigma, and a half-Cauchy one of the root of ratio (Gelman 2006,
Bayesian Analysis 1). The ratio lives on a grid; given it, everything else is conjugate. So a draw
takes a ratio by its exact weight, then sigma, level and means: draws are independent, there is no
chain.
"""

from dataclasses import dataclass

import numpy as np

from surefoot.data.counts import Counts
from surefoot.data.reward_uncertainty import mean_rewards, pooled_variance, uncertain_rewards
from surefoot.posterior.dirichlet import Key
from surefoot.posterior.dirichlet_kernels import BLOCK_DRAWS
from surefoot.posterior.rows import Floats, Ints

GRID = 64
"""Ratios tried per action, evenly spaced in their logarithm."""
LEAST_RATIO = 1e-3
MOST_RATIO = 1e4
"""Where the grid ends, unless the means seen scatter more than that."""


@dataclass(frozen=True, eq=False)
class PooledRewards:
    """What the entries of each action say together: arrays ``(A, GRID)``, one column a ratio.

    Attributes
    ----------
    ratio, weight
        Variance between means over variance of a reward, and its posterior probability.
    level, precision
        The posterior of the level given ratio and sigma: ``N(level, sigma^2 / precision)``.
    square, freedom
        That of the variance given ratio: ``sigma^2 = square / chi-square(freedom)``; ``freedom`` is
        ``(A,)``.
    """

    ratio: Floats
    weight: Floats
    level: Floats
    precision: Floats
    square: Floats
    freedom: Floats

    def draws(self, key: Key, begin: int, last: int) -> tuple[Floats, Floats, Floats]:
        """Return ``(n, A)`` draws of level, sigma and ratio; ``begin`` starts a block."""
        blocks = range(begin // BLOCK_DRAWS, -(-last // BLOCK_DRAWS))
        uniform, chi, normal = (
            np.concatenate(part)[: last - begin]
            for part in zip(*(self._variates(key, block) for block in blocks), strict=True)
        )
        below = np.cumsum(self.weight, axis=1)[:, :-1]
        place = np.sum(uniform[:, :, None] > below, axis=2)
        at = (np.arange(len(self.freedom)), place)
        deviation = np.sqrt(self.square[at] / chi)
        level = self.level[at] + deviation / np.sqrt(self.precision[at]) * normal
        return level, deviation, self.ratio[at]

    def _variates(self, key: Key, block: int) -> tuple[Floats, Floats, Floats]:
        rng = np.random.default_rng([*map(int, key), block])
        size = (BLOCK_DRAWS, len(self.freedom))
        return rng.random(size), rng.chisquare(self.freedom, size), rng.standard_normal(size)


def pool_rewards(counts: Counts) -> PooledRewards:
    """Return what the uncertain entries of each action say together. O(GRID entries)."""
    which = np.flatnonzero(uncertain_rewards(counts))
    action = counts.entry_action[which]
    size = counts.count[which].astype(np.float64)
    means = mean_rewards(counts)[which]
    variance, freedom = pooled_variance(counts)
    number = np.bincount(action, minlength=counts.num_actions)
    ratio = _grid(action, means, variance)
    share = 1.0 / (ratio[action] + 1.0 / size[:, None])
    # An action without uncertain entries takes part in no draw; 1 keeps its arithmetic harmless.
    precision = np.where(number[:, None] > 0, _sums(action, share, counts.num_actions), 1.0)
    level = _sums(action, share * means[:, None], counts.num_actions) / precision
    apart = _sums(action, share * (means[:, None] - level[action]) ** 2, counts.num_actions)
    square = (freedom * variance)[:, None] + apart
    square = np.where(number[:, None] > 0, square, 1.0)
    freedom = freedom + np.maximum(number - 1, 0)
    log_weight = (
        0.5 * np.log(ratio) - np.log1p(ratio)  # half-Cauchy root, per step of the logarithm
        + 0.5 * _sums(action, np.log(share), counts.num_actions)
        - 0.5 * np.log(precision) - 0.5 * freedom[:, None] * np.log(square)
    )  # fmt: skip
    weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    return PooledRewards(ratio, weight, level, precision, square, freedom)


def _grid(action: Ints, means: Floats, variance: Floats) -> Floats:
    """Return ``(A, GRID)`` ratios, far enough up for means that scatter as those seen."""
    low, high = np.full((2, len(variance)), np.nan)
    for end, pick in ((low, np.fmin), (high, np.fmax)):
        pick.at(end, action, means)
    reach = np.nan_to_num(high - low) ** 2
    most = np.divide(reach, variance, out=np.zeros_like(reach), where=variance > 0)
    return np.geomspace(LEAST_RATIO, np.maximum(MOST_RATIO, 100.0 * most), GRID, axis=1)


def _sums(action: Ints, values: Floats, num_actions: int) -> Floats:
    """Return ``(A, GRID)``: the sums of the entries of each action."""
    out = np.zeros((num_actions, values.shape[1]))
    np.add.at(out, action, values)
    return out
