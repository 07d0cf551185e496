"""Pools of candidate successors: what enough rows of a group have shown, by falling priority."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEWEST_ROWS = 3
"""A pattern counts if at least this many other rows show it. With a smaller number, a chain with
rare accidents took the rows that had shown none yet for safe."""
GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
"""The golden ratio, whose multiples fill the unit interval most evenly."""
EVENLY = 8
"""How many numbers fill it one after the other."""
FEW_GROUPS = 256
"""At most so many groups are sorted one by one."""
MOST_PAIRS = 2**22
"""About how many pairs of an action and a state entered by others are listed. If there are more,
only the states that most rows entered are kept."""


def pool_of(group: Ints, what: Ints, size: int, fewest: int) -> tuple[Ints, Ints, Floats]:
    """Return what at least ``fewest`` rows of a group have shown: starts, what, number of rows."""
    low = int(what.min(initial=0))
    span = int(what.max(initial=0)) - low + 1
    key, rows = np.unique(group.astype(np.int64) * span + (what - low), return_counts=True)
    key, rows = key[rows >= fewest], rows[rows >= fewest]
    start = np.searchsorted(key, np.arange(size + 1) * span)
    return start, key % span + low, rows.astype(np.float64)


def others_pool(
    action: Ints, successor: Ints, actions: int, states: int
) -> tuple[Ints, Ints, Floats]:
    """Return states that enough rows have shown and few of an action: starts, states, rows.

    A state that just enough rows of an action have shown is among them too: without one of these
    rows it would be.
    """
    rows = np.bincount(successor, minlength=states)
    often = np.flatnonzero(rows >= FEWEST_ROWS)
    if actions * len(often) > MOST_PAIRS:
        first = np.argsort(-rows[often], kind="stable")[: max(1, MOST_PAIRS // actions)]
        often = np.sort(often[first])
    pair = (np.arange(actions)[:, None] * states + often).ravel()
    keys, own = np.unique(action.astype(np.int64) * states + successor, return_counts=True)
    pair = np.setdiff1d(pair, keys[own > FEWEST_ROWS], assume_unique=True)
    start = np.searchsorted(pair, np.arange(actions + 1) * states)
    return start, pair % states, rows[pair % states].astype(np.float64)


def ranked(pool: tuple[Ints, Ints, Floats], shades: int) -> tuple[Ints, Ints, Floats, Ints, Floats]:
    """Return starts, what, running totals of rows, positions by falling priority, priorities.

    ``(shades, members)`` positions and priorities: states of different shades have random numbers
    of their own. With one shade, every group has.
    """
    start, what, rows = pool
    group = np.repeat(np.arange(len(start) - 1), np.diff(start))
    rank = np.empty((shades, len(what)), dtype=np.int64)
    priority = np.empty((shades, len(what)))
    for shade in range(shades):
        priority[shade] = rows / number_of(what, group if shades == 1 else shade)
        rank[shade] = _falling(priority[shade], start, group) - start[group]
    return start, what, np.concatenate(([0.0], np.cumsum(rows))), rank, priority


def _falling(priority: Floats, start: Ints, group: Ints) -> Ints:
    """Return the places of priorities by falling priority, group by group; ties keep their order.

    A few large groups are sorted one by one, several times as fast as all of them by two keys.
    """
    rising = -priority
    if len(start) > FEW_GROUPS:
        return np.lexsort((rising, group))
    order = np.empty(len(priority), dtype=np.int64)
    for begin, end in pairwise(start.tolist()):
        order[begin:end] = begin + np.argsort(rising[begin:end])
    ahead = rising[order]
    if np.any((ahead[1:] == ahead[:-1]) & (group[1:] == group[:-1])):  # hardly ever
        return np.lexsort((rising, group))
    return order


def number_of(what: Ints, beside: Ints | int) -> Floats:
    """Return pseudo-random numbers in (0, 1] that depend on ``what`` and ``beside`` only.

    Eight successive numbers beside each other fill the interval evenly, so that sums over them err
    less than those over independent numbers; the next eight start at random.

    Examples
    --------
    >>> bool((number_of(np.arange(3), 5) == number_of(np.arange(4), 5)[:3]).all())
    True
    """
    turn, place = np.divmod(np.atleast_1d(beside), EVENLY)
    x = what.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1)
    x = x + turn.astype(np.uint64) * np.uint64(0xD1B54A32D192ED03)
    for _ in range(2):  # the finalizer of SplitMix64
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    found = ((x >> np.uint64(11)).astype(np.int64) + 1) * 2.0**-53 + place * GOLDEN
    found -= np.floor(found)
    return np.where(found > 0.0, found, 1.0)
