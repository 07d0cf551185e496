"""Policies by step in a batch of drawn models: returns, visits, and what other rows would bring.

A batch is ``draws (n, E)`` with the expected rewards of rows, ``gains (n, R)``. These numbers
select; they certify nothing.
"""

from surefoot._compile import kernel
from surefoot.certificates.search_kernels import row_worth


@kernel(lean=True)
def batch_returns(
    draws, gains, row_start, successor, discount, initial, horizon, final, state_rows, rows, share,
    change_start, change_place, change_to, begin, end, played, value, image, returns,
):  # fmt: skip
    """Write the return of a policy in draws ``begin:end``; O(horizon entries) each."""
    for i in range(begin, end):
        for m in range(len(share)):
            played[m] = share[m]
        for s in range(len(value)):
            value[s] = final[s]
        for back in range(horizon):
            step = horizon - 1 - back
            for c in range(change_start[step], change_start[step + 1]):
                played[change_place[c]] = change_to[c]
            for s in range(len(value)):
                total = 0.0
                for m in range(state_rows[s], state_rows[s + 1]):
                    if played[m] > 0:
                        row = rows[m]
                        total += played[m] * row_worth(
                            draws[i], gains[i, row], row_start[row], row_start[row + 1], successor,
                            discount, value,
                        )  # fmt: skip
                image[s] = total
            value, image = image, value
        mean = 0.0
        for s in range(len(value)):
            mean += initial[s] * value[s]
        returns[i] = mean


@kernel(lean=True)
def push_visits(draws, row_start, successor, discount, choice, begin, end, visits, after):
    """Write the discounted visits one step later, of draws ``begin:end``."""
    for i in range(begin, end):
        for s in range(len(choice)):
            after[i, s] = 0.0
        for s in range(len(choice)):
            for e in range(row_start[choice[s]], row_start[choice[s] + 1]):
                after[i, successor[e]] += discount * visits[i, s] * draws[i, e]


@kernel(lean=True)
def add_worth(
    draws, gains, state_start, row_start, successor, discount, weight, values, begin, end, scores
):
    """Add the worth of every row, weighted by ``(n, S)`` weights of its state, over some draws."""
    for i in range(begin, end):
        for s in range(len(state_start) - 1):
            if weight[i, s] == 0.0:
                continue
            for row in range(state_start[s], state_start[s + 1]):
                scores[row] += weight[i, s] * row_worth(
                    draws[i], gains[i, row], row_start[row], row_start[row + 1], successor,
                    discount, values[i],
                )  # fmt: skip


@kernel(lean=True)
def back_up(draws, gains, row_start, successor, discount, choice, values, begin, end, image):
    """Write the values one step earlier, of draws ``begin:end``, where states play ``choice``."""
    for i in range(begin, end):
        for s in range(len(choice)):
            row = choice[s]
            image[i, s] = row_worth(
                draws[i], gains[i, row], row_start[row], row_start[row + 1], successor, discount,
                values[i],
            )  # fmt: skip
