"""Nature's choice for one row, for each kind of set.

``nominal_choice`` and the functions made from ``robust_choice`` write the distribution of row
``row`` at ``v`` into ``out[at:at+k]``; ``scratch`` holds four vectors as long as the longest row.
"""

from typing import Any

import numpy as np

from surefoot._compile import kernel
from surefoot.solvers.dual_kernels import ONE, ZERO
from surefoot.solvers.kl_kernels import kl_distribution
from surefoot.solvers.nature_kernels import box_distribution, l1_distribution
from surefoot.solvers.row_kernels import compact, gather


@kernel(lean=True)
def nominal_choice(problem, row, _v, _scratch, out, at):
    """Write the nominal distribution: nature has no choice."""
    start = problem.row_start[row]
    for i in range(problem.row_start[row + ONE] - start):
        out[at + i] = problem.probability[start + i]


def robust_choice(problem, row, v, scratch, out, at):
    """Write the worst distribution; ``choice_of`` binds ``set_choice`` to one kind of set."""
    nominal_choice(problem, row, v, scratch, out, at)
    if not problem.uncertain[row]:
        return
    start = problem.row_start[row]
    k = problem.row_start[row + ONE] - start
    nominal = gather(problem, row, v, scratch[0])
    set_choice(problem, row, start, k, nominal, scratch, out, at)


@kernel(lean=True)
def l1_ball(problem, row, start, k, nominal, scratch, out, at):
    """Write the worst distribution of a weighted L1 ball."""
    moved = scratch[3]
    wat = ZERO if problem.shared else start
    l1_distribution(
        scratch[0], problem.probability, start, problem.weights, wat, k, problem.budget[row],
        nominal, moved,
    )  # fmt: skip
    for i in range(k):
        out[at + i] = moved[i]


@kernel(lean=True)
def pinned_ball(problem, row, start, k, nominal, scratch, out, at):
    """Write the worst distribution of a weighted L1 ball with infinite weights."""
    moved = scratch[3]
    free = compact(problem, start, k, scratch[0], scratch[1], scratch[2])
    if free < 2:
        return
    l1_distribution(
        scratch[0], scratch[1], ZERO, scratch[2], ZERO, free, problem.budget[row], nominal, moved
    )
    j = ZERO
    for i in range(k):
        if problem.weights[start + i] < np.inf:
            out[at + i] = moved[j]
            j += ONE


@kernel(lean=True)
def box(problem, _row, start, k, nominal, scratch, out, at):
    """Write the worst distribution of a box."""
    moved = scratch[3]
    box_distribution(scratch[0], problem.lower, problem.upper, start, k, nominal, moved)
    for i in range(k):
        out[at + i] = moved[i]


@kernel(lean=True)
def kl_ball(problem, row, start, k, nominal, scratch, out, at):
    """Write the worst distribution of a KL ball."""
    moved = scratch[3]
    kl_distribution(scratch[0], problem.probability, start, k, problem.budget[row], nominal, moved)
    for i in range(k):
        out[at + i] = moved[i]


set_choice = l1_ball


def choice_of(family: str, choice: Any) -> Any:
    """Return the choice function of a kind of set, given the function for an uncertain row."""
    return kernel(lean=True, twin=family, using={"set_choice": choice})(robust_choice)


l1_choice = choice_of("l1", l1_ball)
pinned_choice = choice_of("pinned", pinned_ball)
box_choice = choice_of("box", box)
