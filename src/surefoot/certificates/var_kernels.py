"""The VaR Bellman operator on a batch of drawn models (Lobo, Cousins, Zick, Petrik 2023).

    (Tv)_s = max_a VaR[ P_{s,a}.(r + discount v) ],

the VaR being an order statistic over the draws: rank 1 is the smallest.
"""

import numpy as np

from surefoot._compile import kernel
from surefoot.certificates.search_kernels import row_worth
from surefoot.solvers.evaluation.return_kernels import replace_top, row_value


@kernel(lean=True)
def order_statistic(numbers, rank):
    """Return the ``rank``-th smallest, reordering ``numbers``; O(n) on average (Hoare)."""
    low, high, wanted = 0, len(numbers) - 1, rank - 1
    while low < high:
        pivot = numbers[(low + high) // 2]
        left, right = low, high
        while left <= right:
            while numbers[left] < pivot:
                left += 1
            while numbers[right] > pivot:
                right -= 1
            if left <= right:
                held = numbers[left]
                numbers[left] = numbers[right]
                numbers[right] = held
                left += 1
                right -= 1
        if wanted <= right:
            high = right
        elif wanted >= left:
            low = left
        else:
            break
    return numbers[wanted]


@kernel(lean=True)
def var_sweep(
    draws, gains, offer_start, offers, row_start, successor, discount, v, ranks, begin, end,
    table, scratch, image, choice, attained,
):  # fmt: skip
    """Write ``Tv`` of the states ``begin:end``, the row and the draw that attain it.

    State ``s`` may play the rows ``offers[offer_start[s]:offer_start[s+1]]``; its order statistic
    has rank ``ranks[s]``. The draws are outermost, so that each is read in one run.
    O(n entries).
    """
    n = len(draws)
    first = offer_start[begin]
    for i in range(n):
        for m in range(first, offer_start[end]):
            row = offers[m]
            table[m - first, i] = row_worth(
                draws[i], gains[i, row], row_start[row], row_start[row + 1], successor, discount, v
            )
    for s in range(begin, end):
        image[s] = -np.inf
        for m in range(offer_start[s], offer_start[s + 1]):
            for i in range(n):
                scratch[i] = table[m - first, i]
            quantile = order_statistic(scratch, ranks[s])
            if quantile > image[s]:
                image[s] = quantile
                choice[s] = offers[m]
                for i in range(n):
                    if table[m - first, i] == quantile:
                        attained[s] = i
                        break


@kernel(lean=True)
def keep_smallest(draws, rewards, row_start, successor, discount, v, ranks, begin, end, smallest):
    """Keep the ``ranks[s]`` smallest values of states ``begin:end``, one row per state.

    ``smallest[s, :ranks[s]]`` is a heap with its largest on top: the order statistic.
    """
    for i in range(len(draws)):
        reward = rewards[i if len(rewards) > 1 else 0]
        for s in range(begin, end):
            value = row_value(
                draws[i], reward, row_start[s], row_start[s + 1], successor, discount, v
            )
            if value < smallest[s, 0]:
                replace_top(smallest[s, : ranks[s]], value)
