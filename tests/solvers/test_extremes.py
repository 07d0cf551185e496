"""Certified bounds at the ends of the doubles: a few of what the benchmark goes through."""

import pytest

from extreme_models import extreme_case, wrong_side


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_bounds_hold_at_the_ends_of_the_doubles(first: int) -> None:
    for number in range(first, first + 50):
        assert wrong_side(extreme_case(number)) == "", number


def test_cases_reach_what_they_are_about() -> None:
    cases = [extreme_case(number) for number in range(200)]
    assert {case.mdp.discount for case in cases} >= {0.0, 0.9999}
    assert any(0 < case.mdp.probability.min() < 1e-300 for case in cases)
    sets = [case.ambiguity for case in cases if case.ambiguity is not None]
    budgets = [ball.budget for ball in sets if ball.budget is not None]
    assert any(0 < budget.min() < 1e-308 for budget in budgets)
    weights = [ball.weights for ball in sets if ball.weights is not None]
    assert any(weight.max() > 1e100 and 0 < weight.min() < 1e-100 for weight in weights)
