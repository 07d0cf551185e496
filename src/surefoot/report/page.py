"""One page to open in a browser: no network, no scripts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from surefoot._rounding import column_texts
from surefoot.certificates.optimize import Candidate
from surefoot.report.tables import PolicyLine

SHOWN = 300
"""Most states that the page lists; policy.csv has all of them."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure with its caption."""

    svg: str
    caption: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Page:
    """What the page says.

    Attributes
    ----------
    title, subtitle
        Its heading, and what it is about.
    sentence, comparison
        The promise, and the gain over what was done; "" where that is not known.
    numbers
        Words and values to be shown large.
    warnings, notes
        Reasons for doubt, and what else a reader should know.
    assumptions
        What the promise rests on, one sentence each.
    figures
        In this order.
    policy
        The policy state by state.
    no_advice
        How many states of the log the policy says nothing about.
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
    subtitle: str
    sentence: str
    comparison: str
    numbers: Mapping[str, str]
    warnings: Sequence[str]
    notes: Sequence[str]
    assumptions: Sequence[str]
    figures: Sequence[Figure]
    policy: Sequence[PolicyLine]
    no_advice: int
    candidates: Sequence[Sequence[Candidate]]
    percentile: str
    facts: Sequence[tuple[str, str]]
    log: Sequence[str]
    config: str

    @property
    def by_steps(self) -> bool:
        """Whether the policy is over a horizon."""
        return any(line.first_step is not None for line in self.policy)

    def to_html(self) -> str:
        """Return the page; everything that came from outside is escaped."""
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup

        environment = Environment(
            autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        source = files("surefoot.report").joinpath("page.html").read_text(encoding="utf-8")
        shown = self.policy[:SHOWN]
        first = [group[0] for group in self.candidates]
        return environment.from_string(source).render(
            page=self,
            figures=[(Markup(figure.svg), figure.caption) for figure in self.figures],
            policy=list(zip(shown, column_texts([p.margin for p in shown], 4), strict=True)),
            candidates=list(
                zip(
                    self.candidates,
                    column_texts([candidate.percentile for candidate in first]),
                    column_texts([candidate.nominal_return for candidate in first]),
                    strict=True,
                )
            ),
        )
