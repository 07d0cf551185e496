"""Robust evaluation of the current policy, to a wanted precision, by the cheapest method.

The policy stays fixed while nature's model is found (as in Hoffman and Karp): each step takes
nature's choice at ``v`` and solves the equations of the policy in that model, by elimination where
that is cheap, otherwise by sweeps. The result needs no error bound: bounds come from a later sweep.
"""

import numpy as np

from surefoot.solvers.dual_kernels import NOMINAL
from surefoot.solvers.evaluation.equations import MAX_SWEEPS, Equations, solve_equations
from surefoot.solvers.evaluation.evaluator import Evaluator, Links, cheapest, direct_ways, products
from surefoot.solvers.evaluation.krylov_kernels import relax
from surefoot.solvers.evaluation.robust_kernels import write_equations
from surefoot.solvers.evaluation.system_kernels import System, solve_written
from surefoot.solvers.row_kernels import Problem
from surefoot.solvers.sweep_kernels import sweeps_of
from surefoot.solvers.workspace import Workspace

MAX_NATURE_STEPS = 50
DIRECT_WORK = 4e9
"""Most operations of an elimination (two seconds); larger systems are solved by sweeps."""
PATIENCE = 0.05
"""Most cost of the search for an order of elimination, as a share of one evaluation."""
INNER_SWEEPS = 30


def choose_for(problem: Problem, *, direct: bool = True) -> Evaluator:
    """Return the evaluator for the policies of a problem: elimination if that is affordable."""
    links = _links(problem)
    ways = direct_ways(links, DIRECT_WORK, PATIENCE) if direct else []
    return cheapest(ways) if ways else products(links)


def is_direct(evaluator: Evaluator) -> bool:
    """Return whether one evaluation gives the exact value (up to rounding)."""
    return evaluator.kind != "products"


def _links(problem: Problem) -> Links:
    size = len(problem.first)
    entries = problem.row_start[problem.last] - problem.row_start[problem.first]
    source = np.repeat(np.arange(size), entries.view(np.int64))
    target = problem.successor.astype(np.int64)
    rows = len(problem.row_start) - 1
    return Links(size, source, target, len(target) * size / rows)


def room_for(work: Workspace, evaluator: Evaluator) -> System:
    """Allocate arrays for the equations of any policy that a solve may evaluate."""
    problem = work.problem
    most = problem.longest * work.num_states
    if not work.fixed and most <= len(problem.successor):
        return evaluator.system(most)
    lengths = np.diff(problem.row_start)
    if work.fixed:
        return evaluator.system(int(lengths[work.policy.rows].sum()))
    return evaluator.system(int(np.maximum.reduceat(lengths, problem.first.view(np.int64)).sum()))


def evaluate_policy(work: Workspace, evaluator: Evaluator, system: System, wanted: float) -> None:
    """Move ``work.v`` to the robust value of ``work.policy``.

    Stops when the changes of a sweep span at most ``wanted``, or at most rounding noise. This is
    Newton's method (policy iteration) for nature: monotone for a fixed policy, so it cannot cycle.
    """
    problem, policy = work.problem, work.policy
    noise = 2 * work.allowance()
    robust = problem.family != NOMINAL
    # Without uncertainty nature's model is the nominal one, which is read in place.
    where, nature = problem.row_start[policy.rows], problem.probability
    if robust:
        lengths = problem.row_start[policy.rows + np.uint64(1)] - where
        where = np.zeros(len(lengths) + 1, dtype=np.uint64)
        np.cumsum(lengths, out=where[1:])
        nature = np.empty(int(where[-1]))
    nature_rows = sweeps_of(problem).nature_rows
    equations = Equations(system.start, system.column, system.chance, system.gain)
    for step in range(MAX_NATURE_STEPS):
        if robust:
            nature_rows(problem, work.v, policy.rows, where, nature, work.scratch[0])
        write_equations(problem, *policy[:3], where, nature, system.order, system.place, *equations)
        v = work.v.copy()  # sweeps start from it
        if evaluator.full:
            v = solve_equations(evaluator, equations, problem.discount, 0.0, v)
        elif is_direct(evaluator):  # nature changes the numbers, not the sparsity pattern
            solve_written(system, step == 0, problem.discount, 0.0, MAX_SWEEPS, v)
        else:
            relax(*equations, INNER_SWEEPS, v)
        work.move_to(v)
        if is_direct(evaluator) and not robust:
            return
        change = work.policy_change()
        if change.most - change.least <= max(wanted, noise):
            return
