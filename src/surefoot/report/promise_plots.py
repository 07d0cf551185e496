"""Figures of promises; each draws on the given matplotlib axes, or new ones, and returns them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from surefoot._rounding import lower_text, near_text
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.comparison import Comparison
from surefoot.certificates.curve import GuaranteeCurve
from surefoot.certificates.headlines import today
from surefoot.report.marks import Mark, amount_words, marks_of, one_axis, point_at
from surefoot.report.svg import PALETTE, own_axes
from surefoot.solvers.evaluation.returns import ReturnDraws

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)
"""Confidences that an axis labels."""


def plot_promise(certificate: Certificate, *, axes: Axes | None = None) -> Axes:
    """Draw a promise on one axis: what was earned so far, promised, expected, and the limit.

    The thick bar goes from the promise to the limit, the most that could be promised about any
    policy; the thin line is the range that the log leaves open for what was earned so far.

    Examples
    --------
    >>> import numpy as np
    >>> from surefoot import DirichletPosterior, certify, plot_promise, riverswim
    >>> counts = riverswim().simulate(50, np.random.default_rng(0))
    >>> mdp, posterior = counts.to_mdp(discount=0.99, prior=1.0), DirichletPosterior(counts)
    >>> made = certify([1] * 6, posterior, mdp, draws=500, rng=np.random.default_rng(1))
    >>> plot_promise(made).get_xlabel()
    'total reward'
    """
    drawn = own_axes(axes)
    marks = marks_of(certificate)
    places = [mark.place for mark in marks]
    span = max(places) - min(places) or max(abs(places[0]), 1.0) * 0.1
    drawn.set_xlim(min(places) - 0.12 * span, max(places) + 0.12 * span)
    drawn.set_ylim(-0.7, len(marks) + 0.7)
    if np.isfinite(certificate.gap):
        ends = [certificate.lower_bound, certificate.upper_bound]
        drawn.plot(ends, [0, 0], color=PALETTE["pale"], linewidth=9, solid_capstyle="butt")
    before = today(certificate)
    if before is not None and before.lower is not None and before.upper is not None:
        _whisker(drawn, before.lower, before.upper)
    point_at(drawn, marks)
    for mark in marks:
        drawn.scatter([mark.place], [0], color=PALETTE[mark.colour], s=34, zorder=3)
    one_axis(drawn)
    drawn.set_xlabel(amount_words(certificate))
    return drawn


def _whisker(axes: Axes, lower: float, upper: float) -> None:
    """Draw a range, with an arrow where it continues beyond the axis."""
    left, right = axes.get_xlim()
    ends = max(lower, left), min(upper, right)
    axes.plot(ends, [0, 0], color=PALETTE["today"], linewidth=2)
    for end, wanted, shape in zip(ends, (lower, upper), "<>", strict=True):
        axes.plot([end], [0], color=PALETTE["today"], marker=shape if end != wanted else "|")


def plot_returns(
    returns: ReturnDraws | ArrayLike,
    certificate: Certificate | None = None,
    *,
    axes: Axes | None = None,
) -> Axes:
    """Draw the distribution of returns over drawn models, and where the promise lies.

    Parameters
    ----------
    returns
        One return for each drawn model.
    certificate
        The certificate whose numbers are marked, if any.
    axes
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> import numpy as np
    >>> from surefoot import plot_returns
    >>> plot_returns(np.random.default_rng(0).normal(size=500)).get_xlabel()
    'total reward'
    """
    drawn = own_axes(axes)
    values = np.asarray(returns.lower if isinstance(returns, ReturnDraws) else returns, float)
    low, high = np.quantile(values, [0.0005, 0.9995])
    inside = values[(values >= low) & (values <= high)]
    spread = max(float(high - low), 1e-6 * max(abs(low), abs(high), 1e-300))  # may be all equal
    drawn.hist(inside, bins=60, range=(low, low + spread), color=PALETTE["pale"], linewidth=0)
    marks = [] if certificate is None else marks_of(certificate)
    near = [m for m in marks if low - 0.5 * spread <= m.place <= low + 1.5 * spread]
    top = drawn.get_ylim()[1]
    drawn.set_ylim(0, top * (1.08 + 0.13 * len(near)))
    drawn.set_xlim(*_around(drawn.get_xlim(), [mark.place for mark in near]))
    point_at(drawn, near, 1.05 * top, 0.13 * top)
    one_axis(drawn)
    drawn.set_xlabel("total reward" if certificate is None else amount_words(certificate))
    return drawn


def _around(limits: tuple[float, float], places: Sequence[float]) -> tuple[float, float]:
    low, high = min([limits[0], *places]), max([limits[1], *places])
    margin = 0.04 * (high - low) if places else 0.0
    return low - margin, high + margin


def plot_guarantee_curve(
    curve: GuaranteeCurve, delta: float | None = None, *, axes: Axes | None = None
) -> Axes:
    """Draw what can be promised at each confidence; ``delta`` marks one of them.

    Examples
    --------
    >>> import numpy as np
    >>> from surefoot import GuaranteeCurve, plot_guarantee_curve
    >>> curve = GuaranteeCurve(
    ...     confidence=np.array([0.5, 0.9]), bound=np.array([12.3, 10.0]), eta=0.001, draws=500,
    ...     note="",
    ... )
    >>> plot_guarantee_curve(curve, 0.1).get_xlabel()
    'confidence'
    """
    drawn = own_axes(axes)
    known = ~np.isnan(curve.bound)
    odds = 1.0 / (1.0 - curve.confidence[known])
    drawn.plot(odds, curve.bound[known], color=PALETTE["promise"], marker="o", markersize=4)
    if delta is not None:
        drawn.axvline(1.0 / delta, color=PALETTE["today"], linewidth=1.2)
        drawn.annotate(
            "asked for", (1.0 / delta, 1.0), xycoords=("data", "axes fraction"), xytext=(5, -2),
            textcoords="offset points", color=PALETTE["today"], va="top",
        )  # fmt: skip
    drawn.set_xscale("log")
    shown = [level for level in LEVELS if level <= float(curve.confidence[known].max(initial=0.5))]
    drawn.set_xticks([1.0 / (1.0 - c) for c in shown], [f"{100 * c:.4g}%" for c in shown])
    drawn.minorticks_off()
    drawn.yaxis.set_major_formatter(lambda y, _: f"{y:,.10g}")
    drawn.set_xlabel("confidence")
    drawn.set_ylabel("promised, at least" if curve.objective == "max" else "promised, at most")
    return drawn


def plot_comparison(
    made: Comparison | Mapping[str, Certificate], *, axes: Axes | None = None
) -> Axes:
    """Draw how much better one policy is than another, or several promises below each other.

    Each of several promises holds by itself; a higher one does not mean that its policy is better.
    To find out which is better, compare the two policies.

    Examples
    --------
    >>> from surefoot import Comparison, plot_comparison
    >>> made = Comparison(
    ...     probability_a_better=0.998, probability_lower_bound=0.996, mean_difference=13.9,
    ...     difference_lower_bound=7.03, delta=0.05, eta=0.001, draws=2000, seed="0",
    ... )
    >>> plot_comparison(made).get_xlabel()
    'how much more policy a earns than policy b'
    """
    drawn = own_axes(axes)
    if isinstance(made, Comparison):
        return _draw_difference(drawn, made)
    if not isinstance(made, Mapping):
        raise ValueError(
            f"made must be a Comparison, or certificates by name, got {type(made).__name__}. For "
            "runs: plot_comparison({'old': old.certificate, 'new': new.certificate})."
        )
    for i, (name, certificate) in enumerate(made.items()):
        _draw_row(drawn, i, certificate)
        words = f"{name} (not certified)" if certificate.withheld else name
        drawn.annotate(
            words, (0.0, i - 0.32), xycoords=("axes fraction", "data"), va="bottom", ha="left"
        )
    drawn.set_ylim(len(made) - 0.6, -0.9)
    one_axis(drawn)
    drawn.margins(x=0.08)
    first = next(iter(made.values()), None)
    drawn.set_xlabel("" if first is None else amount_words(first))
    handles = {mark.colour for certificate in made.values() for mark in marks_of(certificate)}
    for colour, words in (
        ("today", "so far"), ("promise", "promised"), ("expected", "expected"), ("limit", "limit")
    ):  # fmt: skip
        if colour in handles:
            drawn.scatter([], [], color=PALETTE[colour], s=34, label=words)
    drawn.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=4, borderaxespad=0,
                 handletextpad=0.2, columnspacing=1.2)  # fmt: skip
    return drawn


def _draw_row(axes: Axes, height: float, certificate: Certificate) -> None:
    """Draw the numbers of one certificate on one line."""
    marks = marks_of(certificate)
    places = [mark.place for mark in marks]
    axes.plot([min(places), max(places)], [height] * 2, color=PALETTE["pale"], linewidth=1.5)
    if np.isfinite(certificate.gap):
        ends = [certificate.lower_bound, certificate.upper_bound]
        axes.plot(ends, [height] * 2, color=PALETTE["pale"], linewidth=8, solid_capstyle="butt")
    for mark in marks:
        hollow = mark.colour == "promise" and certificate.withheld
        axes.scatter(
            [mark.place], [height], s=38, zorder=3, edgecolors=PALETTE[mark.colour],
            facecolors="none" if hollow else PALETTE[mark.colour],
        )  # fmt: skip


def _draw_difference(axes: Axes, made: Comparison) -> Axes:
    reward = made.objective == "max"
    sign = "at least" if made.difference_lower_bound >= 0 else "perhaps"
    surely = f"{sign} {lower_text(made.difference_lower_bound, 4)}"
    marks = [
        Mark("no difference", 0.0, "faint"),
        Mark(surely, made.difference_lower_bound, "promise"),
        Mark(f"on average {near_text(made.mean_difference, 4)}", made.mean_difference, "expected"),
    ]
    axes.margins(x=0.12)
    axes.plot([mark.place for mark in marks], [0] * 3, color=PALETTE["pale"], linewidth=3)
    axes.set_xlim(axes.get_xlim())
    axes.set_ylim(-0.7, len(marks) + 0.7)
    point_at(axes, marks)
    for mark in marks:
        axes.scatter([mark.place], [0], color=PALETTE[mark.colour], s=34, zorder=3)
    one_axis(axes)
    more, does = ("more", "earns") if reward else ("less", "costs")
    unit = "" if made.unit is None else f", {made.unit}"
    axes.set_xlabel(f"how much {more} {made.a} {does} than {made.b}{unit}")
    return axes
