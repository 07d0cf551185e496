"""Who does the parts of a large job: this process, or a cluster where one was asked for.

A job is cut into parts whose results do not depend on who does them, so that the answer is the
same, bit for bit, whoever does. Without a cluster nothing here imports or starts anything.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar

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
def working_on(cluster: str | None, told: OnPart | None = None) -> Iterator[Workers | None]:
    """Share jobs among the workers of a cluster; None changes nothing.

    Parameters
    ----------
    cluster
        ``"local"`` starts workers on this machine, ``"auto"`` joins the cluster that Ray finds, an
        address joins that one. They are let go at the end.
    told
        Is told how far each job is.

    Examples
    --------
    >>> with working_on(None) as workers:
    ...     workers is None
    True
    """
    if cluster is None:
        yield current()
        return
    from surefoot._cluster import joined  # Ray is an extra, and takes a second to import

    with joined(cluster, told) as workers, _made_current(workers):
        yield workers


@contextmanager
def alone() -> Iterator[None]:
    """Do everything in this process, whatever was asked for outside."""
    with _made_current(None):
        yield


@contextmanager
def _made_current(workers: Workers | None) -> Iterator[None]:
    before = _CURRENT.set(workers)
    try:
        yield
    finally:
        _CURRENT.reset(before)


P = ParamSpec("P")
R = TypeVar("R")


def on_cluster(function: Callable[P, R]) -> Callable[P, R]:
    """Let the argument ``cluster`` of a function say who does its work."""

    @wraps(function)
    def shared(*args: P.args, **kwargs: P.kwargs) -> R:
        cluster = kwargs.get("cluster")
        if cluster is not None and not isinstance(cluster, str):
            raise ValueError(f"cluster={cluster!r}; it must be 'local', 'auto' or an address.")
        with working_on(cluster), _cores.plain_blas():
            return function(*args, **kwargs)

    return shared


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
