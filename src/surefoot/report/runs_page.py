"""One page that compares runs: their promises, their data, and where their rules differ."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from surefoot._display import number_of
from surefoot._rounding import lower_text, near_text
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.headlines import bound_text, limit_text, today, with_commas
from surefoot.data.side_files import label_text
from surefoot.report.marks import marks_of
from surefoot.report.page import SHOWN, Figure, render
from surefoot.report.promise_plots import plot_comparison
from surefoot.report.svg import action_colours, drawing

CAUTION = (
    "Each promise holds by itself, at its own confidence. A higher one does not show that its rule "
    "is better; to find out which of two rules is better, use surefoot compare on one log."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class RunFacts:
    """What the page knows about one run.

    Attributes
    ----------
    certificate
        Its promise.
    discount
        The discount of its model.
    actions
        What its rule does, by the label of the state.
    columns
        The names of its state columns.
    settings
        The settings that may differ between runs, as text.
    transitions, states, pairs, least
        The size of its log: transitions, states, pairs tried, and the tries of the rarest pair.
    """

    certificate: Certificate
    discount: float
    actions: Mapping[Hashable, str]
    columns: Sequence[str]
    settings: Mapping[str, str]
    transitions: float
    states: int
    pairs: int
    least: float


@dataclass(frozen=True, kw_only=True)
class RunsTable:
    """A table; its first ``states`` columns name a state, the others are actions with colours."""

    title: str
    text: str = ""
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    numbers: frozenset[int] = frozenset()
    states: int = 0
    colours: Mapping[str, str] = field(default_factory=dict)

    def order(self, column: int, row: int) -> int:
        """Return the rank of a cell within its column, for sorting."""
        if column < self.states:
            return row
        return sorted({one[column] for one in self.rows}).index(self.rows[row][column])


@dataclass(frozen=True, kw_only=True, eq=False)
class RunsPage:
    """The content of the page."""

    title: str
    headline: str
    caution: str
    withheld: Sequence[str]
    picture: Figure | None
    narrow: Figure | None
    tables: Sequence[RunsTable]

    def to_html(self) -> str:
        """Return the page as HTML; all text from outside is escaped."""
        return render("runs.html", page=self)


def runs_page(runs: Mapping[str, RunFacts]) -> RunsPage:
    """Return the page about several runs, in their order."""
    differing = _differing(runs)
    broad, narrow = _pictures(runs)
    return RunsPage(
        title=f"{', '.join(runs)}: {len(runs)} runs compared",
        headline=_headline(runs, differing),
        caution=CAUTION,
        withheld=[name for name, run in runs.items() if run.certificate.withheld],
        picture=broad,
        narrow=narrow,
        tables=[_promises(runs), _data(runs), _settings(runs), _rules(runs, differing)],
    )


def _common(runs: Mapping[str, RunFacts]) -> list[Hashable]:
    """Return the states that all runs know, in the order of the last run."""
    last = list(runs.values())[-1]
    return [state for state in last.actions if all(state in run.actions for run in runs.values())]


def _differing(runs: Mapping[str, RunFacts]) -> list[Hashable]:
    """Return the states in which the rules differ."""
    return [s for s in _common(runs) if len({run.actions[s] for run in runs.values()}) > 1]


def _headline(runs: Mapping[str, RunFacts], differing: Sequence[Hashable]) -> str:
    common = len(_common(runs))
    if common == 0:
        return "These runs have no state in common."
    every = len({state for run in runs.values() for state in run.actions})
    which = f"{common:,} states that all runs know" if common < every else f"{common:,} states"
    return f"The rules agree in {common - len(differing):,} of {which}."


def _pictures(runs: Mapping[str, RunFacts]) -> tuple[Figure | None, Figure | None]:
    """Return a wide and a narrow figure of all promises; None if their measures differ."""
    measures = {
        (r.certificate.objective, r.certificate.unit, r.discount, r.certificate.horizon)
        for r in runs.values()
    }
    if len(measures) > 1:
        return None, None
    certificates = {name: run.certificate for name, run in runs.items()}
    told = [f"{n}: {', '.join(m.words for m in marks_of(c))}" for n, c in certificates.items()]
    alt = f"Promises of {len(runs)} runs on one axis. {'; '.join(told)}."

    def figure(name: str, width: float) -> Figure:
        with drawing(name, alt, width, 0.9 + 0.62 * len(runs)) as drawn:
            plot_comparison(certificates, axes=drawn.axes)
        return Figure(svg=drawn.svg, caption="The thick bar goes from the promise to the limit.")

    return figure("runs", 9.2), figure("small", 4.1)


def _promises(runs: Mapping[str, RunFacts]) -> RunsTable:
    rows = []
    for name, run in runs.items():
        made, before = run.certificate, today(run.certificate)
        gain = None if made.gain is None or made.withheld else made.gain.lower_bound
        rows.append(
            (
                name,
                f"({bound_text(made)})" if made.withheld else bound_text(made),
                with_commas(near_text(made.nominal_return)),
                limit_text(made),
                "" if before is None else with_commas(near_text(before.mean, 4)),
                "" if gain is None else with_commas(lower_text(gain, 4)),
                made.confidence,
                made.unit or "",
            )
        )
    head = ("run", "promised", "expected", "limit", "so far", "gain at least", "confidence", "unit")
    text = (
        "In brackets: withheld, since a check failed." if any(r[1][0] == "(" for r in rows) else ""
    )
    kept = [i for i, _ in enumerate(head) if any(row[i] for row in rows)]
    return RunsTable(
        title="Promises", text=text, head=[head[i] for i in kept],
        rows=[[row[i] for i in kept] for row in rows], numbers=frozenset(range(1, 7)),
    )  # fmt: skip


def _data(runs: Mapping[str, RunFacts]) -> RunsTable:
    rows, before = [], None
    for name, run in runs.items():
        growth = "" if before is None else f"{100 * (run.transitions / before - 1):+.0f}%"
        before = run.transitions
        numbers = (run.transitions, run.states, run.pairs, run.least)
        rows.append((name, f"{numbers[0]:,.0f}", growth, *(f"{one:,.0f}" for one in numbers[1:])))
    head = ("run", "decisions", "growth", "states", "pairs tried", "rarest pair")
    return RunsTable(title="Data", head=head, rows=rows, numbers=frozenset(range(1, 6)))


def _settings(runs: Mapping[str, RunFacts]) -> RunsTable:
    names = dict.fromkeys(name for run in runs.values() for name in run.settings)
    rows = [
        (name, *(run.settings.get(name, "") for run in runs.values()))
        for name in names
        if len({run.settings.get(name) for run in runs.values()}) > 1
    ]
    text = "" if rows else "None: all runs have the same settings."
    return RunsTable(title="Settings that differ", text=text, head=("setting", *runs), rows=rows)


def _rules(runs: Mapping[str, RunFacts], differing: Sequence[Hashable]) -> RunsTable:
    columns = next(iter(runs.values())).columns
    width = len(columns)
    rows = []
    for state in differing[:SHOWN]:
        parts = state if isinstance(state, tuple) and len(state) == width else (label_text(state),)
        shown = [*map(str, parts), *[""] * (width - len(parts))]
        rows.append((*shown, *(run.actions[state] for run in runs.values())))
    actions = sorted({action for run in runs.values() for action in run.actions.values()})
    more = f" The first {SHOWN} are listed." if len(differing) > SHOWN else ""
    text = f"{number_of(len(differing), 'state')}.{more}" if rows else "Nowhere."
    every = len({state for run in runs.values() for state in run.actions})
    lacking = every - len(_common(runs))
    if lacking:
        text += f" Not every run knows {number_of(lacking, 'further state')}."
    return RunsTable(
        title="Where the rules differ", text=text, head=(*columns, *runs), rows=rows, states=width,
        colours=action_colours(actions),
    )  # fmt: skip
