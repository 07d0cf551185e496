"""The page of a what-if table: a figure, the numbers, and where the policy changes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.report.page import render

WIDE, NARROW = (640, 190.0, 620.0, 26.0), (340, 14.0, 322.0, 40.0)
"""Width of the figure, start and end of its axis, height of a line. On narrow screens words are
above their lines."""
FAR = 6.0
"""Promises beyond this many times the median distance are shown as arrows at the edge."""
SHOWN = 200
"""At most this many changes of the policy are listed."""


@dataclass(frozen=True, kw_only=True)
class Dot:
    """A promise in the figure: its words, number, text and limit, and whether it is certified."""

    words: str
    promise: float
    text: str
    limit: float | None
    certified: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class WhatIfPage:
    """The content of the page.

    Attributes
    ----------
    title, subtitle, alone
        Its heading, its subject, and how to read the numbers.
    head, rows
        The table.
    dots
        The figure; the unchanged run comes first.
    axis
        What the figure measures.
    limit
        What the limit says, in a sentence.
    changes
        Words, state, old and new action of each change.
    """

    title: str
    subtitle: str
    alone: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    dots: Sequence[Dot]
    axis: str
    limit: str
    changes: Sequence[Sequence[str]]

    def to_html(self) -> str:
        """Return the page as HTML; all text from outside is escaped."""
        plots = [_plot(self.dots, self.axis, shape) for shape in (WIDE, NARROW)]
        return render(
            "what_if.html",
            page=self,
            plots=plots,
            far=any(dot["far"] for dot in plots[0]["dots"]),
            hollow=any(not dot.certified for dot in self.dots),
            changes=self.changes[:SHOWN],
            more=max(len(self.changes) - SHOWN, 0),
        )


def _plot(dots: Sequence[Dot], axis: str, shape: tuple[int, float, float, float]) -> dict[str, Any]:
    """Return coordinates for the figure: a line per dot, arrows for distant promises, ticks."""
    width, left, right, row = shape
    narrow = width == NARROW[0]
    ticks = _ticks(*_view(dots))
    low, high = ticks[0], ticks[-1]
    first = 34 if narrow else 20

    def x(value: float) -> float:
        return round(left + (right - left) * (min(max(value, low), high) - low) / (high - low), 1)

    told = "; ".join(f"{dot.words}: {dot.text}" for dot in dots)
    return {
        "kind": "narrow" if narrow else "broad",
        "width": width,
        "middle": round((left + right) / 2),
        "height": round(first + 30 + row * len(dots)),
        "axis": axis,
        "text": f"Promises, {axis}. {told}.",
        "own": x(dots[0].promise),
        "ticks": [{"x": x(tick), "text": f"{tick:.6g}"} for tick in ticks[:: 2 if narrow else 1]],
        "dots": [
            {
                "text": dot.words if len(dot.words) <= 24 or narrow else f"{dot.words[:23]}…",
                "x": x(dot.promise),
                "end": None if dot.limit is None else x(dot.limit),
                "y": first + row * i,
                "hollow": not dot.certified,
                "far": dot.text if not low <= dot.promise <= high else "",
                "side": -1 if dot.promise < low else 1,
            }
            for i, dot in enumerate(dots)
        ],
    }


def _view(dots: Sequence[Dot]) -> tuple[float, float]:
    """Return the range of the axis: all promises but those so far off that they crowd the rest."""
    own = dots[0].promise
    away = np.array([abs(dot.promise - own) for dot in dots[1:]])
    far = FAR * float(np.median(away[away > 0])) if np.any(away > 0) else np.inf
    shown = [dot for dot in dots if abs(dot.promise - own) <= far]
    values = [value for dot in shown for value in (dot.promise, dot.limit) if value is not None]
    return min(values), max(values)


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers around a range, about five of them.

    Examples
    --------
    >>> _ticks(9.05, 9.62)
    [9.0, 9.2, 9.4, 9.6, 9.8]
    >>> _ticks(3.0, 3.0)
    [2.0, 3.0, 4.0]
    """
    if not high > low:
        return [low - 1.0, low, low + 1.0]
    rough = (high - low) / 4
    size = 10.0 ** np.floor(np.log10(rough))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= rough)
    first, last = int(np.floor(low / step)), int(np.ceil(high / step))
    return [float(round(i * step, 12)) for i in range(first, last + 1)]
