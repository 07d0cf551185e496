"""How objects are displayed: a few facts, as lines on a terminal or as a card in a notebook."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

from surefoot import _hooks

MOST_ROWS = 10
"""How many rows of a table are shown at most; the object has all of them."""

CARD = "max-width:60em;line-height:1.45"
LEFT = "text-align:left;vertical-align:top;padding:.15em 1.2em .15em 0;border:0;background:none"
RIGHT = LEFT.replace("text-align:left", "text-align:right")
FAINT = "opacity:.7;font-weight:normal"
"""Styles without colours: a notebook may be light or dark."""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table: its column names, the rows to show as text, and the number of rows in all."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    total: int

    @property
    def cut(self) -> str:
        """The line about rows that are not shown, or ""."""
        more = self.total - len(self.rows)
        return f"... and {more:,} more" if more > 0 else ""

    def text(self) -> str:
        """Return the table as lines; columns of numbers are right-aligned."""
        lines = [self.head, *self.rows]
        right = self._numeric()
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.head))]
        shown = [
            "  ".join(
                cell.rjust(width) if right[i] else cell.ljust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        return "\n".join([*shown, *([self.cut] if self.cut else [])])

    def html(self) -> str:
        """Return the table as HTML."""
        right = self._numeric()

        def line(cells: Sequence[str], tag: str, faint: str = "") -> str:
            return "".join(
                f'<{tag} style="{RIGHT if right[i] else LEFT}{faint}">{html.escape(cell)}</{tag}>'
                for i, cell in enumerate(cells)
            )

        head = f"<tr>{line(self.head, 'th', ';' + FAINT)}</tr>"
        body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in self.rows)
        cut = f'<p style="{FAINT};margin:.2em 0">{self.cut}</p>' if self.cut else ""
        return f'<table style="border-collapse:collapse;border:0">{head}{body}</table>{cut}'

    def _numeric(self) -> list[bool]:
        return [
            bool(self.rows) and all(not row[i] or _is_number(row[i]) for row in self.rows)
            for i in range(len(self.head))
        ]


class Remark(Protocol):
    """A remark below the facts, such as a `Finding`."""

    @property
    def level(self) -> str:
        """How serious it is."""

    @property
    def text(self) -> str:
        """What it says."""


class Shown:
    """Gives an object a ``summary()`` and a notebook card, both made from the same facts.

    Examples
    --------
    >>> class Weather(Shown):
    ...     def __repr__(self):
    ...         return "Weather(2 days)"
    ...
    ...     def _facts(self):
    ...         return [("sky", "clear"), ("wind", "3 < 4")]
    >>> print(Weather().summary())
    Weather(2 days)
    <BLANKLINE>
      sky   clear
      wind  3 < 4
    >>> "3 &lt; 4" in Weather()._repr_html_()
    True
    """

    _pictured = False
    """Whether the card has a figure."""

    def _headline(self) -> str:
        return repr(self)

    def _facts(self) -> Sequence[tuple[str, str]]:
        return ()

    def _grid(self) -> Grid | None:
        return None

    def _remarks(self) -> Sequence[str | Remark]:
        return ()

    def summary(self) -> str:
        """Return the headline, facts, table and remarks of the object as text for a terminal."""
        facts, grid = self._facts(), self._grid()
        width = max((len(name) for name, _ in facts), default=0)
        parts = [self._headline(), "\n".join(f"  {name:<{width}}  {text}" for name, text in facts)]
        if grid is not None:
            parts.append(grid.text())
        parts.append("\n".join(f"  {remark(one)}" for one in self._remarks()))
        return "\n\n".join(part for part in parts if part)

    def _repr_html_(self) -> str:
        notes = [remark(one) for one in self._remarks()]
        picture = _hooks.picture(self) if self._pictured else ""
        return card(self._headline(), self._facts(), self._grid(), notes, picture)


def remark(found: str | Remark) -> str:
    """Return a remark prefixed with its level.

    Examples
    --------
    >>> remark("the log is short.")
    'note: the log is short.'
    """
    return f"note: {found}" if isinstance(found, str) else f"{found.level}: {found.text}"


def card(
    headline: str,
    facts: Sequence[tuple[str, str]] = (),
    grid: Grid | None = None,
    lines: Sequence[str] = (),
    picture: str = "",
) -> str:
    """Return a card for a notebook; everything is escaped except the picture (SVG).

    Examples
    --------
    >>> "<b>" in card("<b>bold</b>", lines=["1 < 2"])
    False
    """
    rows = "".join(
        f'<tr><th scope="row" style="{LEFT};{FAINT}">{html.escape(name)}</th>'
        f'<td style="{LEFT}">{html.escape(text)}</td></tr>'
        for name, text in facts
    )
    parts = [
        f'<p style="margin:.2em 0 .4em"><strong>{html.escape(headline)}</strong></p>',
        f'<table style="border-collapse:collapse;border:0">{rows}</table>' if rows else "",
        f'<div style="max-width:36em">{picture}</div>' if picture else "",
        grid.html() if grid is not None else "",
        *(f'<p style="margin:.2em 0">{html.escape(line)}</p>' for line in lines),
    ]
    return f'<div style="{CARD}">{"".join(parts)}</div>'


def number_of(count: float, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun, in the singular or plural.

    Examples
    --------
    >>> number_of(1, "row"), number_of(4120, "transition"), number_of(2, "entry", "entries")
    ('1 row', '4,120 transitions', '2 entries')
    """
    word = noun if count == 1 else plural or f"{noun}s"
    return f"{count:,} {word}"


def label_text(labels: Sequence[Hashable] | None, number: int) -> str:
    """Return how a table shows a state or an action: its label, or its number if it has none.

    Examples
    --------
    >>> label_text(("run", "repair"), 1), label_text(None, 1)
    ('repair', '1')
    """
    return str(int(number)) if labels is None else str(labels[number])


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "").removesuffix("%"))
    except ValueError:
        return False
    return True


def reason_of(problem: BaseException) -> str:
    r"""Return the message of an exception as one line, or its type if it has no message.

    Examples
    --------
    >>> reason_of(ValueError("two\nlines")), reason_of(KeyError())
    ('two lines', 'KeyError')
    """
    return " ".join(str(problem).split()) or type(problem).__name__


def printable(text: object, *, lines: bool = False) -> str:
    r"""Return text that is safe to print: characters that control a terminal are escaped.

    Names of files and columns come from outside and may contain anything. ``lines`` is for whole
    messages: it keeps line breaks, tabs and invisible characters that do not control the terminal.

    Examples
    --------
    >>> print(printable("log\x1b[31m.csv"))
    log\x1b[31m.csv
    >>> printable("a\x1b[31mb\n", lines=True)
    'a\\x1b[31mb\n'
    """
    shown = _is_shown if lines else str.isprintable
    return "".join(c if shown(c) else c.encode("unicode_escape").decode() for c in str(text))


TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Characters that change the direction of the text after them."""


def _is_shown(character: str) -> bool:
    steers = unicodedata.category(character) in ("Cc", "Zl", "Zp", "Cs") or character in TURNING
    return character in "\n\t" or not steers
