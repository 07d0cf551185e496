"""Values, visits and returns of one row per state in many drawn models, and of its neighbours.

A batch is ``draws (n, E)`` with the expected rewards of rows, ``gains (n, R)``; ``choice`` is the
row that each state plays. With ``X = (I - discount P)^-1`` of a draw, ``v = X r`` and
``b = initial' X``, playing row ``a`` instead in state ``s`` alone changes that draw's return to

    b.r + b_s (Q(s,a) - v_s) / (1 - discount c),   c = (P_a - P_choice(s)) . X e_s

(the Sherman-Morrison formula). These numbers select; they certify nothing.
"""

from surefoot._compile import kernel
from surefoot.certificates.krylov_kernels import dot
from surefoot.certificates.return_kernels import eliminate
from surefoot.certificates.system_kernels import fill_rows, find_places, find_value, find_visits


@kernel(lean=True)
def invert(matrix):
    """Invert in place, without pivoting (Gauss-Jordan); O(S^3).

    Meant for ``I - discount P``, which is strictly diagonally dominant by rows.
    """
    size = len(matrix)
    for pivot in range(size):
        scale = 1 / matrix[pivot, pivot]
        matrix[pivot, pivot] = 1
        for t in range(size):
            matrix[pivot, t] *= scale
        for s in range(size):
            factor = matrix[s, pivot]
            if s == pivot or factor == 0:
                continue
            matrix[s, pivot] = 0
            for t in range(size):
                matrix[s, t] -= factor * matrix[pivot, t]


@kernel(lean=True)
def transpose(matrix):
    """Transpose a square matrix in place."""
    for s in range(len(matrix)):
        for t in range(s):
            held = matrix[s, t]
            matrix[s, t] = matrix[t, s]
            matrix[t, s] = held


@kernel(lean=True)
def row_worth(draw, gain, start, stop, successor, discount, v):
    """Return ``gain + discount p.v`` of one row."""
    total = 0.0
    for e in range(start, stop):
        total += draw[e] * v[successor[e]]
    return gain + discount * total


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
def direct_values(
    draws, gains, row_start, successor, discount, initial, choice, begin, end, matrix, values,
    returns,
):  # fmt: skip
    """Write values ``(n, S)`` and returns ``(n,)`` of draws ``begin:end``; O(S^3/3) a draw."""
    for i in range(begin, end):
        fill_matrix(draws[i], gains[i], row_start, successor, discount, choice, matrix, values[i])
        eliminate(matrix, values[i])
        total = 0.0
        for s in range(len(initial)):
            total += initial[s] * values[i, s]
        returns[i] = total


@kernel(lean=True)
def direct_visits(
    draws, gains, row_start, successor, discount, initial, choice, begin, end, matrix, visits
):
    """Write discounted visits ``b = initial' X``, ``(n, S)``, of draws ``begin:end``."""
    for i in range(begin, end):
        fill_matrix(draws[i], gains[i], row_start, successor, discount, choice, matrix, visits[i])
        transpose(matrix)  # dominant by columns now: elimination needs no pivoting either
        for s in range(len(initial)):
            visits[i, s] = initial[s]
        eliminate(matrix, visits[i])


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
    draws, gains, row_start, successor, discount, initial, choice, begin, end, goal, system, visits
):  # fmt: skip
    """Move discounted visits ``(n, S)`` until no state's residual exceeds ``goal``."""
    for i in range(begin, end):
        fill_rows(system, draws[i], gains[i], choice, row_start, successor, discount)
        if i == begin:
            find_places(system)
        find_visits(system, initial, goal, visits[i])


@kernel(lean=True)
def flip_returns(
    draws, gains, state_start, row_start, successor, discount, initial, choice, begin, end,
    matrix, gain, value, visit, column, out,
):  # fmt: skip
    """Write ``out[row, i]``: the return of draw ``i`` when ``row`` is played in its state instead.

    Exact; O(S^3 + entries) a draw.
    """
    size = len(value)
    for i in range(begin, end):
        draw = draws[i]
        fill_matrix(draw, gains[i], row_start, successor, discount, choice, matrix, gain)
        invert(matrix)
        base = 0.0
        for s in range(size):
            visit[s] = 0.0
        for s in range(size):
            total = 0.0
            for t in range(size):
                total += matrix[s, t] * gain[t]
                visit[t] += initial[s] * matrix[s, t]
            value[s] = total
            base += initial[s] * total
        for s in range(size):
            for t in range(size):
                column[t] = matrix[t, s]
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
                out[row, i] = base + visit[s] * (worth - value[s]) / (1.0 - discount * back)


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
def weighted_gains(
    draws, gains, state_start, row_start, successor, discount, values, visits, weights, begin,
    end, out,
):  # fmt: skip
    """Add to ``out[row]`` the weighted sum over draws of ``b_s (Q(s, row) - v_s)``."""
    for i in range(begin, end):
        if weights[i] == 0.0:
            continue
        v = values[i]
        for s in range(len(v)):
            for row in range(state_start[s], state_start[s + 1]):
                worth = row_worth(
                    draws[i], gains[i, row], row_start[row], row_start[row + 1], successor,
                    discount, v,
                )  # fmt: skip
                out[row] += weights[i] * visits[i, s] * (worth - v[s])
