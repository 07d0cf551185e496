"""One row of the robust Bellman operator: a function for each kind of set."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot._compile import kernel
from surefoot.solvers.dual_kernels import (
    BOX,
    HUGE,
    LONG_ROW,
    ONE,
    ZERO,
    box_dual,
    search,
)
from surefoot.solvers.kl_kernels import kl_value
from surefoot.solvers.pair_kernels import NEVER, l1_value


class Problem(NamedTuple):
    """The plain arrays that the kernels read; made once per solve (see ``problem.py``).

    ``first[s]:last[s]`` are the rows of state ``s``. ``family`` is the kind of set of all rows that
    are ``uncertain``; the sets of the others are points. ``weights`` holds one number per entry, or
    (if ``shared``) as many ones as the longest row has entries. ``lower`` and ``upper`` are empty
    without boxes. ``sign`` is 1 where nature minimises, -1 where it maximises. ``nominal_caps``
    says that a row's nominal value is an upper bound on its robust value.
    """

    first: NDArray[np.uint64]
    last: NDArray[np.uint64]
    row_start: NDArray[np.uint64]
    successor: NDArray[np.uint32]
    probability: NDArray[np.float64]
    reward: NDArray[np.float64]
    reward_per_entry: bool
    discount: float
    sign: float
    family: int
    uncertain: NDArray[np.bool_]
    budget: NDArray[np.float64]
    weights: NDArray[np.float64]
    shared: bool
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    longest: int
    nominal_caps: bool


VECTOR = {"reassoc", "nsz", "contract"}
"""Sums may be reordered, so that they vectorise; the rounding allowance covers that."""


def _gather(problem, row, v, z):
    """Write ``z = sign*(r + discount*v)`` of a row; return its nominal expectation; O(k)."""
    start = problem.row_start[row]
    k = problem.row_start[row + ONE] - start
    scale = problem.sign * problem.discount
    for i in range(k):
        z[i] = scale * v[problem.successor[start + i]]
    nominal = 0.0
    if problem.reward_per_entry:
        for i in range(k):
            z[i] += problem.sign * problem.reward[start + i]
            nominal += problem.probability[start + i] * z[i]
    else:
        base = problem.sign * problem.reward[row]
        for i in range(k):
            z[i] += base
            nominal += problem.probability[start + i] * z[i]
    return nominal


_gather_short = kernel(lean=True, forceinline=True)(_gather)
_gather_long = kernel(lean=True, fastmath=VECTOR, twin="long")(_gather)


@kernel(lean=True, forceinline=True)
def gather(problem, row, v, z):
    """Write the successor values of a row; return its nominal expectation."""
    if problem.row_start[row + ONE] - problem.row_start[row] < LONG_ROW:
        return _gather_short(problem, row, v, z)
    return _gather_long(problem, row, v, z)


@kernel(lean=True, fastmath=VECTOR)
def _expected_long(problem, start, k, v):
    """Return ``p.v`` of a long row."""
    total = 0.0
    first = problem.successor[start]
    if problem.successor[start + k - ONE] - first == k - ONE:
        for i in range(k):  # consecutive successors: no index lookup needed
            total += problem.probability[start + i] * v[first + i]
        return total
    for i in range(k):
        total += problem.probability[start + i] * v[problem.successor[start + i]]
    return total


@kernel(lean=True, forceinline=True)
def nominal_value(problem, row, v):
    """Return the nominal expectation of a row without storing its successor values; O(k)."""
    start = problem.row_start[row]
    k = problem.row_start[row + ONE] - start
    total = 0.0
    if k < LONG_ROW:
        for at in range(start, start + k):
            total += problem.probability[at] * v[problem.successor[at]]
    else:
        total = _expected_long(problem, start, k, v)
    total *= problem.discount
    if problem.reward_per_entry:
        for at in range(start, start + k):
            total += problem.probability[at] * problem.reward[at]
        return total
    return total + problem.reward[row]


@kernel(lean=True, forceinline=True)
def nominal_row(problem, row, v, _accuracy, _memory, _scratch):
    """Return the expectation of a certain row, and a gap of 0."""
    return nominal_value(problem, row, v), 0.0


def robust_row(problem, row, v, accuracy, memory, scratch):
    """Return the worst-case (or best-case) expectation of a row and the gap left by the search.

    Nature's minimum lies between the value and value + gap (its maximum between value - gap and
    the value); the gap is at most ``accuracy`` or rounding. ``memory[row]`` remembers where the
    solution was found, for the next sweep: if it is still there, the row costs one pass.
    ``scratch`` holds vectors as long as the longest row, the first of them for the successor
    values. ``row_of`` binds ``set_value`` to one kind of set.
    """
    if not problem.uncertain[row]:
        return nominal_value(problem, row, v), 0.0
    nominal = gather(problem, row, v, scratch[0])
    start = problem.row_start[row]
    k = problem.row_start[row + ONE] - start
    value, gap = set_value(problem, row, start, k, nominal, accuracy, memory, scratch)
    return problem.sign * value, gap


@kernel(lean=True, forceinline=True)
def l1_ball(problem, row, start, k, nominal, accuracy, memory, scratch):
    """Return the worst case of a weighted L1 ball."""
    wat = ZERO if problem.shared else start
    return l1_value(
        scratch[0], problem.probability, start, problem.weights, wat, k, problem.budget[row],
        nominal, accuracy, row, memory,
    )  # fmt: skip


@kernel(lean=True, forceinline=True)
def pinned_ball(problem, row, start, k, nominal, accuracy, memory, scratch):
    """Return the worst case of a weighted L1 ball with infinite weights."""
    free = compact(problem, start, k, scratch[0], scratch[1], scratch[2])
    if free < 2:
        return nominal, 0.0
    return l1_value(
        scratch[0], scratch[1], ZERO, scratch[2], ZERO, free, problem.budget[row], nominal,
        accuracy, row, memory,
    )  # fmt: skip


@kernel(lean=True, forceinline=True)
def kl_ball(problem, row, start, k, nominal, accuracy, memory, scratch):
    """Return the worst case of a KL ball."""
    return kl_value(
        scratch[0], problem.probability, start, k, problem.budget[row], nominal, accuracy, row,
        memory,
    )  # fmt: skip


@kernel(lean=True, forceinline=True)
def box_value(problem, row, start, k, nominal, accuracy, memory, scratch):
    """Return the worst case of a box, starting at the remembered entry's value."""
    z = scratch[0]
    guess = nominal
    step = 0.1 * abs(z[0] - nominal) + 1e-3 * abs(nominal) + 1e-300
    if memory[row, 0] != NEVER:
        guess = z[np.uint64(memory[row, 0])]
        value, left, right = box_dual(z, problem.lower, start, problem.upper, start, k, guess)
        if left >= 0 and right <= 0:
            return value, 0.0
        step = 0.1 * abs(guess - nominal) + 1e-300
    value, gap, level, _, _ = search(
        BOX, z, problem.lower, start, problem.upper, start, k, 0.0, nominal, guess, step, accuracy
    )
    memory[row, 0] = nearest(z, k, level)
    return value, gap


@kernel(lean=True, forceinline=True)
def nearest(z, k, level):
    """Return the index of the value nearest to a level."""
    at, smallest = ZERO, HUGE
    for i in range(k):
        distance = abs(z[i] - level)
        if distance < smallest:
            at, smallest = i, distance
    return at


@kernel(lean=True, forceinline=True)
def compact(problem, start, k, z, free_p, free_w):
    """Move the entries with finite weights to the front of ``z``; return how many there are.

    A pinned entry is neither donor nor receiver: it only contributes to the nominal expectation.
    """
    free = ZERO
    for i in range(k):
        if problem.weights[start + i] < np.inf:
            z[free] = z[i]
            free_p[free] = problem.probability[start + i]
            free_w[free] = problem.weights[start + i]
            free += ONE
    return free


set_value = l1_ball


def row_of(family: str, value: Any) -> Any:
    """Return the row function of a kind of set, given the function for an uncertain row."""
    return kernel(lean=True, forceinline=True, twin=family, using={"set_value": value})(robust_row)


any_l1_row = kernel(lean=True, twin="l1", using={"set_value": l1_ball})(robust_row)


@kernel(lean=True, forceinline=True)
def l1_row(problem, row, v, accuracy, memory, scratch):
    """Return the robust value of an L1 row; one pass if it is short and its pair is still right."""
    start = problem.row_start[row]
    k = problem.row_start[row + ONE] - start
    if k < LONG_ROW and problem.uncertain[row] and memory[row, 0] >= 0:
        value, proved = same_pair(problem, row, start, k, v, memory)
        if proved:
            return problem.sign * value, 0.0
    return any_l1_row(problem, row, v, accuracy, memory, scratch)


@kernel(lean=True, forceinline=True)
def same_pair(problem, row, start, k, v, memory):
    """Evaluate the dual of a row where its remembered pair ties; also return if that is optimal.

    Does what ``l1_pair`` does, computing the successor values on the fly instead of storing them.
    """
    scale = problem.sign * problem.discount
    reward, own, base = problem.reward, problem.reward_per_entry, 0.0
    if not own:
        base = problem.sign * reward[row]
    donor, receiver = np.uint64(memory[row, 0]), np.uint64(memory[row, 1])
    wat = ZERO if problem.shared else start
    p, w, successor = problem.probability, problem.weights, problem.successor
    weight = w[wat + receiver]
    both = w[wat + donor] + weight
    high = scale * v[successor[start + donor]]
    low = scale * v[successor[start + receiver]]
    high += problem.sign * reward[start + donor] if own else base
    low += problem.sign * reward[start + receiver] if own else base
    if not (both > 0 and high > low):
        return 0.0, False
    mu = (high - low) / both
    lowest = low + mu * weight
    nominal = taken = mass = weighted = 0.0
    undercut = 0
    for i in range(k):
        here = p[start + i]
        z = scale * v[successor[start + i]]
        z += problem.sign * reward[start + i] if own else base
        nominal += here * z
        away = mu * w[wat + i]
        over = z - away
        moved = here if (over > lowest) & (i != donor) else 0.0
        undercut += z + away < lowest
        taken += moved * (over - lowest)
        mass += moved
        weighted += moved * w[wat + i]
    budget = problem.budget[row]
    slope = weighted + weight * mass - budget
    proved = undercut == 0 and slope <= 0 and slope + p[start + donor] * both >= 0
    return nominal - mu * budget - taken, proved


pinned_row = row_of("pinned", pinned_ball)
box_row = row_of("box", box_value)
