"""The page of a plan: shares of the doubt, forecasts, questions, actions that are not used."""

from collections.abc import Sequence
from dataclasses import dataclass

from surefoot._display import Grid
from surefoot.report.page import render
from surefoot.report.plan_plots import Whisker, plot_forecasts
from surefoot.report.svg import drawing


@dataclass(frozen=True, kw_only=True, eq=False)
class PlanPage:
    """The content of the page.

    Attributes
    ----------
    title, subtitle, warnings
        Its heading, its subject, and warnings.
    samples, bars, rows
        The number of samples to allocate, the shares as bars (words, share, tries), and as a table.
    episodes, target
        Sentences; "" if there is none.
    wanted, promise, whiskers, axis, forecasts
        The figure of the promise after more data, and the same as a table.
    questions, unused, not_used
        What to ask an expert, rows that are not used, and a remark on them.
    """

    title: str
    subtitle: str
    warnings: Sequence[str]
    samples: int
    bars: Sequence[tuple[str, float, int]]
    rows: Grid
    episodes: str
    target: str
    wanted: float | None
    promise: float
    whiskers: Sequence[Whisker]
    axis: str
    forecasts: Grid
    questions: Grid
    unused: Grid
    not_used: str

    def to_html(self) -> str:
        """Return the page as HTML; all text from outside is escaped."""
        return render("plan.html", page=self, picture=self._picture(), widest=self._widest())

    def _widest(self) -> float:
        return max((share for _, share, _ in self.bars), default=1.0) or 1.0

    def _picture(self) -> str:
        if not self.whiskers:
            return ""
        told = "; ".join(
            f"{one.words}, {one.samples:,} samples: {one.mean:.5g} ({one.low:.5g} to "
            f"{one.high:.5g})"
            for one in self.whiskers
        )
        with drawing("forecasts", f"Promises after more data. {told}.", 7.2, 3.4) as drawn:
            plot_forecasts(self.whiskers, self.promise, self.wanted, axes=drawn.axes)
            drawn.axes.set_ylabel(self.axis)
        return drawn.svg
