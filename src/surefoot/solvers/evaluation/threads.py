"""Work on many draws, shared among threads: cut the same way on every machine."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from surefoot._cores import available_cores

LEAST_CUT, MOST_CUTS = 64, 16
WORTH_A_THREAD = 2e6
"""Fewer operations than this are done sooner than a thread is started (a millisecond or two)."""


def shared(
    total: int,
    work: Callable[[int, int], None],
    *,
    operations: float,
    least: int = LEAST_CUT,
    cuts: int = MOST_CUTS,
) -> None:
    """Call ``work(begin, end)`` on parts of ``range(total)``.

    Parameters
    ----------
    total
        How many things there are to do.
    work
        Does some of them; it releases the interpreter while it computes.
    operations
        About how many operations all of them cost: too few are done on one thread.
    least
        The least number of items in a part.
    cuts
        The largest number of parts.

    Examples
    --------
    >>> parts = []
    >>> shared(150, lambda begin, end: parts.append((begin, end)), operations=150)
    >>> parts
    [(0, 64), (64, 128), (128, 150)]
    """
    size = max(least, -(-total // cuts))
    parts = [(begin, min(begin + size, total)) for begin in range(0, total, size)]
    threads = min(len(parts), available_cores(), int(operations / WORTH_A_THREAD))
    if threads <= 1:
        for part in parts:
            work(*part)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda part: work(*part), parts))
