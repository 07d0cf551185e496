"""Sweeps of the robust Bellman operator over a contiguous block of states.

A sweep reads ``v`` and writes its own block only, so blocks can run on several threads or machines.
``scratch`` is four vectors as long as the longest row, one set per thread.

The sweeps are written once and compiled for one family of sets at a time, when first used:
``row_value``, ``row_choice`` and ``row_floor`` are replaced by that family's functions (see
``FAMILIES`` at the end). So a nominal solve compiles none of the code for sets.
"""

from typing import Any, NamedTuple

import numpy as np

from surefoot._compile import kernel
from surefoot.solvers import choice_kernels, row_kernels
from surefoot.solvers.choice_kernels import (
    box_choice,
    choice_of,
    l1_choice,
    nominal_choice,
    pinned_choice,
)
from surefoot.solvers.dual_kernels import BOX, L1, L1_PINNED, NOMINAL, ONE
from surefoot.solvers.prefetch_kernels import prefetch
from surefoot.solvers.row_kernels import Problem, box_row, l1_row, nominal_row, pinned_row, row_of

AHEAD = np.uint64(8)
"""How many states ahead the values of successors are prefetched; their rows, twice as many."""
LINE = np.uint64(8)
"""Float64 numbers in a cache line."""
FEW_ENTRIES = 16_384
"""Models with at most this many entries stay in the caches: nothing is prefetched."""


@kernel(lean=True, forceinline=True)
def nominal_floor(problem, _row, at):
    """Return the least probability of an entry over its row's set: the nominal one."""
    return problem.probability[at]


@kernel(lean=True, forceinline=True)
def l1_floor(problem, row, at):
    """Return a lower bound on the probability of an entry over an L1 ball."""
    if not problem.uncertain[row]:
        return problem.probability[at]
    # Without weights, moving mass m uses 2m of the budget: where it leaves and where it arrives.
    price = 2.0 if problem.shared else problem.weights[at]
    if problem.probability[at] * price <= problem.budget[row]:
        return 0.0
    return problem.probability[at] - problem.budget[row] / price


@kernel(lean=True, forceinline=True)
def box_floor(problem, row, at):
    """Return the least probability of an entry over a box."""
    return problem.lower[at] if problem.uncertain[row] else problem.probability[at]


@kernel(lean=True, forceinline=True)
def kl_floor(problem, row, at):
    """Return a lower bound on the probability of an entry over a KL ball: 0 if uncertain."""
    return 0.0 if problem.uncertain[row] else problem.probability[at]


@kernel(lean=True, forceinline=True)
def ask_ahead(problem, choice, state, end, v):
    """Prefetch the chosen row of a later state, and for a nearer one the successors' values."""
    if state + AHEAD + AHEAD < end:
        start = problem.row_start[choice[state + AHEAD + AHEAD]]
        prefetch(problem.successor, start)
        prefetch(problem.probability, start)
        prefetch(problem.probability, start + LINE)
        prefetch(problem.weights, start)
        prefetch(problem.weights, start + LINE)
    if state + AHEAD < end:
        row = choice[state + AHEAD]
        start = problem.row_start[row]
        stop = min(problem.row_start[row + ONE], start + LINE + LINE)
        for at in range(start, stop):
            prefetch(v, np.uint64(problem.successor[at]))


row_value, row_choice, row_floor = nominal_row, nominal_choice, nominal_floor


def bellman_sweep(
    problem, begin, end, v, out, choice, cap, rest, shift, margin, accuracy, memory, scratch
):
    """Apply the robust Bellman operator to the states ``begin:end`` (Jacobi).

    ``cap[row] + shift`` is an upper bound on the row's value at this ``v``: its value when last
    computed, plus discount times the largest rise of ``v`` since then. A row whose bound lies below
    the best value found so far, by more than ``margin`` (rounding), is skipped without being read.
    ``choice[s]`` is the chosen row, tried first and kept in a tie. ``rest[s]`` is the largest cap
    of the other rows of state ``s``: if even that lies below the chosen row's value, all of them
    are skipped.

    Returns the smallest and largest change, the largest gap of an inner problem, and the number of
    rows evaluated.
    """
    least = np.inf
    most = -np.inf
    worst_gap = 0.0
    evaluated = 0
    far = len(problem.successor) > FEW_ENTRIES
    for state in range(np.uint64(begin), np.uint64(end)):
        if far:
            ask_ahead(problem, choice, state, np.uint64(end), v)
        incumbent = choice[state]
        start = problem.first[state]
        best = -np.inf
        chosen = incumbent
        others = rest[state]
        for turn in range(problem.last[state] - start + ONE):
            row = incumbent  # the chosen row first, then the others in order
            if turn > 0:
                if turn == ONE:
                    if others + shift < best - margin:
                        break
                    others = -np.inf
                row = start + turn - ONE
                if row == incumbent:
                    continue
                if cap[row] + shift < best - margin:
                    others = max(others, cap[row])
                    continue
            value, gap = row_value(problem, row, v, accuracy, memory, scratch)
            cap[row] = value + gap - shift
            worst_gap = max(worst_gap, gap)
            evaluated += 1
            if value > best:
                if turn > 0:
                    others = max(others, cap[chosen])
                best = value
                chosen = row
            else:
                others = max(others, cap[row])
        rest[state] = others
        out[state] = best
        choice[state] = chosen
        change = best - v[state]
        least = min(least, change)
        most = max(most, change)
    return least, most, worst_gap, evaluated


def policy_sweep(problem, begin, end, v, out, start, rows, share, accuracy, memory, scratch):
    """Apply the robust operator of a fixed policy to the states ``begin:end`` (Jacobi).

    State ``s`` plays ``rows[start[s]:start[s+1]]`` with probabilities ``share``.
    """
    least = np.inf
    most = -np.inf
    worst_gap = 0.0
    for state in range(np.uint64(begin), np.uint64(end)):
        total = 0.0
        for m in range(start[state], start[state + ONE]):
            value, gap = row_value(problem, rows[m], v, accuracy, memory, scratch)
            total += share[m] * value
            worst_gap = max(worst_gap, gap)
        out[state] = total
        change = total - v[state]
        least = min(least, change)
        most = max(most, change)
    return least, most, worst_gap, np.int64(start[end]) - np.int64(start[begin])


def gauss_seidel_sweeps(problem, v, choice, turns, accuracy, memory, scratch):
    """Update ``v`` in place, state by state, forwards and backwards in turn.

    A state's equation is solved for its own value, counting only the probability of staying that
    every model of the set has (``row_floor``): with more, an update would overshoot wherever nature
    makes staying less likely, and the sweeps could diverge. The changes are not ``Lv - v``, so
    bounds come from a Jacobi sweep afterwards.
    """
    num_states = np.uint64(len(problem.first))
    for turn in range(turns):
        for position in range(num_states):
            state = position if turn % 2 == 0 else num_states - ONE - position
            best = -np.inf
            chosen = choice[state]
            for row in range(problem.first[state], problem.last[state]):
                value, _ = row_value(problem, row, v, accuracy, memory, scratch)
                stay = 0.0
                for at in range(problem.row_start[row], problem.row_start[row + ONE]):
                    if problem.successor[at] == state:
                        stay = row_floor(problem, row, at)
                moved = v[state] + (value - v[state]) / (1.0 - problem.discount * stay)
                if moved > best:
                    best = moved
                    chosen = row
            v[state] = best
            choice[state] = chosen


def nature_rows(problem, v, rows, start, out, scratch):
    """Write nature's distributions at ``v``; that of ``rows[i]`` begins at ``start[i]``."""
    for i in range(np.uint64(len(rows))):
        row_choice(problem, rows[i], v, scratch, out, start[i])


def row_values(problem, v, rows, memory, out, scratch):
    """Write the robust values of the given rows at ``v``, exact up to rounding."""
    for i in range(np.uint64(len(rows))):
        out[i], _ = row_value(problem, rows[i], v, 0.0, memory, scratch)


class Sweeps(NamedTuple):
    """The sweeps of one family, compiled when first called."""

    bellman: Any
    policy: Any
    gauss_seidel: Any
    nature_rows: Any
    row_values: Any


def _sweeps(family: str, value: Any, choice: Any, floor: Any) -> Sweeps:
    """Bind the sweeps above to the functions of one family."""
    names = {"row_value": value, "row_choice": choice, "row_floor": floor}
    bind = kernel(lean=True, twin=family, using=names)
    return Sweeps(
        bellman=bind(bellman_sweep),
        policy=bind(policy_sweep),
        gauss_seidel=bind(gauss_seidel_sweeps),
        nature_rows=bind(nature_rows),
        row_values=bind(row_values),
    )


FAMILIES = {
    NOMINAL: _sweeps("nominal", nominal_row, nominal_choice, nominal_floor),
    L1: _sweeps("l1", l1_row, l1_choice, l1_floor),
    L1_PINNED: _sweeps("pinned", pinned_row, pinned_choice, l1_floor),
    BOX: _sweeps("box", box_row, box_choice, box_floor),
}


OWN_FAMILY: dict[str, int] = {}
"""The family number of each registered ball, by its name in ``ambiguity.sets.BALLS``."""


def add_ball(norm: str, value: Any, choice: Any, floor: Any) -> None:
    """Register the kernels of a ball.

    ``value(problem, row, start, k, nominal, accuracy, memory, scratch)`` returns the least
    expectation and its gap, ``choice(problem, row, start, k, nominal, scratch, out, at)`` writes
    the distribution that attains it, ``floor(problem, row, at)`` returns a lower bound on the
    probability of an entry. ``scratch[0]`` holds the values of the successors, ``nominal`` their
    nominal expectation. The first two are never called for certain rows.
    """
    number = len(FAMILIES)
    FAMILIES[number] = _sweeps(norm, row_of(norm, value), choice_of(norm, choice), floor)
    OWN_FAMILY[norm] = number


add_ball("kl", row_kernels.kl_ball, choice_kernels.kl_ball, kl_floor)


def sweeps_of(problem: Problem) -> Sweeps:
    """Return the sweeps for the family of a problem's sets."""
    return FAMILIES[problem.family]
