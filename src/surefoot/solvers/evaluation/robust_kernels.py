"""The equations of a fixed policy in the model that nature chooses.

A policy is three arrays: state ``s`` plays ``rows[start[s]:start[s+1]]`` with probabilities
``share``. Nature's distribution for ``rows[m]`` is ``nature[where[m]:]``.
"""

import numpy as np

from surefoot._compile import kernel
from surefoot.solvers.dual_kernels import ONE


@kernel(lean=True)
def write_equations(
    problem, start, rows, share, where, nature, order, place, begin, target, chance, gain
):
    """Write ``v = gain + chance v`` with the states in ``order``; targets are positions in it.

    The state ``order[i]`` has the entries ``begin[i]:begin[i+1]``; ``place`` is the inverse of
    ``order``.
    """
    at = 0
    for i in range(len(order)):
        state = np.uint64(order[i])
        begin[i] = at
        gain[i] = 0.0
        for m in range(start[state], start[state + ONE]):
            gain[i] += share[m] * expected_reward(problem, rows[m], where[m], nature)
            first = problem.row_start[rows[m]]
            weight = problem.discount * share[m]
            for e in range(problem.row_start[rows[m] + ONE] - first):
                target[at] = place[problem.successor[first + e]]
                chance[at] = weight * nature[where[m] + e]
                at += 1
    begin[len(order)] = at


@kernel(lean=True)
def expected_reward(problem, row, where, nature):
    """Return the expected reward of a row under nature's distribution."""
    if not problem.reward_per_entry:
        return problem.reward[row]
    at = problem.row_start[row]
    total = 0.0
    for e in range(problem.row_start[row + ONE] - at):
        total += nature[where + e] * problem.reward[at + e]
    return total
