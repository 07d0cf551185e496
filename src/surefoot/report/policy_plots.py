"""Figures of policies: what to do in each state, and where that leads."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from surefoot.data.label_order import natural_key
from surefoot.data.side_files import label_text
from surefoot.model.mdp import MDP
from surefoot.model.policies import check_policy
from surefoot.report.svg import PALETTE, action_colours, own_axes
from surefoot.report.tables import PolicyLine, _label
from surefoot.solvers.evaluation.visits import transition_matrix, visits_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FLOWS = 12
"""With more states than this, the arrows between them would be unreadable."""
SMALLEST_FLOW = 0.004
"""Arrows for less than this share of all steps are omitted."""
BEND = 0.6
"""The bend of an arrow, as a share of its length."""
LEGEND = 8
"""With more actions than this there is no legend."""


def actions_of(lines: Sequence[PolicyLine]) -> list[str]:
    """Return the actions of a policy in natural order."""
    return sorted({label_text(line.action) for line in lines}, key=natural_key)


def is_grid(lines: Sequence[PolicyLine]) -> bool:
    """Return whether states have two columns, so that a policy can be drawn as a grid."""
    states = [line.state for line in lines]
    return bool(states) and all(isinstance(s, tuple) and len(s) == 2 for s in states)


def plot_policy(
    policy: Sequence[PolicyLine],
    *,
    columns: Sequence[str] = (),
    colours: Mapping[str, str] | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draw what to do in each state, one colour for each action.

    States with two columns are drawn as a grid, others as a list from top to bottom. For a
    randomised policy, the most probable action is drawn.

    Parameters
    ----------
    policy
        The policy state by state, as in ``run.policy``.
    columns
        The names of the state columns.
    colours
        Colours by action; chosen automatically if not given.
    axes
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> from surefoot.report.tables import PolicyLine
    >>> from surefoot import plot_policy
    >>> line = PolicyLine(
    ...     state=("old", "high"), action="repair", probability=1.0, visits=9, margin=None
    ... )
    >>> plot_policy([line], columns=["age", "vibration"]).get_xlabel()
    'vibration'
    """
    if not isinstance(policy, Sequence):
        raise ValueError(
            f"policy must be the lines of a policy, got {type(policy).__name__}. A run has them: "
            "plot_policy(run.policy)."
        )
    if len(policy) == 0:
        raise ValueError("policy has no lines; there is nothing to draw.")
    drawn = own_axes(axes)
    best: dict[Hashable, PolicyLine] = {}
    for line in policy:
        if line.state not in best or line.probability > best[line.state].probability:
            best[line.state] = line
    names = actions_of(policy)
    shades = action_colours(names) if colours is None else dict(colours)
    if is_grid(policy):
        _draw_grid(drawn, best, shades, columns)
    else:
        _draw_list(drawn, best, shades, columns)
    for spine in drawn.spines.values():
        spine.set_visible(False)
    drawn.tick_params(length=0)
    if len(names) <= LEGEND:
        for name in names:
            drawn.scatter([], [], marker="s", s=60, color=shades[name], label=name)
        drawn.legend(
            frameon=False, loc="lower left", bbox_to_anchor=(0, 1.01), ncols=4, borderaxespad=0,
            handletextpad=0.3, columnspacing=1.2,
        )  # fmt: skip
    return drawn


def side_texts(values: Sequence[Hashable], column: str) -> list[str]:
    """Return the labels along a side of a grid, without the column's name in front of a bin.

    Examples
    --------
    >>> side_texts(["age below 40", "age 40-55"], "age")
    ['below 40', '40-55']
    """
    return [str(value).removeprefix(f"{column} ") for value in values]


def are_turned(texts: Sequence[str]) -> bool:
    """Return whether texts below a grid are too long to fit side by side."""
    return sum(map(len, texts)) > 48


def _draw_grid(
    axes: Axes, best: Mapping[Any, PolicyLine], shades: Mapping[str, str], columns: Sequence[str]
) -> None:
    """Draw the first state column downwards and the second across."""
    across: dict[Hashable, list[Hashable]] = {}
    for down, right in best:
        across.setdefault(down, []).append(right)
    sides = [list(across), _in_order(across.values())]
    place = [{value: i for i, value in enumerate(side)} for side in sides]
    for state, line in best.items():
        x, y = place[1][state[1]], place[0][state[0]]
        _cell(axes, x, y, label_text(line.action), shades, words=len(sides[1]) <= 8)
    texts = [side_texts(side, columns[i] if columns else "") for i, side in enumerate(sides)]
    for axis, side in ((axes.yaxis, texts[0]), (axes.xaxis, texts[1])):
        step = -(-len(side) // 25)
        axis.set_ticks(range(0, len(side), step), side[::step])
    axes.tick_params(axis="x", rotation=60 if are_turned(texts[1]) else 0)
    axes.set_xlim(-0.5, len(sides[1]) - 0.5)
    axes.set_ylim(len(sides[0]) - 0.5, -0.5)
    if len(columns) == 2:
        axes.set_ylabel(columns[0])
        axes.set_xlabel(columns[1])


def _draw_list(
    axes: Axes, best: Mapping[Any, PolicyLine], shades: Mapping[str, str], columns: Sequence[str]
) -> None:
    for i, line in enumerate(best.values()):
        _cell(axes, 0, i, label_text(line.action), shades, words=len(best) <= 40)
    step = -(-len(best) // 40)
    labels = [label_text(state) for state in best]
    axes.set_yticks(range(0, len(best), step), labels[::step])
    axes.set_xticks([])
    axes.set_xlim(-0.5, 0.5)
    axes.set_ylim(len(best) - 0.5, -0.5)
    axes.set_ylabel(", ".join(columns))


def _cell(
    axes: Any, x: float, y: float, action: str, shades: Mapping[str, str], *, words: bool
) -> None:
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((x - 0.47, y - 0.45), 0.94, 0.9, color=shades[action], linewidth=0))
    if words:
        short = action if len(action) <= 14 else f"{action[:13]}…"
        axes.text(x, y, short, ha="center", va="center", color="#111111", fontsize="small")


def _in_order(groups: Iterable[Sequence[Hashable]]) -> list[Hashable]:
    """Return all values in an order that agrees with every group, if there is one.

    Examples
    --------
    >>> _in_order([["low", "high"], ["low", "raised", "high"]])
    ['low', 'raised', 'high']
    """
    order: list[Hashable] = []
    for group in groups:
        place = 0
        for value in group:
            if value not in order:
                order.insert(place, value)
            place = order.index(value) + 1
    return order


def plot_flow(
    mdp: MDP,
    policy: NDArray[Any],
    states: Sequence[int],
    *,
    colours: Mapping[str, str],
    axes: Axes | None = None,
) -> Axes:
    """Draw where a policy leads: discs show the time spent in states, arrow widths the traffic.

    ``states`` are the states to draw, from left to right. Arrows above go right, those below left.

    Examples
    --------
    >>> from surefoot import riverswim
    >>> mdp = riverswim().mdp
    >>> axes = plot_flow(mdp, np.ones(6, dtype=int), range(6), colours={"right": "#5b9bd0"})
    >>> len(axes.patches) > 5
    True
    """
    drawn = own_axes(axes)
    played = check_policy(mdp, policy)
    met = visits_of(mdp, played)
    share = met / met.sum()
    flow = transition_matrix(mdp, played).multiply(share[:, None]).toarray()
    _draw_arrows(drawn, flow[np.ix_(states, states)])
    actions = np.asarray(policy).argmax(axis=1) if np.ndim(policy) == 2 else policy
    largest = float(share[list(states)].max())
    for i, s in enumerate(states):
        name = label_text(_label(mdp.action_labels, actions[s]))
        drawn.scatter(
            [i], [0], s=130 + 500 * share[s] / largest, zorder=3, linewidths=0,
            color=colours.get(name, PALETTE["pale"]),
        )  # fmt: skip
        drawn.annotate(
            f"{100 * share[s]:.0f}%", (i, 0), ha="center", va="center", fontsize=7,
            color="#111111", zorder=4,
        )  # fmt: skip
    _name_below(drawn, [label_text(_label(mdp.state_labels, s)) for s in states])
    return drawn


def _draw_arrows(axes: Axes, flow: NDArray[np.float64]) -> None:
    """Draw arcs between points on a line: above it to the right, below it to the left."""
    from matplotlib.patches import FancyArrowPatch

    between = flow * (1 - np.eye(len(flow)))
    pairs = np.argwhere(between >= SMALLEST_FLOW)
    widest = between.max(initial=0.0) or 1.0
    for i, j in pairs:
        arrow = FancyArrowPatch(
            (i, 0), (j, 0), connectionstyle=f"arc3,rad={-BEND}", shrinkA=9, shrinkB=9,
            arrowstyle="-|>,head_length=3,head_width=1.8", mutation_scale=1.6, alpha=0.8,
            linewidth=0.6 + 3.4 * between[i, j] / widest, color=PALETTE["faint"],
        )  # fmt: skip
        axes.add_patch(arrow)
    # An arc rises to half its bend, and discs need space.
    up, down = (max((sign * (j - i) for i, j in pairs), default=0) for sign in (1, -1))
    axes.set_xlim(-0.6, len(flow) - 0.4)
    axes.set_ylim(-BEND * max(down, 1) / 2 - 0.5, BEND * max(up, 1) / 2 + 0.5)
    axes.set_aspect("equal")


def _name_below(axes: Axes, names: Sequence[str]) -> None:
    turned = sum(map(len, names)) > 40
    axes.set_xticks(range(len(names)), names, rotation=45 if turned else 0)
    if turned:
        for tick in axes.get_xticklabels():
            tick.set_horizontalalignment("right")
    axes.tick_params(length=0)
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)
