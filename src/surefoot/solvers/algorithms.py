"""The algorithms. Each ends with a Jacobi sweep and reports the bracket of that sweep."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from surefoot.solvers.bounds import Bracket, SweepChange
from surefoot.solvers.evaluation.evaluator import Evaluator
from surefoot.solvers.evaluation.robust import (
    choose_for,
    evaluate_policy,
    is_direct,
    room_for,
)
from surefoot.solvers.solution import Status
from surefoot.solvers.sweep_kernels import sweeps_of
from surefoot.solvers.workspace import Workspace

PATIENCE = 8
"""Sweeps of value iteration before its convergence rate is estimated."""
SWEEPS_WORTH_SWITCHING = 40
GAUSS_SEIDEL_SWEEPS = 2
FIRST_REST = 20
"""Plain sweeps after policy rounds stall for the first time; doubled at every later stall."""
ROUNDS_IN_VAIN = 5
"""Policy rounds allowed without a narrower bracket while the policy still changes."""


OnSweep = Callable[[int, float], None]
"""Called after every sweep with the number of sweeps and the error bound reached."""


@dataclass(frozen=True, kw_only=True)
class Stopping:
    """When to stop, and the callback that reports progress."""

    tolerance: float
    max_iterations: int
    progress: OnSweep | None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The bracket around ``work.image`` and how the run ended."""

    bracket: Bracket
    status: Status


class Sweeping(Protocol):
    """What value iteration needs from a workspace, on the CPU or on a device."""

    sweeps: int

    def sweep(self) -> tuple[SweepChange, Bracket]:
        """Compute ``Lv`` and its bracket; ``v`` is unchanged."""

    def accept_image(self, largest_rise: float, /) -> None:
        """Make the image the next ``v``."""


def sweep_and_judge(work: Sweeping, stopping: Stopping) -> tuple[SweepChange, Outcome | None]:
    """Sweep once; return the outcome if the solver should stop."""
    change, bounds = work.sweep()
    if stopping.progress is not None:
        stopping.progress(work.sweeps, bounds.error_bound)
    if bounds.error_bound <= stopping.tolerance:
        return change, Outcome(bracket=bounds, status=Status.CONVERGED)
    if bounds.error_bound <= 2 * bounds.rounding:
        return change, Outcome(bracket=bounds, status=Status.PRECISION_LIMIT)
    if work.sweeps >= stopping.max_iterations:
        return change, Outcome(bracket=bounds, status=Status.ITERATION_LIMIT)
    return change, None


def value_iteration(work: Sweeping, stopping: Stopping) -> Outcome:
    """Run Jacobi sweeps with span bounds (MacQueen), skipping rows that cannot be the best."""
    while True:
        change, outcome = sweep_and_judge(work, stopping)
        if outcome is not None:
            return outcome
        work.accept_image(change.most)


def gauss_seidel(work: Workspace, stopping: Stopping) -> Outcome:
    """Run in-place sweeps in alternating directions, with a Jacobi sweep every few for the bounds.

    A change travels along a whole chain in one sweep. An error that all states share shrinks only
    by the discount per sweep, whereas the span bounds of Jacobi sweeps remove it: near discount 1
    the other algorithms are faster.
    """
    while True:
        change, outcome = sweep_and_judge(work, stopping)
        if outcome is not None:
            return outcome
        work.accept_image(change.most)
        spread_values(work, stopping)


def spread_values(work: Workspace, stopping: Stopping) -> None:
    """Sweep in place in alternating directions: a change travels along a chain in one sweep."""
    v = work.v.copy()
    left = stopping.max_iterations - work.sweeps - 1  # keep the last sweep for the bounds
    turns = max(0, min(GAUSS_SEIDEL_SWEEPS, left))
    sweeps_of(work.problem).gauss_seidel(
        work.problem, v, work.choice, turns, work.accuracy, work.memory, work.scratch[0]
    )
    work.sweeps += turns
    work.forget_rest()
    work.move_to(v)


def policy_iteration(work: Workspace, stopping: Stopping) -> Outcome:
    """Evaluate each policy fully, against nature, before improving it."""
    return _policy_rounds(work, stopping, choose_for(work.problem), shrink=0.0)


def partial_policy_iteration(work: Workspace, stopping: Stopping) -> Outcome:
    """Evaluate each policy only as accurately as the current bracket needs (Ho et al. 2021)."""
    evaluator = choose_for(work.problem, direct=False)
    return _policy_rounds(work, stopping, evaluator, shrink=0.1)


def default(work: Workspace, stopping: Stopping) -> Outcome:
    """Use value iteration while it converges fast, and policy rounds once it is slow."""
    spans: list[float] = []
    if stopping.max_iterations > 2 * PATIENCE:
        work.start_nominally(PATIENCE)
    while True:
        change, outcome = sweep_and_judge(work, stopping)
        if outcome is not None:
            return outcome
        spans.append(change.most - change.least)
        if len(spans) >= PATIENCE and _sweeps_left(spans, work, stopping) > SWEEPS_WORTH_SWITCHING:
            work.accept_image(change.most)
            return _policy_rounds(work, stopping, choose_for(work.problem), shrink=0.1)
        work.accept_image(change.most)


def _sweeps_left(spans: list[float], work: Workspace, stopping: Stopping) -> float:
    """Predict how many more sweeps value iteration needs, from its latest convergence rate."""
    rate = (spans[-1] / spans[-4]) ** (1 / 3) if spans[-4] > 0 else 0.0
    discount = work.problem.discount if work.steps is None else 1 - 1 / work.steps
    target = 2 * stopping.tolerance * (1 - discount) / max(discount, 1e-9)
    if rate <= 0 or spans[-1] <= target:
        return 0.0
    if rate >= 1 or target <= 0:
        return math.inf
    return (math.log(target) - math.log(spans[-1])) / math.log(rate)


def _policy_rounds(
    work: Workspace, stopping: Stopping, evaluator: Evaluator, *, shrink: float
) -> Outcome:
    """Alternate a sweep over all rows with an evaluation of the policy it chose.

    Exact policy iteration improves the value in every round and cannot cycle, though the bracket
    may widen on the way. With rounding or inexact evaluation it may stall. Then plain sweeps
    follow, which always narrow the bracket; each stall doubles their number.
    """
    work.solve_rows_exactly()
    system = room_for(work, evaluator)
    narrowest = math.inf
    evaluated = np.full(work.num_states, -1)
    plain, rest, in_vain = 0, FIRST_REST, 0
    while True:
        change, outcome = sweep_and_judge(work, stopping)
        if outcome is not None:
            return outcome
        span = change.most - change.least
        settled = work.fixed or np.array_equal(work.choice, evaluated)
        work.accept_image(change.most)
        if plain > 0:
            plain -= 1
            if plain > 0:
                continue
        elif span > 0.9 * narrowest:
            in_vain += 1
            if settled or not is_direct(evaluator) or in_vain >= ROUNDS_IN_VAIN:
                plain, rest, in_vain = rest, 2 * rest, 0
                continue
        narrowest = min(narrowest, span)
        if not settled:
            spread_values(work, stopping)
        evaluated = work.choice.copy()
        evaluate_policy(work, evaluator, system, wanted=shrink * span)


ALGORITHMS: dict[str, Callable[[Workspace, Stopping], Outcome]] = {
    "value_iteration": value_iteration,
    "gauss_seidel": gauss_seidel,
    "policy_iteration": policy_iteration,
    "partial_policy_iteration": partial_policy_iteration,
}
