"""The argument ``cluster``: which cluster does the work of a call, if any."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from surefoot import _cores
from surefoot._workers import OnPart, Workers, current, made_current

P = ParamSpec("P")
R = TypeVar("R")


@contextmanager
def working_on(cluster: str | None, told: OnPart | None = None) -> Iterator[Workers | None]:
    """Share jobs among the workers of a cluster; None changes nothing.

    Parameters
    ----------
    cluster
        ``"local"`` starts workers on this machine, ``"auto"`` joins the cluster that Ray finds, and
        an address joins the cluster there. The workers are released at the end.
    told
        Called with the progress of each job: parts done, and parts in all.

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

    with joined(cluster, told) as workers, made_current(workers):
        yield workers


def on_cluster(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that its argument ``cluster`` decides where its work is done."""

    @wraps(function)
    def shared(*args: P.args, **kwargs: P.kwargs) -> R:
        cluster = kwargs.get("cluster")
        if cluster is not None and not isinstance(cluster, str):
            raise ValueError(f"cluster={cluster!r}; it must be 'local', 'auto' or an address.")
        with working_on(cluster), _cores.plain_blas():
            return function(*args, **kwargs)

    return shared
