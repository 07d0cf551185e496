"""How a bound becomes text: a lower bound is never rounded up, an upper bound never down."""

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

DIGITS = 5
"""Significant digits of a number in a sentence; files keep all digits."""
MOST_DIGITS = 7
"""The most digits for a bracket, used when fewer would not tell its two ends apart."""
WIDENED = 1.25
"""The factor by which rounding may widen a bracket before more digits are used."""


def lower_text(value: float, digits: int = DIGITS) -> str:
    """Return a lower bound with ``digits`` significant digits, rounded down.

    Examples
    --------
    >>> lower_text(63080.0987), lower_text(-16.81401, 4), lower_text(2 / 3)
    ('63080', '-16.82', '0.66666')
    """
    return _text(value, digits, ROUND_FLOOR)


def upper_text(value: float, digits: int = DIGITS) -> str:
    """Return an upper bound with ``digits`` significant digits, rounded up.

    Examples
    --------
    >>> upper_text(63080.0987), upper_text(-16.81401, 4), upper_text(2**-40, 3)
    ('63081', '-16.81', '9.10e-13')
    """
    return _text(value, digits, ROUND_CEILING)


def near_text(value: float, digits: int = DIGITS) -> str:
    """Return a number with ``digits`` significant digits, rounded to nearest: not for bounds.

    Examples
    --------
    >>> near_text(63080.0987), near_text(-16.81401, 4), near_text(2.5)
    ('63080', '-16.81', '2.5000')
    """
    return _text(value, digits, ROUND_HALF_EVEN)


def rough_text(value: float, digits: int = 4) -> str:
    """Return a number for reading: few digits, no trailing zeros, no exponent for usual sizes.

    Examples
    --------
    >>> rough_text(14769.6), rough_text(2.50), rough_text(0.00123456), rough_text(2.2e65, 2)
    ('14770', '2.5', '0.001235', '2.2e+65')
    """
    short = f"{value:.{digits}g}"
    return f"{float(short):.0f}" if "e+" in short and abs(value) < 1e13 else short


def chance_text(share: float) -> str:
    """Return an estimated probability in words; never "1.000", which no number of draws proves.

    Examples
    --------
    >>> chance_text(0.9981), chance_text(1.0), chance_text(0.0)
    ('about 0.998', 'above 0.999', 'below 0.001')
    """
    if share > 0.9995:
        return "above 0.999"
    return "below 0.001" if share < 0.0005 else f"about {share:.3f}"


def bracket_text(lower: float, upper: float) -> tuple[str, str]:
    """Return both ends of a bracket, rounded outwards, with enough digits to tell them apart.

    Examples
    --------
    >>> bracket_text(165.35302, 167.92159), bracket_text(10000.12, 10000.34)
    (('165.35', '167.93'), ('10000.12', '10000.35'))
    """
    gap = upper - lower
    for digits in range(DIGITS, MOST_DIGITS):
        ends = lower_text(lower, digits), upper_text(upper, digits)
        if not math.isfinite(gap) or float(ends[1]) - float(ends[0]) <= WIDENED * gap:
            return ends
    return lower_text(lower, MOST_DIGITS), upper_text(upper, MOST_DIGITS)


def column_texts(values: Sequence[float | None], digits: int = DIGITS) -> list[str]:
    """Return numbers with equally many decimals, set by the largest of them; "" for None.

    Examples
    --------
    >>> column_texts([19.8642, -0.4776, None, 4.79])
    ['19.864', '-0.478', '', '4.790']
    """
    sizes = [abs(value) for value in values if value is not None and math.isfinite(value)]
    largest = max(sizes, default=0.0)
    if not (largest == 0 or 1e-5 <= largest < 1e13):
        return ["" if value is None else near_text(value, digits) for value in values]
    whole = Decimal(largest).adjusted() if largest else 0
    decimals = max(0, digits - 1 - whole)
    return ["" if value is None else f"{value:z.{decimals}f}" for value in values]


def _text(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value):
        return str(float(value))
    exact = Decimal(float(value))  # the binary number itself, not its shortest decimal form
    if exact == 0:
        return "0"
    last = exact.adjusted() - digits + 1
    rounded = exact.quantize(Decimal(1).scaleb(last), rounding=rounding)
    return f"{rounded:f}" if -5 <= exact.adjusted() <= 12 else f"{rounded:e}"
