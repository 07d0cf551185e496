"""Kernels of a toy set, the total variation ball ``sum_i |p_i - pbar_i| / 2 <= budget``."""

from surefoot._compile import kernel
from surefoot.solvers.dual_kernels import ZERO


@kernel()
def move(z, p, start, k, budget, out):
    """Write the worst distribution: mass goes from the best successors to the worst. O(k^2)."""
    worst = ZERO
    for i in range(k):
        out[i] = p[start + i]
        if z[i] < z[worst]:
            worst = i
    left = budget
    for _ in range(k):
        best = worst
        for i in range(k):
            if out[i] > 0.0 and z[i] > z[best]:
                best = i
        taken = min(left, out[best])
        if best == worst or taken <= 0.0:
            break
        out[best] -= taken
        out[worst] += taken
        left -= taken


@kernel()
def tv_value(problem, row, start, k, nominal, accuracy, memory, scratch):
    """Return the worst case of a ball; nothing is left to search."""
    move(scratch[0], problem.probability, start, k, problem.budget[row], scratch[3])
    value = 0.0
    for i in range(k):
        value += scratch[3][i] * scratch[0][i]
    return value, 0.0


@kernel()
def tv_choice(problem, row, start, k, nominal, scratch, out, at):
    """Write the worst distribution of a ball."""
    move(scratch[0], problem.probability, start, k, problem.budget[row], scratch[3])
    for i in range(k):
        out[at + i] = scratch[3][i]


@kernel()
def tv_floor(problem, row, at):
    """Return the least probability of an entry over its ball."""
    spent = problem.budget[row] if problem.uncertain[row] else 0.0
    return max(problem.probability[at] - spent, 0.0)
