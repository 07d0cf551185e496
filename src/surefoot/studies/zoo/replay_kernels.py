"""Q-learning from logged transitions."""

import numpy as np
from numpy.typing import NDArray

from surefoot._compile import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@kernel()
def replay(
    quality: Floats, tries: Ints, row: Ints, reward: Floats, following: Ints, ended: Ints,
    state_start: Ints, discount: float,
) -> None:  # fmt: skip
    """Update ``quality`` ``(R,)`` by one pass of Q-learning over transitions, in their order.

    The step size of a row is ``1 / tries**.7``. O(transitions x actions).
    """
    for i in range(len(row)):
        best = 0.0
        if ended[i] == 0:
            first, last = state_start[following[i]], state_start[following[i] + 1]
            best = quality[first]
            for other in range(first + 1, last):
                best = max(best, quality[other])
        r = row[i]
        tries[r] += 1
        quality[r] += (reward[i] + discount * best - quality[r]) / tries[r] ** 0.7
