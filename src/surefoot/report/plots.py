"""Figures as SVG text, to be put into the page."""

import io
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLUE, GREY, ORANGE, GREEN = "#2b5d8a", "#8a8f98", "#c8641b", "#2f7d4f"
Marks = Sequence[tuple[str, float, str]]
"""Lines to draw across a figure: words, place, colour."""

NAMESPACES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'

STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "surefoot",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": "#333333",
    "xtick.color": "#555555",
    "ytick.color": "#555555",
}


def distribution(returns: NDArray[np.float64], marks: Marks, *, unit: str) -> str:
    """Return the histogram of returns over posterior draws, with marks."""
    figure, axes = _figure()
    low, high = np.quantile(returns, [0.0005, 0.9995])
    inside = returns[(returns >= low) & (returns <= high)]
    axes.hist(inside, bins=60, color=BLUE, alpha=0.55, linewidth=0)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    top = axes.get_ylim()[1]
    axes.set_ylim(0, top * (1.08 + 0.11 * len(marks)))
    for i, (words, place, colour) in enumerate(sorted(marks, key=lambda mark: mark[1])):
        height = top * (1.05 + 0.11 * i)
        axes.plot([place, place], [0, height], color=colour, linewidth=1.6)
        _beside(axes, words, place, height, colour)
    axes.set_xlabel(unit)
    return _svg(figure, "How the return is distributed over the models that fit the data")


def _beside(axes: Any, words: str, place: float, height: float, colour: str) -> None:
    """Put words beside a mark, on the side with more room."""
    left, right = axes.get_xlim()
    room = place < 0.55 * (left + right)
    axes.annotate(
        words,
        (place, height),
        xytext=(5 if room else -5, -3),
        textcoords="offset points",
        ha="left" if room else "right",
        va="center",
        color=colour,
    )


def curve(
    confidence: NDArray[np.float64], bound: NDArray[np.float64], delta: float, *, unit: str
) -> str:
    """Return what can be promised against confidence."""
    figure, axes = _figure()
    known = ~np.isnan(bound)
    odds = 1.0 / (1.0 - confidence[known])
    axes.plot(odds, bound[known], color=BLUE, marker="o", markersize=4)
    axes.axvline(1.0 / delta, color=ORANGE, linewidth=1.2)
    axes.annotate(
        "asked for", (1.0 / delta, 1.0), xycoords=("data", "axes fraction"), xytext=(5, -2),
        textcoords="offset points", color=ORANGE, va="top",
    )  # fmt: skip
    axes.set_xscale("log")
    axes.set_xticks(odds, [f"{100 * level:.4g}%" for level in confidence[known]], rotation=45)
    axes.minorticks_off()
    axes.set_xlabel("confidence")
    axes.set_ylabel(unit)
    return _svg(figure, "What can be promised at each confidence")


def visits(tried: NDArray[Any], chosen: NDArray[Any]) -> str:
    """Return how often pairs were tried: all of them, and those the policy uses."""
    figure, axes = _figure()
    top = max(float(np.max(tried, initial=1)), 2.0)
    bins = np.concatenate(([0.0], np.geomspace(1, top + 1, 25)))
    axes.hist(np.maximum(tried, 0), bins=bins, color=GREY, alpha=0.5, label="all pairs")
    axes.hist(
        np.maximum(chosen, 0), bins=bins, color=BLUE, alpha=0.8, label="pairs the policy uses"
    )
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xlim(0, top * 1.3)
    axes.set_xlabel("times tried in the log")
    axes.set_ylabel("state-action pairs")
    axes.legend(frameon=False)
    return _svg(figure, "How often state-action pairs were tried")


def _figure() -> tuple[Any, Any]:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(5.6, 3.2), layout="constrained")
        return figure, figure.add_subplot()


def _svg(figure: Any, title: str) -> str:
    """Return the figure as an SVG element that scales with the page and has a name."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    buffer = io.StringIO()
    with mpl.rc_context(STYLE):
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(buffer, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    prefix = "".join(word[0] for word in title.lower().split())
    # The page holds several figures, and ids are shared by the whole page.
    text = re.sub(r'id="([^"]+)"', rf'id="{prefix}-\1"', text)
    text = re.sub(r'(xlink:href="#|url\(#)', rf"\1{prefix}-", text)
    head = f'<svg role="img" {NAMESPACES} viewBox="\\1"><title>{title}</title>'
    text = re.sub(r'<svg [^>]*?viewBox="([^"]+)"[^>]*>', head, text, count=1)
    return re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
