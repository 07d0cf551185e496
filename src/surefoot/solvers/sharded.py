"""A prototype: a robust solve whose rows are spread over several processes.

Every process holds the rows of a block of states. A sweep sends ``v`` to all of them (through the
object store: once per node), gets back ``Lv`` of each block and its extreme changes, and reduces
these to one bracket. The driving process never holds a row. Whether this pays is measured in
docs/decisions/0011-robust-solves-over-several-machines.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from surefoot._workers import current
from surefoot.solvers.algorithms import OnSweep
from surefoot.solvers.bounds import EPSILON, Bracket, SweepChange, bracket, rounding_allowance
from surefoot.solvers.dual_kernels import NOMINAL
from surefoot.solvers.pair_kernels import NEVER
from surefoot.solvers.row_kernels import Problem
from surefoot.solvers.solution import Status
from surefoot.solvers.sweep_kernels import sweeps_of
from surefoot.solvers.workspace import INNER_SHARE

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LIMIT = 3600.0
"""Seconds that one sweep, or making a block, may take."""

RowRange = Callable[[int, int], Problem]
"""Returns the rows of states ``first`` to ``last - 1``; called in the process that holds them."""


class Size(NamedTuple):
    """What the driver needs to know about a block."""

    longest: int
    largest_reward: float
    rows: int


class Block:
    """The rows of some states, and everything that sweeps remember about them."""

    def __init__(self, rows: RowRange, first: int, last: int, num_states: int) -> None:
        own = rows(first, last)
        if own.family != NOMINAL and np.any(own.uncertain & (np.diff(own.row_start) < 2)):
            raise ValueError(
                f"states {first} to {last - 1} have uncertain rows of one successor; mark these as "
                "certain: nature has no choice there."
            )
        # Kernels index rows and values by state, so these arrays cover all states.
        starts = np.zeros((2, num_states), dtype=np.uint64)
        starts[0, first:last], starts[1, first:last] = own.first, own.last
        self.problem = own._replace(first=starts[0], last=starts[1])
        self.span = first, last
        count = len(own.row_start) - 1
        self.choice = self.problem.first.copy()
        self.image = np.empty(num_states)
        self.cap = np.full(count, np.inf)
        self.rest = np.full(num_states, np.inf)
        robust = own.family != NOMINAL
        self.memory = np.full((count if robust else 0, 2), NEVER, dtype=np.int32)
        self.swept = False

    def size(self) -> Size:
        """Return what the driver needs to know."""
        problem = self.problem
        largest = float(np.abs(problem.reward).max())
        return Size(problem.longest, largest, len(problem.row_start) - 1)

    def sweep(self, v: Floats, shift: float, margin: float, accuracy: float) -> tuple[Floats, Any]:
        """Return ``Lv`` of the block, and its extreme changes, gap and count of rows evaluated."""
        scratch = np.empty((4, self.problem.longest))
        change = sweeps_of(self.problem).bellman(
            self.problem, *self.span, v, self.image, self.choice, self.cap, self.rest, shift,
            margin, accuracy, self.memory, scratch,
        )  # fmt: skip
        self.swept = True
        return self.image[slice(*self.span)].copy(), change

    def chosen(self, v: Floats, shift: float, margin: float, accuracy: float) -> Ints:
        """Return, for each state, the index of the chosen row among its rows.

        The arguments are those of the last sweep: a block that was restarted after it has forgotten
        its choices, and sweeps again.
        """
        if not self.swept:
            self.sweep(v, shift, margin, accuracy)
        own = slice(*self.span)
        return (self.choice[own] - self.problem.first[own]).astype(np.int64)


class Holders(Protocol):
    """The blocks of a model, in this process or in others."""

    def ask(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of every block; return the results in the order of the states."""


class _Here:
    """Blocks in this process."""

    def __init__(self, blocks: list[Block]) -> None:
        self.blocks = blocks

    def ask(self, method: str, *arguments: Any) -> list[Any]:
        return [getattr(block, method)(*arguments) for block in self.blocks]


class _Actors:
    """Blocks in actors of a Ray cluster; an actor that dies is restarted and makes its rows again.

    The restarted block remembers nothing of earlier sweeps.
    """

    def __init__(self, ray: Any, actors: list[Any]) -> None:
        self.ray, self.actors = ray, actors

    def ask(self, method: str, *arguments: Any) -> list[Any]:
        sent = [self.ray.put(x) if isinstance(x, np.ndarray) else x for x in arguments]
        asked = [getattr(actor, method).remote(*sent) for actor in self.actors]
        try:
            found: list[Any] = self.ray.get(asked, timeout=LIMIT)
        except self.ray.exceptions.GetTimeoutError:
            raise TimeoutError(f"some block took more than {LIMIT:.0f} s for {method!r}.") from None
        return found


@contextmanager
def _holders(rows: RowRange, edges: Sequence[int]) -> Iterator[Holders]:
    parts = list(pairwise(edges))
    if current() is None:
        yield _Here([Block(rows, a, b, edges[-1]) for a, b in parts])
        return
    import ray

    make: Any = ray.remote(num_cpus=1, max_restarts=3, max_task_retries=3)(Block)
    actors = [make.remote(rows, a, b, edges[-1]) for a, b in parts]
    try:
        yield _Actors(ray, actors)
    finally:
        for actor in actors:
            ray.kill(actor)


@dataclass(frozen=True, kw_only=True, eq=False)
class ShardedSolution:
    """What a sharded solve found.

    Attributes
    ----------
    lower, upper
        ``(S,)``: bounds on the robust value, rounding included.
    chosen
        ``(S,)``: the index of the row that each state plays, among its rows.
    error_bound, sweeps, status
        As in a `Solution`.
    """

    lower: Floats
    upper: Floats
    chosen: Ints
    error_bound: float
    sweeps: int
    status: Status


def solve_sharded(
    rows: RowRange,
    edges: Sequence[int],
    *,
    discount: float,
    tolerance: float = 1e-6,
    max_iterations: int = 100_000,
    told: OnSweep | None = None,
) -> ShardedSolution:
    """Bound the best robust values by value iteration over blocks of states.

    Parameters
    ----------
    rows
        Returns the rows of a range of states; called in the process that holds them.
    edges
        The first state of every block, followed by the number of states.
    discount, tolerance, max_iterations
        As for `solve`.
    told
        Called with (sweeps, error bound) after each sweep.

    Examples
    --------
    >>> from surefoot import AmbiguitySet, riverswim, solve
    >>> from surefoot.solvers.problem import make_problem
    >>> mdp = riverswim().mdp
    >>> ball = AmbiguitySet.from_arrays(mdp, norm="l1", budget=0.1)
    >>> whole = make_problem(mdp, ball, objective="max", nature="worst")
    >>> found = solve_sharded(part_of(whole), [0, 2, 6], discount=mdp.discount, tolerance=1e-3)
    >>> alone = solve(mdp, ball, tolerance=1e-3, algorithm="value_iteration")
    >>> np.array_equal(found.lower, alone.lower), found.sweeps == alone.iterations
    (True, True)
    """
    with _holders(rows, edges) as blocks:
        sizes = blocks.ask("size")
        largest = max(size.largest_reward for size in sizes)
        terms = max(size.longest for size in sizes) + 1
        v, rise, drift, noise = np.zeros(edges[-1]), 0.0, 0.0, 0.0
        accuracy, sweeps = INNER_SHARE * largest, 0
        while True:
            allowance = rounding_allowance(terms, discount, largest, v)
            noise = max(noise, allowance)
            asked = v, rise, 2 * (noise + drift), accuracy
            answers = blocks.ask("sweep", *asked)
            image = np.concatenate([part for part, _ in answers])
            change = _reduced([part for _, part in answers])
            sweeps += 1
            bounds = bracket(_like(discount), change, allowance)
            if told is not None:
                told(sweeps, bounds.error_bound)
            status = _ended(bounds, sweeps, tolerance, max_iterations)
            if status is not None:
                break
            v = image
            accuracy = INNER_SHARE * (change.most - change.least)
            rise += discount * change.most
            drift += 4 * EPSILON * (abs(rise) + abs(change.most))
        return ShardedSolution(
            lower=image + bounds.below, upper=image + bounds.above,
            chosen=np.concatenate(blocks.ask("chosen", *asked)), sweeps=sweeps, status=status,
            error_bound=float(bounds.error_bound),
        )  # fmt: skip


def _ended(bounds: Bracket, sweeps: int, tolerance: float, most: int) -> Status | None:
    if bounds.error_bound <= tolerance:
        return Status.CONVERGED
    if bounds.error_bound <= 2 * bounds.rounding:
        return Status.PRECISION_LIMIT
    return Status.ITERATION_LIMIT if sweeps >= most else None


def _reduced(changes: list[Any]) -> SweepChange:
    least, most, gap, evaluated = zip(*changes, strict=True)
    return SweepChange(min(least), max(most), max(gap), sum(evaluated))


def _like(discount: float) -> Problem:
    """Return a problem without rows, for `bracket`: nature minimises, at this discount."""
    none, nothing = np.empty(0), np.empty(0, dtype=np.uint64)
    return Problem(
        nothing, nothing, nothing, np.empty(0, np.uint32), none, none, False, discount, 1.0,
        NOMINAL, np.empty(0, np.bool_), none, none, True, none, none, 1, True,
    )  # fmt: skip


def part_of(whole: Problem) -> RowRange:
    """Return a function that cuts the rows of some states out of a problem held in memory."""

    def rows(first: int, last: int) -> Problem:
        begin, end = int(whole.first[first]), int(whole.last[last - 1])
        at, upto = int(whole.row_start[begin]), int(whole.row_start[end])

        def entries(array: NDArray[Any]) -> NDArray[Any]:
            return array[at:upto] if len(array) else array

        by_row = whole.uncertain[begin:end], whole.budget[begin:end]
        reward = entries(whole.reward) if whole.reward_per_entry else whole.reward[begin:end]
        return whole._replace(
            first=whole.first[first:last] - whole.first[first],
            last=whole.last[first:last] - whole.first[first],
            row_start=whole.row_start[begin : end + 1] - whole.row_start[begin],
            successor=entries(whole.successor), probability=entries(whole.probability),
            reward=reward, uncertain=by_row[0], budget=by_row[1],
            weights=whole.weights if whole.shared else entries(whole.weights),
            lower=entries(whole.lower), upper=entries(whole.upper),
        )  # fmt: skip

    return rows
