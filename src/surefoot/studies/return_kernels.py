"""Returns of one policy under many transition models."""

import numpy as np
from numpy.typing import NDArray

from surefoot._compile import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@kernel(fastmath={"reassoc", "nsz", "contract"})
def policy_returns(
    draws: Floats, row_start: Ints, successor: Ints, reward: Floats,
    discount: float, initial: Floats, out: Floats,
) -> None:  # fmt: skip
    """Write ``initial . (I - discount P)^-1 r`` for each draw of the policy's rows.

    ``draws`` is ``(n, E)`` and row ``s`` of the policy, one per state, has the entries
    ``row_start[s]:row_start[s+1]``. Gaussian elimination without pivoting is stable here because
    ``I - discount P`` is diagonally dominant. O(S^3) a draw.
    """
    size = len(row_start) - 1
    matrix = np.empty((size, size))
    value = np.empty(size)
    for i in range(len(draws)):
        for s in range(size):
            gain = 0.0
            for t in range(size):
                matrix[s, t] = 0.0
            matrix[s, s] = 1.0
            for e in range(row_start[s], row_start[s + 1]):
                matrix[s, successor[e]] -= discount * draws[i, e]
                gain += draws[i, e] * reward[e]
            value[s] = gain
        for pivot in range(size):
            for s in range(pivot + 1, size):
                factor = matrix[s, pivot] / matrix[pivot, pivot]
                if factor != 0.0:
                    for t in range(pivot + 1, size):
                        matrix[s, t] -= factor * matrix[pivot, t]
                    value[s] -= factor * value[pivot]
        total = 0.0
        for s in range(size - 1, -1, -1):
            for t in range(s + 1, size):
                value[s] -= matrix[s, t] * value[t]
            value[s] /= matrix[s, s]
            total += initial[s] * value[s]
        out[i] = total
