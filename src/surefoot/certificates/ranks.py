"""Which order statistic of ``n`` draws bounds a quantile, and with what certainty."""

import math

from scipy.stats import binom


def lower_rank(n: int, delta: float, eta: float) -> int:
    """Return the largest ``k`` with ``P[Bin(n, delta) <= k-1] <= eta``; 0 if there is none.

    With probability at least ``1 - eta`` over the draws, the ``k``-th smallest of them is at most
    the ``delta``-quantile: fewer than ``k`` draws below the quantile would be that rare.

    Examples
    --------
    >>> lower_rank(2000, 0.05, 0.001), lower_rank(100, 0.05, 0.001)
    (71, 0)
    """
    rank = int(binom.ppf(eta, n, delta)) + 1
    while rank > 0 and binom.cdf(rank - 1, n, delta) > eta:
        rank -= 1
    while rank < n and binom.cdf(rank, n, delta) <= eta:
        rank += 1
    return rank


def upper_rank(n: int, delta: float, eta: float) -> int:
    """Return the smallest ``k`` with ``P[Bin(n, delta) >= k] <= eta``; n + 1 if there is none.

    With probability at least ``1 - eta`` over the draws, the ``k``-th smallest of them is at least
    the ``delta``-quantile.

    Examples
    --------
    >>> upper_rank(2000, 0.05, 0.001)
    132
    """
    rank = int(binom.isf(eta, n, delta)) + 1
    while rank > 1 and binom.sf(rank - 2, n, delta) <= eta:
        rank -= 1
    while rank <= n and binom.sf(rank - 1, n, delta) > eta:
        rank += 1
    return rank


def marginal_rank(n: int, delta: float) -> int:
    """Return ``floor(delta (n+1))``: right on average over the draws.

    Examples
    --------
    >>> marginal_rank(399, 0.05)
    20
    """
    return math.floor(delta * (n + 1))


def draws_needed(delta: float, eta: float) -> int:
    """Return the fewest draws whose smallest is a lower bound: ``(1-delta)^n <= eta``.

    Examples
    --------
    >>> draws_needed(0.05, 0.001)
    135
    """
    needed = math.ceil(math.log(eta) / math.log1p(-delta))
    while lower_rank(needed, delta, eta) < 1:
        needed += 1
    return needed
