"""Rewards of transitions never seen, where the log shows how rewards are made.

Many rewards are a part for the state and action plus a part for the next state:
``r(s, a, s') = f(s, a) + h(s')``. If every redundant transition of a log agrees with that, exactly,
it is believed for transitions that were not seen too.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

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
    part, before = _forest(entry_row, num_rows + successor, num_rows + num_states)
    value = _along(entry_row, successor, reward, before, num_rows, num_states)
    gap = np.abs(value[entry_row] + value[num_rows + successor] - reward)
    scale = float(np.abs(reward).max())
    used = len(np.unique(entry_row)) + len(np.unique(successor)) - len(np.unique(part[part >= 0]))
    tests = len(reward) - used
    if tests < FEWEST_TESTS or gap.max() > EXACT * max(scale, 1e-300):
        return None
    return AdditiveRewards(
        value[:num_rows], value[num_rows:], part[:num_rows], part[num_rows:], tests
    )


def _forest(row: Ints, state: Ints, nodes: int) -> tuple[Ints, Ints]:
    """Return the first row of every node's connected part, and which node comes before it.

    -1 for nodes without a transition; first rows come after themselves.
    """
    ones = np.ones(len(row), dtype=np.int8)
    graph = csr_array((ones, (row, state)), shape=(nodes, nodes))
    parts, which = connected_components(graph, directed=False)
    first = np.full(parts, nodes)
    np.minimum.at(first, which[row], row)
    first = first[first < nodes]
    # One more node that all first rows hang on: a single walk then finds a tree of every part.
    rows, states = np.append(row, np.full(len(first), nodes)), np.append(state, first)
    ones = np.ones(len(rows), dtype=np.int8)
    whole = csr_array((ones, (rows, states)), shape=(nodes + 1, nodes + 1))
    _, before = breadth_first_order(whole, nodes, directed=False)
    previous: Ints = np.array(before[:-1], dtype=np.int64)
    previous[first] = first
    root = np.full(parts, -1)
    root[which[first]] = first
    return np.where(previous < 0, -1, root[which]).astype(np.int64), previous


def _along(
    row: Ints, successor: Ints, reward: Floats, before: Ints, num_rows: int, num_states: int
) -> Floats:
    """Return the term of every node: ``reward - the term before it`` along a tree, 0 at its root.

    Paths are halved until all have arrived: O(nodes log depth).
    """
    node = np.arange(len(before))
    before = np.where(before < 0, node, before)
    inner = np.flatnonzero(before != node)
    ends = np.sort(np.stack((node[inner], before[inner])), axis=0)
    key = row * num_states + successor
    order = np.argsort(key)
    wanted = ends[0] * num_states + ends[1] - num_rows
    value, sign = np.zeros(len(node)), np.ones(len(node))
    value[inner] = reward[order[np.searchsorted(key, wanted, sorter=order)]]
    sign[inner] = -1.0
    while np.any(before[before] != before):
        value, sign = value + sign * value[before], sign * sign[before]
        before = before[before]
    return np.asarray(value)
