"""Batches of full systems: a kernel for few states, LAPACK for more.

Measured on one core, kernel against `numpy.linalg.solve`, in microseconds a system: 0.5 / 0.9 at 10
states, 7.8 / 8.6 at 31, 19 / 14 at 44, 181 / 65 at 100, 1354 / 292 at 200.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from surefoot.solvers.evaluation import dense_kernels as kernels

Floats = NDArray[np.float64]

LAPACK_STATES = 40
"""From this many states on, LAPACK is faster than the kernel."""
AT_ONCE = 2**17
"""How many matrix elements are held at a time (a megabyte)."""


def solve_dense(matrices: Floats, right: Floats) -> None:
    """Solve ``matrices[i] x = right[i]`` into ``right``; ``matrices`` may be overwritten.

    Examples
    --------
    >>> right = np.array([[1.0, 2.0]])
    >>> solve_dense(np.array([[[1.0, 0.0], [-0.5, 1.0]]]), right)
    >>> right
    array([[1. , 2.5]])
    """
    if matrices.shape[-1] < LAPACK_STATES:
        kernels.solve_each(matrices, right)
    else:
        right[:] = np.linalg.solve(matrices, right[..., None])[..., 0]


def inverse_columns(matrices: Floats) -> Floats:
    """Return ``(n, S, S)``: ``[i, s]`` is column ``s`` of inverse ``i``; overwrites ``matrices``.

    Examples
    --------
    >>> inverse_columns(np.array([[[1.0, 0.0], [-0.5, 1.0]]]))
    array([[[1. , 0.5],
            [0. , 1. ]]])
    """
    if matrices.shape[-1] < LAPACK_STATES:
        columns = np.empty_like(matrices)
        kernels.invert_each(matrices, columns)
        return columns
    return np.ascontiguousarray(np.linalg.inv(matrices).transpose(0, 2, 1))


def dense_work(size: int) -> float:
    """Return the cost of one full system, in operations of the kernel (half a nanosecond each)."""
    if size < LAPACK_STATES:
        return size**3 / 3 + 50.0
    return 9.6 * size**2 + 0.027 * size**3


def chunks(begin: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """Return parts of ``range(begin, end)`` whose matrices fit into the cache, as (first, end)."""
    step = max(1, AT_ONCE // size**2)
    return ((first, min(first + step, end)) for first in range(begin, end, step))
