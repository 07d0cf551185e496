"""A lower bound for the mean of non-negative numbers that holds in finite samples.

Let ``Y_i >= 0`` and ``nu_i = E[Y_i | what came before]``. For any ``theta > 0`` fixed beforehand,
``prod (1 + theta Y_i) / (1 + theta nu_i)`` has mean 1, and since the logarithm is concave
``prod (1 + theta nu_i) <= (1 + theta nu)^n`` where ``nu`` is the average of the ``nu_i``. By
Markov's inequality

    P[ sum_j w_j prod_i (1 + theta_j Y_i) / (1 + theta_j nu)^n >= 1/delta ] <= delta

for fixed weights ``w_j`` that sum to 1. The sum decreases in ``nu``: the bound is where it crosses
``1/delta``. With ``lambda = theta / (1 + theta nu)`` each factor is the bet
``1 + lambda (Y - nu)`` (Waudby-Smith and Ramdas 2024). The bets do not change from one number to
the next, which is why the statement holds for numbers that are neither identically distributed nor
independent: for a behaviour that learns, ``nu`` is the average over the episodes of the log. The
number ``n``, on which the bets depend, must be fixed in advance: the log must not have been stopped
because of what it showed.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot._arguments import check_inside

SPREADS = 0.25 * 4.0 ** -np.arange(7)
"""Standard deviations, in units of the scale; each has one bet that is about optimal for it."""
WEIGHTS = 0.5 ** np.arange(1, 8) / (1 - 0.5**7)
"""The weight of each bet, most for large spreads: most returns scatter over much of their range."""
BISECTIONS = 50
BLOCK = 65536

Floats = NDArray[np.float64]


def mean_above(values: ArrayLike, *, delta: float, scale: float) -> float:
    """Return a lower bound on the mean of non-negative values, wrong with probability ``delta``.

    Parameters
    ----------
    values
        ``(n,)``, each 0 or more; the head of this file says what "mean" means for values that are
        not identically distributed or depend on each other.
    delta
        In (0, 1).
    scale
        A typical size, fixed before the values are seen (such as their possible range). Any
        positive number is valid; one far off makes the bound loose.

    Notes
    -----
    The bet that is best at standard deviation ``sigma`` is about
    ``sqrt(2 log(1/delta) / n) / sigma``; a mixture over seven sigmas costs little more than knowing
    the best one. O(7 n).

    Examples
    --------
    >>> values = np.random.default_rng(0).random(200)
    >>> round(mean_above(values, delta=0.05, scale=1.0), 3), round(float(values.mean()), 3)
    (0.48, 0.54)
    >>> mean_above([0.0, 0.0, 0.0], delta=0.05, scale=1.0)
    0.0
    """
    numbers = np.asarray(values, dtype=np.float64)
    _check(numbers, delta, scale)
    size = len(numbers)
    if not numbers.any():  # no bet can win anything, whatever the scale
        return 0.0
    bets = np.sqrt(2 * np.log(1 / delta) / size) / (SPREADS * scale)
    wealth = sum(
        np.log1p(np.multiply.outer(bets, numbers[i : i + BLOCK])).sum(axis=1)
        for i in range(0, size, BLOCK)
    ) + np.log(WEIGHTS)
    low, high = 0.0, float(numbers.mean())
    if _log_evidence(wealth, bets, low, size) < -np.log(delta):
        return 0.0
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        if _log_evidence(wealth, bets, middle, size) >= -np.log(delta):
            low = middle
        else:
            high = middle
    return low


def _log_evidence(wealth: Floats, bets: Floats, mean: float, size: int) -> float:
    """Return the logarithm of the mixture at one mean; it decreases in the mean."""
    return _log_sum(wealth - size * np.log1p(bets * mean))


def _log_sum(log: Floats) -> float:
    """Return the logarithm of a sum, from the logarithms of its terms."""
    largest = log.max()
    return float(largest + np.log(np.exp(log - largest).sum()))


ANYTIME_BETS = 2.0 ** -np.arange(18)
"""Bets, in units of ``1 / scale``, for any number of values: from a few to billions."""
ANYTIME_WEIGHTS = 1.0 / ((np.arange(18) + 1) * (np.arange(18) + 2)) * (19 / 18)
"""The weight of each bet; they sum to 1."""


def anytime_evidence(values: ArrayLike, means: ArrayLike, count: ArrayLike, scale: float) -> float:
    """Return the logarithm of the evidence that non-negative values lie above their means.

    Parameters
    ----------
    values, means
        ``(n,)``: values 0 or more, and the claimed upper bound on the mean of each (above 0).
    count
        ``(n,)``: how often each occurred.
    scale
        A typical size of the values, fixed before they are seen.

    Notes
    -----
    ``sum_j w_j prod_i (1 + theta_j Y_i) / (1 + theta_j m_i)`` with fixed bets and weights. If
    ``E[Y_i | what came before] <= m_i`` for all i, this is a supermartingale that starts at 1: the
    probability that it *ever* reaches ``1/alpha`` is at most alpha (Ville), so one may look again
    after every new value. The order of the values does not matter. O(18 n).

    Examples
    --------
    >>> import math
    >>> rng = np.random.default_rng(0)
    >>> low, high = rng.random(400), 0.2 + rng.random(400)
    >>> ones = np.ones(400)
    >>> anytime_evidence(low, 0.5 * ones, ones, 1.0) < math.log(100)
    True
    >>> anytime_evidence(high, 0.5 * ones, ones, 1.0) > math.log(100)
    True
    """
    found = np.asarray(values, dtype=np.float64)
    expected = np.asarray(means, dtype=np.float64)
    often = np.asarray(count, dtype=np.float64)
    _check(found, 0.5, scale)
    log = np.log(ANYTIME_WEIGHTS)
    for j, bet in enumerate(ANYTIME_BETS / scale):
        log[j] += float(often @ (np.log1p(bet * found) - np.log1p(bet * expected)))
    return _log_sum(log)


def _check(values: Floats, delta: float, scale: float) -> None:
    if values.ndim != 1 or not np.all((values >= 0) & np.isfinite(values)):
        raise ValueError("values must be a one-dimensional array of finite numbers, 0 or more.")
    check_inside("delta", delta)
    if not (scale > 0 and np.isfinite(scale)):
        raise ValueError(f"scale={scale}; it must be positive and finite.")
