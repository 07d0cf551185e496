"""The figure of a plan: the promise after more data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from surefoot.report.svg import PALETTE, own_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("promise", "expected", "limit", "today")
"""Colours of the ways to collect data, in their order."""


@dataclass(frozen=True, kw_only=True)
class Whisker:
    """A forecast in the figure: its words, number of samples, mean and interval."""

    words: str
    samples: int
    mean: float
    low: float
    high: float


def plot_forecasts(
    whiskers: Sequence[Whisker], promise: float, wanted: float | None = None, *,
    axes: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw promises after more samples, with intervals that hold nine in ten futures.

    Different ways of collecting data are drawn side by side; the dashed line is the promise now.

    Examples
    --------
    >>> one = Whisker(words="tries as planned", samples=10, mean=2.0, low=1.0, high=3.0)
    >>> plot_forecasts([one], 1.5).get_xlabel()
    'further samples'
    """
    drawn = own_axes(axes)
    ways = list(dict.fromkeys(one.words for one in whiskers))
    for i, way in enumerate(ways):
        own = sorted((one for one in whiskers if one.words == way), key=lambda one: one.samples)
        places = [one.samples * 1.12**i for one in own]
        middle = [one.mean for one in own]
        reach = [[one.mean - one.low for one in own], [one.high - one.mean for one in own]]
        drawn.errorbar(
            places, middle, yerr=[[max(0.0, r) for r in side] for side in reach], marker="o",
            markersize=4, linewidth=1.2, capsize=3, color=PALETTE[COLOURS[i % len(COLOURS)]],
            label=way,
        )  # fmt: skip
    drawn.axhline(promise, color=PALETTE["faint"], linewidth=1.0, linestyle="--", label="now")
    if wanted is not None:
        drawn.axhline(wanted, color=PALETTE["today"], linewidth=1.2, label="wanted")
    drawn.set_xscale("log")
    sizes = sorted({one.samples for one in whiskers})
    drawn.set_xticks(sizes, [f"{size:,}" for size in sizes])
    drawn.minorticks_off()
    drawn.yaxis.set_major_formatter(lambda y, _: f"{y:,.10g}")
    drawn.set_xlabel("further samples")
    drawn.legend(frameon=False, fontsize=9)
    return drawn
