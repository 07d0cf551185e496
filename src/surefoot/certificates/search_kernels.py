"""Values, visits and returns of one row per state in many drawn models, and of its neighbours.

A batch is ``draws (n, E)`` with the expected rewards of rows, ``gains (n, R)``; ``choice`` is the
row that each state plays. With ``X = (I - discount P)^-1`` of a draw, ``v = X r`` and
``b = initial' X``, playing row ``a`` instead in state ``s`` alone changes that draw's return to

    b.r + b_s (Q(s,a) - v_s) / (1 - discount c),   c = (P_a - P_choice(s)) . X e_s

(the Sherman-Morrison formula). These numbers select; they certify nothing.
"""

import numpy as np

from surefoot._compile import kernel
from surefoot.solvers.evaluation.krylov_kernels import dot
from surefoot.solvers.evaluation.system_kernels import (
    fill_rows,
    find_places,
    find_value,
    find_visits,
)

NEVER_LEFT = 1e-13
"""A change after which a state leaves itself with less than this probability has no return."""


@kernel(lean=True)
def row_worth(draw, gain, start, stop, successor, discount, v):
    """Return ``gain + discount p.v`` of one row."""
    total = 0.0
    for e in range(start, stop):
        total += draw[e] * v[successor[e]]
    return gain + discount * total


@kernel(lean=True)
def keep_draws(block, reward, starts, begin, end, first, draws, gains):
    """Copy draws ``begin:end`` of a block to ``draws[first + i]``; write their expected rewards.

    ``starts`` are the rows' first entries and the number of entries. O(entries) a draw.
    """
    for i in range(begin, end):
        paid = reward[i if len(reward) > 1 else 0]
        draw = draws[first + i]
        for r in range(len(starts) - 1):
            total = 0.0
            for e in range(starts[r], starts[r + 1]):
                draw[e] = block[i, e]
                total += block[i, e] * paid[e]
            gains[first + i, r] = total


@kernel(lean=True)
def add_distances(draws, nominal, row_start, begin, end, out):
    """Write ``out[r]``: L1 distances of rows ``begin:end`` from the nominal, summed over draws."""
    for r in range(begin, end):
        out[r] = 0.0
    for i in range(len(draws)):
        for r in range(begin, end):
            total = 0.0
            for e in range(row_start[r], row_start[r + 1]):
                total += abs(draws[i, e] - nominal[e])
            out[r] += total


@kernel(lean=True)
def fill_matrix(draw, gains, row_start, successor, discount, choice, matrix, value):
    """Write ``I - discount P`` and the expected rewards of one row per state."""
    size = len(value)
    for s in range(size):
        for t in range(size):
            matrix[s, t] = 0.0
        matrix[s, s] = 1.0
        for e in range(row_start[choice[s]], row_start[choice[s] + 1]):
            matrix[s, successor[e]] -= discount * draw[e]
        value[s] = gains[choice[s]]


@kernel(lean=True)
def write_systems(draws, gains, row_start, successor, discount, choice, first, matrices, values):
    """Write the full systems of one row per state in the draws from ``first`` on."""
    for k in range(len(values)):
        i = first + k
        fill_matrix(
            draws[i], gains[i], row_start, successor, discount, choice, matrices[k], values[k]
        )


@kernel(lean=True)
def weigh(values, initial, returns):
    """Write ``initial . values[k]``, added up in the order of the states."""
    for k in range(len(values)):
        total = 0.0
        for s in range(len(initial)):
            total += initial[s] * values[k, s]
        returns[k] = total


@kernel(lean=True)
def sparse_values(
    draws, gains, row_start, successor, discount, initial, choice, begin, end, tolerance,
    max_sweeps, system, values, returns,
):  # fmt: skip
    """Move values ``(n, S)`` to within ``tolerance`` of the right ones, without a full matrix."""
    for i in range(begin, end):
        fill_rows(system, draws[i], gains[i], choice, row_start, successor, discount)
        if i == begin:
            find_places(system)
        find_value(system, discount, tolerance, max_sweeps, values[i])
        returns[i] = dot(initial, values[i])


@kernel(lean=True)
def sparse_visits(
    draws, gains, row_start, successor, discount, initial, choice, begin, end, goal, max_sweeps,
    system, visits,
):  # fmt: skip
    """Move discounted visits ``(n, S)`` until no state's residual exceeds ``goal``."""
    for i in range(begin, end):
        fill_rows(system, draws[i], gains[i], choice, row_start, successor, discount)
        if i == begin:
            find_places(system)
        find_visits(system, initial, goal, max_sweeps, visits[i])


@kernel(lean=True)
def flip_returns(
    draws, gains, state_start, row_start, successor, discount, initial, choice, first, columns,
    values, out,
):  # fmt: skip
    """Write ``out[row, i]``: the return of draw ``i`` when ``row`` is played in its state instead.

    In draw ``first + k``, ``columns[k, s]`` is ``X e_s`` and ``values[k]`` has room for ``v``.
    Exact; O(S^2 + entries) a draw.
    """
    size = len(initial)
    for k in range(len(columns)):
        i = first + k
        draw, value = draws[i], values[k]
        for s in range(size):
            value[s] = 0.0
        for s in range(size):
            gain = gains[i, choice[s]]
            for t in range(size):
                value[t] += gain * columns[k, s, t]
        base = dot(initial, value)
        for s in range(size):
            column = columns[k, s]
            visits = dot(initial, column)
            own = 0.0
            for e in range(row_start[choice[s]], row_start[choice[s] + 1]):
                own += draw[e] * column[successor[e]]
            for row in range(state_start[s], state_start[s + 1]):
                if row == choice[s]:
                    out[row, i] = base
                    continue
                worth, back = gains[i, row], -own
                for e in range(row_start[row], row_start[row + 1]):
                    worth += discount * draw[e] * value[successor[e]]
                    back += draw[e] * column[successor[e]]
                left = 1.0 - discount * back
                if left > NEVER_LEFT:
                    out[row, i] = base + visits * (worth - value[s]) / left
                else:  # without discount: a row that only leads back to itself
                    out[row, i] = -np.inf


@kernel(lean=True)
def flip_estimates(
    draws, gains, state_start, row_start, successor, discount, values, visits, returns, begin,
    end, out,
):  # fmt: skip
    """Write ``out[row, i]``: the flip's return to first order (its denominator taken as 1).

    The sign of every change is exact, its size is not. O(entries) a draw; no matrix.
    """
    for i in range(begin, end):
        v = values[i]
        for s in range(len(v)):
            for row in range(state_start[s], state_start[s + 1]):
                worth = row_worth(
                    draws[i], gains[i, row], row_start[row], row_start[row + 1], successor,
                    discount, v,
                )  # fmt: skip
                out[row, i] = returns[i] + visits[i, s] * (worth - v[s])


@kernel(lean=True)
def mean_gains(
    draws, gains, state_start, row_start, successor, discount, values, visits, begin, end, out
):
    """Add to ``out[row]`` what draws ``begin:end`` add to the mean of ``b_s (Q(s, row) - v_s)``."""
    share = 1.0 / len(draws)
    for i in range(begin, end):
        v = values[i]
        for s in range(len(v)):
            for row in range(state_start[s], state_start[s + 1]):
                worth = row_worth(
                    draws[i], gains[i, row], row_start[row], row_start[row + 1], successor,
                    discount, v,
                )  # fmt: skip
                out[row] += share * visits[i, s] * (worth - v[s])
