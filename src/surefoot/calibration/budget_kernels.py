"""Smallest budgets that concentration inequalities allow, by bisection in log space.

``w`` holds a row's weights sorted from large to small, ``n`` is its number of samples. Every bound
decreases in the budget. Powers of two are kept as logarithms, so that rows with thousands of
successors neither overflow nor lose digits.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot._compile import kernel

Floats = NDArray[np.float64]

LOG2 = math.log(2.0)
HOEFFDING_LINF, HOEFFDING_L1, BERNSTEIN_L1, WEIGHTED_L1 = 0, 1, 2, 3
MAX_STEPS = 2000
OUTWARD = 1.0 + 1e-12
"""Factor by which budgets are rounded up: a sum of thousands of logarithms is not exact."""


@kernel()
def log_term(kind: int, w: Floats, i: int, n: float, psi: float) -> Any:
    """Return the logarithm of the ``i``-th term of a bound (0-based, weights sorted)."""
    k = len(w)
    if kind == HOEFFDING_LINF:
        return LOG2 - 2.0 * n * (psi / w[i]) ** 2 if w[i] > 0.0 else -np.inf
    if kind == WEIGHTED_L1:
        return (k - i) * LOG2 - 2.0 * n * (psi / (w[0] + w[i])) ** 2
    if w[i] == 0.0:
        return -np.inf
    ratio = psi / w[i]
    if kind == HOEFFDING_L1:
        return (k - i) * LOG2 - 0.5 * n * ratio * ratio
    return (k - i) * LOG2 - 3.0 * n * ratio * ratio / (6.0 + 4.0 * ratio)


@kernel()
def log_bound(kind: int, w: Floats, n: float, psi: float) -> Any:
    """Return the logarithm of the bound on ``P[distance >= psi]`` for one row; O(k).

    Hoeffding L-infinity: ``2 sum_i exp(-2 n psi^2/w_i^2)``. Hoeffding L1:
    ``2 sum_{i<k} 2^(k-i) exp(-n psi^2/(2 w_i^2))``; Bernstein L1 with
    ``exp(-3 n psi^2/(6 w_i^2 + 4 psi w_i))``. Weighted L1:
    ``sum_{j>=2} 2^(k-j+1) exp(-2 n psi^2/(w_1 + w_j)^2)``.
    """
    first = 1 if kind == WEIGHTED_L1 else 0
    last = len(w) if kind in (HOEFFDING_LINF, WEIGHTED_L1) else len(w) - 1
    largest = -np.inf
    for i in range(first, last):
        largest = max(largest, log_term(kind, w, i, n, psi))
    if largest == -np.inf:
        return largest
    total = 0.0
    for i in range(first, last):
        total += math.exp(log_term(kind, w, i, n, psi) - largest)
    return largest + math.log(total)


@kernel()
def smallest_budget(kind: int, w: Floats, n: float, log_level: float) -> Any:
    """Return the smallest budget whose bound is at most the level, rounded up by ``OUTWARD``."""
    if w[0] == 0.0:
        return 0.0
    if n == 0.0:
        return np.inf
    high = w[0]
    while log_bound(kind, w, n, high) > log_level:
        high *= 2.0
    low = 0.0
    for _ in range(MAX_STEPS):
        middle = low + 0.5 * (high - low)
        if not low < middle < high:
            break
        if log_bound(kind, w, n, middle) <= log_level:
            high = middle
        else:
            low = middle
    return high * OUTWARD


@kernel()
def row_budgets(
    kind: int, row_start: Any, weights: Floats, samples: Floats, log_level: Floats, out: Floats
) -> None:
    """Write the smallest budget of every row to ``out``; rows with one successor get 0."""
    for r in range(len(row_start) - 1):
        if row_start[r + 1] - row_start[r] < 2:
            out[r] = 0.0
            continue
        w = np.sort(weights[row_start[r] : row_start[r + 1]])[::-1].copy()
        out[r] = smallest_budget(kind, w, samples[r], log_level[r])


@kernel()
def kl_budget(k: int, n: float, log_level: float) -> Any:
    """Return the smallest ``eps > (k-1)/n`` with ``e^(-n eps) (e eps n/(k-1))^(k-1) <= level``.

    With ``eps = (1 + y)(k-1)/n``, equality means ``y - log1p(y) = -log(level)/(k-1)``: bisection.
    """
    if k < 2:
        return 0.0
    if n == 0.0:
        return np.inf
    target = -log_level / (k - 1)
    high = 1.0
    while high - math.log1p(high) < target:
        high *= 2.0
    low = 0.0
    for _ in range(MAX_STEPS):
        middle = low + 0.5 * (high - low)
        if not low < middle < high:
            break
        if middle - math.log1p(middle) >= target:
            high = middle
        else:
            low = middle
    return (1.0 + high) * (k - 1) / n * OUTWARD
