"""Figures as text: SVG that stands in a page, the same bytes for the same numbers."""

import io
from typing import Any


def svg_text(figure: Any) -> str:
    """Return a matplotlib figure as an ``<svg>`` element.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> svg_text(Figure()).startswith("<svg")
    True
    """
    import matplotlib as mpl

    # Text stays text (searchable, small); ids and dates must not change from run to run.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "surefoot"}):
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
