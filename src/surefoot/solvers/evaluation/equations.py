"""The equations of one policy in one model, and their solution by any evaluator."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.solvers.evaluation.dense import solve_dense
from surefoot.solvers.evaluation.dense_kernels import write_matrix
from surefoot.solvers.evaluation.evaluator import Evaluator
from surefoot.solvers.evaluation.system_kernels import solve_one

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_SWEEPS = 20_000


class Equations(NamedTuple):
    """``v = gain + chance v``: state ``s`` has the entries ``start[s]:start[s+1]``.

    ``chance`` are discounted probabilities; a state may have several entries with the same target.
    """

    start: Ints
    target: Ints
    chance: Floats
    gain: Floats


def solve_equations(
    evaluator: Evaluator, equations: Equations, discount: float, tolerance: float, v: Floats
) -> Floats:
    """Return the solution: by elimination, or by sweeps from ``v`` until within the tolerance.

    Examples
    --------
    >>> from surefoot.solvers.evaluation.evaluator import Links, products
    >>> loop = np.array([0])
    >>> one = Equations(np.array([0, 1]), loop, np.array([0.5]), np.array([1.0]))
    >>> solve_equations(products(Links(1, loop, loop, 1.0)), one, 0.5, 1e-9, np.zeros(1))
    array([2.])
    """
    size = len(equations.gain)
    if evaluator.full:
        matrix = np.empty((size, size))
        write_matrix(*equations[:3], matrix)
        right = equations.gain[None].copy()
        solve_dense(matrix[None], right)
        solved: Floats = right[0]
        return solved
    value = v.copy()
    solve_one(
        evaluator.system(len(equations.target)), *equations, discount, tolerance, MAX_SWEEPS, value
    )
    return value
