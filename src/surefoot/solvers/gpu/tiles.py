"""How rows lie on a device: states of one kind side by side, draws innermost.

A tile holds states with the same number of rows whose rows are about equally long, as arrays
``[successor, row, state]``; those of a batch have a fourth axis, the draws. So neighbouring threads
read neighbouring numbers, also where they look up values of successors.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WIDTHS = np.array([1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128])
"""Rows are filled up to one of these lengths, longer ones to a multiple of the last."""
MOST_TILES, SPARE = 8, 0.25
"""Every tile is compiled by itself: kinds are put together until there are few, and further while
the filling stays below this share of the entries."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Tile:
    """Some states: -1 stands where a state has no such row, or a row no such entry.

    Attributes
    ----------
    states
        ``(S',)``.
    row
        ``(A', S')``: positions among the rows that were laid out.
    entry
        ``(K, A', S')``: positions among their entries.
    target
        ``(K, A', S')``: where the successor stands in the order of all tiles.
    share
        ``(A', S')``: how often the policy plays a row; 1 where all rows are offered.
    """

    states: Ints
    row: Ints
    entry: Ints
    target: NDArray[np.int32]
    share: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Tiling:
    """All states of a model, and in which order the tiles hold them.

    Attributes
    ----------
    tiles
        The states, each in one tile.
    order
        ``(S,)``: the states one tile after another.
    longest
        The most entries of a state of one policy: rounding is charged for that many.
    """

    tiles: tuple[Tile, ...]
    order: Ints
    longest: int

    @property
    def padded(self) -> int:
        """Entries with the filling."""
        return sum(tile.entry.size for tile in self.tiles)


def lay_out(
    state_rows: Ints, row_start: Ints, successor: NDArray[Any], share: Floats | None,
    widest: Ints | None = None,
) -> Tiling:  # fmt: skip
    """Lay out rows: state ``s`` has ``state_rows[s]:state_rows[s+1]``.

    Without shares every row is offered to a policy that plays one of them. ``widest``: room for the
    rows of each state, where that is more than they need.

    Examples
    --------
    >>> tiling = lay_out(
    ...     np.array([0, 1, 3]), np.array([0, 2, 3, 4]), np.array([0, 1, 0, 1]), None
    ... )
    >>> [(tile.states.tolist(), tile.entry.shape) for tile in tiling.tiles]
    [([0], (2, 1, 1)), ([1], (1, 2, 1))]
    """
    lengths = np.diff(row_start)
    rows = np.diff(state_rows)
    if widest is None:
        widest = np.maximum.reduceat(lengths, state_rows[:-1])
    kinds = _few_kinds(np.column_stack((rows, _width(widest))))
    found, kind = np.unique(kinds, axis=0, return_inverse=True)
    kind = kind.ravel()
    order = np.argsort(kind, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    tiles = tuple(
        _tile(
            np.flatnonzero(kind == k), int(found[k, 0]), int(found[k, 1]), state_rows, row_start,
            successor, place, share,
        )
        for k in range(len(found))
    )  # fmt: skip
    together = int(rows.max()) if share is not None else 1
    return Tiling(tiles=tiles, order=order, longest=int(lengths.max()) * together)


def _width(lengths: Ints) -> Ints:
    last = WIDTHS[-1]
    long = -(-lengths // last) * last
    return np.where(lengths > last, long, WIDTHS[np.searchsorted(WIDTHS, lengths) % len(WIDTHS)])


def _few_kinds(kinds: Ints) -> Ints:
    """Put kinds together while it pays: always the pair whose union wastes least."""
    found, kind, size = np.unique(kinds, axis=0, return_inverse=True, return_counts=True)
    spare = SPARE * float((found.prod(axis=1) * size).sum())
    while True:
        live, which = np.unique(found, axis=0, return_inverse=True)
        if len(live) == 1:
            break
        weight = np.bincount(which.ravel(), size)
        area = live.prod(axis=1)
        union = np.maximum(live[:, None], live[None]).prod(axis=2)
        waste = (union - area[:, None]) * weight[:, None] + (union - area) * weight
        waste = waste + np.where(np.eye(len(live), dtype=bool), np.inf, 0.0)
        i, j = np.unravel_index(np.argmin(waste), waste.shape)
        spare -= waste[i, j]
        if len(live) <= MOST_TILES and spare < 0:
            break
        both = (which.ravel() == i) | (which.ravel() == j)
        found[both] = np.maximum(live[i], live[j])
    return np.asarray(found[kind.ravel()])


def _tile(
    states: Ints, rows: int, width: int, state_rows: Ints, row_start: Ints,
    successor: NDArray[Any], place: Ints, share: Floats | None,
) -> Tile:  # fmt: skip
    row = state_rows[states] + np.arange(rows)[:, None]
    row = np.where(row < state_rows[states + 1], row, -1)
    begin = np.where(row < 0, 0, row_start[row])
    end = np.where(row < 0, 0, row_start[np.where(row < 0, 0, row) + 1])
    entry = begin + np.arange(width)[:, None, None]
    entry = np.where(entry < end, entry, -1)
    target = np.where(entry < 0, 0, place[successor[entry]]).astype(np.int32)
    played = np.ones(row.shape) if share is None else np.where(row < 0, 0.0, share[row])
    return Tile(states=states, row=row, entry=entry, target=target, share=played)
