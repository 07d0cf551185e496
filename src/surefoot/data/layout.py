"""Checks of row-sparse counts, and how errors call their rows."""

from collections.abc import Hashable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def freeze_fields(thing: Any) -> None:
    """Give a frozen dataclass read-only contiguous arrays of its own, never the caller's."""
    for field in fields(thing):
        value = getattr(thing, field.name)
        if isinstance(value, np.ndarray) and (
            value.flags.writeable or not value.flags.c_contiguous
        ):
            own = np.array(value, order="C")
            own.setflags(write=False)
            object.__setattr__(thing, field.name, own)


def label_of(index: int, labels: Sequence[Hashable] | None) -> Hashable:
    """Return the label of an id; the id itself where there are no labels."""
    return int(index) if labels is None else labels[index]


def row_name(counts: Any, row: int) -> str:
    """Return "state 3, action 'repair'" for a row."""
    state = label_of(counts.row_state[row], counts.state_labels)
    action = label_of(counts.row_action[row], counts.action_labels)
    return f"state {state!r}, action {action!r}"


def check_counts(counts: Any) -> None:
    """Check what every user of counts relies on: layout, non-negative finite counts, labels."""
    _check_starts(counts)
    bad = np.flatnonzero(~((counts.count >= 0) & np.isfinite(counts.count)))
    if len(bad):
        row = counts.entry_row[bad[0]]
        successor = label_of(counts.successor[bad[0]], counts.state_labels)
        raise ValueError(
            f"the count of {row_name(counts, row)}, next state {successor!r} is "
            f"{counts.count[bad[0]]}; counts are finite and not negative ({len(bad)} of "
            f"{len(counts.count)} fail)."
        )
    for name, labels, size in (
        ("state_labels", counts.state_labels, counts.num_states),
        ("action_labels", counts.action_labels, counts.num_actions),
    ):
        if labels is not None and len(labels) != size:
            raise ValueError(f"{name} has {len(labels)} labels for {size} ids.")
        if labels is not None and len(set(labels)) != size:
            raise ValueError(f"{name} holds a label twice; labels must be distinct.")
    shapes = {
        "reward_mean": counts.count.shape,
        "reward_var": counts.count.shape,
        "reward_low": (counts.num_actions,),
        "reward_high": (counts.num_actions,),
        "starts": (counts.num_states,),
        "terminal": (counts.num_states,),
    }
    for name, shape in shapes.items():
        value = getattr(counts, name)
        if value is not None and value.shape != shape:
            raise ValueError(f"{name} has shape {value.shape}; it must be {shape}.")


def _check_starts(counts: Any) -> None:
    sound = (
        counts.state_start[0] == 0
        and counts.state_start[-1] == len(counts.row_action)
        and counts.row_start[0] == 0
        and counts.row_start[-1] == len(counts.successor)
        and len(counts.row_start) == len(counts.row_action) + 1
        and bool(np.all(np.diff(counts.state_start) >= 0))
        and bool(np.all(np.diff(counts.row_start) > 0))
        and len(counts.count) == len(counts.successor)
    )
    if not sound:
        raise ValueError(
            "state_start and row_start must rise from 0 to the number of rows/entries."
        )
    for name, ids, size in (
        ("row_action", counts.row_action, counts.num_actions),
        ("successor", counts.successor, counts.num_states),
    ):
        if len(ids) and (ids.min() < 0 or ids.max() >= size):
            raise ValueError(f"{name} must lie in 0..{size - 1}, found {ids.min()}..{ids.max()}.")
