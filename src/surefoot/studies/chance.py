"""How many broken promises chance explains."""

from scipy.stats import binom

SURE = 0.001
"""A claim is refuted when chance would break it that often with this probability or less."""


def refutes(failures: int, replications: int, delta: float, *, sure: float = SURE) -> bool:
    """Tell whether a claim at level delta is refuted by its number of failures.

    Examples
    --------
    >>> refutes(35, 400, 0.05), refutes(36, 400, 0.05)
    (False, True)
    """
    return bool(binom.sf(failures - 1, replications, delta) < sure)


def most_failures(replications: int, delta: float) -> int:
    """Return the largest number of failures that does not refute a claim at level delta.

    Examples
    --------
    >>> most_failures(400, 0.05)
    35
    """
    return int(binom.isf(SURE, replications, delta))
