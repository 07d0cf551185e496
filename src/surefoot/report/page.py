"""One page to open in a browser: no network, no scripts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

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
    title
        Its heading.
    sentence, comparison
        The promise, and how it compares with what was done; "" where that is not known.
    numbers
        Words and values to be shown large.
    warnings
        What a reader should know.
    figures
        In this order.
    policy
        The policy state by state.
    no_advice
        How many states of the log the policy says nothing about.
    candidates
        Name, percentile, nominal return, whether selected.
    percentile
        What the percentile of a candidate is, in words.
    facts
        Words and values about how it was made.
    log
        The summary of the log.
    config
        The configuration as TOML.
    """

    title: str
    sentence: str
    comparison: str
    numbers: Mapping[str, str]
    warnings: Sequence[str]
    figures: Sequence[Figure]
    policy: Sequence[PolicyLine]
    no_advice: int
    candidates: Sequence[tuple[str, float, float, bool]]
    percentile: str
    facts: Sequence[tuple[str, str]]
    log: str
    config: str

    def to_html(self) -> str:
        """Return the page; everything that came from outside is escaped."""
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup

        environment = Environment(
            autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        environment.filters["number"] = _number
        source = files("surefoot.report").joinpath("page.html").read_text(encoding="utf-8")
        drawn = [(Markup(figure.svg), figure.caption) for figure in self.figures]
        return environment.from_string(source).render(page=self, figures=drawn, shown=SHOWN)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.5g}"
