"""Which order statistic of ``n`` draws bounds a quantile, and with what certainty.

Everything about the Monte Carlo error of a promise is here: budgets bound an upper quantile of
distances, certificates a lower quantile of returns. *Strict* ranks hold with probability
``1 - eta`` over the draws (a tolerance interval in the sense of Wilks 1941); *marginal* ranks hold
on average over the draws.
"""

import math

from scipy.stats import binom

ROUNDING = 1e-12
"""Relative slack on ``level * (n + 1)``: 240 draws at level 0.05/12 are one draw, not 0.99999."""


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
    while rank > 0 and not binom.cdf(rank - 1, n, delta) <= eta:
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
    while rank <= n and not binom.sf(rank - 1, n, delta) <= eta:
        rank += 1
    return rank


def marginal_rank(n: int, delta: float) -> int:
    """Return ``floor(delta (n+1))``: a fresh draw is below it with probability at most ``delta``.

    Examples
    --------
    >>> marginal_rank(399, 0.05)
    20
    """
    return math.floor(delta * (n + 1) * (1 + ROUNDING))


def covering_rank(n: int, alpha: float, eta: float | None) -> int:
    """Return which of ``n`` distances in ascending order covers all but ``alpha`` of them.

    Strict (``eta`` given): the smallest ``k`` with ``P[Bin(n, 1 - alpha) >= k] <= eta``, so that
    with probability ``1 - eta`` over the draws a ball of that size holds ``1 - alpha`` of the
    posterior. Marginal (``eta`` None): ``ceil((n+1)(1 - alpha))``, so that a fresh draw lies
    outside with probability at most ``alpha``. Returns ``n + 1`` where ``n`` draws are too few.
    Computed from ``alpha``, since forming ``1 - alpha`` loses digits.

    Examples
    --------
    >>> covering_rank(1040, 0.05 / 6, 0.001 / 6)
    1040
    >>> covering_rank(239, 0.05 / 12, None)
    239
    """
    below = marginal_rank(n, alpha) if eta is None else lower_rank(n, alpha, eta)
    return n + 1 - below


def draws_needed(delta: float, eta: float | None) -> int:
    """Return the smallest number of draws for which the outermost draw is a valid bound.

    Strict: ``(1 - delta)^n <= eta``; marginal (``eta`` None): ``n >= 1/delta - 1``.

    Examples
    --------
    >>> draws_needed(0.05, 0.001), draws_needed(0.05 / 12, 0.001 / 12)
    (135, 2250)
    >>> draws_needed(0.05 / 12, None)
    239
    """
    if eta is None:
        needed = max(1, math.ceil((1 / delta) * (1 - ROUNDING)) - 1)
        while marginal_rank(needed, delta) < 1:
            needed += 1
        return needed
    needed = max(1, math.ceil(math.log(eta) / math.log1p(-delta)))
    while lower_rank(needed, delta, eta) < 1:
        needed += 1
    return needed
