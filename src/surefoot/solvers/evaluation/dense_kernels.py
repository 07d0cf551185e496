"""Elimination of full matrices ``I - discount P`` with few states, one after another.

No pivoting: they are strictly diagonally dominant by rows, and their transposes by columns.
"""

from surefoot._compile import kernel


@kernel(lean=True)
def write_matrix(start, target, chance, matrix):
    """Write the matrix ``I - chance``, where row ``s`` has the entries ``start[s]:start[s+1]``."""
    for s in range(len(matrix)):
        for t in range(len(matrix)):
            matrix[s, t] = 0.0
        matrix[s, s] = 1.0
        for e in range(start[s], start[s + 1]):
            matrix[s, target[e]] -= chance[e]


@kernel(lean=True)
def factorise(matrix):
    """Write ``L`` (unit diagonal) and ``U`` in place; O(S^3/3)."""
    size = len(matrix)
    for pivot in range(size):
        for s in range(pivot + 1, size):
            below = matrix[s, pivot]
            if below != 0:
                factor = below / matrix[pivot, pivot]
                matrix[s, pivot] = factor
                for t in range(pivot + 1, size):
                    matrix[s, t] -= factor * matrix[pivot, t]


@kernel(lean=True)
def substitute(factors, first, x):
    """Solve ``L U x = b`` in place, where ``b`` is zero before index ``first``; O(S^2)."""
    size = len(x)
    for s in range(first + 1, size):
        total = x[s]
        for t in range(first, s):
            total -= factors[s, t] * x[t]
        x[s] = total
    for s in range(size - 1, -1, -1):
        total = x[s]
        for t in range(s + 1, size):
            total -= factors[s, t] * x[t]
        x[s] = total / factors[s, s]


@kernel(lean=True)
def solve_each(matrices, right):
    """Solve ``matrices[i] x = right[i]`` for all ``i``, in place."""
    for i in range(len(matrices)):
        factorise(matrices[i])
        substitute(matrices[i], 0, right[i])


@kernel(lean=True)
def invert_each(matrices, columns):
    """Write ``columns[i, s]``: column ``s`` of the inverse of ``matrices[i]``; O(S^3) each."""
    size = columns.shape[1]
    for i in range(len(matrices)):
        factorise(matrices[i])
        for s in range(size):
            for t in range(size):
                columns[i, s, t] = 0
            columns[i, s, s] = 1
            substitute(matrices[i], s, columns[i, s])
