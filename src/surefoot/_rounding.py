"""How a bound becomes text: a lower bound is never rounded up, an upper bound never down."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

DIGITS = 7


def lower_text(value: float, digits: int = DIGITS) -> str:
    """Return a lower bound with ``digits`` significant digits, rounded down.

    Examples
    --------
    >>> lower_text(63080.0987), lower_text(-16.81401, 4), lower_text(2 / 3)
    ('63080.09', '-16.82', '0.6666666')
    """
    return _text(value, digits, ROUND_FLOOR)


def upper_text(value: float, digits: int = DIGITS) -> str:
    """Return an upper bound with ``digits`` significant digits, rounded up.

    Examples
    --------
    >>> upper_text(63080.0987), upper_text(-16.81401, 4), upper_text(2**-40, 3)
    ('63080.10', '-16.81', '9.10e-13')
    """
    return _text(value, digits, ROUND_CEILING)


def _text(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value):
        return str(float(value))
    exact = Decimal(float(value))  # the binary number itself, not its shortest decimal form
    if exact == 0:
        return "0"
    last = exact.adjusted() - digits + 1
    rounded = exact.quantize(Decimal(1).scaleb(last), rounding=rounding)
    return f"{rounded:f}" if -5 <= exact.adjusted() <= 12 else f"{rounded:e}"
