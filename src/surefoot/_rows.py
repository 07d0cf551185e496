"""The storage of rows and entries shared by counts, models and posteriors."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def freeze_fields(thing: Any) -> None:
    """Make every array of a frozen dataclass read-only, contiguous and its own.

    The caller's array is never locked, and a writeable one is copied, not shared.
    """
    for field in fields(thing):
        value = getattr(thing, field.name)
        if not isinstance(value, np.ndarray):
            continue
        # A read-only view is copied too: it may still change through its base array.
        if value.flags.writeable or value.base is not None or not value.flags.c_contiguous:
            own = np.array(value, order="C")
            own.setflags(write=False)
            object.__setattr__(thing, field.name, own)


def name_of(index: int, labels: Sequence[Hashable] | None) -> str:
    """Return the name of a state or an action for errors and tables.

    Examples
    --------
    >>> name_of(1, ("cold", "warm")), name_of(1, None)
    ("'warm'", '1')
    """
    if labels is None or not 0 <= index < len(labels):
        return str(int(index))
    label = labels[index]
    return repr(", ".join(map(str, label)) if isinstance(label, tuple) else label)


class RowSparse:
    """Rows (state-action pairs) ordered by state, entries (successors) ordered by row.

    State ``s`` owns the rows ``state_start[s]:state_start[s+1]``, row ``r`` the entries
    ``row_start[r]:row_start[r+1]``.
    """

    state_start: Ints
    row_action: Ints
    row_start: Ints
    successor: NDArray[np.int32]
    num_actions: int
    state_labels: tuple[Hashable, ...] | None
    action_labels: tuple[Hashable, ...] | None

    @property
    def num_states(self) -> int:
        """The number of states."""
        return len(self.state_start) - 1

    @property
    def num_rows(self) -> int:
        """The number of state-action pairs listed."""
        return len(self.row_action)

    @property
    def num_entries(self) -> int:
        """The number of (state, action, successor) triples listed."""
        return len(self.successor)

    @cached_property
    def row_state(self) -> Ints:
        """``(R,)``: the state of each row."""
        return np.repeat(np.arange(self.num_states), np.diff(self.state_start))

    @cached_property
    def entry_row(self) -> Ints:
        """``(E,)``: the row of each entry."""
        return np.repeat(np.arange(self.num_rows), np.diff(self.row_start))

    def entries_of(self, rows: Ints) -> Ints:
        """Return the entries of some rows, one row after another."""
        sizes = np.diff(self.row_start)[rows]
        ends = np.cumsum(sizes)
        within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)
        entries: Ints = np.repeat(self.row_start[rows], sizes) + within
        return entries

    @property
    def entry_state(self) -> Ints:
        """``(E,)``: the state of each entry."""
        return self.row_state[self.entry_row]

    @property
    def entry_action(self) -> Ints:
        """``(E,)``: the action of each entry."""
        return self.row_action[self.entry_row]

    def state_name(self, state: int) -> str:
        """Return the label of a state, or its number where it has none."""
        return name_of(state, self.state_labels)

    def action_name(self, action: int) -> str:
        """Return the label of an action, or its number where it has none."""
        return name_of(action, self.action_labels)

    def row_name(self, row: int) -> str:
        """Return "state 3, action 'repair'" for a row."""
        state, action = self.row_state[row], self.row_action[row]
        return f"state {self.state_name(state)}, action {self.action_name(action)}"

    @property
    def dense_index(self) -> tuple[Ints, Ints, NDArray[np.int32]]:
        """The index of each entry in a dense ``(S, A, S)`` array."""
        return self.entry_state, self.entry_action, self.successor

    def dense_support(self) -> NDArray[np.bool_]:
        """Return ``(S, A, S)``: which successors are listed (for small models)."""
        listed = np.zeros((self.num_states, self.num_actions, self.num_states), dtype=np.bool_)
        listed[self.dense_index] = True
        return listed


class Rows(NamedTuple):
    """Where the rows of each state and the entries of each row lie."""

    state_start: Ints
    row_action: Ints
    row_start: Ints
    successor: NDArray[np.int32]


def pack(state: Ints, action: Ints, successor: Ints, num_states: int, num_actions: int) -> Rows:
    """Compress entries sorted by (state, action, successor) into rows; states may have none."""
    row_key = state * num_actions + action
    first = np.flatnonzero(
        np.concatenate((np.ones(min(1, len(state)), bool), np.diff(row_key) != 0))
    )
    return Rows(
        state_start=np.searchsorted(state[first], np.arange(num_states + 1)).astype(np.int64),
        row_action=action[first].astype(np.int64),
        row_start=np.append(first, len(state)).astype(np.int64),
        successor=successor.astype(np.int32),
    )
