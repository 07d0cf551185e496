"""A plan: what to measure next, as tables, files and a page."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from surefoot._atomic import replacing
from surefoot._display import Grid, Shown, number_of
from surefoot._findings import Finding
from surefoot._rounding import lower_text, near_text, upper_text
from surefoot.data.side_files import label_text, parts_of
from surefoot.pipeline.plan_lines import (
    EpisodeLine,
    Forecast,
    PlanLine,
    QuestionLine,
    Target,
    UnusedLine,
)
from surefoot.pipeline.runs import Run
from surefoot.pipeline.schemes import HABITS
from surefoot.pipeline.state_names import plain_label
from surefoot.report.plan_page import PlanPage
from surefoot.report.plan_plots import Whisker

SHOWN = 10
"""How many lines of each table a terminal shows."""
WAYS = {
    "tries": "tries as planned",
    "episodes": "episodes as planned",
    "same": "more of the same",
    "explore": "tries of actions not used",
}
"""The ways to collect data, in words."""
NOT_USED = (
    "Actions that the policy does not take have no share in the doubt about it: data about them do "
    "not change this promise unless they change the policy."
)
CHOSEN_STARTS = (
    "Episodes that start in chosen states do not show where episodes usually start: give the first "
    "states with --initial when you solve with them."
)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Plan(Shown):
    """What to measure next, in the units of the log.

    Attributes
    ----------
    run
        The run that is planned for.
    samples
        How many samples are allocated.
    rows
        The rows that the policy plays, with their shares of the doubt and of the samples.
    episodes
        The allocation if only whole episodes can be collected; empty if the log has none.
    forecasts
        The promise after more samples of several kinds, from simulated futures.
    target
        What a wanted promise takes; None if none was named.
    questions
        What to ask an expert, the most valuable first.
    unused
        Rows that the policy does not use, the most worth exploring first.
    explained, common
        The share of the variance of the return that single rows explain, and the share that rows
        have in common.
    findings
        What a reader should know.

    Examples
    --------
    >>> from surefoot import Plan
    >>> [name for name in ("rows", "forecasts", "questions") if name in Plan.__annotations__]
    ['rows', 'forecasts', 'questions']
    """

    run: Run
    samples: int
    rows: tuple[PlanLine, ...]
    episodes: tuple[EpisodeLine, ...]
    forecasts: tuple[Forecast, ...]
    target: Target | None
    questions: tuple[QuestionLine, ...]
    unused: tuple[UnusedLine, ...]
    explained: float
    common: float
    findings: tuple[Finding, ...]

    @property
    def promise(self) -> float:
        """The present promise."""
        return self.run.certificate.promise

    @property
    def costs(self) -> bool:
        """Whether the promise is an upper bound on costs."""
        return self.run.certificate.objective == "min"

    def _safe(self, value: float) -> str:
        return (upper_text if self.costs else lower_text)(value, 5)

    @property
    def row_grid(self) -> Grid:
        """The rows as text."""
        steps = any(line.step is not None for line in self.rows)
        told = [line for line in self.rows if line.tries > 0 or line.share > 0][:SHOWN]
        rows = [
            (
                label_text(line.state), *((str(line.step),) if steps else ()),
                label_text(line.action), f"{line.visits:,.6g}", f"{line.share:.1%}",
                near_text(line.amount, 3), f"{line.tries:,}",
            )
            for line in told
        ]  # fmt: skip
        head = ("state", *(("step",) if steps else ()), "action", "tried", "share of doubt",
                "moves promise by", "try next")  # fmt: skip
        return Grid(head=head, rows=rows, total=len(self.rows))

    @property
    def forecast_grid(self) -> Grid:
        """The forecasts as text."""
        rows = [
            (WAYS[one.way], f"{one.samples:,}", near_text(one.mean, 5),
             f"{near_text(one.low, 5)} to {near_text(one.high, 5)}")
            for one in self.forecasts
        ]  # fmt: skip
        head = ("data", "samples", "promise, expected", "9 in 10 futures")
        return Grid(head=head, rows=rows, total=len(rows))

    @property
    def question_grid(self) -> Grid:
        """The questions as text."""
        rows = [
            (one.question, one.expected, near_text(one.gain, 3), self._safe(one.promise))
            for one in self.questions[:SHOWN]
        ]
        head = ("question", "expected answer", "worth", "promise then")
        return Grid(head=head, rows=rows, total=len(self.questions))

    @property
    def unused_grid(self) -> Grid:
        """The rows that are not used, as text."""
        rows = [
            (label_text(one.state), label_text(one.action), f"{one.visits:,.6g}",
             f"{one.chance:.0%}", near_text(one.value, 3))
            for one in self.unused
        ]  # fmt: skip
        head = ("state", "action", "tried", "would change the policy", "worth knowing")
        return Grid(head=head, rows=rows, total=len(rows))

    @property
    def episode_words(self) -> str:
        """Which episodes to collect, in a sentence; "" if the log has none."""
        if not self.episodes:
            return ""
        told = []
        for line in self.episodes:
            does = "as the log did" if line.behaviour == HABITS else "following the policy"
            where = "" if line.start is None else f" from '{label_text(line.start)}'"
            told.append(
                f"{number_of(line.episodes, 'episode')}{where} {does} (about {line.steps:,.0f} "
                "steps)"
            )
        chosen = any(line.start is not None for line in self.episodes)
        return f"If only whole episodes can be collected: {'; '.join(told)}." + (
            f" {CHOSEN_STARTS}" if chosen else ""
        )

    @property
    def target_words(self) -> str:
        """What a wanted promise takes, in a sentence; "" if none was named."""
        one = self.target
        if one is None:
            return ""
        wanted = f"A promise of {near_text(one.wanted, 5)}"
        earns = "cost no more" if self.costs else "earn that much"
        sure = f"by what is known now, the policy has a {one.chance:.0%} chance to {earns}"
        if one.samples == 0:
            return f"{wanted} is already met: {self._safe(self.promise)} is promised now."
        if one.samples is None:
            return (
                f"{wanted} is out of reach: even {one.most:,} samples are expected to bring only "
                f"{self._safe(one.reached)}; {sure}."
            )
        number = f"{_rounded(one.samples):,}"
        return f"{wanted} takes about {number} samples, if all goes as expected; {sure}."

    def _headline(self) -> str:
        read = "at most" if self.costs else "at least"
        return (
            f"What to measure next: {self.run.folder} (promise: {read} {self._safe(self.promise)})"
        )

    def _facts(self) -> list[tuple[str, str]]:
        told = [("target", self.target_words), ("episodes", self.episode_words)]
        return [(name, text) for name, text in told if text]

    def _grid(self) -> Grid:
        return self.row_grid

    def _remarks(self) -> tuple[Finding, ...]:
        return self.findings

    def __repr__(self) -> str:
        return (
            f"Plan({str(self.run.folder)!r}, {number_of(self.samples, 'sample')}, "
            f"{number_of(len(self.rows), 'row')})"
        )

    def to_mapping(self) -> dict[str, Any]:
        """Return the plan as plain values."""

        def plain(line: Any) -> dict[str, Any]:
            content = asdict(line)
            for name in ("state", "action", "start"):
                if name in content and content[name] is not None:
                    content[name] = plain_label(content[name])
            return content

        return {
            "run": str(self.run.folder),
            "objective": self.run.certificate.objective,
            "promise": self.promise,
            "samples": self.samples,
            "explained": self.explained,
            "common": self.common,
            "rows": [plain(line) for line in self.rows],
            "episodes": [plain(line) for line in self.episodes],
            "forecasts": [plain(line) for line in self.forecasts],
            "target": None if self.target is None else plain(self.target),
            "questions": [plain(line) for line in self.questions],
            "unused": [plain(line) for line in self.unused],
            "findings": [found.to_mapping() for found in self.findings],
        }

    def write(self, folder: str | Path) -> None:
        """Write ``plan.csv``, ``plan.json`` and the page ``plan.html`` into a folder."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        self._write_rows(place / "plan.csv")
        with replacing(place / "plan.json", "w", encoding="utf-8") as file:
            file.write(json.dumps(self.to_mapping(), indent=2, ensure_ascii=False) + "\n")
        with replacing(place / "plan.html", "w", encoding="utf-8") as file:
            file.write(self.page().to_html())

    def _write_rows(self, path: Path) -> None:
        columns = self.run.settings.columns
        steps = any(line.step is not None for line in self.rows)
        own = ("visits", "share", "amount", "transitions", "unseen", "rewards", "tries")
        with replacing(path, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            names = map(columns.own_name, (*(("step",) if steps else ()), *own))
            writer.writerow([*columns.state, *columns.action, *names])
            for line in self.rows:
                numbers = [f"{getattr(line, name):.9g}" for name in own]
                writer.writerow(
                    [
                        *parts_of(line.state, len(columns.state)),
                        *parts_of(line.action, len(columns.action)),
                        *((line.step,) if steps else ()),
                        *numbers,
                    ]
                )

    def page(self) -> PlanPage:
        """Return the plan as a page with pictures."""
        read = "at most" if self.costs else "at least"
        unit = self.run.settings.unit
        shown = [line for line in self.rows if line.tries > 0 or line.share >= 0.001][:SHOWN]
        whiskers = [
            Whisker(words=WAYS[one.way], samples=one.samples, mean=one.mean, low=one.low,
                    high=one.high)
            for one in self.forecasts
        ]  # fmt: skip
        return PlanPage(
            title="What to measure next",
            subtitle=f"The promise of {self.run.folder.name} is {read} {self._safe(self.promise)}"
            f"{f' {unit}' if unit else ''}. This is where its doubt comes from, and what more data "
            "would bring.",
            warnings=[found.text for found in self.findings],
            samples=self.samples,
            bars=[
                (f"{label_text(line.state)}, {label_text(line.action)}", line.share, line.tries)
                for line in shown
            ],
            rows=self.row_grid,
            episodes=self.episode_words,
            target=self.target_words,
            wanted=None if self.target is None else self.target.wanted,
            promise=self.promise,
            whiskers=whiskers,
            axis=f"promised, {read}{f', in {unit}' if unit else ''}",
            forecasts=self.forecast_grid,
            questions=self.question_grid,
            unused=self.unused_grid,
            not_used=NOT_USED,
        )


def _rounded(samples: int) -> int:
    """Return a number of samples rounded to two digits, since it is an estimate.

    Examples
    --------
    >>> _rounded(57_097), _rounded(8)
    (57000, 8)
    """
    return int(float(f"{samples:.2g}"))
