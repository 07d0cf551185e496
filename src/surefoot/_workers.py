"""Doing the parts of a large job: in this process, or on a cluster if one was requested.

A job is cut into parts whose results do not depend on which worker does them, so that the answer is
always the same, bit for bit. Without a cluster nothing here imports or starts anything.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol

from surefoot import _cores

Work = Callable[..., Any]
"""``work(*shared, *part)``: a function that workers can import, without side effects."""
OnPart = Callable[[int, int], None]
"""Called with the number of parts that are done and the number of parts in all."""


class Workers(Protocol):
    """Processes, on this machine or on others, that do parts of a job."""

    @property
    def count(self) -> int:
        """About how many parts are worked on at the same time; at least 1."""

    @property
    def gpus(self) -> "WorkerGpus":
        """The GPUs of the workers."""

    def each(
        self, work: Work, shared: tuple[Any, ...], parts: Sequence[tuple[Any, ...]],
        *, gpu: bool = False,
    ) -> Iterator[tuple[int, Any]]:  # fmt: skip
        """Yield the index and the result of each part, in the order in which parts finish.

        ``gpu``: each part has a GPU to itself.
        """


class WorkerGpus(NamedTuple):
    """How many GPUs the workers have together, and which nodes have none."""

    total: int
    lacking: tuple[str, ...]


_CURRENT: ContextVar[Workers | None] = ContextVar("workers", default=None)


def current() -> Workers | None:
    """Return the workers that share the jobs; None for this process alone."""
    return _CURRENT.get()


@contextmanager
def alone() -> Iterator[None]:
    """Do everything inside the block in this process, even if workers are set outside it."""
    with made_current(None):
        yield


@contextmanager
def made_current(workers: Workers | None) -> Iterator[None]:
    """Share the jobs inside the block among some workers; None: do them in this process."""
    before = _CURRENT.set(workers)
    try:
        yield
    finally:
        _CURRENT.reset(before)


def each_part(
    work: Work, shared: tuple[Any, ...], parts: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[int, Any]]:
    """Yield the index and the result of each part, done here or by the current workers.

    Examples
    --------
    >>> list(each_part(pow, (2,), [(3,), (4,)]))
    [(0, 8), (1, 16)]
    """
    workers = current()
    if workers is not None:
        yield from workers.each(work, shared, parts)
        return
    for place, part in enumerate(parts):
        yield place, work(*shared, *part)


def on_gpus(
    workers: Workers, work: Work, shared: tuple[Any, ...], parts: Sequence[tuple[Any, ...]]
) -> list[Any]:
    """Return the results of all parts in order, each computed on a GPU of the workers."""
    found: list[Any] = [None] * len(parts)
    for place, result in workers.each(work, shared, parts, gpu=True):
        found[place] = result
    return found


def all_parts(work: Work, shared: tuple[Any, ...], parts: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Return the results of all parts in order.

    Examples
    --------
    >>> all_parts(pow, (2,), [(3,), (4,)])
    [8, 16]
    """
    found: list[Any] = [None] * len(parts)
    for place, result in each_part(work, shared, parts):
        found[place] = result
    return found


def ranges(total: int, size: int) -> list[tuple[int, int]]:
    """Cut ``range(total)`` into ranges of ``size``; the last one may be smaller.

    Examples
    --------
    >>> ranges(10, 4)
    [(0, 4), (4, 8), (8, 10)]
    """
    return [(first, min(first + size, total)) for first in range(0, total, size)]


def do_alone(work: Work, shared: tuple[Any, ...], part: tuple[Any, ...], cores: int) -> Any:
    """Do a part in this process on at most ``cores`` cores; every worker calls this."""
    with _cores.limited(cores), _cores.plain_blas(), alone():
        return work(*shared, *part)
