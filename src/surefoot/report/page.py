"""One page to open in a browser: it loads nothing, and works without its one script."""

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
"""Most lines of the rule that the page has; policy.csv has all of them."""
LONG = 14
"""Words of more characters than this are broken where they must."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure with its title and caption; ``width`` is the most it takes up, in rem."""

    svg: str
    caption: str
    title: str = ""
    width: float | None = None


@dataclass(frozen=True, kw_only=True)
class DoubtRow:
    """One cause of doubt, in words: what it takes off, and the promise without it."""

    words: str
    amount: str
    width: float
    without: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Page:
    """What the page says.

    Attributes
    ----------
    title
        What it is about.
    failures
        Why the promise is withheld; empty where it stands.
    mismatch
        That model and log disagree about what was done; "" where they do not.
    rule, promise, before
        The head: what to do, what it brings at least, what was earned so far ("" if unknown).
    picture, narrow
        These numbers on one axis, for wide and for narrow screens.
    warnings, notes
        Reasons for doubt, and what else a reader should know.
    about_rule, columns, rows, num_states, no_advice, gain_word
        The rule state by state: how to read it, the state columns, the lines shown, how many there
        are, how many states have none, and what the gain is called ("" where it is not known).
    map
        The rule as a grid, where states have two columns.
    assumptions
        What the promise rests on.
    doubt, causes
        Where the doubt comes from; "" and empty where that is not known.
    next_words, next_rows
        What to measure next: how to read it, and states and actions by their share of the doubt;
        "" and empty where that is not known.
    tables
        What else bears on the promise, with a caption each.
    figures
        In this order.
    glossary
        Words and what they mean.
    sentence, comparison
        The exact promise, and the exact gain; "" where there is none.
    candidates
        What the policy was chosen from, best first; those with the same numbers together.
    percentile
        What the percentile of a candidate is, in words.
    facts
        Words and values about how it was made.
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
        """Whether what to do depends on the step."""
        return any(row.steps for row in self.rows)

    def to_html(self) -> str:
        """Return the page; everything that came from outside is escaped."""
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
    """Tell whether a text has words so long that a narrow screen must break them.

    Examples
    --------
    >>> breaks("worn out"), breaks("x" * 40)
    (False, True)
    """
    return any(len(word) > LONG for word in str(text).split())


def render(name: str, **values: Any) -> str:
    """Return a page from its template, with the head, the style and the script that all share.

    The page forbids itself to load anything, and any script but this one.
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
