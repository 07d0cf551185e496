"""How many cores there are to work with."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

_most: int | None = None
"""How many cores this process was told to use at most."""


def available_cores() -> int:
    """Return how many cores this process may use."""
    if _most is not None:
        return _most
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def limited(cores: int) -> Iterator[None]:
    """Use at most this many cores: several workers on one machine would slow each other down.

    Examples
    --------
    >>> with limited(1):
    ...     available_cores()
    1
    """
    global _most
    before, _most = _most, cores
    try:
        yield
    finally:
        _most = before
