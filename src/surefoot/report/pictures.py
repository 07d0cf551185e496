"""Figures for the cards that notebooks show."""

from itertools import count
from typing import Any

from surefoot.certificates.certificate import Certificate
from surefoot.certificates.comparison import Comparison
from surefoot.certificates.curve import GuaranteeCurve
from surefoot.report import promise_plots
from surefoot.report.marks import marks_of
from surefoot.report.svg import drawing

_NUMBERS = count()
"""A notebook shows many cards on one page, so every card needs its own ids."""


def picture(shown: Any) -> str:
    """Return the figure of an object as SVG text; "" if it has none.

    For a run, this is the figure of its certificate.

    Examples
    --------
    >>> picture("a text")
    ''
    """
    one = getattr(shown, "certificate", shown)
    name = f"card{next(_NUMBERS)}"
    if isinstance(one, Certificate):
        told = ", ".join(mark.words for mark in marks_of(one))
        with drawing(name, told, 5.6, 2.0) as drawn:
            promise_plots.plot_promise(one, axes=drawn.axes)
        return drawn.svg
    if isinstance(one, GuaranteeCurve):
        with drawing(name, "What can be promised at each confidence", 5.0, 2.4) as drawn:
            promise_plots.plot_guarantee_curve(one, axes=drawn.axes)
        return drawn.svg
    if isinstance(one, Comparison) and not one.same:
        with drawing(name, repr(one), 5.6, 1.8) as drawn:
            promise_plots.plot_comparison(one, axes=drawn.axes)
        return drawn.svg
    return ""
