"""How likely each candidate is to be the unseen successor of a row, within its part.

A candidate is weighted by how much of it rows like those that have shown it would still hide after
as many tries as this row has had: the sum of ``p (1 - p) ** tries`` over these rows, with ``p``
their observed share of the candidate. After seventy tries, a row may still hide the accident that
some rows met once, but hardly the next state that others reach every other time.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BY_ROWS = 0.05
"""The share of a candidate's weight that depends only on how many rows have shown it."""
LEAST_HIDDEN = 1e-100
"""Sums of hidden probabilities below this are too small to compare candidates."""


class Pattern(NamedTuple):
    """What rows of a group have shown, and what is asked for of each candidate of a part.

    ``group, what, share``: the group of each entry's row, what it shows, and its share of the row's
    tries. ``asked, candidate``: the group of the row that lists a candidate, and the candidate.
    """

    group: Ints
    what: Ints
    share: Floats
    asked: Ints
    candidate: Ints


def hidden_shares(pattern: Pattern, tries: Floats) -> Floats:
    """Return the mean of ``p (1 - p) ** tries`` over the rows that have shown each candidate.

    Tries are rounded down to powers of two.
    """
    group, what, share, asked, candidate = pattern
    if len(candidate) == 0:  # otherwise something was shown: candidates come from it
        return np.zeros(0)
    low = min(int(what.min()), int(candidate.min()))
    span = max(int(what.max()), int(candidate.max())) - low + 1
    keys, key = np.unique(group.astype(np.int64) * span + (what - low), return_inverse=True)
    at = np.searchsorted(keys, asked * span + (candidate - low))
    rows, found = np.bincount(key), np.zeros(len(candidate))
    level = np.log2(np.maximum(tries, 1.0)).astype(np.int64)
    for one in np.unique(level):
        here = level == one
        mass = np.bincount(key, share * (1.0 - share) ** (2.0**one))
        found[here] = (mass / rows)[at[here]]
    return found


def reweighed(lists: Ints, weight: Floats, factor: Floats) -> Floats:
    """Return the weights of candidates times a factor; each list keeps its sum.

    A small share ``BY_ROWS`` of each weight stays as it was: shares of few tries do not prove that
    a candidate is impossible.
    """
    made = weight * factor
    before, after = np.bincount(lists, weight), np.bincount(lists, made)
    told = after > LEAST_HIDDEN  # with very many tries, the factors underflow
    ratio = np.divide(before, after, out=np.zeros(len(before)), where=told)
    made = np.where(told[lists], made * ratio[lists], weight)
    return (1.0 - BY_ROWS) * made + BY_ROWS * weight
