"""When a search has to stop."""

from surefoot._compile import working_clock


class SearchClock:
    """Tells a search to stop when its time or its steps are used up, and remembers that it did.

    A search asks before each of its steps, always in the same order. So the number of steps it was
    allowed is all that is needed to repeat it.

    Examples
    --------
    >>> clock = SearchClock(None, 2)
    >>> clock(), clock(), clock(), clock.steps
    (False, False, True, 2)
    """

    def __init__(self, budget: float | None, wanted: int | None) -> None:
        self.end = None if budget is None else working_clock() + budget
        self.wanted = wanted
        self.steps = 0
        self.stopped = False

    def __call__(self) -> bool:
        """Return whether the search has to stop."""
        self.stopped = self.stopped or self._is_over()
        self.steps += not self.stopped
        return self.stopped

    def _is_over(self) -> bool:
        if self.wanted is not None:
            return self.steps >= self.wanted
        return self.end is not None and working_clock() >= self.end
