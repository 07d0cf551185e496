"""Where unseen successors lead that need no pool to be searched: staying, ending, straying.

* *stays*: the state itself, where three or more other rows of the action have stayed;
* *ends*: an end of episodes that three or more other rows of the action have shown. Each of the
  usual ends is a part of its own, since a row that has shown one of them hides only the others;
* *strays*: states like those that no pattern would have named. Each is a successor that a row
  showed once and that no part points to when it is left out. They say what kind of state an
  unnamed successor is, so that it is not always the worst one.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.data.destination_pools import FEWEST_ROWS, number_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

ENDS = 4
"""How many ends of episodes have parts of their own: those that most rows have shown."""
PASSED_OVER = 8
"""Strays that a row has shown are passed over, up to this many."""


class ShownEntries(NamedTuple):
    """What the rows of a log have shown.

    ``row_state, row_action``: ``(R,)``. ``row, successor, times``: one entry for each successor of
    a row; ``once`` marks those to leave out, one at a time.
    """

    row_state: Ints
    row_action: Ints
    row: Ints
    successor: Ints
    times: NDArray[Any]
    once: Bools
    actions: int
    states: int

    def has(self, row: Ints, state: Ints) -> Bools:
        """Return which rows have shown which states; the arrays may have any one shape."""
        known = np.sort(self.row * self.states + self.successor)
        wanted = row * self.states + state
        at = np.minimum(np.searchsorted(known, wanted), max(0, len(known) - 1))
        return np.asarray(known[at] == wanted) if len(known) else np.zeros(row.shape, np.bool_)


class PartCandidates(NamedTuple):
    """Candidates: the row, the state and the weight of each, by row.

    ``named``: with which probability the part would have named each successor that was left out.
    """

    row: Ints
    state: Ints
    weight: Floats
    named: Floats


def staying(shown: ShownEntries) -> PartCandidates:
    """Return the state itself for rows that never stayed, if enough rows of their action did."""
    return _single(shown, shown.row_state)


def ending(shown: ShownEntries, end: int) -> PartCandidates:
    """Return an end for rows that have not shown it, if enough rows of their action have."""
    return _single(shown, np.full(len(shown.row_state), end))


def _single(shown: ShownEntries, target: Ints) -> PartCandidates:
    """Return the part of one candidate for each row, its ``target``."""
    reached = shown.successor == target[shown.row]
    rows = np.bincount(shown.row_action[shown.row[reached]], minlength=shown.actions)
    done = np.zeros(len(target), dtype=np.bool_)
    done[shown.row[reached]] = True
    listed = np.flatnonzero(~done & (rows[shown.row_action] >= FEWEST_ROWS))
    others = rows[shown.row_action[shown.row]] - 1
    named = (reached & (others >= FEWEST_ROWS))[shown.once].astype(np.float64)
    return PartCandidates(listed, target[listed], np.ones(len(listed)), named)


def common_ends(shown: ShownEntries, terminal: Bools) -> Ints:
    """Return the ends of episodes that most rows have shown, at most `ENDS`."""
    rows = np.where(terminal, np.bincount(shown.successor, minlength=shown.states), 0)
    first = np.argsort(-rows, kind="stable")[:ENDS]
    return np.asarray(first[rows[first] >= FEWEST_ROWS])


def straying(shown: ShownEntries, unnamed: Bools, most: Ints, shades: int) -> PartCandidates:
    """Return, for every row, some of the states that were named by nothing when left out.

    ``unnamed`` marks them among the successors left out. Row ``r`` lists at most ``most[r]``;
    states of one shade list the same.
    """
    state, times = np.unique(shown.successor[shown.once][unnamed], return_counts=True)
    size = min(len(state), int(most.max(initial=0)) + PASSED_OVER)
    order = np.stack(
        [
            np.argsort(number_of(state, shade) / times, kind="stable")[:size]
            for shade in range(shades)
        ]
    )
    rows = np.flatnonzero(most > 0)
    candidate = order[shown.row_state[rows] % shades]
    new = ~shown.has(np.broadcast_to(rows[:, None], candidate.shape), state[candidate])
    new &= np.cumsum(new, axis=1) <= most[rows, None]
    owner, which = np.nonzero(new)
    weight = 1.0 / np.maximum(1, new.sum(axis=1))[owner]
    nothing = np.zeros(np.count_nonzero(shown.once))
    return PartCandidates(rows[owner], state[candidate[owner, which]], weight, nothing)
