"""Nature's choice for one row: a function for each kind of set, all of one form.

Each writes the distribution of row ``row`` at ``v`` into ``out[at:at+k]``; ``scratch`` holds four
vectors as long as the longest row.
"""

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


@kernel(lean=True)
def l1_choice(problem, row, v, scratch, out, at):
    """Write the worst distribution of a weighted L1 ball."""
    if not problem.uncertain[row]:
        nominal_choice(problem, row, v, scratch, out, at)
        return
    start = problem.row_start[row]
    k = problem.row_start[row + ONE] - start
    z, moved = scratch[0], scratch[3]
    nominal = gather(problem, row, v, z)
    wat = ZERO if problem.shared else start
    l1_distribution(
        z, problem.probability, start, problem.weights, wat, k, problem.budget[row], nominal, moved
    )
    for i in range(k):
        out[at + i] = moved[i]


@kernel(lean=True)
def pinned_choice(problem, row, v, scratch, out, at):
    """Write the worst distribution of a weighted L1 ball with infinite weights."""
    nominal_choice(problem, row, v, scratch, out, at)
    if not problem.uncertain[row]:
        return
    start = problem.row_start[row]
    k = problem.row_start[row + ONE] - start
    z, moved = scratch[0], scratch[3]
    nominal = gather(problem, row, v, z)
    free = compact(problem, start, k, z, scratch[1], scratch[2])
    if free < 2:
        return
    l1_distribution(
        z, scratch[1], ZERO, scratch[2], ZERO, free, problem.budget[row], nominal, moved
    )
    j = ZERO
    for i in range(k):
        if problem.weights[start + i] < np.inf:
            out[at + i] = moved[j]
            j += ONE


@kernel(lean=True)
def box_choice(problem, row, v, scratch, out, at):
    """Write the worst distribution of a box."""
    if not problem.uncertain[row]:
        nominal_choice(problem, row, v, scratch, out, at)
        return
    start = problem.row_start[row]
    k = problem.row_start[row + ONE] - start
    z, moved = scratch[0], scratch[3]
    nominal = gather(problem, row, v, z)
    box_distribution(z, problem.lower, problem.upper, start, k, nominal, moved)
    for i in range(k):
        out[at + i] = moved[i]


@kernel(lean=True)
def kl_choice(problem, row, v, scratch, out, at):
    """Write the worst distribution of a KL ball."""
    if not problem.uncertain[row]:
        nominal_choice(problem, row, v, scratch, out, at)
        return
    start = problem.row_start[row]
    k = problem.row_start[row + ONE] - start
    z, moved = scratch[0], scratch[3]
    nominal = gather(problem, row, v, z)
    kl_distribution(z, problem.probability, start, k, problem.budget[row], nominal, moved)
    for i in range(k):
        out[at + i] = moved[i]
