"""One table: every contender on every case, at both discounts."""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.cases import Case
from benchmarks.contenders import Answer, Contender
from benchmarks.timing import Timed, time_in_rounds
from benchmarks.truth import Truth, find_truth

HEADINGS = (
    "case", "solver", "seconds", "ratio", "wanted", "certified error", "true error",
)  # fmt: skip

MISSING = "not installed"


@dataclass(frozen=True, kw_only=True, eq=False)
class Cell:
    """One contender on one case at one discount."""

    seconds: float
    certified: float | None
    true_error: float
    broken: bool
    half_width: float


def measure_case(case: Case, contenders: Sequence[Contender], repeats: int) -> dict[str, Cell]:
    """Time the contenders that suit a case, and compare what they found with the truth."""
    running = [one for one in contenders if one.installed and one.suits(case)]
    truths = {kind: find_truth(case, kind) for kind in {one.kind for one in running}}
    jobs = [
        Timed(
            prepare=partial(one.prepare, case, truths[one.kind]),
            compiles=one.compiles,
            renew=one.remembers,
        )
        for one in running
    ]
    time_in_rounds(jobs, repeats)
    return {one.name: _judge(job, truths[one.kind]) for one, job in zip(running, jobs, strict=True)}


def _judge(timed: Timed[Answer], truth: Truth) -> Cell:
    answer = timed.latest
    error = answer.true_error
    if answer.value is not None:
        error = float(np.abs(answer.value - truth.value).max())
    broken = answer.lower is not None and not bool(
        np.all(answer.lower <= truth.value + truth.half_width)
    )
    broken |= answer.upper is not None and not bool(
        np.all(answer.upper >= truth.value - truth.half_width)
    )
    return Cell(
        seconds=timed.median / answer.share,
        certified=answer.certified,
        true_error=error,
        broken=broken,
        half_width=truth.half_width,
    )


def compare(
    cases: dict[str, Callable[[float], Case]],
    discounts: Sequence[float],
    contenders: Sequence[Contender],
    yardstick: str,
    repeats: int,
) -> list[tuple[str, ...]]:
    """Return the lines of the table, discounts side by side within a cell."""
    lines = []
    for name, build in cases.items():
        columns = []
        for discount in discounts:
            print(f"{name} at {discount} ...", file=sys.stderr, flush=True)
            columns.append(measure_case(build(discount), contenders, repeats))
        example = build(discounts[0])
        for one in contenders:
            if one.suits(example):
                lines.append(_line(name, one, example, columns, yardstick))
    return lines


def _line(
    name: str, one: Contender, case: Case, columns: list[dict[str, Cell]], yardstick: str
) -> tuple[str, ...]:
    if not one.installed:
        return name, one.name, MISSING, "", "", "", ""
    cells = [column[one.name] for column in columns]
    ratios = [
        figure(cell.seconds / column[yardstick].seconds) if yardstick in column else "?"
        for cell, column in zip(cells, columns, strict=True)
    ]
    wanted = one.wanted(case)
    return (
        name,
        one.name,
        _pair(figure(cell.seconds) for cell in cells),
        _pair(ratios),
        "" if wanted is None else f"<= {wanted:g}",
        _pair(_certified_text(cell) for cell in cells),
        _pair(f"{max(cell.true_error, cell.half_width):.0e}" for cell in cells),
    )


def _certified_text(cell: Cell) -> str:
    if cell.broken:
        return "WRONG"
    return "none" if cell.certified is None else f"{cell.certified:.0e}"


def _pair(texts: Iterable[str]) -> str:
    shown = list(texts)
    return "none" if set(shown) == {"none"} else " / ".join(shown)


def figure(number: float) -> str:
    """Return a number with two digits, or all those before the point."""
    return f"{number:.0f}" if number >= 99.5 else f"{number:.2g}"


def render(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table that reads well as it is and in a document."""
    widths = [max(len(row[i]) for row in (headings, *lines)) for i in range(len(headings))]
    rules = ["-" * width for width in widths]
    return "\n".join(
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |"
        for row in (headings, rules, *lines)
    )
