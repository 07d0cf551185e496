"""Figures as SVG text for a page: for light and dark screens, and described in words.

The figures are drawn in the colours of `PALETTE`. In the SVG text these become CSS variables with
the drawn colour as the fallback, so that a page may change them for dark mode.
"""

import html
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from surefoot._work import FIGURE, count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PALETTE = {
    "promise": "#1f5f99",
    "expected": "#2f7d4f",
    "limit": "#7a6a9c",
    "today": "#b3611b",
    "pale": "#c3ccd5",
    "faint": "#8a949e",
}
"""The colours of figures, by their names in style sheets."""
INK = "#33404c"
"""The colour of words and axes; on a page, that of the text around the figure."""
ACTIONS = ("#5b9bd0", "#e6a65a", "#76b58c", "#b98bb4", "#db7a74", "#8fc1c4", "#b59a7a", "#a3a8ae")
"""The colours of actions, on light and dark pages; dark words are readable on them."""

STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "surefoot",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": PALETTE["faint"],
    "axes.labelcolor": INK,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "xtick.color": INK,
    "ytick.color": INK,
}

LINES = "stroke-linejoin: round; stroke-linecap: butt"
NAMESPACES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'


def action_colours(actions: Sequence[str]) -> dict[str, str]:
    """Return a colour for each action, in their order.

    Examples
    --------
    >>> list(action_colours(["run", "repair"]))
    ['run', 'repair']
    """
    return {name: ACTIONS[i % len(ACTIONS)] for i, name in enumerate(actions)}


class Drawing:
    """A figure that is being drawn: its axes, and afterwards its SVG text."""

    axes: "Axes"
    svg: str

    def resize(self, width: float, height: float) -> None:
        """Change the size of the figure, in inches."""
        figure: Any = self.axes.figure
        figure.set_size_inches(width, height)


@contextmanager
def drawing(name: str, alt: str, width: float = 4.7, height: float = 2.9) -> Iterator[Drawing]:
    """Yield a drawing with axes in the style of the page; after the block it has its SVG text.

    Examples
    --------
    >>> with drawing("line", "A line") as drawn:
    ...     _ = drawn.axes.plot([0, 1])
    >>> drawn.svg.startswith("<svg"), 'aria-label="A line"' in drawn.svg
    (True, True)
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    drawn = Drawing()
    with mpl.rc_context(STYLE):
        drawn.axes = Figure(figsize=(width, height), layout="constrained").add_subplot()
        yield drawn
        drawn.svg = svg_text(drawn.axes.figure, name, alt)
    count(FIGURE)


def own_axes(axes: "Axes | None") -> "Axes":
    """Return the given axes, or those of a new figure, which a notebook shows."""
    if axes is not None:
        return axes
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(6.4, 3.2), layout="constrained")[1]


def svg_text(figure: Any, name: str, alt: str) -> str:
    """Return a figure as an SVG element that scales with the page and has a text description.

    Parameters
    ----------
    figure
        A matplotlib figure.
    name
        Prefix of all ids, which must be unique on the page.
    alt
        A description of the figure, for those who cannot see it.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> svg_text(Figure(), "empty", "Nothing").startswith('<svg role="img" aria-label="Nothing"')
    True
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    buffer = io.StringIO()
    with mpl.rc_context(STYLE):
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(buffer, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r'id="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r'(xlink:href="#|url\(#)', rf"\1{name}-", text)
    said = html.escape(" ".join(alt.split())).replace("\\", r"\\")
    # A style element would apply to the whole page.
    text = re.sub(r"\s*<style.*?</style>", "", text, flags=re.DOTALL)
    head = f'<svg role="img" aria-label="{said}" {NAMESPACES} style="{LINES}" viewBox="\\1">'
    text = re.sub(r'<svg [^>]*?viewBox="([^"]+)"[^>]*>', head, text, count=1)
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    return _recoloured(text)


def _recoloured(text: str) -> str:
    """Return the text with the colours of the palette as variables."""
    for name, colour in PALETTE.items():
        text = text.replace(f": {colour}", f": var(--{name}, {colour})")
    return text.replace(f": {INK}", ": var(--ink, currentColor)")
