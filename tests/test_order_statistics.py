"""Ranks against the binomial sums that define them."""

import math
from fractions import Fraction

import numpy as np
import pytest

from surefoot._order_statistics import (
    covering_rank,
    draws_needed,
    lower_rank,
    marginal_rank,
    upper_rank,
)


def exact_cdf(j: int, n: int, p: Fraction) -> Fraction:
    return sum(
        (math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(j + 1)), start=Fraction(0)
    )


CASES = [(20, 0.05, 0.3), (50, 0.1, 0.001), (97, 0.03, 0.05), (64, 0.5, 0.01), (13, 0.9, 0.2)]


@pytest.mark.parametrize(("n", "delta", "eta"), CASES)
def test_ranks_follow_their_definitions_exactly(n, delta, eta):
    p, limit = Fraction(delta), Fraction(eta)
    below = [k for k in range(1, n + 1) if exact_cdf(k - 1, n, p) <= limit]
    assert lower_rank(n, delta, eta) == max(below, default=0)
    above = [k for k in range(1, n + 1) if 1 - exact_cdf(k - 1, n, p) <= limit]
    assert upper_rank(n, delta, eta) == min(above, default=n + 1)
    # smallest k with P[Bin(n, 1 - alpha) >= k] <= eta, the definition of a strict budget
    covering = [k for k in range(1, n + 1) if 1 - exact_cdf(k - 1, n, 1 - p) <= limit]
    assert covering_rank(n, delta, eta) == min(covering, default=n + 1)


@pytest.mark.parametrize(
    ("rows", "delta", "needed"), [(6, 0.05, 1040), (12, 0.05, 2250), (17, 0.05, 3308)]
)
def test_strict_rule_needs_known_numbers_of_draws(rows, delta, needed):
    assert draws_needed(delta / rows, 0.001 / rows) == needed
    assert covering_rank(needed, delta / rows, 0.001 / rows) == needed
    assert covering_rank(needed - 1, delta / rows, 0.001 / rows) == needed  # one more than there is


@pytest.mark.parametrize("rows", range(1, 60))
@pytest.mark.parametrize("delta", [0.05, 0.1, 0.2, 0.3])
def test_marginal_rule_is_not_fooled_by_rounding(rows, delta):
    exact = Fraction(str(delta)) / rows
    needed = draws_needed(delta / rows, None)
    assert needed == math.ceil(1 / exact) - 1 or exact >= Fraction(1, 2)
    for n in (needed, 10 * needed + 3, 999, 1000):
        assert covering_rank(n, delta / rows, None) == math.ceil((n + 1) * (1 - exact))


def test_marginal_rank_covers_on_average():
    rng = np.random.default_rng(0)
    n, delta = 39, 0.1
    draws = np.sort(rng.random((20_000, n)), axis=1)
    below = draws[:, marginal_rank(n, delta) - 1].mean()
    assert below == pytest.approx(delta, abs=0.002)
    beyond = 1 - draws[:, covering_rank(n, delta, None) - 1].mean()
    assert beyond == pytest.approx(delta, abs=0.002)


def test_strict_rank_fails_no_more_often_than_eta():
    rng = np.random.default_rng(1)
    n, alpha, eta = 400, 0.05, 0.05
    draws = np.sort(rng.random((4000, n)), axis=1)
    failed = np.mean(draws[:, covering_rank(n, alpha, eta) - 1] < 1 - alpha)
    assert 0.02 < failed <= eta + 3 * math.sqrt(eta / 4000)
