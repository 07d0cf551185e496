"""The edge of the known states: steps of the log that would lead past it.

Where states are numbered, rows of an action share steps: a machine that runs wears by one. From the
last state that the log knows, such a step leads to a state it does not know. Rows at the edge were
often tried a few times only, and may have shown nothing but staying: taken at their word, the edge
is a place to rest, and a search for the best policy goes there.

Either states end there, or nobody has gone further yet. If steps went on as elsewhere, a number of
tries past the edge would be expected; where it is large and none was seen, the edge is a wall.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.data.destination_pools import FEWEST_ROWS
from surefoot.data.plain_patterns import ShownEntries

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WALL = 3.0
"""An edge is a wall if this many tries past it are expected and none was seen: that has a chance of
1 in 20 if it is none."""


class _NumberedRows(NamedTuple):
    """The rows of numbered states, by action and number, with running totals of their tries."""

    row: Ints
    key: Ints
    tries: Floats
    span: int

    def between(self, action: Ints, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """Return where the rows of actions with numbers ``low`` to ``high`` begin and end."""
        low, high = np.maximum(low, 0), np.minimum(high, self.span - 1)
        first = np.searchsorted(self.key, action * self.span + low)
        last = np.searchsorted(self.key, action * self.span + high, side="right")
        return first, np.where(high < low, first, last)

    def tried(self, first: Ints, last: Ints) -> Floats:
        """Return how often ranges of rows were tried."""
        return np.asarray(self.tries[last] - self.tries[first])


class _SharedSteps(NamedTuple):
    """Steps that enough rows of an action have shown, and their share of the tries."""

    action: Ints
    step: Ints
    share: Floats


def past_the_edge(shown: ShownEntries, number: Ints, state_of: Ints, visits: Floats) -> Floats:
    """Return ``(R,)``: of the steps that a row may still show, the share that leads past the edge.

    ``number``: the number of every state from 0 up, -1 for none; ``state_of``: the state of each
    number. A step counts by its share of the tries of its action, and by how probable it is that
    the row has not shown it yet. 0 where the edge is a wall.
    """
    size, last = len(shown.row_state), int(number.max(initial=-1))
    found = np.zeros(size)
    if last < 1:
        return found
    rows = _sorted_rows(shown, number, visits, last + 1)
    steps = _shared_steps(shown, number, rows)
    past = np.zeros(size)
    for low, high in ((last + 1 - steps.step, last), (np.zeros_like(steps.step), -1 - steps.step)):
        low, high = np.broadcast_arrays(low, high)
        first, end = rows.between(steps.action, low, high)
        expected = float(steps.share @ rows.tried(first, end))
        if expected < WALL:
            which, at = _written_out(first, end)
            row = rows.row[at]
            np.add.at(past, row, _still_hidden(steps.share[which], visits[row]))
    edge = np.flatnonzero(past)
    if len(edge):
        inside = _inside(shown, number, state_of, visits, steps, edge)
        found[edge] = past[edge] / (past[edge] + inside)
    return found


def _still_hidden(share: Floats, tries: Floats) -> Floats:
    """Return the chance that a step was not shown in some tries and is next."""
    return np.asarray(share * (1.0 - share) ** tries)


def _sorted_rows(shown: ShownEntries, number: Ints, visits: Floats, span: int) -> _NumberedRows:
    origin = number[shown.row_state]
    row = np.flatnonzero(origin >= 0)
    key = shown.row_action[row] * span + origin[row]
    order = np.argsort(key, kind="stable")
    row = row[order]
    return _NumberedRows(row, key[order], np.concatenate(([0.0], np.cumsum(visits[row]))), span)


def _shared_steps(shown: ShownEntries, number: Ints, rows: _NumberedRows) -> _SharedSteps:
    origin, target = number[shown.row_state[shown.row]], number[shown.successor]
    known = (origin >= 0) & (target >= 0)
    width = 2 * rows.span
    key = shown.row_action[shown.row[known]] * width + (target - origin)[known] + rows.span
    pair, place, often = np.unique(key, return_inverse=True, return_counts=True)
    times = np.bincount(place, shown.times[known], len(pair))
    kept = often >= FEWEST_ROWS
    action, step = pair[kept] // width, pair[kept] % width - rows.span
    tries = rows.tried(*rows.between(action, -step, rows.span - 1 - step))
    return _SharedSteps(action, step, np.minimum(times[kept] / np.maximum(tries, 1.0), 1.0))


def _inside(
    shown: ShownEntries,
    number: Ints,
    state_of: Ints,
    visits: Floats,
    steps: _SharedSteps,
    edge: Ints,
) -> Floats:
    """Return the chance that rows at the edge next show a new step to a known state."""
    first = np.searchsorted(steps.action, shown.row_action[edge])
    end = np.searchsorted(steps.action, shown.row_action[edge], side="right")
    which, at = _written_out(first, end)
    row = edge[which]
    aim = number[shown.row_state[row]] + steps.step[at]
    known = (aim >= 0) & (aim < len(state_of))
    target = np.where(known, state_of[np.where(known, aim, 0)], -1)
    new = (target >= 0) & ~shown.has(row, np.maximum(target, 0))
    chance = np.where(new, _still_hidden(steps.share[at], visits[row]), 0.0)
    return np.asarray(np.bincount(which, chance, len(edge)))


def _written_out(first: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Return the range and the number of every member of ranges of numbers."""
    size = np.maximum(end - first, 0)
    which = np.repeat(np.arange(len(size)), size)
    return which, np.arange(len(which)) + (first - (np.cumsum(size) - size))[which]
