"""The report page: it loads nothing, and also works without its one script."""

import hashlib
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from surefoot._display import Grid
from surefoot._rounding import column_texts
from surefoot.certificates.search import Candidate
from surefoot.report.assumptions import Assumption
from surefoot.report.rows import RuleRow

SHOWN = 300
"""The page shows at most this many lines of the rule; policy.csv has all of them."""
LONG = 14
"""Words with more characters than this may be broken on narrow screens."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure with its title and caption; ``width`` is its largest width, in rem."""

    svg: str
    caption: str
    title: str = ""
    width: float | None = None


@dataclass(frozen=True, kw_only=True)
class DoubtRow:
    """One cause of doubt, in words: how much it lowers the promise, and the promise without it."""

    words: str
    amount: str
    width: float
    without: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Page:
    """The content of the page.

    Attributes
    ----------
    title
        The subject of the page.
    failures
        Why the promise is withheld; empty if it is not.
    mismatch
        A sentence that model and log disagree about past returns; "" if they do not.
    rule, promise, before
        The head: what to do, what that is promised to bring, what was earned so far ("" if
        unknown).
    picture, narrow
        These numbers on one axis, for wide and for narrow screens.
    warnings, notes
        Reasons for doubt, and other remarks.
    about_rule, columns, rows, num_states, no_advice, gain_word
        The rule state by state: how to read it, the state columns, the lines shown, the number of
        all lines, the number of states without advice, and the name of the gain ("" if unknown).
    map
        The rule as a grid, if states have two columns.
    assumptions
        The assumptions of the promise.
    doubt, causes
        Where the doubt comes from; "" and empty if unknown.
    next_words, next_rows
        What to measure next: how to read it, and states and actions by their share of the doubt;
        "" and empty if unknown.
    tables
        Further tables about the promise, with a caption each.
    figures
        The other figures, in this order.
    glossary
        Words and their meanings.
    sentence, comparison
        The exact promise, and the exact gain; "" if there is none.
    candidates
        The candidates that the policy was chosen from, best first; those with equal numbers
        together.
    percentile
        What the percentile of a candidate is, in words.
    facts
        Names and values that say how the run was made.
    log
        The summary of the log, line by line.
    config
        The configuration as TOML.
    """

    title: str
    failures: Sequence[str]
    mismatch: str
    rule: str
    promise: str
    before: str
    picture: Figure
    narrow: Figure
    warnings: Sequence[str]
    notes: Sequence[str]
    about_rule: str
    columns: Sequence[str]
    rows: Sequence[RuleRow]
    num_states: int
    no_advice: int
    gain_word: str
    map: Figure | None
    assumptions: Sequence[Assumption]
    doubt: str
    causes: Sequence[DoubtRow]
    next_words: str = ""
    next_rows: Sequence[DoubtRow] = ()
    tables: Sequence[tuple[str, Grid]]
    figures: Sequence[Figure]
    glossary: Sequence[tuple[str, str]]
    sentence: str
    comparison: str
    candidates: Sequence[Sequence[Candidate]]
    percentile: str
    facts: Sequence[tuple[str, str]]
    log: Sequence[str]
    config: str

    @property
    def by_steps(self) -> bool:
        """Whether the rule depends on the step."""
        return any(row.steps for row in self.rows)

    def to_html(self) -> str:
        """Return the page as HTML; all text from outside is escaped."""
        first = [group[0] for group in self.candidates]
        return render(
            "page.html",
            page=self,
            candidates=list(
                zip(
                    self.candidates,
                    column_texts([candidate.percentile for candidate in first]),
                    column_texts([candidate.nominal_return for candidate in first]),
                    strict=True,
                )
            ),
        )


def breaks(text: object) -> bool:
    """Return whether a text has words so long that a narrow screen must break them.

    Examples
    --------
    >>> breaks("worn out"), breaks("x" * 40)
    (False, True)
    """
    return any(len(word) > LONG for word in str(text).split())


def render(name: str, **values: Any) -> str:
    """Return a page from its template, with the shared head, style and script.

    Its content security policy forbids loading anything, and any script but this one.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FunctionLoader(_source), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["breaks"] = breaks
    script = _source("page.js")
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template(name).render(
        css=Markup(_source("page.css")),
        js=Markup(script),
        policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        **values,
    )


def _source(name: str) -> str:
    return files("surefoot.report").joinpath(name).read_text(encoding="utf-8")
