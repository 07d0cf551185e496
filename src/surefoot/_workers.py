"""Who does the parts of a large job: this process, or a cluster where one was asked for.

A job is cut into parts whose results do not depend on who does them, so that the answer is the
same, bit for bit, whoever does. Without a cluster nothing here imports or starts anything.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol

from surefoot import _cores

Work = Callable[..., Any]
"""``work(*shared, *part)``: a function that workers can import, without side effects."""
OnPart = Callable[[int, int], None]
"""Is told how many parts of how many are done."""


class Workers(Protocol):
    """Processes, on this machine or on others, that do parts of a job."""

    @property
    def count(self) -> int:
        """About how many parts are done at the same time; at least 1."""

    @property
    def gpus(self) -> "WorkerGpus":
        """What GPUs the workers have."""

    def each(
        self, work: Work, shared: tuple[Any, ...], parts: Sequence[tuple[Any, ...]],
        *, gpu: bool = False,
    ) -> Iterator[tuple[int, Any]]:  # fmt: skip
        """Yield the place and the result of each part, in the order in which they are done.

        ``gpu``: each part has a GPU to itself.
        """


class WorkerGpus(NamedTuple):
    """How many GPUs the workers have together, and which nodes have none."""

    total: int
    lacking: tuple[str, ...]


_CURRENT: ContextVar[Workers | None] = ContextVar("workers", default=None)


def current() -> Workers | None:
    """Return the workers that jobs are to be shared among; None for this process alone."""
    return _CURRENT.get()


@contextmanager
def alone() -> Iterator[None]:
    """Do everything in this process, whatever was asked for outside."""
    with made_current(None):
        yield


@contextmanager
def made_current(workers: Workers | None) -> Iterator[None]:
    """Share the jobs inside among some workers; None: do them in this process."""
    before = _CURRENT.set(workers)
    try:
        yield
    finally:
        _CURRENT.reset(before)


def each_part(
    work: Work, shared: tuple[Any, ...], parts: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[int, Any]]:
    """Yield the place and the result of each part, whoever does it.

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
    """Return the results of all parts, in their order, each done on a GPU of the workers."""
    found: list[Any] = [None] * len(parts)
    for place, result in workers.each(work, shared, parts, gpu=True):
        found[place] = result
    return found


def all_parts(work: Work, shared: tuple[Any, ...], parts: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Return the results of all parts, in their order.

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
    """Return parts of ``range(total)`` of some size; the last one may be smaller.

    Examples
    --------
    >>> ranges(10, 4)
    [(0, 4), (4, 8), (8, 10)]
    """
    return [(first, min(first + size, total)) for first in range(0, total, size)]


def do_alone(work: Work, shared: tuple[Any, ...], part: tuple[Any, ...], cores: int) -> Any:
    """Do a part on some cores of this process: what every worker calls."""
    with _cores.limited(cores), _cores.plain_blas(), alone():
        return work(*shared, *part)
