"""Kernels that draw where an unseen successor leads: a part, then one of its candidates."""

import numpy as np
from numpy.typing import NDArray

from surefoot._compile import kernel
from surefoot.posterior.philox_kernels import Words, uniform

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LINEAR = 8
"""Up to this many weights are searched one by one, more by bisection."""


@kernel(lean=True)
def first_above(cumulative: Floats, first: int, last: int, goal: float) -> int:
    """Return the first index ``first..last-1`` whose ``cumulative`` reaches a goal, or ``last``.

    Cumulative weights never fall, so that bisection finds it: O(log n) for long ranges.
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
    """Write running sums of the shares of the parts with candidates in a row; return the total."""
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
    """Return the candidate that two uniform numbers pick for an unseen successor; -1: the rest.

    The first number picks a part by the running shares ``usual``, the second a candidate in it.
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
    """Return the candidate that a uniform number picks in the last part, the rest."""
    begin, end = part_start[row * parts + parts - 1], part_start[row * parts + parts]
    return int(min(first_above(part_cumulative, begin, end, third), end - 1))


@kernel(lean=True)
def unseen_entry(
    row: int, usual: Floats, part_start: Ints, part_entry: Ints, part_cumulative: Floats,
    words: Words, control: Words,
) -> int:  # fmt: skip
    """Draw the entry of an unseen successor; weight that a part leaves over goes to the rest."""
    first = uniform(words, control)
    second = uniform(words, control)
    found = candidate(row, usual, part_start, part_cumulative, first, second)
    if found < 0:
        third = uniform(words, control)
        found = candidate_of_rest(row, len(usual), part_start, part_cumulative, third)
    return int(part_entry[found])
