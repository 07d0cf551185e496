"""What the user sees: results, tables, notes, progress.

Results go to the standard output; progress and notes go to the standard error. Rich is imported
only when something is printed, so that ``--help`` stays fast.
"""

import json
import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TextIO

from surefoot._display import printable
from surefoot.pipeline.journal import Stage


@dataclass(frozen=True)
class Output:
    """Prints for the user, according to the shared options.

    Examples
    --------
    >>> Output(quiet=True).result({"answer": 42}, "The answer is 42.")
    The answer is 42.
    >>> Output(json=True).result({"answer": 42}, "The answer is 42.")
    {
      "answer": 42
    }
    """

    json: bool = False
    quiet: bool = False
    debug: bool = False

    @property
    def silent(self) -> bool:
        """Whether to print nothing but the result."""
        return self.json or self.quiet

    def result(self, facts: Any, *lines: Any) -> None:
        """Print the result: ``facts`` as JSON, or the lines (text or rich tables)."""
        if self.json:
            print(json.dumps(facts, indent=2, allow_nan=False))  # noqa: T201
            return
        console = _rich_console(sys.stdout)
        width = _width(sys.stdout)
        with console.capture() as text:  # rich itself would exit at a broken pipe
            for line in lines:
                shown = (
                    wrapped(printable(line, lines=True), width) if isinstance(line, str) else line
                )
                console.print(shown, soft_wrap=isinstance(line, str))
        print(text.get(), end="")  # noqa: T201

    def error(self, message: str, code: int) -> None:
        """Print an error: one line on the standard error, or JSON instead of the result."""
        if self.json:
            print(json.dumps({"error": message, "code": code}, indent=2))  # noqa: T201
        else:
            print(f"surefoot: {printable(message, lines=True)}", file=sys.stderr)  # noqa: T201

    def note(self, text: str) -> None:
        """Print a note on the standard error, unless silent."""
        if not self.silent:
            print(wrapped(printable(text, lines=True), _width(sys.stderr)), file=sys.stderr)  # noqa: T201

    @contextmanager
    def stage(self, title: str, total: int | None = None) -> Iterator[Stage]:
        """Show the progress of a stage: a live line on a terminal, plain lines elsewhere."""
        started = time.monotonic()
        if self.silent:
            yield Stage()
        elif sys.stderr.isatty():
            with _live(title, total) as stage:
                yield stage
        else:
            self.note(f"{title} ...")
            yield PlainStage(total)
        seconds = time.monotonic() - started
        if seconds >= SHORT or not sys.stderr.isatty():
            self.note(f"{title}: {seconds:.1f} s")


SHORT = 0.1
"""Stages that take fewer seconds than this get no line on a terminal."""
MOST_COLUMNS, LEAST_COLUMNS = 100, 30
"""Lines longer or shorter than this are hard to read, whatever the width of the terminal."""


def _width(file: TextIO) -> int | None:
    """Return how wide text may be on a terminal; None elsewhere, since pipes get whole lines."""
    return min(shutil.get_terminal_size().columns, MOST_COLUMNS) if file.isatty() else None


def wrapped(text: str, width: int | None) -> str:
    """Return text with its lines broken between words; continuation lines of lists are indented.

    Examples
    --------
    >>> print(wrapped("  basis  bayesian: a prior and the data", 24))
      basis  bayesian: a
             prior and the
             data
    """
    if width is None:
        return text
    lines = text.split("\n")
    alone = [
        not before and not after
        for before, after in zip(["", *lines[:-1]], [*lines[1:], ""], strict=True)
    ]
    return "\n".join(
        _broken(line, width, "" if paragraph else "  ")
        for line, paragraph in zip(lines, alone, strict=True)
    )


def _broken(line: str, width: int, hanging: str) -> str:
    fact = re.match(r"( +\S.*?\S? {2,})\S", line)
    indent = " " * len(fact[1]) if fact else " " * (len(line) - len(line.lstrip())) + hanging
    if len(line) <= width or len(indent) > max(width // 2, width - LEAST_COLUMNS):
        return line
    return textwrap.fill(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False,
        replace_whitespace=False, drop_whitespace=True,
    )  # fmt: skip


class Pace:
    """Estimates how long the rest of a stage takes, only if enough is known.

    The time before the first step (compiling kernels, filling memory) says nothing about later
    steps, and neither does a single slow step.

    Examples
    --------
    >>> pace = Pace(20)
    >>> [pace.left(done, now) for done, now in [(1, 30.0), (2, 31.0), (3, 32.0), (4, 45.0)]]
    ['', '', '', '']
    >>> pace.left(5, 46.0), pace.left(10, 51.0)
    ('about 15 s left', 'about 10 s left')
    """

    LEAST_STEPS, LEAST_SHARE = 4, 0.2

    def __init__(self, total: int | None) -> None:
        self.total = total
        self.last: tuple[int, float] | None = None
        self.paces: list[float] = []

    def left(self, done: int, now: float) -> str:
        """Return about how much time is left after ``done`` steps of the total, or ""."""
        if self.last is not None and done > self.last[0]:
            self.paces.append((now - self.last[1]) / (done - self.last[0]))
        if self.last is None or done > self.last[0]:  # an update that only has a remark is no step
            self.last = done, now
        if not self.total or len(self.paces) < self.LEAST_STEPS:
            return ""
        usual = sorted(self.paces)[len(self.paces) // 2]
        seconds = usual * (self.total - done)
        known = done >= self.LEAST_SHARE * self.total
        return left_text(seconds) if known else ""


def left_text(seconds: float) -> str:
    """Return the time left in words; "" if it is less than a second.

    Examples
    --------
    >>> left_text(0.4), left_text(17.2), left_text(200)
    ('', 'about 17 s left', 'about 3.3 min left')
    """
    if seconds < 1:
        return ""
    return f"about {seconds:.0f} s left" if seconds < 120 else f"about {seconds / 60:.2g} min left"


class PlainStage(Stage):
    """Prints a line from time to time, for logs and pipes."""

    EVERY = 10.0
    """Seconds between two lines."""

    def __init__(self, total: int | None) -> None:
        self.total = total
        self.pace = Pace(total)
        self.last = time.monotonic()

    def update(self, done: int, remark: str = "", left: float | None = None) -> None:
        """Print a line if the last one is old enough."""
        now = time.monotonic()
        told = self.pace.left(done, now) if left is None else left_text(left)
        if now - self.last >= self.EVERY:
            self.last = now
            share = f"{100 * done // self.total}%" if self.total else ""
            texts = (share, printable(remark, lines=True), f"({told})" if told else "")
            print(" ", *(text for text in texts if text), file=sys.stderr)  # noqa: T201


@contextmanager
def _live(title: str, total: int | None) -> Iterator[Stage]:
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
    from rich.table import Column

    columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False)]
    if total:
        columns += [BarColumn(bar_width=16), TextColumn("{task.fields[left]}", markup=False)]
    # The remark takes the rest of the line, and is cut off if it is too long.
    rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    columns += [TextColumn("{task.fields[remark]}", markup=False, table_column=rest)]
    console = _rich_console(sys.stderr)
    with Progress(*columns, console=console, transient=True, expand=True) as progress:
        task = progress.add_task(printable(title, lines=True), total=total, remark="", left="")
        pace = Pace(total)

        class Live(Stage):
            def update(self, done: int, remark: str = "", left: float | None = None) -> None:
                told = pace.left(done, time.monotonic()) if left is None else left_text(left)
                progress.update(
                    task, completed=done, remark=printable(remark, lines=True), left=told
                )

        yield Live()


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Any:
    """Return a table to print; columns of numbers are aligned to the right."""
    from rich.table import Table

    grid = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for i, name in enumerate(columns):
        numeric = all(_is_number(row[i]) for row in rows)
        grid.add_column(name, justify="right" if numeric else "left", no_wrap=numeric)
    for row in rows:
        grid.add_row(*(printable(str(cell), lines=True) for cell in row))
    return grid


def _is_number(cell: object) -> bool:
    try:
        float(str(cell))
    except ValueError:
        return False
    return True


def _rich_console(file: TextIO) -> Any:
    from rich.console import Console

    # Labels may contain brackets, colons and digits, which are not markup. A pipe has no width.
    width = None if file.isatty() else 10_000
    return Console(file=file, width=width, markup=False, highlight=False, emoji=False)


def drop_output() -> None:
    """Discard everything still to be printed, after the reader of a pipe has closed it.

    Otherwise Python complains when it closes the output.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
