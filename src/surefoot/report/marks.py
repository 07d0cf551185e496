"""The numbers that figures label, and the placement of the labels without overlap."""

import math
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surefoot._rounding import near_text
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.headlines import bound_text, limit_text, today, with_commas
from surefoot.report.svg import PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CHARACTER = 0.077
"""Approximate width of a character, in inches."""


class Mark(NamedTuple):
    """A number to label: its words, its position, the name of its colour."""

    words: str
    place: float
    colour: str


def marks_of(certificate: Certificate) -> list[Mark]:
    """Return the numbers of a certificate that a figure shows, past practice first.

    Examples
    --------
    >>> from surefoot import DirichletPosterior, certify, riverswim
    >>> counts = riverswim().simulate(50, np.random.default_rng(0))
    >>> mdp, posterior = counts.to_mdp(discount=0.99, prior=1.0), DirichletPosterior(counts)
    >>> made = certify([1] * 6, posterior, mdp, draws=500, rng=np.random.default_rng(1))
    >>> [mark.colour for mark in marks_of(made)]
    ['promise', 'expected', 'limit']
    """
    before = today(certificate)
    named = "would be promised" if certificate.withheld else "promised"
    nominal = with_commas(near_text(certificate.nominal_return))
    marks = [
        Mark(f"{named}: {bound_text(certificate)}", certificate.promise, "promise"),
        Mark(f"expected: {nominal}", certificate.nominal_return, "expected"),
    ]
    if before is not None:
        marks.insert(
            0, Mark(f"so far: {with_commas(near_text(before.mean, 4))}", before.mean, "today")
        )
    reward = certificate.objective == "max"
    limit = certificate.upper_bound if reward else certificate.lower_bound
    if np.isfinite(limit):
        marks.append(Mark(f"limit: {limit_text(certificate)}", limit, "limit"))
    return [mark for mark in marks if np.isfinite(mark.place)]


def amount_words(certificate: Certificate) -> str:
    """Return what the numbers of a certificate measure, as a label for an axis."""
    word = "total reward" if certificate.objective == "max" else "total cost"
    return word if certificate.unit is None else f"{word}, {certificate.unit}"


def one_axis(axes: "Axes") -> None:
    """Keep only the lower axis, and separate thousands in its numbers."""
    from matplotlib.ticker import MaxNLocator

    axes.set_yticks([])
    for side in ("left", "top", "right"):
        axes.spines[side].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.10g}")


def point_at(axes: "Axes", marks: Sequence[Mark], bottom: float = 1.0, step: float = 1.0) -> None:
    """Draw a vertical line to the words of each mark, at heights from ``bottom`` up."""
    for i, (mark, right) in enumerate(arranged(axes, marks)):
        colour, height = PALETTE[mark.colour], bottom + step * i
        axes.plot([mark.place, mark.place], [0, height], color=colour, linewidth=1.6)
        axes.annotate(
            mark.words, (mark.place, height), xytext=(5 if right else -5, -3), va="center",
            textcoords="offset points", ha="left" if right else "right", color=colour,
        )  # fmt: skip


def arranged(axes: Any, marks: Sequence[Mark]) -> list[tuple[Mark, bool]]:
    """Return marks from the lowest words to the highest, and whether words go to the right.

    No line may cross the words of another mark, so a mark whose words would be crossed is placed
    higher. Of all ways to put words left or right that allow this, takes the one that stays within
    the axis best.
    """
    left, right = axes.get_xlim()
    inches = 0.9 * axes.figure.get_size_inches()[0]
    widths = [(CHARACTER * len(mark.words) + 0.1) * (right - left) / inches for mark in marks]
    best, least = [(mark, True) for mark in marks], math.inf
    for sides in product((True, False), repeat=len(marks)):
        spans = [
            (mark.place, mark.place + width) if side else (mark.place - width, mark.place)
            for mark, width, side in zip(marks, widths, sides, strict=True)
        ]
        beyond = sum(max(0.0, left - low) + max(0.0, high - right) for low, high in spans)
        order = _without_crossing([mark.place for mark in marks], spans)
        if order is not None and beyond < least:
            best, least = [(marks[i], sides[i]) for i in order], beyond
    return best


def _without_crossing(
    places: Sequence[float], spans: Sequence[tuple[float, float]]
) -> list[int] | None:
    """Return an order of heights in which no line crosses words; None if there is none."""
    order: list[int] = []
    left = list(range(len(places)))
    while left:
        # The words of the next mark must not lie on the line of a mark that is placed higher.
        free = [
            i for i in left
            if not any(spans[i][0] < places[j] < spans[i][1] for j in left if j != i)
        ]  # fmt: skip
        if not free:
            return None
        order.append(free[0])
        left.remove(free[0])
    return order
