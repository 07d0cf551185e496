"""What drawn rows are worth, and rows dealt out anew: what coupling needs (`coupled.py`)."""

import numpy as np
from numpy.typing import NDArray

from surefoot._compile import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@kernel(lean=True)
def score_rows(draws: Floats, values: Floats, row_start: Ints, out: Floats) -> None:
    """Write ``out[i, r]``: what row ``r`` of draw ``i`` is worth, ``p.values``. O(n entries)."""
    for i in range(len(draws)):
        for r in range(len(row_start) - 1):
            total = 0.0
            for e in range(row_start[r], row_start[r + 1]):
                total += draws[i, e] * values[e]
            out[i, r] = total


@kernel(lean=True)
def deal_rows(draws: Floats, places: Ints, row_start: Ints, out: Floats) -> None:
    """Write row ``r`` of draw ``j`` into model ``places[j, r]``. O(n entries)."""
    for j in range(len(draws)):
        for r in range(len(row_start) - 1):
            given = places[j, r]
            for e in range(row_start[r], row_start[r + 1]):
                out[given, e] = draws[j, e]
