"""What is left of a job: the work that it is made of, and the speed that it has shown."""

from collections.abc import Callable, Mapping

OWN_SHARE = 0.3
"""Of the work of a part that is over, what was counted is believed from this share on; else its
work is of a kind that nobody counts."""
OVERRUN = 0.1
"""A part that has done all its work and more is taken to have this share of it left."""
USUAL = 0.5
"""Seconds of one core that a unit of work takes: kernels have become faster since it was one."""
KNOWN = 1.0
"""How much work the usual speed stands for, before this machine has shown its own."""
SHARED = 0.7
"""How much of a run several cores can share."""

Clock = Callable[[], float]


class TimeLeft:
    """What is left of a run, in seconds.

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
        from surefoot import _compile, _cores  # the help of a command needs neither

        self.expected = dict(parts)
        self.done = dict.fromkeys(parts, 0.0)
        self.current = -1
        self.clock = clock or _compile.working_clock
        self.began = self.clock()
        self.cores = _cores.available_cores() if cores is None else cores

    def begin(self, part: str) -> None:
        """Go on to a part; those before it are over. Parts never go back."""
        if part in self.expected:
            self.current = max(self.current, list(self.expected).index(part))

    def expect(self, part: str, work: float) -> None:
        """Hear what a part takes, unless it is over."""
        if part in self.expected and list(self.expected).index(part) >= self.current:
            self.expected[part] = work

    def add(self, work: float) -> None:
        """Hear of work that was done."""
        if self.current >= 0:
            self.done[list(self.expected)[self.current]] += work

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return sum(map(self._ahead, self.expected)) * self._slowness

    def share(self, parts: tuple[str, ...]) -> float:
        """Return how much of some parts is done."""
        ahead = sum(self._ahead(part) for part in parts if part in self.expected)
        total = sum(self.expected[part] for part in parts if part in self.expected)
        return 1.0 - min(1.0, ahead / total) if total > 0 else 0.0

    def _ahead(self, part: str) -> float:
        """Return the work of a part that is left."""
        place, expected = list(self.expected).index(part), self.expected[part]
        if place < self.current:
            return 0.0
        return max(expected - self.done[part], OVERRUN * expected if self.done[part] else 0.0)

    def _behind(self, part: str) -> float:
        """Return the work of a part that is done."""
        place, done = list(self.expected).index(part), self.done[part]
        if place < self.current and done < OWN_SHARE * self.expected[part]:
            return self.expected[part]
        return done

    @property
    def _slowness(self) -> float:
        """Seconds that a unit of work takes; of the usual speed at first."""
        usual = USUAL * (1.0 - SHARED + SHARED / self.cores)
        work = sum(map(self._behind, self.expected))
        known = min(work, KNOWN) / KNOWN
        if work == 0.0:
            return usual
        return known * (self.clock() - self.began) / work + (1.0 - known) * usual
