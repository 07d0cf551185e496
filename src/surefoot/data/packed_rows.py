"""Checks of row-sparse counts."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

REWARD_MODELS = ("fixed", "normal", "bounded")
"""How mean rewards are treated, from the boldest to the most cautious."""


def label_of(index: int, labels: Sequence[Hashable] | None) -> Hashable:
    """Return the label of an id, or the id itself if there are no labels."""
    return int(index) if labels is None else labels[index]


def check_counts(counts: Any) -> None:
    """Check what every user of counts relies on: layout, non-negative finite counts, labels."""
    _check_types(counts)
    _check_starts(counts)
    bad = np.flatnonzero(~((counts.count >= 0) & np.isfinite(counts.count)))
    if len(bad):
        row = counts.entry_row[bad[0]]
        successor = label_of(counts.successor[bad[0]], counts.state_labels)
        raise ValueError(
            f"the count of {counts.row_name(row)}, next state {successor!r} is "
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


def _check_types(counts: Any) -> None:
    """Check the types and shapes of fields that may come from a file."""
    for name, kinds in (
        ("state_start", "i"), ("row_action", "i"), ("row_start", "i"), ("successor", "i"),
        ("count", "iuf"), ("reward_mean", "f"), ("reward_var", "f"), ("reward_low", "f"),
        ("reward_high", "f"), ("starts", "iu"), ("terminal", "b"),
    ):  # fmt: skip
        value = getattr(counts, name)
        if value is not None and (value.ndim != 1 or value.dtype.kind not in kinds):
            raise ValueError(
                f"{name} is an array of {value.dtype} with shape {value.shape}; it must be a list "
                f"of {'true/false' if kinds == 'b' else 'numbers'}."
            )
    if len(counts.state_start) < 2 or len(counts.row_start) < 1:
        raise ValueError("state_start and row_start are too short: counts need a state.")
    size, whole = counts.num_actions, (int, np.integer)
    if not isinstance(size, whole) or isinstance(size, bool) or size < 1:
        raise ValueError(f"num_actions is {size!r}; it must be a whole number, 1 or more.")
    if not isinstance(counts.declared, (bool, np.bool_)):
        raise ValueError(f"declared is {counts.declared!r}; it must be true or false.")
    if counts.unseen is not None and not (
        isinstance(counts.unseen, whole) and 0 <= counts.unseen < counts.num_states
    ):
        raise ValueError(f"unseen is {counts.unseen!r}; it must be the id of a state.")
    _check_reward_facts(counts)


def _check_reward_facts(counts: Any) -> None:
    if counts.reward_model not in REWARD_MODELS:
        raise ValueError(
            f"reward_model is {counts.reward_model!r}; choose one of {', '.join(REWARD_MODELS)}."
        )
    bounds = counts.reward_range
    if bounds is not None and not (np.all(np.isfinite(bounds)) and bounds[0] <= bounds[1]):
        raise ValueError(f"reward_range is {bounds!r}; it must be (lowest, highest).")
    if (counts.reward_mean is None) != (counts.reward_var is None):
        raise ValueError("reward_mean and reward_var belong together: give both or none.")
    if counts.reward_mean is not None and np.any(np.isinf(counts.reward_mean)):
        raise ValueError("reward_mean is infinite; rewards must be finite.")
    if counts.reward_var is not None and not np.all(
        np.isnan(counts.reward_var) | ((counts.reward_var >= 0) & np.isfinite(counts.reward_var))
    ):
        raise ValueError("reward_var is negative or infinite; variances are 0 or more.")


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
    first = np.zeros(len(counts.row_action), dtype=np.bool_)
    first[counts.state_start[:-1][np.diff(counts.state_start) > 0]] = True
    if np.any((np.diff(counts.row_action) <= 0) & ~first[1:]):
        raise ValueError("row_action must rise within a state.")
    first = np.zeros(len(counts.successor), dtype=np.bool_)
    first[counts.row_start[:-1]] = True
    if np.any((np.diff(counts.successor) <= 0) & ~first[1:]):
        raise ValueError("successor must rise within a row.")
    if counts.starts is not None and np.any(counts.starts < 0):
        raise ValueError("starts are negative; episodes start 0 times or more.")
    for name, ids, size in (
        ("row_action", counts.row_action, counts.num_actions),
        ("successor", counts.successor, counts.num_states),
    ):
        if len(ids) and (ids.min() < 0 or ids.max() >= size):
            raise ValueError(f"{name} must lie in 0..{size - 1}, found {ids.min()}..{ids.max()}.")
