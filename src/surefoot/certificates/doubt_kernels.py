"""Drawn rows with some causes of doubt removed."""

import numpy as np
from numpy.typing import NDArray

from surefoot._compile import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@kernel(lean=True)
def surer_rows(
    block: Floats, start: Ints, seen: NDArray[np.bool_], mean: Floats, no_unseen: bool,
    as_mean: bool, begin: int, end: int, out: Floats,
) -> None:  # fmt: skip
    """Write draws ``begin:end`` of all rows, each ``start[r]:start[r+1]``, with less doubt.

    ``as_mean``: the ``seen`` successors share their mass in the proportions of the mean.
    ``no_unseen``: they also get the mass of the other successors. In a row without seen successors
    all count as seen. O(entries) a draw.
    """
    for i in range(begin, end):
        for r in range(len(start) - 1):
            first, last = start[r], start[r + 1]
            untried = True
            for e in range(first, last):
                untried = untried and not seen[e]
            own, usual = 0.0, 0.0
            for e in range(first, last):
                if seen[e] or untried:
                    own += block[i, e]
                    usual += mean[e]
            share = own / usual if as_mean and usual > 0.0 else 1.0
            whole = 1.0
            if no_unseen and own > 0.0:
                whole = 1.0 / own
            for e in range(first, last):
                if seen[e] or untried:
                    out[i, e] = whole * (mean[e] * share if as_mean else block[i, e])
                else:
                    out[i, e] = 0.0 if no_unseen else block[i, e]
