"""How many broken promises can be due to chance."""

from scipy.stats import binom

SURE = 0.001
"""A claim is refuted if, at its level, that many failures have a probability below this."""


def refutes(failures: int, replications: int, delta: float, *, sure: float = SURE) -> bool:
    """Return whether a claim at level delta is refuted by its number of failures.

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
