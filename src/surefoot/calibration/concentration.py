"""How far observed frequencies may be from the truth: budgets of one row, at a given level.

Every function here guarantees: if ``n`` next states are drawn from the true row, then the true row
lies outside the set with probability at most ``level``.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainccinv, betaincinv

from surefoot._arguments import check_choice, check_inside
from surefoot.calibration import budget_kernels as kernels
from surefoot.model.checks import as_float_array

Floats = NDArray[np.float64]

BOUNDS = {
    "hoeffding_linf": kernels.HOEFFDING_LINF,
    "hoeffding_l1": kernels.HOEFFDING_L1,
    "bernstein_l1": kernels.BERNSTEIN_L1,
    "weighted_l1": kernels.WEIGHTED_L1,
}
OUTWARD = 1e-13
"""Relative amount by which confidence limits are moved outwards, to cover their rounding."""


def norm_budget(kind: str, weights: ArrayLike, *, samples: float, level: float) -> float:
    """Return the smallest budget of a weighted norm ball that satisfies a bound at a level.

    ========================= =============================================================
    ``"hoeffding_linf"``      ``2 sum_i exp(-2 n psi^2/w_i^2) <= level``
    ``"hoeffding_l1"``        ``2 sum_{i<K} 2^(K-i) exp(-n psi^2/(2 w_i^2)) <= level``
    ``"bernstein_l1"``        ``2 sum_{i<K} 2^(K-i) exp(-3 n psi^2/(6 w_i^2 + 4 psi w_i)) <= level``
    ``"weighted_l1"``         ``sum_{j>=2} 2^(K-j+1) exp(-2 n psi^2/(w_1 + w_j)^2) <= level``
    ========================= =============================================================

    with weights sorted from large to small. The Bernstein bound, as printed by Behzadian et al.
    (2021), is looser than Hoeffding's for every budget. The weighted bound is the sharpest: the
    norm is a maximum over sign vectors that have both signs (deviations sum to 0). Each sign vector
    gives a mean of variables with range ``w_1 + w_j``, where j is the first index whose sign
    differs from that of index 1. For equal weights it is the bound of Weissman et al. (2003).

    Examples
    --------
    >>> round(norm_budget("weighted_l1", [1.0, 1.0, 1.0], samples=100, level=0.05), 4)
    0.3094
    >>> round(norm_budget("hoeffding_l1", [1.0, 1.0, 1.0], samples=100, level=0.05), 4)
    0.3311
    """
    check_choice("kind", kind, BOUNDS)
    w = np.sort(as_float_array("weights", weights))[::-1].copy()
    if w.ndim != 1 or len(w) < 2 or not (np.all(w >= 0) and np.all(np.isfinite(w))):
        raise ValueError("weights must be two or more finite numbers, 0 or more.")
    _check(samples, level)
    return float(kernels.smallest_budget(BOUNDS[kind], w, float(samples), math.log(level)))


def kl_budget(successors: int, *, samples: float, level: float) -> float:
    """Return the size of the KL ball around observed frequencies at a level (Agrawal 2020).

    It is the smallest ``eps > (K-1)/n`` with ``e^(-n eps) (e eps n/(K-1))^(K-1) <= level``.

    Examples
    --------
    >>> round(kl_budget(3, samples=100, level=0.05), 4)
    0.0769
    """
    _check(samples, level)
    if not successors >= 1:
        raise ValueError(f"successors={successors!r}; a row has at least one.")
    return float(kernels.kl_budget(int(successors), float(samples), math.log(level)))


def clopper_pearson(
    count: ArrayLike, samples: ArrayLike, level: ArrayLike
) -> tuple[Floats, Floats]:
    """Return exact confidence limits of probabilities (Clopper and Pearson 1934).

    Each of the two limits fails with probability at most ``level``. ``count`` of ``samples`` draws
    hit the entry; without samples the limits are 0 and 1.

    Examples
    --------
    >>> low, high = clopper_pearson([0, 3], [10, 10], 0.025)
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.0, 0.0667], [0.3085, 0.6525])
    """
    hits, n, side = np.broadcast_arrays(
        as_float_array("count", count),
        as_float_array("samples", samples),
        as_float_array("level", level),
    )
    if not np.all((hits >= 0) & (hits <= n)):
        raise ValueError("count must lie between 0 and samples.")
    if not np.all((side > 0) & (side < 1)):
        raise ValueError("level must lie between 0 and 1.")
    low, high = np.zeros(hits.shape), np.ones(hits.shape)
    some, short = hits > 0, hits < n
    low[some] = betaincinv(hits[some], n[some] - hits[some] + 1, side[some]) * (1 - OUTWARD)
    beyond: Any = betainccinv(hits[short] + 1, n[short] - hits[short], side[short])
    high[short] = np.minimum(beyond * (1 + OUTWARD), 1.0)
    return low, high


def _check(samples: float, level: float) -> None:
    if not samples >= 0:
        raise ValueError(f"samples={samples!r}; it must be 0 or more.")
    check_inside("level", level)
