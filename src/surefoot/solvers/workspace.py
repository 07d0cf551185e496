"""The arrays a solve works on, and sweeps over them on one or more threads."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot._cores import available_cores
from surefoot.model.policies import RowPolicy, deterministic
from surefoot.solvers.bounds import (
    EPSILON,
    Bracket,
    SweepChange,
    bracket,
    rounding_allowance,
)
from surefoot.solvers.dual_kernels import NOMINAL
from surefoot.solvers.pair_kernels import NEVER
from surefoot.solvers.row_kernels import Problem
from surefoot.solvers.sweep_kernels import sweeps_of

ENTRIES_PER_THREAD = 200_000
"""Entries for each thread; with fewer, another thread costs more than it saves."""

INNER_SHARE = 0.01
"""Accuracy to which rows are solved, as a share of the spread of the last sweep's changes.

The bounds include the gap of every row, so this affects speed only.
"""

NOMINAL_SHARE = 0.02
"""The nominal start ends when the spread of its changes is this share of the first spread."""


class Workspace:
    """Everything that changes during a solve.

    ``v`` is the current value function, ``image`` the result of the last sweep (``Lv``), and
    ``policy`` the policy that attains the image (or the fixed policy under evaluation).
    """

    def __init__(
        self, problem: Problem, policy: RowPolicy | None, threads: int | None,
        steps: float | None = None,
    ) -> None:  # fmt: skip
        self.problem = problem
        self.steps = steps  # a bound on the expected steps to an end, for discount 1, else None
        self.num_states = len(problem.first)
        num_rows = len(problem.row_start) - 1
        self.fixed = policy is not None
        self.v = np.zeros(self.num_states)
        self.image = np.zeros(self.num_states)
        self.choice = problem.first.copy()
        self.policy = policy or deterministic(self.choice)
        robust = problem.family != NOMINAL
        self.memory = np.full((num_rows if robust else 0, 2), NEVER, dtype=np.int32)
        self.cap = np.full(0 if self.fixed else num_rows, np.inf)
        self.rest = np.full(0 if self.fixed else self.num_states, np.inf)
        self.rise = 0.0  # discount times the sum of the largest rises of v so far
        self.drift = 0.0  # a bound on the rounding error of that sum
        self.noise = 0.0  # the largest rounding error of any row so far: caps may be that old
        self.sweeps = 0
        self.largest_reward = float(np.abs(problem.reward).max())
        mixed = int(np.diff(policy.start).max()) if policy is not None else 1
        self.terms = problem.longest + mixed
        self.inner_share = INNER_SHARE
        self.accuracy = INNER_SHARE * self.largest_reward
        self._stack = ExitStack()
        blocks = self._split(threads)
        self.scratch = [np.empty((4, problem.longest)) for _ in blocks]
        self._tasks = [(*ends, space) for ends, space in zip(blocks, self.scratch, strict=True)]
        self._pool: ThreadPoolExecutor | None = None
        if len(blocks) > 1:
            self._pool = self._stack.enter_context(ThreadPoolExecutor(len(blocks)))

    def __enter__(self) -> "Workspace":
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def start_nominally(self, sweeps: int) -> None:
        """Start ``v`` with a few sweeps of the nominal model, which are much cheaper.

        Its values differ from the robust ones by little more than a constant. If nominal values
        bound robust ones from above, the first robust sweep can already skip rows by them.
        """
        robust = self.problem
        if robust.family == NOMINAL:
            return
        self.problem = robust._replace(family=NOMINAL)
        first_span = np.inf
        for turn in range(sweeps):
            change, _ = self.sweep()
            span = change.most - change.least
            first_span = span if turn == 0 else first_span
            self.accept_image(change.most)
            if span <= NOMINAL_SHARE * first_span:
                break
        self.problem = robust
        if not robust.nominal_caps:
            self.cap[:] = np.inf
            self.forget_rest()

    def forget_rest(self) -> None:
        """Forget the largest cap of each state's other rows, after choices or caps have changed."""
        self.rest[:] = np.inf

    def sweep(self) -> tuple[SweepChange, Bracket]:
        """Compute ``image = Lv`` and its bracket; ``v`` is unchanged."""
        change, allowance = self.step()
        self.accuracy = self.inner_share * (change.most - change.least)
        return change, bracket(self.problem, change, allowance, self.steps)

    def step(self) -> tuple[SweepChange, float]:
        """Compute ``image = Lv`` and bound its rounding error; ``v`` is unchanged."""
        allowance = self.allowance()
        self.noise = max(self.noise, allowance)
        if self.fixed:
            change = self.policy_change()
        else:
            change = self._collect(
                lambda begin, end, scratch: sweeps_of(self.problem).bellman(
                    self.problem, begin, end, self.v, self.image, self.choice,
                    self.cap, self.rest, self.rise, 2 * (self.noise + self.drift),
                    self.accuracy, self.memory, scratch,
                )
            )  # fmt: skip
        self.sweeps += 1
        return change, allowance

    def allowance(self) -> float:
        """Bound the rounding error of one state of the next image."""
        return rounding_allowance(self.terms, self.problem.discount, self.largest_reward, self.v)

    def solve_rows_exactly(self) -> None:
        """Solve rows without a gap from now on: policy rounds compare values that nearly tie."""
        self.inner_share = self.accuracy = 0.0

    def policy_change(self) -> SweepChange:
        """Compute ``image`` with the operator of the current policy only."""
        start, rows, share, _ = self.policy
        return self._collect(
            lambda begin, end, scratch: sweeps_of(self.problem).policy(
                self.problem, begin, end, self.v, self.image,
                start, rows, share, self.accuracy, self.memory, scratch,
            )
        )  # fmt: skip

    def accept_image(self, largest_rise: float) -> None:
        """Make the image the next ``v``; ``largest_rise`` is the largest rise of any state."""
        self.v, self.image = self.image, self.v
        self._count_rise(largest_rise)

    def move_to(self, v: NDArray[np.float64]) -> None:
        """Replace ``v`` by any other vector."""
        self._count_rise(float((v - self.v).max()))
        self.v = v

    def _count_rise(self, largest_rise: float) -> None:
        """Add to the sum of rises, and to the bound on its rounding error and that of the caps."""
        self.rise += self.problem.discount * largest_rise
        self.drift += 4 * EPSILON * (abs(self.rise) + abs(largest_rise))

    def _collect(self, block: Callable[[int, int, NDArray[np.float64]], Any]) -> SweepChange:
        if self._pool is None:
            return SweepChange(*block(0, self.num_states, self.scratch[0]))
        parts = list(self._pool.map(lambda task: block(*task), self._tasks))
        least, most, gap, evaluated = zip(*parts, strict=True)
        return SweepChange(min(least), max(most), max(gap), sum(evaluated))

    def _split(self, threads: int | None) -> list[tuple[int, int]]:
        """Cut the states into blocks with about the same number of entries."""
        entries = len(self.problem.successor)
        wanted = threads or min(available_cores(), max(1, entries // ENTRIES_PER_THREAD))
        if wanted == 1:
            return [(0, self.num_states)]
        ends = self.problem.row_start[self.problem.last]
        cuts = np.searchsorted(ends, np.linspace(0, entries, wanted + 1)[1:-1])
        edges = np.unique(np.concatenate(([0], cuts, [self.num_states])))
        return [(int(a), int(b)) for a, b in pairwise(edges)]
