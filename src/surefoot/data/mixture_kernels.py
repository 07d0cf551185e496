"""The kernel that learns how often unseen successors come from each part."""

import numpy as np
from numpy.typing import NDArray

from surefoot._compile import kernel

Floats = NDArray[np.float64]


@kernel()
def mixture_weights(
    named: Floats, open_to: Floats, times: Floats, prior: Floats, rounds: int, tolerance: float
) -> Floats:
    """Return Dirichlet parameters of the parts, from which singletons they would have named.

    Singleton ``i`` has probability ``sum_p share_p named[i, p] / sum_p share_p open_to[k, p]``:
    only parts that its row is open to count. ``times[k]`` singletons are open to the same parts.
    The likelihood rises in every round (minorisation and maximisation); where all rows are open to
    all parts, the rounds are those of expectation maximisation.
    """
    parts = len(prior)
    learned, share, asked = np.empty(parts), np.zeros(parts), np.empty(parts)
    whole = 0.0
    for p in range(parts):
        whole += prior[p]
    size = len(named) + whole
    for p in range(parts):
        learned[p] = size * prior[p] / whole
    for _ in range(rounds):
        change = 0.0
        for p in range(parts):
            change = max(change, abs(learned[p] / size - share[p]))
            share[p] = learned[p] / size
            learned[p] = prior[p]
            asked[p] = whole
        for k in range(len(times)):
            total = 0.0
            for p in range(parts):
                total += share[p] * open_to[k, p]
            for p in range(parts):
                asked[p] += times[k] * open_to[k, p] / total
        for i in range(len(named)):
            total = 0.0
            for p in range(parts):
                total += share[p] * named[i, p]
            for p in range(parts):
                learned[p] += share[p] * named[i, p] / total
        total = 0.0
        for p in range(parts):
            learned[p] /= asked[p]
            total += learned[p]
        for p in range(parts):
            learned[p] *= size / total
        if change < tolerance:
            break
    return learned
