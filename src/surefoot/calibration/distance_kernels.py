"""Distances of posterior draws from the nominal rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot._compile import kernel

Floats = NDArray[np.float64]


@kernel()
def row_distances(
    block: Floats, start: Any, nominal: Floats, weights: Floats, l1: bool, out: Floats, first: int
) -> None:
    """Write the weighted distances of a block of draws, for ``J`` vectors of weights at once.

    ``block`` is ``(b, width)``: the entries of some rows, row ``r`` in columns
    ``start[r]:start[r+1]``; ``nominal`` is ``(width,)`` and ``weights`` is ``(J, width)``. The
    distance of draw ``i`` goes to ``out[r, j, first + i]``. O(b * J * width).
    """
    for i in range(block.shape[0]):
        for r in range(len(start) - 1):
            for j in range(weights.shape[0]):
                distance = 0.0
                for c in range(start[r], start[r + 1]):
                    part = weights[j, c] * abs(block[i, c] - nominal[c])
                    if l1:
                        distance += part
                    elif part > distance:
                        distance = part
                out[r, j, first + i] = distance


@kernel()
def largest_ratios(
    block: Floats, start: Any, nominal: Floats, weights: Floats, size: Floats, l1: bool, out: Floats
) -> None:
    """Raise ``out[i]`` to the largest ``distance / size`` of the rows of draw ``i``. O(b width)."""
    for i in range(block.shape[0]):
        for r in range(len(start) - 1):
            distance = 0.0
            for c in range(start[r], start[r + 1]):
                part = weights[c] * abs(block[i, c] - nominal[c])
                if l1:
                    distance += part
                elif part > distance:
                    distance = part
            if distance > 0.0:
                ratio = distance / size[r] if size[r] > 0.0 else np.inf
                out[i] = max(out[i], ratio)
