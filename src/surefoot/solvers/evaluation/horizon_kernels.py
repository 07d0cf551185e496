"""Returns over a horizon, or until the end, in many draws: of a policy, or of the best one.

Backward induction draw by draw: two value vectors, time linear in the number of steps. The layout
is that of `return_kernels`. Each step multiplies the error of the later value by at most the
discount and adds its own rounding error, so the bracket needs no contraction.
"""

import numpy as np

from surefoot._compile import kernel
from surefoot.solvers.evaluation.krylov_kernels import largest_size
from surefoot.solvers.evaluation.return_kernels import EPSILON, rounding


@kernel(lean=True)
def row_gains(draw, reward, row_start, gain):
    """Write the expected reward of every row."""
    for m in range(len(gain)):
        total = 0.0
        for e in range(row_start[m], row_start[m + 1]):
            total += draw[e] * reward[e]
        gain[m] = total


@kernel(lean=True)
def bracket_first(initial, value, error, out):
    """Write bounds on ``initial . value``, where each value is off by at most ``error``."""
    mean = 0.0
    largest = 0.0
    for s in range(len(value)):
        mean += initial[s] * value[s]
        largest = max(largest, abs(value[s]))
    slack = error * (1 + 8 * EPSILON) + 4 * (len(value) + 4) * EPSILON * (largest + error)
    out[0] = mean - slack
    out[1] = mean + slack


@kernel(lean=True)
def step_returns(
    draws, rewards, state_rows, row_start, share, successor, discount, initial, longest,
    begin, end, horizon, final, change_start, change_place, change_to, gain, played, value, image,
    out,
):  # fmt: skip
    """Write the return brackets of a policy in draws ``begin:end``; O(horizon * entries) a draw.

    ``share`` has the probabilities of the rows at the last step; going back to step ``t`` applies
    the changes ``change_start[t]:change_start[t+1]`` to them.
    """
    for i in range(begin, end):
        draw = draws[i]
        reward = rewards[i if len(rewards) > 1 else 0]
        row_gains(draw, reward, row_start, gain)
        largest_reward = largest_size(reward)
        for m in range(len(share)):
            played[m] = share[m]
        for s in range(len(value)):
            value[s] = final[s]
        error = 0.0
        for back in range(horizon):
            step = horizon - 1 - back
            for c in range(change_start[step], change_start[step + 1]):
                played[change_place[c]] = change_to[c]
            own = rounding(longest, largest_reward + discount * largest_size(value))
            error = (discount * error + own) * (1 + 4 * EPSILON)
            for s in range(len(value)):
                total = 0.0
                for m in range(state_rows[s], state_rows[s + 1]):
                    if played[m] > 0:
                        inner = 0.0
                        for e in range(row_start[m], row_start[m + 1]):
                            inner += draw[e] * value[successor[e]]
                        total += played[m] * (gain[m] + discount * inner)
                image[s] = total
            value, image = image, value
        bracket_first(initial, value, error, out[i])


@kernel(lean=True)
def best_step_returns(
    draws, rewards, first_row, row_start, successor, discount, initial, longest,
    begin, end, horizon, final, gain, value, image, out,
):  # fmt: skip
    """Write brackets of the best return of any policy, by step or not, in draws ``begin:end``."""
    for i in range(begin, end):
        draw = draws[i]
        reward = rewards[i if len(rewards) > 1 else 0]
        row_gains(draw, reward, row_start, gain)
        largest_reward = largest_size(reward)
        for s in range(len(value)):
            value[s] = final[s]
        error = 0.0
        for _ in range(horizon):
            own = rounding(longest, largest_reward + discount * largest_size(value))
            error = (discount * error + own) * (1 + 4 * EPSILON)
            for s in range(len(value)):
                best = -1e308
                for m in range(first_row[s], first_row[s + 1]):
                    inner = 0.0
                    for e in range(row_start[m], row_start[m + 1]):
                        inner += draw[e] * value[successor[e]]
                    best = max(best, gain[m] + discount * inner)
                image[s] = best
            value, image = image, value
        bracket_first(initial, value, error, out[i])


@kernel(lean=True)
def bracket_end(initial, value, least, most, gained, longest, largest_reward, steps, out):
    """Write bounds on ``initial . value``, for discount 1 without a horizon.

    ``steps`` are the expected steps to the end as computed, and ``gained`` is their largest rise in
    the last sweep. ``steps / (1 - gained - rounding)`` bounds the expected steps; if the divisor is
    at most 1/2, the bracket is infinite. The error is at most the residual times that bound.
    """
    mean, largest, longest_way = 0.0, 0.0, 1.0
    for s in range(len(value)):
        mean += initial[s] * value[s]
        largest = max(largest, abs(value[s]))
        longest_way = max(longest_way, steps[s])
    left = 1.0 - gained - rounding(longest, 1.0 + longest_way)
    if not left > 0.5:
        out[0], out[1] = -np.inf, np.inf
        return
    reach = longest_way / left * (1 + 8 * EPSILON)
    own = rounding(longest, largest_reward + largest)
    slack = 4 * (len(value) + 4) * EPSILON * largest
    out[0] = mean + (min(least, 0.0) - own) * reach * (1 + 8 * EPSILON) - slack
    out[1] = mean + (max(most, 0.0) + own) * reach * (1 + 8 * EPSILON) + slack


@kernel(lean=True)
def sweep_rule(draw, gain, state_rows, row_start, share, successor, ends, value, steps, new, later):
    """Write the values of a policy after one more sweep, and the expected steps to the end."""
    for s in range(len(value)):
        total, way = 0.0, 0.0
        if not ends[s]:
            way = 1.0
            for m in range(state_rows[s], state_rows[s + 1]):
                inner, ahead = 0.0, 0.0
                for e in range(row_start[m], row_start[m + 1]):
                    inner += draw[e] * value[successor[e]]
                    ahead += draw[e] * steps[successor[e]]
                total += share[m] * (gain[m] + inner)
                way += share[m] * ahead
        new[s], later[s] = total, way


@kernel(lean=True)
def sweep_best(draw, gain, first_row, row_start, successor, ends, value, steps, new, later):
    """Write the best values after one more sweep; steps are those of the slowest policy."""
    for s in range(len(value)):
        total, way = 0.0, 0.0
        if not ends[s]:
            total = -1e308
            for m in range(first_row[s], first_row[s + 1]):
                inner, ahead = 0.0, 0.0
                for e in range(row_start[m], row_start[m + 1]):
                    inner += draw[e] * value[successor[e]]
                    ahead += draw[e] * steps[successor[e]]
                total = max(total, gain[m] + inner)
                way = max(way, 1.0 + ahead)
        new[s], later[s] = total, way


@kernel(lean=True)
def changes(value, steps, new, later):
    """Return the least and largest change of a value, the largest rise of steps, and most steps."""
    least, most, gained, longest_way = 0.0, 0.0, 0.0, 1.0
    for s in range(len(value)):
        least, most = min(least, new[s] - value[s]), max(most, new[s] - value[s])
        gained, longest_way = max(gained, later[s] - steps[s]), max(longest_way, later[s])
    return least, most, gained, longest_way


@kernel(lean=True)
def end_returns(
    draws, rewards, state_rows, row_start, share, successor, _discount, initial, longest,
    begin, end, tolerance, max_sweeps, ends, gain, value, image, steps, later, out,
):  # fmt: skip
    """Write the return brackets of one policy until the end, in draws ``begin:end``.

    An empty ``share`` means the best policy of each draw. Values and expected steps are swept
    together until both have settled; the bracket includes the error that remains.
    """
    for i in range(begin, end):
        draw = draws[i]
        reward = rewards[i if len(rewards) > 1 else 0]
        row_gains(draw, reward, row_start, gain)
        largest_reward = largest_size(reward)
        for s in range(len(value)):
            value[s], steps[s] = 0.0, 0.0
        for sweep in range(max_sweeps):
            if len(share) > 0:
                sweep_rule(
                    draw, gain, state_rows, row_start, share, successor, ends, value, steps,
                    image, later,
                )  # fmt: skip
            else:
                sweep_best(
                    draw, gain, state_rows, row_start, successor, ends, value, steps, image, later
                )
            least, most, gained, longest_way = changes(value, steps, image, later)
            near = gained <= 0.1 and (most - least) * longest_way <= tolerance
            if near or sweep == max_sweeps - 1:
                bracket_end(
                    initial, value, least, most, gained, longest, largest_reward, steps, out[i]
                )
                break
            value, image = image, value
            steps, later = later, steps
