"""Kernels that draw where an unseen successor leads: a part, then one of its candidates."""

import numpy as np
from numpy.typing import NDArray

from surefoot._compile import kernel
from surefoot.posterior.philox_kernels import Words, uniform

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LINEAR = 8
"""Weights up to this number are looked at one by one; more of them are halved."""


@kernel(lean=True)
def first_above(cumulative: Floats, first: int, last: int, goal: float) -> int:
    """Return the first of ``cumulative[first:last]`` that reaches a goal; ``last`` if none does.

    Weights are never negative, so they may be halved: O(log n) where they are many.
    """
    while last - first > LINEAR:
        middle = (first + last) // 2
        if cumulative[middle] >= goal:
            last = middle + 1
        else:
            first = middle + 1
    for k in range(first, last):
        if cumulative[k] >= goal:
            return k
    return last


@kernel(lean=True)
def running_shares(row: int, shares: Floats, part_start: Ints, out: Floats) -> float:
    """Write running sums of the shares of those parts that have candidates; return the last."""
    running = 0.0
    parts = len(shares)
    for part in range(parts):
        at = row * parts + part
        if part_start[at + 1] > part_start[at]:
            running += shares[part]
        out[part] = running
    return running


@kernel(lean=True)
def candidate(
    row: int, usual: Floats, part_start: Ints, part_cumulative: Floats, first: float, second: float
) -> int:
    """Return the candidate that two numbers pick for an unseen successor; -1 for the rest.

    ``usual`` are running shares of the parts: the first number picks one of them.
    """
    parts = len(usual)
    part = first_above(usual, 0, parts, first * usual[parts - 1])
    begin, end = part_start[row * parts + part], part_start[row * parts + part + 1]
    found = first_above(part_cumulative, begin, end, second)
    return found if found < end else -1


@kernel(lean=True)
def candidate_of_rest(
    row: int, parts: int, part_start: Ints, part_cumulative: Floats, third: float
) -> int:
    """Return the candidate that a number picks in the last part, which takes what others leave."""
    begin, end = part_start[row * parts + parts - 1], part_start[row * parts + parts]
    return int(min(first_above(part_cumulative, begin, end, third), end - 1))


@kernel(lean=True)
def unseen_entry(
    row: int, usual: Floats, part_start: Ints, part_entry: Ints, part_cumulative: Floats,
    words: Words, control: Words,
) -> int:  # fmt: skip
    """Draw the entry on which an unseen successor lands; the rest takes what a part leaves."""
    first = uniform(words, control)
    second = uniform(words, control)
    found = candidate(row, usual, part_start, part_cumulative, first, second)
    if found < 0:
        third = uniform(words, control)
        found = candidate_of_rest(row, len(usual), part_start, part_cumulative, third)
    return int(part_entry[found])
