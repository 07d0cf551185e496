"""How many cores this process may use, and a pool of threads that share work among them."""

import ctypes
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

Part = TypeVar("Part")


class _NoneLeft:
    """The type of the marker for "all parts have been handed out"."""


_NONE_LEFT = _NoneLeft()

_most: int | None = None
"""The largest number of cores this process may use, as set by `limited`; None for no limit."""


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


@contextmanager
def kept_to(threads: int | None) -> Iterator[None]:
    """Use only the first ``threads`` processors, where the system allows it; None: all of them."""
    if threads is None or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(sorted(before)[:threads]))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def on_threads(work: Callable[[Part], object], parts: Iterable[Part], threads: int) -> None:
    """Call ``work`` on every part, on ``threads`` threads; this thread is one of them.

    The other threads are kept between calls: starting new ones takes longer than many parts do. A
    nested call, made from within a part, runs on its own thread alone.

    Examples
    --------
    >>> done = []
    >>> on_threads(done.append, range(5), 2)
    >>> sorted(done)
    [0, 1, 2, 3, 4]
    """
    if threads <= 1 or getattr(_THREAD, "busy", False):
        for part in parts:
            work(part)
        return
    waiting, lock = iter(parts), threading.Lock()
    failed = threading.Event()

    def go_on() -> None:
        _THREAD.busy = True
        try:
            while not failed.is_set():
                with lock:
                    found = next(waiting, _NONE_LEFT)
                if isinstance(found, _NoneLeft):
                    return
                work(found)
        except BaseException:
            failed.set()
            raise
        finally:
            _THREAD.busy = False

    pool = _pool(os.getpid(), _affinity())
    others = [pool.submit(go_on) for _ in range(threads - 1)]
    try:
        go_on()
    finally:
        for other in others:
            if not other.cancel():
                other.result()


_THREAD = threading.local()
"""Whether the current thread is working on parts."""


def _affinity() -> frozenset[int]:
    """Return the cores this thread may use; threads it starts inherit them."""
    return frozenset(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ())


@cache
def _pool(_process: int, _cores: frozenset[int]) -> ThreadPoolExecutor:
    """Return the thread pool of a process; a forked process has none of its parent's threads."""
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="surefoot")


@contextmanager
def plain_blas() -> Iterator[None]:
    """Run NumPy's linear algebra on the calling thread only, without threads of its own.

    OpenBLAS splits even small matrices among threads that busy-wait for each other: in a run with
    300 states that wastes half of the processor time. The last bits of a solution also depend on
    the number of threads. If NumPy uses another library, this does nothing.

    Examples
    --------
    >>> with plain_blas():
    ...     np.linalg.solve(np.eye(2), np.ones(2)).tolist()
    [1.0, 1.0]
    """
    found = _openblas()
    if found is None:
        yield
        return
    with _BLAS.lock:
        if _BLAS.inside == 0:
            _BLAS.before = found[0]()
            found[1](1)
        _BLAS.inside += 1
    try:
        yield
    finally:
        with _BLAS.lock:
            _BLAS.inside -= 1
            if _BLAS.inside == 0:
                found[1](_BLAS.before)


class _Blas:
    """Counts callers inside `plain_blas`: the first one sets it, the last one out resets it."""

    def __init__(self) -> None:
        self.lock, self.inside, self.before = threading.Lock(), 0, 1


_BLAS = _Blas()


@cache
def _openblas() -> tuple[Any, Any] | None:
    """Return getter and setter of OpenBLAS's thread count; None if NumPy does not use it."""
    package = Path(np.__file__).parent
    places = (package.parent / "numpy.libs", package / ".dylibs")
    files = [file for place in places for file in sorted(place.glob("*openblas*"))]
    for file in files:
        try:
            library = ctypes.CDLL(str(file))
        except OSError:
            continue
        for name in ("scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads"):
            get, put = (getattr(library, name.format(verb), None) for verb in ("get", "set"))
            if get is not None and put is not None:
                return get, put
    return None
