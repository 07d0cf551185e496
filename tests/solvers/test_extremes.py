"""Certified bounds at the ends of the doubles: a few of what the benchmark goes through."""

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from extreme_models import (
    extreme_case,
    long_row_wrong_side,
    medium_case,
    medium_wrong_side,
    wrong_side,
)
from oracles import exact_l1
from precise_models import DIGITS, l1_nature

mpmath.mp.dps = DIGITS


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_bounds_hold_at_the_ends_of_the_doubles(first: int) -> None:
    for number in range(first, first + 50):
        assert wrong_side(extreme_case(number)) == "", number


def test_bounds_hold_against_fifty_digits() -> None:
    for number in range(8):
        assert medium_wrong_side(medium_case(number)) == "", number


def test_bounds_hold_for_long_rows() -> None:
    for number in range(2):
        assert long_row_wrong_side(number, successors=400) == "", number


def test_fifty_digits_agree_with_fractions() -> None:
    rng = np.random.default_rng(3)
    for _ in range(30):
        k = int(rng.integers(2, 6))
        z, w = rng.normal(size=k), rng.uniform(0.2, 3.0, k)
        p, budget = rng.dirichlet(np.ones(k)), float(rng.choice([0.0, 0.1, 0.5, 3.0]))
        total = sum(map(mpf, p.tolist()))
        chances = [mpf(x) / total for x in p.tolist()]
        values, weights = [mpf(x) for x in z.tolist()], [mpf(x) for x in w.tolist()]
        q = l1_nature(values, chances, weights, mpf(budget))
        truth = exact_l1(z, p, w, budget).value
        found = sum(a * b for a, b in zip(q, values, strict=True))
        assert abs(found - mpf(truth.numerator) / truth.denominator) < 1e-50


def test_cases_reach_what_they_are_about() -> None:
    cases = [extreme_case(number) for number in range(200)]
    assert {case.mdp.discount for case in cases} >= {0.0, 0.9999}
    assert any(0 < case.mdp.probability.min() < 1e-300 for case in cases)
    sets = [case.ambiguity for case in cases if case.ambiguity is not None]
    budgets = [ball.budget for ball in sets if ball.budget is not None]
    assert any(0 < budget.min() < 1e-308 for budget in budgets)
    weights = [ball.weights for ball in sets if ball.weights is not None]
    assert any(weight.max() > 1e100 and 0 < weight.min() < 1e-100 for weight in weights)
