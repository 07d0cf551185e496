"""The distribution that nature chooses: primal solutions that belong to the duals."""

from surefoot._compile import kernel
from surefoot.solvers.dual_kernels import BOX, HUGE, L1, l1_receiver, search


@kernel(lean=True)
def l1_distribution(z, p, at, w, wat, k, budget, nominal, out):
    """Write the minimising distribution of a weighted L1 ball; return its value.

    Mixes the solutions left and right of the optimal multiplier so that the budget is used exactly.
    """
    zero = budget * 0
    value, _, _, left, right = search(
        L1, z, p, at, w, wat, k, budget, nominal, zero, zero + HUGE, zero
    )
    used_left = _move(z, p, at, w, wat, k, left, zero + 1, out, True)
    if used_left <= budget:
        return value
    used_right = _move(z, p, at, w, wat, k, right, zero + 1, out, True)
    if used_right >= used_left:  # a single point: its donors exceed the budget by rounding only
        _move(z, p, at, w, wat, k, left, budget / used_left, out, True)
        return value
    share = max(zero, (budget - used_right) / (used_left - used_right))
    _move(z, p, at, w, wat, k, left, share, out, True)
    _move(z, p, at, w, wat, k, right, 1 - share, out, False)
    return value


@kernel(lean=True)
def _move(z, p, at, w, wat, k, mu, share, out, fresh):
    """Move ``share`` of the donors' mass at ``mu`` to the receiver.

    Starts from ``p`` if ``fresh``, otherwise from ``out``. Returns the budget that moving all of
    the donors' mass would use.
    """
    receiver = l1_receiver(z, w, wat, k, mu)
    lowest = z[receiver] + mu * w[wat + receiver]
    if fresh:
        for i in range(k):
            out[i] = p[at + i]
    used = share * 0
    for i in range(k):
        if z[i] - mu * w[wat + i] > lowest:
            moved = share * p[at + i]
            out[i] -= moved
            out[receiver] += moved
            used += p[at + i] * (w[wat + i] + w[wat + receiver])
    return used


@kernel(lean=True)
def box_distribution(z, lower, upper, at, k, nominal, out):
    """Write the minimising distribution of a box; return its value.

    Entries with ``z`` below the optimal level get their upper bound, the others their lower bound.
    The remaining mass goes to the lowest entries within the last bracket, since rounding may have
    put them on either side of the level. O(k) for every distinct ``z`` that is filled up.
    """
    value, _, _, left, right = search(
        BOX, z, lower, at, upper, at, k, nominal, nominal, nominal, nominal * 0 + 1, nominal * 0
    )
    rest = nominal * 0 + 1
    for i in range(k):
        out[i] = upper[at + i] if z[i] < left else lower[at + i]
        rest -= out[i]
    while rest > 0:
        cheapest = k
        for i in range(k):
            open_ = left <= z[i] <= right and out[i] < upper[at + i]
            if open_ and (cheapest == k or z[i] < z[cheapest]):
                cheapest = i
        if cheapest == k:
            break
        for i in range(k):  # all entries with this value at once
            if z[i] == z[cheapest]:
                poured = min(rest, upper[at + i] - out[i])
                out[i] += poured
                rest -= poured
    return value
