"""Sweeps of the robust Bellman operator over a contiguous block of states.

A sweep reads ``v`` and writes its own block only, so blocks can run on threads or machines.
``scratch`` is four vectors as long as the longest row, one set per thread.
"""

import numpy as np

from surefoot._compile import kernel
from surefoot.solvers.dual_kernels import BOX, L1, L1_PINNED, NOMINAL, ONE
from surefoot.solvers.row_kernels import robust_value, worst_distribution


@kernel(lean=True)
def bellman_sweep(
    problem, begin, end, v, out, choice, cap, shift, margin, accuracy, memory, scratch
):
    """Apply the robust Bellman operator to the states ``begin:end`` (Jacobi).

    ``cap[row] + shift`` is an upper bound on the row's value at this ``v``: what it was when last
    computed, plus discount times the most any ``v`` has risen since. A row whose bound lies below
    the best value found is skipped without being read. ``choice[s]`` is the chosen row, tried
    first and kept in a tie.

    Returns the smallest and largest change, the largest gap of an inner problem, and the number of
    rows evaluated.
    """
    least = np.inf
    most = -np.inf
    worst_gap = 0.0
    evaluated = 0
    for state in range(np.uint64(begin), np.uint64(end)):
        incumbent = choice[state]
        start = problem.first[state]
        best = -np.inf
        chosen = incumbent
        for turn in range(problem.last[state] - start + ONE):
            row = incumbent  # first of all, then all the others in order
            if turn > 0:
                row = start + turn - ONE
                if row == incumbent or cap[row] + shift < best - margin:
                    continue
            value, gap = robust_value(problem, row, v, accuracy, memory, scratch)
            cap[row] = value + gap - shift
            worst_gap = max(worst_gap, gap)
            evaluated += 1
            if value > best:
                best = value
                chosen = row
        out[state] = best
        choice[state] = chosen
        change = best - v[state]
        least = min(least, change)
        most = max(most, change)
    return least, most, worst_gap, evaluated


@kernel(lean=True)
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
            value, gap = robust_value(problem, rows[m], v, accuracy, memory, scratch)
            total += share[m] * value
            worst_gap = max(worst_gap, gap)
        out[state] = total
        change = total - v[state]
        least = min(least, change)
        most = max(most, change)
    return least, most, worst_gap, np.int64(start[end]) - np.int64(start[begin])


@kernel(lean=True, forceinline=True)
def least_probability(problem, row, at):
    """Return a lower bound on the probability of an entry over all of its row's set."""
    kind = problem.kind[row]
    if kind == NOMINAL:
        return problem.probability[at]
    if kind == BOX:
        return problem.lower[at]
    if kind != L1 and kind != L1_PINNED:
        return 0.0
    # Without weights, mass costs its distance twice: where it leaves and where it goes.
    price = 2.0 if problem.shared else problem.weights[at]
    if problem.probability[at] * price <= problem.budget[row]:
        return 0.0
    return problem.probability[at] - problem.budget[row] / price


@kernel(lean=True)
def gauss_seidel_sweep(problem, v, choice, forward, accuracy, memory, scratch):
    """Update ``v`` in place, state by state, forwards or backwards.

    A state's own value is solved out, as far as it is sure to stay: with more, a step would go too
    far wherever nature moves away, and the sweeps would diverge. The changes are not ``Lv - v``:
    bounds come from a Jacobi sweep afterwards.
    """
    num_states = np.uint64(len(problem.first))
    for position in range(num_states):
        state = position if forward else num_states - ONE - position
        best = -np.inf
        chosen = choice[state]
        for row in range(problem.first[state], problem.last[state]):
            value, _ = robust_value(problem, row, v, accuracy, memory, scratch)
            stay = 0.0
            for at in range(problem.row_start[row], problem.row_start[row + ONE]):
                if problem.successor[at] == state:
                    stay = least_probability(problem, row, at)
            moved = v[state] + (value - v[state]) / (1.0 - problem.discount * stay)
            if moved > best:
                best = moved
                chosen = row
        v[state] = best
        choice[state] = chosen


@kernel(lean=True)
def nature_rows(problem, v, rows, start, out, scratch):
    """Write nature's distributions at ``v``; that of ``rows[i]`` begins at ``start[i]``."""
    for i in range(np.uint64(len(rows))):
        worst_distribution(problem, rows[i], v, scratch, out, start[i])


@kernel(lean=True)
def row_values(problem, v, rows, memory, out, scratch):
    """Write the robust values of the given rows at ``v``, exact up to rounding."""
    for i in range(np.uint64(len(rows))):
        out[i], _ = robust_value(problem, rows[i], v, 0.0, memory, scratch)
