"""Figures as SVG text, to be put into the page."""

import io
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLUE, GREY, PALE, ORANGE, GREEN = "#2b5d8a", "#8a8f98", "#c6ccd3", "#c8641b", "#2f7d4f"
Marks = Sequence[tuple[str, float, str]]
"""Lines to draw across a figure: words, place, colour."""

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)
"""Confidences that an axis names."""

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


def distribution(
    returns: NDArray[np.float64],
    marks: Marks,
    *,
    unit: str,
    bracket: tuple[float, float] | None = None,
) -> str:
    """Return the histogram of returns over posterior draws, with marks and a shaded bracket."""
    figure, axes = _figure()
    if bracket is not None:
        axes.axvspan(*bracket, color=ORANGE, alpha=0.12, linewidth=0)
    low, high = np.quantile(returns, [0.0005, 0.9995])
    inside = returns[(returns >= low) & (returns <= high)]
    spread = max(float(high - low), 1e-6 * max(abs(low), abs(high), 1e-300))  # may be all alike
    axes.hist(inside, bins=60, range=(low, low + spread), color=BLUE, alpha=0.55, linewidth=0)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    top = axes.get_ylim()[1]
    axes.set_ylim(0, top * (1.08 + 0.11 * len(marks)))
    for i, (words, place, colour) in enumerate(_lowest_first(axes, marks)):
        height = top * (1.05 + 0.11 * i)
        axes.plot([place, place], [0, height], color=colour, linewidth=1.6)
        _beside(axes, words, place, height, colour)
    axes.set_xlabel(unit)
    return _svg(figure, "How the return is distributed over the models that fit the data")


def _room_right(axes: Any, place: float) -> bool:
    left, right = axes.get_xlim()
    return bool(place - left < 0.7 * (right - left))


def _lowest_first(axes: Any, marks: Marks) -> Marks:
    """Return marks so that the words of one do not cross the line of another.

    Words to the right stand above the lines to their right, words to the left above the others.
    """

    def order(mark: tuple[str, float, str]) -> tuple[bool, float]:
        room = _room_right(axes, mark[1])
        return not room, -mark[1] if room else mark[1]

    return sorted(marks, key=order)


def _beside(axes: Any, words: str, place: float, height: float, colour: str) -> None:
    """Put words beside a mark, on the side with room."""
    room = _room_right(axes, place)
    axes.annotate(
        words,
        (place, height),
        xytext=(5 if room else -5, -3),
        textcoords="offset points",
        ha="left" if room else "right",
        va="center",
        color=colour,
    )


def bracket(marks: Marks, *, unit: str) -> str:
    """Return a few numbers on one line, each with its words."""
    figure, axes = _figure(height=1.9)
    places = [place for _, place, _ in marks]
    ends = [min(places), max(places)]
    axes.plot(ends, [0, 0], color=PALE, linewidth=6, solid_capstyle="round")
    axes.margins(x=0.12)
    axes.set_ylim(-0.5, len(marks) + 0.6)
    for i, (words, place, colour) in enumerate(_lowest_first(axes, marks)):
        axes.plot([place, place], [0, i + 1], color=colour, linewidth=1.6)
        axes.scatter([place], [0], color=colour, s=28, zorder=3)
        _beside(axes, words, place, i + 1, colour)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(unit)
    return _svg(figure, "Promise, nominal model and limit")


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
    shown = [level for level in LEVELS if level <= float(confidence[known].max(initial=0.5))]
    axes.set_xticks([1.0 / (1.0 - c) for c in shown], [f"{100 * c:.4g}%" for c in shown])
    axes.minorticks_off()
    axes.set_xlabel("confidence")
    axes.set_ylabel(unit)
    return _svg(figure, "What can be promised at each confidence")


def visits(tried: NDArray[Any], chosen: NDArray[Any]) -> str:
    """Return how often pairs were tried: all of them, and those the policy uses."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    figure, axes = _figure()
    top = max(float(np.max(tried, initial=1)), 2.0)
    low = max(1.0, float(np.min(tried, initial=top)))
    bins = np.geomspace(low / 1.1, top * 1.1, 24)
    values = [np.maximum(tried, 1), np.maximum(chosen, 1)]
    names, colours = ("all pairs", "pairs the policy uses"), (PALE, BLUE)
    for value, name, colour in zip(values, names, colours, strict=True):
        axes.hist(value, bins=bins, color=colour, label=name)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("times tried in the log")
    axes.set_ylabel("state-action pairs")
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0)
    return _svg(figure, "How often state-action pairs were tried")


def candidates(points: Sequence[tuple[float, float, bool]], *, unit: str) -> str:
    """Return the candidates: nominal return against percentile, the selected one marked."""
    figure, axes = _figure()
    for nominal, percentile, selected in sorted(points, key=lambda point: point[2]):
        colour, size = (ORANGE, 70) if selected else (BLUE, 30)
        axes.scatter([nominal], [percentile], s=size, color=colour, alpha=0.8, linewidths=0)
        if selected:
            axes.annotate(
                "selected", (nominal, percentile), xytext=(0, -16), textcoords="offset points",
                ha="center", color=ORANGE,
            )  # fmt: skip
    axes.margins(0.18)
    axes.set_xlabel(f"{unit}, nominal model")
    axes.set_ylabel("percentile")
    return _svg(figure, "What the candidates trade")


def _figure(height: float = 2.9) -> tuple[Any, Any]:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(4.7, height), layout="constrained")
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
