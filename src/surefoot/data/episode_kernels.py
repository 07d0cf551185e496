"""The kernel that follows episodes: what each of them earned and how it ended."""

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
    goes_on: NDArray[np.bool_],
    reward: NDArray[np.float64],
    discount: float,
    horizon: int,
    closed: NDArray[np.bool_],
    earned: NDArray[np.float64],
    steps: Ints,
    ended: NDArray[np.bool_],
    last: Ints,
) -> None:
    """Add up ``sum_t discount^t r_t`` of each episode, as far as it can be followed.

    Episode ``i`` owns the steps ``start[i]:start[i+1]``. It is followed until a terminal step, or
    until the following row is not the next one of the episode (``goes_on``) or its state is not the
    next state: what came after that gap is unknown, as for an episode that was cut off. At most
    ``horizon`` steps count, and an episode of that length has ended; 0 means no limit. ``earned``
    and ``steps`` hold what came before and are added to; ``closed`` episodes stay as they are.
    ``last`` is the last step followed, -1 for none. O(steps).
    """
    for episode in range(len(start) - 1):
        last[episode] = -1
        if closed[episode]:
            continue
        total, factor = earned[episode], 1.0
        for _ in range(steps[episode]):
            factor *= discount
        for i in range(start[episode], start[episode + 1]):
            total += factor * reward[i]
            factor *= discount
            steps[episode] += 1
            last[episode] = i
            if ends[i] or steps[episode] == horizon:
                ended[episode] = True
                break
            if i + 1 < start[episode + 1] and not (goes_on[i] and successor[i] == state[i + 1]):
                break
        earned[episode] = total
