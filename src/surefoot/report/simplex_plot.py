"""A plot of distributions over three successors as a triangle, with draws and sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot._display import label_text
from surefoot.ambiguity.sets import BALLS, AmbiguitySet
from surefoot.report.svg import PALETTE, own_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
FINE = 500
"""Grid points along the base of the triangle."""
COLOURS = ("expected", "today", "limit", "promise")
HEIGHT = np.sqrt(3) / 2


def plot_simplex(
    draws: ArrayLike,
    sets: Mapping[str, AmbiguitySet] | None = None,
    *,
    row: int = 0,
    labels: Sequence[str] | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draw distributions over three successors as points of a triangle, and sets as outlines.

    At each corner one successor has probability 1. The outline of a set shows which draws it
    contains, and so why one shape costs less than another that contains as many.

    Parameters
    ----------
    draws
        ``(N, 3)``: drawn distributions.
    sets
        Sets by their name in the legend; row ``row`` of each must have three successors.
    row
        The row of the sets to draw.
    labels
        The names of the corners; None takes those of the sets' model.
    axes
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> import numpy as np
    >>> from surefoot import plot_simplex
    >>> draws = np.random.default_rng(0).dirichlet([10, 10, 1], size=50)
    >>> len(plot_simplex(draws, labels=["a", "b", "c"]).texts)
    3
    """
    points = np.asarray(draws, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 3:
        raise ValueError(f"draws has shape {points.shape}; a triangle needs (N, 3).")
    named = dict(sets or {})
    for name, one in named.items():
        _check_row(name, one, row)
    drawn = own_axes(axes)
    drawn.plot(*_flat(np.eye(3)[[0, 1, 2, 0]]), color=PALETTE["faint"], linewidth=1)
    drawn.scatter(*_flat(points), s=4, color=PALETTE["promise"], alpha=0.4, linewidths=0)
    for i, (name, one) in enumerate(named.items()):
        colour = PALETTE[COLOURS[i % len(COLOURS)]]
        x, y, beyond = _grid(one, row)
        drawn.contour(x, y, beyond, levels=[0.0], colors=colour, linewidths=2)
        drawn.plot([], [], color=colour, linewidth=2, label=name)
    if named:
        drawn.legend(loc="upper right", fontsize="small", frameon=False)
    for place, name, words in zip(_corners(), _names(labels, named, row), "LRC", strict=True):
        side = {"L": ("right", "top"), "R": ("left", "top"), "C": ("center", "bottom")}[words]
        drawn.annotate(name, place, ha=side[0], va=side[1])
    drawn.set(aspect="equal", xticks=[], yticks=[])
    drawn.margins(0.12)
    for spine in drawn.spines.values():
        spine.set_visible(False)
    return drawn


def _check_row(name: str, one: AmbiguitySet, row: int) -> None:
    sizes = np.diff(one.mdp.row_start)
    if not 0 <= row < len(sizes) or sizes[row] != 3:
        found = f"{sizes[row]} successors" if 0 <= row < len(sizes) else f"{len(sizes)} rows"
        raise ValueError(
            f"row={row}; a triangle needs a row with 3 successors, {name!r} has {found}."
        )


def _names(
    labels: Sequence[str] | None, sets: Mapping[str, AmbiguitySet], row: int
) -> Sequence[str]:
    if labels is not None:
        if len(labels) != 3:
            raise ValueError(f"labels={list(labels)!r}; the triangle has three corners.")
        return labels
    if not sets:
        return ("", "", "")
    mdp = next(iter(sets.values())).mdp
    entries = slice(mdp.row_start[row], mdp.row_start[row + 1])
    return [label_text(mdp.state_labels, int(state)) for state in mdp.successor[entries]]


def _corners() -> list[tuple[float, float]]:
    return [(0.0, -0.02), (1.0, -0.02), (0.5, float(HEIGHT) + 0.02)]


def _flat(p: Floats) -> tuple[Floats, Floats]:
    """Return the coordinates of distributions in the triangle (0,0), (1,0), (1/2, √3/2)."""
    return p[..., 1] + p[..., 2] / 2, p[..., 2] * HEIGHT


def _grid(one: AmbiguitySet, row: int) -> tuple[Floats, Floats, Floats]:
    """Return points of the triangle, and how far each is outside the set (negative: inside)."""
    x, y = np.meshgrid(np.linspace(0.0, 1.0, FINE), np.linspace(0.0, HEIGHT, FINE))
    last = y / HEIGHT
    p = np.stack([1 - last - (x - last / 2), x - last / 2, last], axis=-1)
    beyond = _beyond(one, row, p)
    beyond[(p < -1e-9).any(axis=-1)] = np.nan
    return x, y, beyond


def _beyond(one: AmbiguitySet, row: int, p: Floats) -> Floats:
    entries = slice(one.mdp.row_start[row], one.mdp.row_start[row + 1])
    if one.lower is not None and one.upper is not None:
        outside = np.maximum(one.lower[entries] - p, p - one.upper[entries])
        return np.asarray(outside.max(axis=-1))
    ball = BALLS[one.norm]
    parts = ball.parts(one.mdp.probability[entries], np.maximum(p, 0.0))
    if one.weights is not None:
        parts = np.where(parts == 0, 0.0, one.weights[entries] * parts)
    distance = ball.combine.reduce(parts, axis=-1)
    return np.asarray(np.minimum(distance, 1e9) - np.asarray(one.budget)[row])
