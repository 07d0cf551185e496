"""Episodes in order, one after the other: what each of them earned and how it ended."""

import numpy as np
from numpy.typing import NDArray

from surefoot._compile import kernel

Ints = NDArray[np.int64]


@kernel()
def follow(
    start: Ints,
    state: Ints,
    successor: Ints,
    ends: NDArray[np.bool_],
    reward: NDArray[np.float64],
    discount: float,
    horizon: int,
    earned: NDArray[np.float64],
    steps: Ints,
    ended: NDArray[np.bool_],
    last: Ints,
) -> None:
    """Add up ``sum_t discount^t r_t`` of each episode, as far as it can be followed.

    Episode ``i`` owns the steps ``start[i]:start[i+1]``. It is followed until a terminal step, or
    until a next state is not the state of the following row: what came after that gap is unknown,
    as it is for an episode that was cut off. At most ``horizon`` steps count, and an episode of so
    many has ended; 0 counts all. ``last`` is the last step followed. O(steps).
    """
    for episode in range(len(start) - 1):
        total, factor = 0.0, 1.0
        for i in range(start[episode], start[episode + 1]):
            total += factor * reward[i]
            factor *= discount
            steps[episode] += 1
            last[episode] = i
            if ends[i] or steps[episode] == horizon:
                ended[episode] = True
                break
            if i + 1 < start[episode + 1] and successor[i] != state[i + 1]:
                break
        earned[episode] = total
