"""Timing on a machine that others use too: rounds over all contenders, medians."""

import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")

SECONDS_EACH = 3.0
"""A contender that has used this much in a case is not repeated further."""


@dataclass(kw_only=True)
class Timed(Generic[T]):
    """A job, its latest result and how long it took each time.

    Attributes
    ----------
    prepare
        Returns the job; not timed.
    compiles
        Whether the first run compiles code and says nothing about the others.
    renew
        Whether to prepare anew for every run: some solvers start from their last result.
    """

    prepare: Callable[[], Callable[[], T]]
    compiles: bool = False
    renew: bool = False
    job: Callable[[], T] | None = None
    results: list[T] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """The median of the times."""
        return statistics.median(self.seconds)

    @property
    def latest(self) -> T:
        """The latest result."""
        return self.results[-1]

    def run(self) -> None:
        """Run the job once more, in processor time: others use the machine too."""
        if self.job is None or self.renew:
            self.job = self.prepare()
        started = time.process_time()
        result = self.job()
        self.seconds.append(time.process_time() - started)
        self.results[:] = [result]


def time_in_rounds(jobs: Sequence[Timed[T]], repeats: int) -> None:
    """Run all jobs in turn, several rounds, so that a slow spell of the machine hits them all.

    The round before them warms caches up; it counts only for jobs too long to be repeated.
    """
    for job in jobs:
        job.run()
        if job.compiles or job.seconds[0] < SECONDS_EACH:
            job.seconds.clear()
    for _ in range(repeats):
        for job in jobs:
            if sum(job.seconds) < SECONDS_EACH:
                job.run()


def describe_machine() -> str:
    """Return date, processor and versions, for the line under a table."""
    packages = ("numpy", "scipy", "numba", "quantecon", "mdpsolver", "stormpy")
    found = [f"Python {platform.python_version()}"]
    for name in packages:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    today = datetime.now(tz=UTC).date().isoformat()
    return f"{today}, {processor()}; {', '.join(found)}."


def processor() -> str:
    """Return the name of the processor and the number of cores."""
    name = platform.processor() or platform.machine()
    about = Path("/proc/cpuinfo")
    if about.exists():
        lines = about.read_text(encoding="utf-8").splitlines()
        models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
        if models:
            return f"{models[0]}, {len(models)} cores"
    return name
