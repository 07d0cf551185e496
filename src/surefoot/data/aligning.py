"""One set of labels for two logs."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.data.counting import Counts
from surefoot.data.layout import Ints, label_of
from surefoot.data.support import free_label

Label = Hashable
TERMINAL_LABEL = "terminal"
"""The state that stands for ends without a state of their own."""


class Alignment(NamedTuple):
    """Labels of both logs together (None: plain ids), and the new id of each old one."""

    labels: tuple[Label, ...] | None
    size: int
    old: Ints
    new: Ints


def align_actions(old: Counts, new: Counts) -> Alignment:
    """Return one numbering of the actions of two logs."""
    names = [
        [label_of(i, counts.action_labels) for i in range(counts.num_actions)]
        for counts in (old, new)
    ]
    plain = old.action_labels is None and new.action_labels is None
    return _number("action", names[0], names[1], plain=plain)


def align_states(old: Counts, new: Counts) -> tuple[Alignment, NDArray[np.bool_]]:
    """Return one numbering of the states of two logs, and which states are terminal.

    A state that is terminal in one log and lives on in the other keeps its name for the living
    one; ends in it go to the extra terminal state, as they would had the logs been read as one.
    """
    names = [_state_names(counts) for counts in (old, new)]
    lives = [
        {name for name, ends in zip(own, counts.is_terminal, strict=True) if not ends}
        for own, counts in zip(names, (old, new), strict=True)
    ]
    extra = free_label(TERMINAL_LABEL, tuple(lives[0] | lives[1]))
    moved = False
    for own, counts, other in zip(names, (old, new), reversed(lives), strict=True):
        for i in np.flatnonzero(counts.is_terminal):
            if own[i] in other:
                own[i], moved = extra, True
    plain = old.state_labels is None and new.state_labels is None and not moved
    aligned = _number("state", names[0], names[1], plain=plain)
    terminal = np.zeros(aligned.size, dtype=np.bool_)
    terminal[aligned.old[old.is_terminal]] = True
    terminal[aligned.new[new.is_terminal]] = True
    return aligned, terminal


def _state_names(counts: Counts) -> list[Label]:
    return [label_of(i, counts.state_labels) for i in range(counts.num_states)]


def _number(what: str, old: list[Label], new: list[Label], *, plain: bool) -> Alignment:
    if plain:
        size = max(len(old), len(new))
        return Alignment(None, size, np.arange(len(old)), np.arange(len(new)))
    distinct = list(dict.fromkeys((*old, *new)))
    _check_types(what, distinct)
    ordered = sort_labels(distinct)
    where = {label: i for i, label in enumerate(ordered)}
    old_ids, new_ids = (
        np.array([where[label] for label in labels], dtype=np.int64) for labels in (old, new)
    )
    return Alignment(ordered, len(ordered), old_ids, new_ids)


def _check_types(what: str, labels: list[Label]) -> None:
    """Refuse a number in one log and the same text in the other: one thing read in two ways."""
    spelled = {str(label) for label in labels if isinstance(label, int)}
    clash = next((x for x in labels if isinstance(x, str) and x in spelled), None)
    if clash is not None:
        raise ValueError(
            f"{what} {clash!r} is text in one log and a number in the other. Read both with "
            "labels='text', or convert one."
        )


def sort_labels(labels: Sequence[Label]) -> tuple[Label, ...]:
    """Return labels in order: numbers by value before texts before tuples.

    Examples
    --------
    >>> sort_labels([10, "terminal", 9])
    (9, 10, 'terminal')
    """

    def key(label: Label) -> tuple[object, ...]:
        if isinstance(label, tuple):
            return (2, *(key(part) for part in label))
        return (0, label) if isinstance(label, int) else (1, str(label))

    return tuple(sorted(labels, key=key))
