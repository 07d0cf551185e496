"""Returns of one policy, and of the best policy, in many drawn models.

A batch of draws is ``(n, E')``: the entries of the rows in use, one row after another. Rewards are
``(m, E')`` with ``m = n`` where mean rewards are uncertain, else ``m = 1``. Every return comes with
its numerical bracket: with ``least`` and ``most`` the extreme residuals ``r + discount P v - v``,

    v + least/(1 - discount)  <=  exact value  <=  v + most/(1 - discount),

widened by rounding on both sides. So the bracket holds whatever the error of elimination or sweeps.
"""

import numpy as np

from surefoot._compile import kernel
from surefoot.solvers.evaluation.dense_kernels import factorise, substitute
from surefoot.solvers.evaluation.krylov_kernels import largest_size
from surefoot.solvers.evaluation.system_kernels import fill, find_places, find_value

EPSILON = float(np.finfo(np.float64).eps)
UNDERFLOW = 1e-300
"""Below this, errors are no longer relative to the size of the numbers."""
ROUND_SHARE = 0.02
"""Accuracy of the policy evaluations within policy iteration, as a share of the bracket."""


@kernel(lean=True, forceinline=True)
def rounding(longest, largest):
    """Bound the rounding error of one residual (derived in docs/rounding.md)."""
    if largest == 0.0:
        return 0.0
    return 8 * (longest + 8) * max(EPSILON * largest, UNDERFLOW)


@kernel(lean=True)
def fill_system(draw, reward, state_rows, row_start, share, successor, discount, matrix, value):
    """Write ``I - discount P`` and the expected rewards of a policy.

    State ``s`` plays the rows ``state_rows[s]:state_rows[s+1]`` with probabilities ``share``; the
    entries of row ``m`` are ``row_start[m]:row_start[m+1]``.
    """
    size = len(value)
    for s in range(size):
        for t in range(size):
            matrix[s, t] = 0.0
        matrix[s, s] = 1.0
        gain = 0.0
        for m in range(state_rows[s], state_rows[s + 1]):
            for e in range(row_start[m], row_start[m + 1]):
                chance = share[m] * draw[e]
                matrix[s, successor[e]] -= discount * chance
                gain += chance * reward[e]
        value[s] = gain


@kernel(lean=True)
def residuals(draw, reward, state_rows, row_start, share, successor, discount, v):
    """Return the smallest and largest difference of ``r + discount P v`` from ``v``."""
    least, most = np.inf, -np.inf
    for s in range(len(v)):
        total = 0.0
        for m in range(state_rows[s], state_rows[s + 1]):
            inner = 0.0
            for e in range(row_start[m], row_start[m + 1]):
                inner += draw[e] * (reward[e] + discount * v[successor[e]])
            total += share[m] * inner
        least = min(least, total - v[s])
        most = max(most, total - v[s])
    return least, most


@kernel(lean=True)
def bracket_return(initial, v, least, most, discount, longest, largest_reward, out):
    """Write lower and upper bounds on ``initial . value`` into ``out[0:2]``."""
    mean = 0.0
    largest = 0.0
    for s in range(len(v)):
        mean += initial[s] * v[s]
        largest = max(largest, abs(v[s]))
    allowance = rounding(longest, largest_reward + discount * largest) / (1.0 - discount)
    allowance += 4 * (len(v) + 4) * EPSILON * largest
    out[0] = mean + least / (1.0 - discount) * (1.0 + 8 * EPSILON * np.sign(-least)) - allowance
    out[1] = mean + most / (1.0 - discount) * (1.0 + 8 * EPSILON * np.sign(most)) + allowance


@kernel(lean=True)
def write_systems(
    draws, rewards, state_rows, row_start, share, successor, discount, first, matrices, values
):
    """Write the full systems of one policy in the draws from ``first`` on."""
    for k in range(len(values)):
        i = first + k
        reward = rewards[i if len(rewards) > 1 else 0]
        fill_system(
            draws[i], reward, state_rows, row_start, share, successor, discount, matrices[k],
            values[k],
        )  # fmt: skip


@kernel(lean=True)
def bracket_values(
    draws, rewards, state_rows, row_start, share, successor, discount, initial, longest,
    begin, end, values, out,
):  # fmt: skip
    """Write the return brackets of draws ``begin:end``, given approximate ``values``."""
    for i in range(begin, end):
        reward = rewards[i if len(rewards) > 1 else 0]
        value = values[i - begin]
        least, most = residuals(
            draws[i], reward, state_rows, row_start, share, successor, discount, value
        )
        bracket_return(initial, value, least, most, discount, longest, largest_size(reward), out[i])


@kernel(lean=True)
def sparse_returns(
    draws, rewards, state_rows, row_start, share, successor, discount, initial, longest,
    begin, end, tolerance, max_sweeps, rows, near, value, system, out,
):  # fmt: skip
    """Write the return brackets of draws ``begin:end`` without a full matrix.

    Sweeps start from ``near``, the value in the mean model. The bracket includes the remaining
    error, since it is computed from the residuals in the draw itself.
    """
    for i in range(begin, end):
        reward = rewards[i if len(rewards) > 1 else 0]
        fill(system, draws[i], reward, state_rows, rows, share, row_start, successor, discount)
        if i == begin:
            find_places(system)
        for s in range(len(value)):
            value[s] = near[s]
        find_value(system, discount, tolerance, max_sweeps, value)
        least, most = residuals(
            draws[i], reward, state_rows, row_start, share, successor, discount, value
        )
        bracket_return(initial, value, least, most, discount, longest, largest_size(reward), out[i])


@kernel(lean=True)
def row_value(draw, reward, start, stop, successor, discount, v):
    """Return ``p.(r + discount v)`` of one row."""
    total = 0.0
    for e in range(start, stop):
        total += draw[e] * (reward[e] + discount * v[successor[e]])
    return total


@kernel(lean=True)
def improve(draw, reward, first_row, row_start, successor, discount, v, choice, margin, image):
    """Write ``Lv`` and switch to rows that are better by more than ``margin``.

    Returns the extreme changes ``Lv - v`` and whether any row was switched.
    """
    changed = False
    least, most = np.inf, -np.inf
    for s in range(len(v)):
        kept = choice[s]
        best = row_value(draw, reward, row_start[kept], row_start[kept + 1], successor, discount, v)
        threshold = best + margin
        for row in range(first_row[s], first_row[s + 1]):
            value = row_value(
                draw, reward, row_start[row], row_start[row + 1], successor, discount, v
            )
            if value > best:
                best = value
                if value > threshold:
                    choice[s] = row
        changed = changed or choice[s] != kept
        image[s] = best
        least = min(least, best - v[s])
        most = max(most, best - v[s])
    return least, most, changed


@kernel(lean=True)
def fill_choice(draw, reward, row_start, successor, discount, choice, matrix, value):
    """Write ``I - discount P`` and the expected rewards of one row per state."""
    size = len(value)
    for s in range(size):
        for t in range(size):
            matrix[s, t] = 0.0
        matrix[s, s] = 1.0
        gain = 0.0
        for e in range(row_start[choice[s]], row_start[choice[s] + 1]):
            matrix[s, successor[e]] -= discount * draw[e]
            gain += draw[e] * reward[e]
        value[s] = gain


@kernel(lean=True)
def write_choices(draws, rewards, row_start, successor, discount, which, choices, matrices, values):
    """Write the full systems of the draws ``which``: draw ``which[k]`` plays ``choices[k]``."""
    for k in range(len(which)):
        reward = rewards[which[k] if len(rewards) > 1 else 0]
        fill_choice(
            draws[which[k]], reward, row_start, successor, discount, choices[k], matrices[k],
            values[k],
        )  # fmt: skip


@kernel(lean=True)
def improve_choices(
    draws, rewards, first_row, row_start, successor, discount, initial, longest, which, final,
    values, choices, image, changed, out,
):  # fmt: skip
    """Improve the policies of the draws ``which``; write the brackets of those that do not change.

    A row is switched only for a gain above rounding, so the iteration ends; ``final`` writes the
    brackets of all draws, as they are.
    """
    for k in range(len(which)):
        i = which[k]
        reward = rewards[i if len(rewards) > 1 else 0]
        largest_reward = largest_size(reward)
        margin = 4 * rounding(longest, largest_reward + discount * largest_size(values[k]))
        least, most, changed[k] = improve(
            draws[i], reward, first_row, row_start, successor, discount, values[k], choices[k],
            margin, image,
        )  # fmt: skip
        if final or not changed[k]:
            bracket_return(
                initial, values[k], least, most, discount, longest, largest_reward, out[i]
            )


@kernel(lean=True)
def sparse_optima(
    draws, rewards, first_row, row_start, successor, discount, initial, longest,
    begin, end, tolerance, max_sweeps, max_rounds, state_rows, share, first, near, choice, value,
    image, system, out,
):  # fmt: skip
    """Write brackets of the best return in draws ``begin:end`` by policy iteration, no full matrix.

    Every draw starts from the rows ``first`` and the value ``near``. A sweep over all rows gives
    the bracket and the next policy, which is evaluated to a share of the bracket's width. The
    bracket also holds when the rounds run out.
    """
    for i in range(begin, end):
        reward = rewards[i if len(rewards) > 1 else 0]
        largest_reward = largest_size(reward)
        for s in range(len(value)):
            choice[s], value[s] = first[s], near[s]
        for turn in range(max_rounds):
            least, most, _ = improve(
                draws[i], reward, first_row, row_start, successor, discount, value, choice, 0.0,
                image,
            )  # fmt: skip
            width = (most - least) / (1.0 - discount)
            if width <= tolerance or turn == max_rounds - 1:
                bracket_return(
                    initial, value, least, most, discount, longest, largest_reward, out[i]
                )
                break
            for s in range(len(value)):
                value[s] = image[s]
            fill(
                system, draws[i], reward, state_rows, choice, share, row_start, successor, discount
            )
            find_places(system)
            wanted = max(0.25 * tolerance, ROUND_SHARE * width)
            find_value(system, discount, wanted, max_sweeps, value)


@kernel(lean=True)
def all_policy_returns(
    draws, rewards, first_row, row_start, successor, discount, initial, longest,
    begin, end, matrix, value, choice, ends, threshold, below, smallest,
):  # fmt: skip
    """Keep the smallest returns (upper bounds) of the policies numbered ``begin:end``.

    The digits of ``k``, in the mixed radix of the numbers of actions, are the actions that policy
    ``k`` plays in each state. ``smallest[k]`` is a heap with its largest number on top;
    ``below[k]`` counts the returns that are at most ``threshold``. Once there are as many as the
    heap holds, the order statistic is at most ``threshold`` too, and the policy is skipped.
    """
    for k in range(begin, end):
        if below[k] >= len(smallest[k]):
            continue
        rest = k
        for s in range(len(value)):
            offered = first_row[s + 1] - first_row[s]
            choice[s] = first_row[s] + rest % offered
            rest //= offered
        heap = smallest[k]
        for i in range(len(draws)):
            reward = rewards[i if len(rewards) > 1 else 0]
            fill_choice(draws[i], reward, row_start, successor, discount, choice, matrix, value)
            factorise(matrix)
            substitute(matrix, 0, value)
            least, most, largest_reward = np.inf, -np.inf, 0.0
            for s in range(len(value)):
                row = choice[s]
                change = (
                    row_value(
                        draws[i], reward, row_start[row], row_start[row + 1], successor, discount,
                        value,
                    )
                    - value[s]
                )  # fmt: skip
                least, most = min(least, change), max(most, change)
                for e in range(row_start[row], row_start[row + 1]):
                    largest_reward = max(largest_reward, abs(reward[e]))
            bracket_return(initial, value, least, most, discount, longest, largest_reward, ends)
            if ends[1] < heap[0]:
                replace_top(heap, ends[1])
            if ends[1] <= threshold:
                below[k] += 1
                if below[k] >= len(heap):
                    break


@kernel(lean=True)
def replace_top(heap, item):
    """Replace the largest number of a heap by a smaller one; O(log n)."""
    at = 0
    size = len(heap)
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= item:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = item
