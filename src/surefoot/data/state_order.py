"""The order of states, where their labels end in numbers: what a step from one to another means."""

import re
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_NUMBERS_EACH = 1000
"""Numbers in labels that lie further apart than this on average are names, not an order."""

_NUMBERED = re.compile(r"(.*?)(-?\d{1,9})").fullmatch


def state_numbers(labels: tuple[Any, ...] | None, num_states: int) -> Floats | None:
    """Return the number in every state's label, NaN where it has none; None without an order.

    Examples
    --------
    >>> state_numbers(("wear 0", "wear 1", "wear 2", "broken"), 4).tolist()
    [0.0, 1.0, 2.0, nan]
    >>> state_numbers(("cold", "warm"), 2) is None
    True
    """
    if labels is None:
        return np.arange(num_states, dtype=np.float64)
    found = [_NUMBERED(str(label)) for label in labels]
    heads = Counter(match[1] for match in found if match).most_common(1)
    if not heads or heads[0][1] < max(3, len(labels) / 2):
        return None
    common = heads[0][0]
    return np.array(
        [float(match[2]) if match and match[1] == common else np.nan for match in found]
    )


def numbering(counts: Any) -> tuple[Ints, Ints]:
    """Return the number of every state, from 0 up and -1 for none, and the state of each number.

    Where two labels have one number ("s1" and "s01"), it names the first of them.
    """
    found = state_numbers(counts.state_labels, counts.num_states)
    number = np.full(counts.num_states, -1, dtype=np.int64)
    if found is None:
        return number, np.full(1, -1)
    if counts.unseen is not None:
        found[counts.unseen] = np.nan
    numbered = np.flatnonzero(~np.isnan(found))
    if len(numbered) == 0:
        return number, np.full(1, -1)
    values, first = np.unique(found[numbered].astype(np.int64), return_index=True)
    span = int(values[-1] - values[0]) + 1
    if span > MOST_NUMBERS_EACH * len(values):
        return number, np.full(1, -1)
    number[numbered[first]] = values - values[0]
    state_of = np.full(span, -1)
    state_of[values - values[0]] = numbered[first]
    return number, state_of


def shown_patterns(counts: Any) -> tuple[Ints, Ints]:
    """Return two ``(E,)`` arrays that number what entries show: successor, and step (-1: none)."""
    number, _ = numbering(counts)
    state, successor = counts.entry_state, counts.successor.astype(np.int64)
    known = (number[state] >= 0) & (number[successor] >= 0)
    span = int(number.max(initial=0)) + 1
    return successor, np.where(known, number[successor] - number[state] + span, -1)
