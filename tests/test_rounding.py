"""A bound that is printed is still a bound."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot._rounding import lower_text, upper_text

numbers = st.floats(allow_nan=False, allow_infinity=False)


@given(numbers, st.integers(1, 12))
def test_text_stays_on_the_safe_side_and_close(value, digits):
    lower, upper = lower_text(value, digits), upper_text(value, digits)
    exact = Decimal(value)
    assert Decimal(lower) <= exact <= Decimal(upper)
    assert float(lower) <= value <= float(upper)  # also for a reader who parses doubles
    if value:
        step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
        assert Decimal(upper) - Decimal(lower) <= step


def test_numbers_that_are_not_finite_are_shown_as_they_are():
    assert lower_text(float("-inf")) == "-inf"
    assert upper_text(float("nan")) == "nan"


@pytest.mark.parametrize(
    ("value", "lower", "upper"),
    [(0.0, "0", "0"), (1e6, "1000000", "1000000"), (-1 / 3, "-0.33334", "-0.33333")],
)
def test_examples(value, lower, upper):
    assert (lower_text(value), upper_text(value)) == (lower, upper)
