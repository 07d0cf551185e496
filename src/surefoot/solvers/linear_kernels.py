"""Evaluation of a fixed policy in one fixed model: elimination and plain sweeps.

A policy is three arrays: state ``s`` plays ``rows[start[s]:start[s+1]]`` with probabilities
``share``. Nature's distribution for ``rows[m]`` is ``nature[where[m]:]``.
"""

import numpy as np

from surefoot._compile import kernel
from surefoot.solvers.dual_kernels import ONE


@kernel(lean=True)
def fill_band(problem, start, rows, share, where, nature, place, width, band, rhs):
    """Write ``I - discount P`` and the expected rewards in band storage.

    ``band[i, width + j - i]`` holds entry (i, j); ``place[s]`` is where state ``s`` stands in the
    order of small bandwidth. With ``width = n - 1`` this is a full matrix.
    """
    band[:, :] = 0.0
    for state in range(np.uint64(len(start) - 1)):
        i = place[state]
        band[i, width] = 1.0
        rhs[i] = 0.0
        for m in range(start[state], start[state + ONE]):
            rhs[i] += share[m] * expected_reward(problem, rows[m], where[m], nature)
            at = problem.row_start[rows[m]]
            weight = problem.discount * share[m]
            for e in range(problem.row_start[rows[m] + ONE] - at):
                j = place[problem.successor[at + e]]
                band[i, width + j - i] -= weight * nature[where[m] + e]


@kernel(lean=True)
def banded_solve(band, width, rhs):
    """Solve a banded system in place; about ``2 n width^2`` operations.

    No pivoting: ``I - discount P`` is strictly diagonally dominant by rows.
    """
    n = len(rhs)
    for i in range(n):
        stop = min(n, i + width + 1)
        for j in range(i + 1, stop):
            below = band[j, width + i - j]
            if below != 0.0:
                factor = below / band[i, width]
                for c in range(i + 1, stop):
                    band[j, width + c - j] -= factor * band[i, width + c - i]
                rhs[j] -= factor * rhs[i]
    for i in range(n - 1, -1, -1):
        total = rhs[i]
        for c in range(i + 1, min(n, i + width + 1)):
            total -= band[i, width + c - i] * rhs[c]
        rhs[i] = total / band[i, width]


@kernel(lean=True)
def fill_dense(problem, start, rows, share, where, nature, matrix, rhs):
    """Write ``I - discount P`` and the expected rewards as a full matrix."""
    matrix[:, :] = 0.0
    for state in range(np.uint64(len(start) - 1)):
        matrix[state, state] = 1.0
        rhs[state] = 0.0
        for m in range(start[state], start[state + ONE]):
            rhs[state] += share[m] * expected_reward(problem, rows[m], where[m], nature)
            at = problem.row_start[rows[m]]
            weight = problem.discount * share[m]
            for e in range(problem.row_start[rows[m] + ONE] - at):
                matrix[state, problem.successor[at + e]] -= weight * nature[where[m] + e]


@kernel(lean=True)
def expected_reward(problem, row, where, nature):
    """Return the expected reward of a row under nature's distribution."""
    if not problem.reward_per_entry:
        return problem.reward[row]
    at = problem.row_start[row]
    total = 0.0
    for e in range(problem.row_start[row + ONE] - at):
        total += nature[where + e] * problem.reward[at + e]
    return total


@kernel(lean=True)
def fixed_model_sweeps(problem, start, rows, share, where, nature, v, count):
    """Run Gauss-Seidel sweeps to and fro on ``v`` in place, solving out self-loops; O(entries)."""
    num_states = np.uint64(len(start) - 1)
    for sweep in range(count):
        for position in range(num_states):
            state = position if sweep % 2 == 0 else num_states - ONE - position
            total = 0.0
            own = 0.0
            for m in range(start[state], start[state + ONE]):
                at = problem.row_start[rows[m]]
                weight = problem.discount * share[m]
                total += share[m] * expected_reward(problem, rows[m], where[m], nature)
                for e in range(problem.row_start[rows[m] + ONE] - at):
                    successor = problem.successor[at + e]
                    probability = weight * nature[where[m] + e]
                    if successor == state:
                        own += probability
                    else:
                        total += probability * v[successor]
            v[state] = total / (1.0 - own)
