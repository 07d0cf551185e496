"""A million states: seconds, sweeps, memory, and whether time per entry and sweep stays flat."""

import json
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.scale_run import ScaleRun
from benchmarks.table import figure, render
from benchmarks.timing import describe_machine

HEADINGS = (
    "states", "threads", "discount", "build s", "first solve s", "sweeps", "relative error",
    "arrays MB", "peak MB", "peak / arrays", "ns per entry and sweep",
)  # fmt: skip

NOTES = """\
Weighted L1, 5 actions, 10 successors, to 1e-4 relative, certified; a process of its own each.
First solve: wall-clock. Peak: the most memory beyond that of the idle process, build included.
Nanoseconds: processor time of a repeated solve, all threads together; wanted flat."""

THREADS = (1, 2)
REPEATED_ENTRIES = 50_000_000
"""Solves are repeated until about this many entries were seen."""


def sizes(largest: int) -> Iterator[int]:
    """Yield numbers of states from a hundredth of the largest on."""
    yield from (max(10, largest * share // 100) for share in (1, 3, 10, 30, 100))


def run_apart(states: int, threads: int, discount: float) -> ScaleRun:
    """Measure one model in a fresh process, so that memory is its own."""
    repeats = min(9, max(1, REPEATED_ENTRIES // (50 * states)))
    arguments = [str(value) for value in (states, threads, discount, repeats)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.scale_run", *arguments],
        stdout=subprocess.PIPE,
        check=True,
    )
    return ScaleRun(**json.loads(done.stdout))


def as_line(run: ScaleRun) -> tuple[str, ...]:
    """Return the texts of one line of the table."""
    return (
        f"{run.states:,}",
        str(run.threads),
        f"{run.discount:g}",
        figure(run.build_seconds),
        figure(run.seconds),
        str(run.sweeps),
        f"{run.relative_error:.0e}",
        f"{run.array_bytes / 1e6:.0f}",
        f"{run.peak_bytes / 1e6:.0f}",
        f"{run.peak_bytes / run.array_bytes:.2f}",
        f"{run.nanoseconds:.1f}",
    )


def print_scale(largest: int) -> None:
    """Print one line per size and number of threads, and the largest at a higher discount."""
    wanted = [(states, threads, 0.95) for threads in THREADS for states in sizes(largest)]
    wanted += [(largest, threads, 0.99) for threads in THREADS]
    lines = []
    for states, threads, discount in wanted:
        print(f"{states:,} states, {threads} threads ...", file=sys.stderr, flush=True)
        lines.append(as_line(run_apart(states, threads, discount)))
    print(render(HEADINGS, lines))
    print(NOTES)
    print(describe_machine())
