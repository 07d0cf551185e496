"""Rewards of transitions never seen, where the log shows how rewards are made.

Many rewards are a part for the state and action plus a part for the next state:
``r(s, a, s') = f(s, a) + h(s')``. If every redundant transition of a log agrees with that, exactly,
it is believed for transitions that were not seen too.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EXACT = 1e-9
"""How far, as a share of the largest reward, sums may lie apart by rounding."""
FEWEST_TESTS = 10
"""Redundant transitions that must agree before the pattern is believed."""


class AdditiveRewards(NamedTuple):
    """``r = row[r] + state[s']`` within connected parts of rows and states.

    Attributes
    ----------
    row, state
        The two terms.
    row_part, state_part
        Which connected part a row and a state belong to; -1 for a state never entered.
    tests
        How many transitions were redundant, and agreed.
    """

    row: Floats
    state: Floats
    row_part: Ints
    state_part: Ints
    tests: int

    def predict(self, row: Ints, successor: Ints) -> Floats:
        """Return the reward of each pair of row and next state, NaN where nothing is known."""
        known = (self.row_part[row] == self.state_part[successor]) & (self.row_part[row] >= 0)
        return np.where(known, self.row[row] + self.state[successor], np.nan)


def fit_additive(
    entry_row: Ints, successor: Ints, reward: Floats, num_rows: int, num_states: int
) -> AdditiveRewards | None:
    """Return the two terms where all redundant transitions agree with them, else None.

    A spanning forest of the bipartite graph of rows and states fixes the terms; every other
    transition tests them. O(entries).
    """
    if len(reward) == 0:
        return None
    neighbours: list[list[tuple[int, float]]] = [[] for _ in range(num_rows + num_states)]
    for r, t, x in zip(entry_row.tolist(), successor.tolist(), reward.tolist(), strict=True):
        neighbours[r].append((num_rows + t, x))
        neighbours[num_rows + t].append((r, x))
    value = np.zeros(num_rows + num_states)
    part = np.full(num_rows + num_states, -1)
    for root in range(num_rows):
        if part[root] >= 0 or not neighbours[root]:
            continue
        part[root] = root
        todo = [root]
        while todo:
            node = todo.pop()
            for other, x in neighbours[node]:
                if part[other] < 0:
                    part[other] = root
                    value[other] = x - value[node]
                    todo.append(other)
    gap = np.abs(value[entry_row] + value[num_rows + successor] - reward)
    scale = float(np.abs(reward).max())
    used = len(np.unique(entry_row)) + len(np.unique(successor)) - len(np.unique(part[part >= 0]))
    tests = len(reward) - used
    if tests < FEWEST_TESTS or gap.max() > EXACT * max(scale, 1e-300):
        return None
    return AdditiveRewards(
        value[:num_rows], value[num_rows:], part[:num_rows], part[num_rows:], tests
    )
