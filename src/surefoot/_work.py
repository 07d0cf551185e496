"""Progress of a long job: the code that does work reports it to a listener, if there is one.

Work is measured in seconds on one core of a typical machine. Only the ratios between the kinds of
work matter: the speed of this machine is measured as it works.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

DRAWN = 60e-9
"""Drawing one probability."""
COUPLED = 1.7 * DRAWN
"""Drawing one probability in coupled draws (`posterior.coupled`)."""
OPERATION = 0.45e-9
"""One operation of an evaluation, as counted by `Evaluator.work`."""

SWEPT = 5e-9
"""Reading one drawn probability in a sweep over all of them."""
FIGURE = 0.8
"""Drawing one figure, with its share of the tables around it."""


class Listener(Protocol):
    """Is notified of all work that is done."""

    def begin(self, part: str) -> None:
        """Note that a part of the job begins; an unknown part belongs to the part before it."""

    def expect(self, part: str, work: float) -> None:
        """Note a better estimate of the work a part will take."""

    def add(self, work: float) -> None:
        """Note that some work was done."""


_listener: Listener | None = None


@contextmanager
def heard_by(listener: Listener | None) -> Iterator[None]:
    """Report the work done inside the block to a listener; None: to nobody.

    Examples
    --------
    >>> class Sum:
    ...     total = 0.0
    ...
    ...     def add(self, work):
    ...         self.total += work
    >>> heard = Sum()
    >>> with heard_by(heard):
    ...     count(0.25)
    >>> heard.total
    0.25
    """
    global _listener
    before, _listener = _listener, listener
    try:
        yield
    finally:
        _listener = before


def begin(part: str) -> None:
    """Report that a part of the job begins."""
    if _listener is not None:
        _listener.begin(part)


def expect(part: str, work: float) -> None:
    """Report how much work a part will take."""
    if _listener is not None:
        _listener.expect(part, work)


def count(work: float) -> None:
    """Report that some work was done."""
    if _listener is not None:
        _listener.add(work)
