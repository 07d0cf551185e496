"""How much of a long job is done: work is counted where it is done, for whoever listens.

Work is given in seconds of one core of a usual machine. Only the proportions of its kinds matter:
how fast this machine is shows while it works.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

DRAWN = 60e-9
"""Drawing a probability."""
COUPLED = 1.7 * DRAWN
"""Drawing one in models whose actions are lucky together."""
OPERATION = 0.45e-9
"""An operation of an evaluation, as `Evaluator.work` counts them."""

SWEPT = 5e-9
"""Reading a drawn probability in a sweep over all of them."""
FIGURE = 0.8
"""Drawing a figure, and a part of the tables around it."""


class Listener(Protocol):
    """Hears of all work that is done."""

    def begin(self, part: str) -> None:
        """Hear which part of the job begins; unknown ones belong to the part before."""

    def expect(self, part: str, work: float) -> None:
        """Hear how much work a part will take, now that it is known better."""

    def add(self, work: float) -> None:
        """Hear that some work was done."""


_listener: Listener | None = None


@contextmanager
def heard_by(listener: Listener | None) -> Iterator[None]:
    """Tell a listener about the work that is done inside; None: nobody.

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
    """Tell which part of the job begins."""
    if _listener is not None:
        _listener.begin(part)


def expect(part: str, work: float) -> None:
    """Tell how much work a part will take."""
    if _listener is not None:
        _listener.expect(part, work)


def count(work: float) -> None:
    """Tell that some work was done."""
    if _listener is not None:
        _listener.add(work)
