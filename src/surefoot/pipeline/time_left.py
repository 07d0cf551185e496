"""The time left of a job, from the work it consists of and the speed seen so far."""

from collections.abc import Callable, Mapping

OWN_SHARE = 0.3
"""The counted work of a finished part is used if it is at least this share of the expected work;
below that, the part does work that is not counted, and the expected work is used."""
OVERRUN = 0.1
"""A part that has done all its expected work is taken to have this share of it left."""
USUAL = 0.5
"""Usual seconds of one core per unit of work; below 1, because kernels have become faster."""
KNOWN = 1.0
"""The work after which the usual speed is no longer mixed into the measured one."""
SHARED = 0.7
"""The share of a run's work that several cores can share."""

Clock = Callable[[], float]


class TimeLeft:
    """The time left of a run, in seconds.

    Examples
    --------
    >>> now = 0.0
    >>> time_left = TimeLeft({"draw": 10.0, "write": 5.0}, clock=lambda: now, cores=1)
    >>> time_left.begin("draw")
    >>> time_left.left
    7.5
    >>> now = 9.0  # six times slower than usual
    >>> time_left.add(3.0)
    >>> time_left.left
    36.0
    >>> time_left.begin("write")
    >>> round(time_left.share(("draw", "write")), 2)
    0.67
    """

    def __init__(
        self, parts: Mapping[str, float], *, clock: Clock | None = None, cores: int | None = None
    ) -> None:
        from surefoot import _compile, _cores  # not needed for --help

        self.expected = dict(parts)
        self.done = dict.fromkeys(parts, 0.0)
        self.current = -1
        self.clock = clock or _compile.working_clock
        self.began = self.clock()
        self.cores = _cores.available_cores() if cores is None else cores

    def begin(self, part: str) -> None:
        """Begin a part, which ends those before it; never go back to an earlier part."""
        if part in self.expected:
            self.current = max(self.current, list(self.expected).index(part))

    def expect(self, part: str, work: float) -> None:
        """Set the expected work of a part, unless it is over."""
        if part in self.expected and list(self.expected).index(part) >= self.current:
            self.expected[part] = work

    def add(self, work: float) -> None:
        """Add work that was done to the present part."""
        if self.current >= 0:
            self.done[list(self.expected)[self.current]] += work

    @property
    def left(self) -> float:
        """The seconds left."""
        return sum(map(self._ahead, self.expected)) * self._slowness

    def share(self, parts: tuple[str, ...]) -> float:
        """Return the share of some parts' work that is done."""
        ahead = sum(self._ahead(part) for part in parts if part in self.expected)
        total = sum(self.expected[part] for part in parts if part in self.expected)
        return 1.0 - min(1.0, ahead / total) if total > 0 else 0.0

    def _ahead(self, part: str) -> float:
        """Return the work left of a part."""
        place, expected = list(self.expected).index(part), self.expected[part]
        if place < self.current:
            return 0.0
        return max(expected - self.done[part], OVERRUN * expected if self.done[part] else 0.0)

    def _behind(self, part: str) -> float:
        """Return the work done of a part."""
        place, done = list(self.expected).index(part), self.done[part]
        if place < self.current and done < OWN_SHARE * self.expected[part]:
            return self.expected[part]
        return done

    @property
    def _slowness(self) -> float:
        """Seconds per unit of work; the usual ones at first, later the measured ones."""
        usual = USUAL * (1.0 - SHARED + SHARED / self.cores)
        work = sum(map(self._behind, self.expected))
        known = min(work, KNOWN) / KNOWN
        if work == 0.0:
            return usual
        return known * (self.clock() - self.began) / work + (1.0 - known) * usual
