"""Orders of elimination with little fill-in."""

import numpy as np
from numpy.typing import NDArray

from surefoot.solvers.evaluation.factor_kernels import minimum_degree

Ints = NDArray[np.int64]

Order = tuple[Ints, int, int]
"""The states in their order, and bounds on the entries of a factor and on the multiplications."""

FEW_LINKS = 6
"""How many links away from a state `_spreads` looks."""


def band_order(size: int, source: Ints, target: Ints, widest: float) -> Order | None:
    """Return an order that puts linked states close together, in a narrow band.

    Keeps the given order if it is already good (chains); otherwise reverse Cuthill-McKee. None if a
    state has too many links for any order to put them at most ``widest`` places apart; the order
    returned may still be wider than that.

    Examples
    --------
    >>> order, fill, multiplications = band_order(3, np.array([0, 1]), np.array([1, 2]), 10)
    >>> order.tolist(), fill, multiplications
    ([0, 1, 2], 3, 6)
    """
    natural = np.arange(size)
    width = int(np.abs(target - source).max(initial=0))
    if width <= 8 or width**2 <= size:
        return _banded(natural, width)
    if _spreads(size, source, target, widest):
        return None
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    links = csr_array((np.ones(len(source), dtype=np.int8), (source, target)), shape=(size, size))
    links.sum_duplicates()
    if np.diff(links.indptr).max() > 2 * widest + 1:
        return None
    order = reverse_cuthill_mckee(links, symmetric_mode=False).astype(np.int64)
    place = np.empty(size, dtype=np.int64)
    place[order] = natural
    narrower = int(np.abs(place[target] - place[source]).max())
    return _banded(order, narrower) if narrower < width else _banded(natural, width)


def _spreads(size: int, source: Ints, target: Ints, widest: float) -> bool:
    """Return whether one state has more others within a few links than the band allows.

    In a band of width ``widest``, at most ``2 k widest`` other states lie within ``k`` links of a
    state. This looks at the state with the most links. Computing an order only to find that out
    takes seconds in large models.
    """
    if np.any(np.diff(source) < 0):
        order = np.argsort(source, kind="stable")
        source, target = source[order], target[order]
    start = np.searchsorted(source, np.arange(size + 1))
    reached = np.zeros(size, dtype=np.bool_)
    last = np.array([np.argmax(np.diff(start))])
    reached[last] = True
    others = 0
    for links in range(1, FEW_LINKS + 1):
        ahead = np.concatenate([target[start[s] : start[s + 1]] for s in last.tolist()])
        last = np.unique(ahead[~reached[ahead]])
        reached[last] = True
        others += len(last)
        if others > 2 * links * widest:
            return True
        if len(last) == 0:
            break
    return False


def _banded(order: Ints, width: int) -> Order:
    return order, len(order) * width, len(order) * width * (width + 1)


def minimum_degree_order(size: int, source: Ints, target: Ints, limit: int) -> Order | None:
    """Return a minimum degree order; None if it takes more multiplications than the limit.

    Examples
    --------
    >>> links = np.array([0, 0, 0]), np.array([1, 2, 3])
    >>> order, fill, multiplications = minimum_degree_order(4, *links, 100)
    >>> order.tolist(), fill, multiplications
    ([1, 2, 0, 3], 3, 6)
    """
    links = np.zeros((size, size), dtype=np.bool_)
    links[source, target] = True
    links |= links.T
    np.fill_diagonal(links, False)
    order, degree, near = np.empty((3, size), dtype=np.int64)
    work, fill = minimum_degree(links, limit, order, degree, near)
    return None if work < 0 else (order, int(fill), int(work))
