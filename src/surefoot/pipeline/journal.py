"""What a run reports while it works: stages with their times, and notes; also in log.txt."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from surefoot._display import printable
from surefoot._work import heard_by
from surefoot.pipeline.time_left import TimeLeft

WHOLE = 100
"""The number of steps of a stage whose progress is counted by its work."""
EVERY = 0.25
"""Seconds between two reports of the time left."""
OnStep = Callable[[int, str], None]
"""Called with the number of steps done in a long job and a remark; `Stage.update` is one."""


class Stage:
    """One stage of a long job; this class shows nothing."""

    def update(self, done: int, remark: str = "", left: float | None = None) -> None:
        """Report the progress, and the seconds left if they are known."""


class Watched(Stage):
    """A stage that remembers its progress, so that a remark can be added later."""

    def __init__(self, shown: Stage) -> None:
        self.shown = shown
        self.done = 0
        self.remark = ""
        self.left: float | None = None

    def update(self, done: int, remark: str = "", left: float | None = None) -> None:
        """Report the progress, and remember it."""
        self.done, self.remark, self.left = done, remark, left
        self.shown.update(done, remark, left)

    def say(self, remark: str) -> None:
        """Add a remark about the present work."""
        self.update(self.done, remark, self.left)

    def parts(self, done: int, total: int) -> None:
        """Report how many parts of the present job the workers of a cluster have done."""
        self.shown.update(self.done, f"cluster: {done:,} of {total:,} parts", self.left)


class Teller(Protocol):
    """Shows messages and progress to the user: the command line's `Output`, or `Nobody`."""

    def note(self, text: str) -> None:
        """Show a message."""

    def stage(self, title: str, total: int | None = None) -> AbstractContextManager[Stage]:
        """Show the progress of a stage."""


class Nobody:
    """Shows nothing."""

    def note(self, text: str) -> None:
        """Show nothing."""

    def stage(
        self,
        title: str,  # noqa: ARG002
        total: int | None = None,  # noqa: ARG002
    ) -> AbstractContextManager[Stage]:
        """Show nothing."""
        return nullcontext(Stage())


@dataclass(eq=False)
class Journal:
    """Stages and notes of one run, shown to the user and kept for ``log.txt``.

    Examples
    --------
    >>> journal = Journal()
    >>> with journal.stage("read"):
    ...     journal.note("3 rows")
    >>> [name for name, _ in journal.times], journal.lines[-2].endswith("3 rows")
    (['read'], True)
    """

    teller: Teller = field(default_factory=Nobody)
    file: Path | None = None
    times: list[tuple[str, float]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    earlier: list[str] = field(default_factory=list)
    """Stages whose results were taken over from an interrupted run."""
    shown: Watched | None = None
    """The present stage."""
    time_left: TimeLeft | None = None
    """The parts of the run and their work, if known."""
    counted: tuple[str, ...] = ()
    """The parts of the run that make up the present stage."""
    told: float = 0.0
    """When the time left was last reported."""

    def note(self, text: str) -> None:
        """Show a text to the user, and keep it in the log."""
        self.teller.note(text)
        self.keep(text)

    def keep(self, text: str) -> None:
        """Keep a text in the log only."""
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        added = [f"{stamp}  {printable(line, lines=True)}" for line in text.splitlines()]
        self.lines += added
        if self.file is not None:
            with self.file.open("a", encoding="utf-8") as file:
                file.write("\n".join(added) + "\n")

    @contextmanager
    def stage(self, title: str, parts: tuple[str, ...] = ()) -> Iterator[Watched]:
        """Time a stage; its progress is that of ``parts`` of the run, if the work is known."""
        began = time.perf_counter()
        counted = parts if self.time_left is not None else ()
        total = WHOLE if counted else None
        with self.teller.stage(title, total) as shown, heard_by(self if counted else None):
            self.shown, self.counted = Watched(shown), counted
            for part in counted[:1]:
                self.begin(part)
            yield self.shown
        self.shown, self.counted = None, ()
        seconds = time.perf_counter() - began
        self.times.append((title, seconds))
        self.keep(f"{title}: {seconds:.2f} s")

    def parts(self, done: int, total: int) -> None:
        """Report how many parts of the present job the workers of a cluster have done."""
        if self.shown is not None:
            self.shown.parts(done, total)

    def foresee(self, parts: Mapping[str, float]) -> None:
        """Set the parts of the rest of the run and their work; empty if they are not known."""
        self.time_left = TimeLeft(parts) if parts else None

    def begin(self, part: str) -> None:
        """Note that a part of the work begins."""
        if self.time_left is not None:
            self.time_left.begin(part)
            self._tell()

    def expect(self, part: str, work: float) -> None:
        """Note how much work a part will take."""
        if self.time_left is not None:
            self.time_left.expect(part, work)

    def add(self, work: float) -> None:
        """Note that work was done, and report the time left now and then."""
        if self.time_left is not None:
            self.time_left.add(work)
            if time.monotonic() - self.told >= EVERY:
                self._tell()

    def _tell(self) -> None:
        if self.time_left is None or self.shown is None or not self.counted:
            return
        self.told = time.monotonic()
        done = int(WHOLE * self.time_left.share(self.counted))
        self.shown.update(done, self.shown.remark, self.time_left.left)

    def shares(self) -> list[tuple[str, float, float]]:
        """Return each stage with its seconds and its share of the total."""
        total = sum(seconds for _, seconds in self.times) or 1.0
        return [(title, seconds, seconds / total) for title, seconds in self.times]

    def time_line(self) -> str:
        """Return the times in one line."""
        parts = [f"{title} {_seconds(s)} ({share:.0%})" for title, s, share in self.shares()]
        total = sum(seconds for _, seconds in self.times)
        memory = peak_memory()
        most = "" if memory is None else f"; most memory used {memory / 2**20:,.0f} MB"
        before = f"; done by an earlier run: {', '.join(self.earlier)}" if self.earlier else ""
        return f"Time: {', '.join(parts)}; together {_seconds(total)}{before}{most}."


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def peak_memory() -> int | None:
    """Return the peak memory of this process in bytes; None if the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    import sys

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
