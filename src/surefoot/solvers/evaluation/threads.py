"""Work on many draws, shared among threads; by default cut the same way on every machine."""

from collections.abc import Callable

from surefoot._cores import available_cores, on_threads

LEAST_CUT, MOST_CUTS = 64, 16
WORTH_A_THREAD = 1e6
"""Fewer operations than this finish before another thread wakes up (half a millisecond)."""


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
        The number of items.
    work
        Processes the items ``begin`` to ``end - 1``; releases the interpreter lock meanwhile.
    operations
        About how many operations all items take; a small number runs on one thread.
    least
        The least number of items in a part (the last part may have fewer).
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
    on_threads(lambda part: work(*part), parts, threads)
