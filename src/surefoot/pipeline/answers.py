"""Decisions for a file of states: every line gets an answer and keeps its own columns."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from surefoot._atomic import replacing
from surefoot.data.log_format import LogFormat
from surefoot.data.side_files import label_text, read_side_file
from surefoot.data.sources import list_names
from surefoot.pipeline.decision import NO_NUMBER, Advice, Decision

STEP = "step"
"""The column with the step of a state, needed if the policy depends on the step."""
COLUMNS = ("known", "visits", "margin", "habit", "habit_share")
"""The columns that a file of answers has besides those of the question and the action."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Answers:
    """A table of states with what to do in each.

    Attributes
    ----------
    head
        The columns of the question, the log's action columns, and `COLUMNS`; an added column whose
        name the question already uses gets an underscore at its end.
    rows
        One row for each line of the question, as text.
    decisions
        The same answers as objects.
    """

    head: tuple[str, ...]
    rows: list[tuple[str, ...]]
    decisions: tuple[Decision, ...]

    @property
    def unknown(self) -> int:
        """The number of states without advice."""
        return sum(not one.known for one in self.decisions)

    def write(self, path: Path) -> None:
        """Write the table as CSV."""
        with replacing(path, "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([self.head, *self.rows])


def answer_file(
    advice: Advice,
    path: Path,
    actions: Sequence[str],
    step: int | None = None,
    how: LogFormat | None = None,
) -> Answers:
    """Answer every line of a CSV file that has the state columns of a run.

    ``actions`` are the names of the action columns, ``how`` says how the file is written. If the
    policy depends on the step and no ``step`` is given for all lines, the file needs a column
    ``step``.
    """
    states = advice.names.columns
    file = read_side_file(path, how)
    file.check_columns(states)
    lines = [line for _, line in file.lines]
    own_step = step is None and advice.by_steps
    if own_step and STEP not in file.header:
        raise ValueError(
            f"{path}: what to do depends on the step, and there is no column {STEP!r}; the columns "
            f"are {list_names(file.header)}. Add it (0 is the first step of an episode), or pass "
            "step= for all lines."
        )
    decisions = [
        _answer(
            advice,
            {name: line[name] for name in states},
            _step(place, line[STEP]) if own_step else step,
        )
        for place, line in file.lines
    ]
    return Answers(
        head=_head(file.header, (*actions, *COLUMNS)),
        rows=[
            (*(line[name] for name in file.header), *_cells(one, len(actions)))
            for line, one in zip(lines, decisions, strict=True)
        ],
        decisions=tuple(decisions),
    )


def _step(place: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(
            f"{place}: the step is {text!r}; steps are whole numbers from 0 on."
        ) from None


def _answer(advice: Advice, given: dict[str, str], step: int | None) -> Decision:
    try:
        asked = advice.names.asked(given)
    except ValueError as problem:  # a measurement is not a number: other lines get answers
        return Decision(
            state=given, reason=NO_NUMBER, hint=str(problem), certified=advice.certified
        )
    return advice.on(asked, step)


def _head(asked: Iterable[str], ours: Sequence[str]) -> tuple[str, ...]:
    head = list(asked)
    for name in ours:
        free = name
        while free in head:
            free += "_"
        head.append(free)
    return tuple(head)


def _cells(one: Decision, actions: int) -> tuple[str, ...]:
    chosen = one.action if isinstance(one.action, tuple) else (one.action,)
    parts = chosen if one.known else (None,) * actions
    habit = None if one.habit is None else label_text(one.habit)
    margin = None if one.margin is None else f"{one.margin:.9g}"
    share = None if one.share is None else f"{one.share:.4g}"
    cells = (*parts, "yes" if one.known else "no", one.visits, margin, habit, share)
    return tuple("" if cell is None else str(cell) for cell in cells)
