"""Robust evaluation of the current policy, to a wanted precision, by the cheapest means.

Nature is solved inside, for a policy that stays fixed (the order of Hoffman and Karp): each step
takes nature's answer at ``v`` and solves the linear system of policy and answer, directly where
its bandwidth is small, else by sweeps. Nothing here is trusted: bounds come from a later sweep.
"""

import numpy as np
from numpy.typing import NDArray

from surefoot.model.policies import RowPolicy
from surefoot.solvers.dual_kernels import NOMINAL
from surefoot.solvers.linear_kernels import (
    banded_solve,
    fill_band,
    fill_dense,
    fixed_model_sweeps,
)
from surefoot.solvers.row_kernels import Problem
from surefoot.solvers.sweep_kernels import sweeps_of
from surefoot.solvers.workspace import Workspace

MAX_NATURE_STEPS = 50
DENSE_LIMIT = 3000
"""States up to which a full matrix may be factorised (72 MB, about a second)."""
INNER_SWEEPS = 30


class Evaluator:
    """Solves ``v = r + discount P v`` for one policy and nature's answer to it."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.num_states = len(problem.first)
        self.place, self.width = small_bandwidth_order(problem)
        self.direct = self.direct_cost < 4e9
        self._band: NDArray[np.float64] | None = None

    @property
    def banded_cost(self) -> float:
        """Operations of one banded elimination."""
        return 2.0 * self.num_states * (self.width + 1.0) ** 2

    @property
    def direct_cost(self) -> float:
        """Operations of one direct solve, in units of the banded kernel's speed."""
        if self.num_states > DENSE_LIMIT:
            return self.banded_cost
        # LAPACK on a full matrix runs some ten times faster per operation than the kernel.
        return min(self.banded_cost, 0.1 * 2 / 3 * float(self.num_states) ** 3)

    def solve(
        self, policy: RowPolicy, where: NDArray[np.uint64], nature: NDArray[np.float64],
        v: NDArray[np.float64],
    ) -> NDArray[np.float64]:  # fmt: skip
        """Return the value of a policy in nature's model; ``v`` is where sweeps would start."""
        model = (policy.start, policy.rows, policy.share, where, nature)
        if not self.direct:
            swept = v.copy()
            fixed_model_sweeps(self.problem, *model, swept, INNER_SWEEPS)
            return swept
        rhs = np.empty(self.num_states)
        if self.banded_cost <= self.direct_cost:
            if self._band is None:
                self._band = np.empty((self.num_states, 2 * self.width + 1))
            fill_band(self.problem, *model, self.place, self.width, self._band, rhs)
            banded_solve(self._band, self.width, rhs)
            return rhs[self.place]
        matrix = np.empty((self.num_states, self.num_states))
        fill_dense(self.problem, *model, matrix, rhs)
        return np.asarray(np.linalg.solve(matrix, rhs), dtype=np.float64)


def small_bandwidth_order(problem: Problem) -> tuple[NDArray[np.int64], int]:
    """Return a position for every state so that successors stand near, and the bandwidth.

    The given order is kept where it is good already (chains); else reverse Cuthill-McKee.
    """
    num_states = len(problem.first)
    first_entry = problem.row_start[np.append(problem.first, problem.last[-1])]
    source = np.repeat(np.arange(num_states), np.diff(first_entry.view(np.int64)))
    natural = np.arange(num_states)
    width = int(np.abs(problem.successor.view(np.int32) - source).max())
    if width <= 8 or width**2 <= num_states:
        return natural, width
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    links = np.ones(len(problem.successor), dtype=np.int8)
    graph = csr_array(
        (links, problem.successor.view(np.int32), first_entry.view(np.int64)),
        shape=(num_states, num_states),
    )
    order = reverse_cuthill_mckee(graph, symmetric_mode=False)
    place = np.empty(num_states, dtype=np.int64)
    place[order] = natural
    ordered = int(np.abs(place[problem.successor] - place[source]).max())
    return (place, ordered) if ordered < width else (natural, width)


def evaluate_policy(work: Workspace, evaluator: Evaluator, wanted: float) -> None:
    """Move ``work.v`` to the robust value of ``work.policy``, changes spanning at most ``wanted``.

    Newton's method on nature's side: monotone for a fixed policy, so it cannot cycle. Changes
    below the rounding allowance are noise.
    """
    problem, policy = work.problem, work.policy
    noise = 2 * work.allowance()
    lengths = problem.row_start[policy.rows + np.uint64(1)] - problem.row_start[policy.rows]
    where = np.zeros(len(lengths) + 1, dtype=np.uint64)
    np.cumsum(lengths, out=where[1:])
    nature = np.empty(int(where[-1]))
    robust = problem.family != NOMINAL
    nature_rows = sweeps_of(problem).nature_rows
    for step in range(MAX_NATURE_STEPS):
        if step == 0 or robust:
            nature_rows(problem, work.v, policy.rows, where, nature, work.scratch[0])
        work.move_to(evaluator.solve(policy, where, nature, work.v))
        if evaluator.direct and not robust:
            return
        change = work.policy_change()
        if change.most - change.least <= max(wanted, noise):
            return
