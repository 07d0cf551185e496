"""L1 or L-infinity: which ball of a row gives the better guarantee."""

import numpy as np
from numpy.typing import ArrayLike

from surefoot.model.checks import as_float_array


def preferred_norm(values: ArrayLike, *, l1_budget: float, linf_budget: float) -> str:
    """Return ``"l1"`` or ``"linf"``: the unweighted ball with the smaller bound on its span.

    The span of a ball of size ``psi`` along ``z`` is at most ``2 psi ||z - lambda||_dual`` for any
    ``lambda``. The dual of L1 is L-infinity, whose smallest value ``(max z - min z)/2`` is attained
    at the midrange; the dual of L-infinity is L1, whose smallest value ``sum |z_i - median|`` is
    attained at the median. So L1 is preferred iff::

        l1_budget * (max z - min z)/2  <  linf_budget * sum_i |z_i - median(z)|

    (Behzadian et al. 2021 swap the two centres and compare with mean and median.)

    Parameters
    ----------
    values
        ``(K,)``; the value of each successor of the row, ``r + discount*v``.
    l1_budget, linf_budget
        The sizes that the two balls need for the same confidence.

    Examples
    --------
    >>> preferred_norm([0.0, 0.0, 0.0, 1.0], l1_budget=0.3, linf_budget=0.2)
    'l1'
    >>> preferred_norm([0.0, 0.0, 0.0, 1.0], l1_budget=0.3, linf_budget=0.1)
    'linf'
    """
    z = as_float_array("values", values)
    if z.ndim != 1 or len(z) == 0 or not np.all(np.isfinite(z)):
        raise ValueError(f"values must be finite numbers of shape (K,), got shape {z.shape}.")
    for name, budget in (("l1_budget", l1_budget), ("linf_budget", linf_budget)):
        if not budget >= 0:
            raise ValueError(f"{name}={budget!r}; a budget must be 0 or more.")
    half_range = 0.5 * float(z.max() - z.min())
    from_median = float(np.abs(z - np.median(z)).sum())
    return "l1" if l1_budget * half_range < linf_budget * from_median else "linf"
