"""Example 1 of the paper with exact budgets, and its figure.

One row with three successors, ``p ~ Dirichlet(10, 10, 1)``, rewards ``(0.25, 0.25, -1)`` and
delta 0.2. For each norm and weights, the set gets the smallest budget with which it contains ``p``
with probability 0.8, computed by integration instead of sampling.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import beta

from surefoot._atomic import replacing
from surefoot._rounding import lower_text
from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.model.mdp import MDP
from surefoot.solvers.worst_case import worst_case
from surefoot.studies.options import Draws, Seed
from surefoot.studies.published import NORM_TITLES, NORMS
from surefoot.studies.table import Table, markdown_section

Floats = NDArray[np.float64]

SHAPE = np.array([10.0, 10.0, 1.0])
MEAN = SHAPE / SHAPE.sum()
REWARDS = np.array([0.25, 0.25, -1.0])
DELTA = 0.2
PRINTED = {"uniform": -0.06, "stated": 0.16}
"""The two returns that the paper prints."""
PRINTED_BUDGET = 0.1
"""The paper's "smallest budget" that contains 80%, for weights scaled to 2-norm 1."""

SETS = {
    "uniform": (1.0, 1.0, 1.0),
    "stated": (0.25, 0.25, 1.0),
    "median": (0.0, 0.0, 1.0),
}
"""Weights: all equal, those the paper states (its centre is 0), and those around the median."""

FIGURE_WORDS = "posterior draws and two sets"
"""A description of the figure."""

NODES, CHORDS = np.polynomial.legendre.leggauss(200)


@dataclass(frozen=True, kw_only=True, eq=False)
class ExampleSet:
    """One set of the example: its exact budget and the return it guarantees."""

    name: str
    norm: str
    weights: tuple[float, float, float]
    budget: float
    guarantee: float


def best_guarantee(delta: float = DELTA) -> float:
    """Return y*, the delta-quantile of the return: no valid guarantee is larger.

    The return is ``0.25 - 1.25 p_3`` with ``p_3 ~ Beta(1, 20)``.

    Examples
    --------
    >>> round(best_guarantee(), 4)
    0.1534
    """
    return float(0.25 - 1.25 * (1.0 - delta ** (1.0 / 20.0)))


def containment(budget: float, weights: Sequence[float], norm: str) -> float:
    """Return ``P[ ||p - mean||_w <= budget ]``; the first two weights must be equal.

    Given ``p_3``, ``p_1 = (1 - p_3) b`` with ``b ~ Beta(10, 10)``, and the set allows an interval
    of values of ``p_1``. What remains is one integral over ``p_3 ~ Beta(1, 20)``, whose integrand
    is smooth on either side of the mean of ``p_3``.

    Examples
    --------
    >>> round(containment(2.0, (1.0, 1.0, 1.0), "l1"), 9)
    1.0
    """
    side, other, last = weights
    if side != other:
        raise ValueError(f"weights={tuple(weights)}; the first two must be equal.")
    farthest = budget / (side + last) if norm == "l1" else budget / max(side / 2, last)
    ends = (max(0.0, MEAN[2] - farthest), MEAN[2], min(1.0, MEAN[2] + farthest))
    total = 0.0
    for start, end in pairwise(ends):
        p3 = start + (end - start) * (NODES + 1) / 2
        low, high = _interval(MEAN[2] - p3, budget, side, last, norm)
        share = beta.cdf((MEAN[0] + high) / (1 - p3), 10, 10)
        share -= beta.cdf((MEAN[0] + low) / (1 - p3), 10, 10)
        total += (end - start) / 2 * float(CHORDS @ (beta.pdf(p3, 1, 20) * share))
    return float(total)


def _interval(
    gap: Floats, budget: float, side: float, last: float, norm: str
) -> tuple[Floats, Floats]:
    """Return the allowed deviations of ``p_1`` if those of ``p_1`` and ``p_2`` sum to ``gap``."""
    if side == 0:  # limited by the simplex only
        return np.full_like(gap, -1.0), np.full_like(gap, 1.0)
    if norm == "l1":
        width = (budget - last * np.abs(gap)) / side
        return (gap - width) / 2, (gap + width) / 2
    reach = budget / side
    return np.maximum(-reach, gap - reach), np.minimum(reach, gap + reach)


def exact_set(name: str, norm: str) -> ExampleSet:
    """Return one set with its exact 80% budget and its guaranteed return.

    Examples
    --------
    >>> round(exact_set("stated", "linf").guarantee, 3)
    0.129
    """
    weights = SETS[name]
    budget = float(brentq(lambda b: containment(b, weights, norm) - (1 - DELTA), 1e-6, 2.0))
    worst = worst_case(REWARDS, MEAN, budget=budget, weights=weights, norm=norm)
    return ExampleSet(name=name, norm=norm, weights=weights, budget=budget, guarantee=worst.value)


def example_one() -> list[ExampleSet]:
    """Return the six sets: three weights, two norms.

    Examples
    --------
    >>> max(found.guarantee for found in example_one()) < best_guarantee()
    True
    """
    return [exact_set(name, norm) for name in SETS for norm in NORMS]


def draw_example(sets: Sequence[ExampleSet], draws: int, rng: np.random.Generator) -> Any:
    """Return a figure: the simplex, posterior draws, and the uniform and the stated set."""
    from matplotlib.figure import Figure

    from surefoot.report.simplex_plot import plot_simplex

    points = rng.dirichlet(SHAPE, size=draws)
    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    for axes, norm in zip(figure.subplots(1, 2), NORMS, strict=True):
        shown = [
            s for name in ("uniform", "stated") for s in sets if (s.name, s.norm) == (name, norm)
        ]
        named = {f"{one.name} weights: {one.guarantee:.3f}": _as_set(one) for one in shown}
        plot_simplex(points, named, labels=("", "", ""), axes=axes)
        axes.set(ylim=(-0.02, 0.36), xlim=(0.1, 0.9))
        axes.set_title(NORM_TITLES[norm])
    figure.suptitle(f"Guaranteed return at 80% (best possible: {best_guarantee():.4f})")
    return figure


def _as_set(chosen: ExampleSet) -> AmbiguitySet:
    """Return the set for a model with three states, each of which leads to all three."""
    mdp = MDP.from_arrays(np.tile(MEAN, (3, 1, 1)), np.zeros((3, 1)), discount=0.5)
    weights = np.tile(chosen.weights, (3, 1, 1))
    return AmbiguitySet.from_arrays(mdp, norm=chosen.norm, budget=chosen.budget, weights=weights)


def example_table(sets: Sequence[ExampleSet]) -> Table:
    """Return the sets as a table."""
    head = (
        "weights", "norm", "exact 80% budget", "guaranteed return", "printed",
        f"inside with the printed budget {PRINTED_BUDGET:g}",
    )  # fmt: skip
    rows = []
    for found in sets:
        shown = "(" + ", ".join(f"{w:g}" for w in found.weights) + ")"
        printed = f"{PRINTED[found.name]:g}" if found.norm == "l1" and found.name in PRINTED else ""
        scaled = PRINTED_BUDGET * float(np.linalg.norm(found.weights))
        inside = containment(scaled, found.weights, found.norm)
        numbers = (f"{found.budget:.4f}", lower_text(found.guarantee, 4), printed, f"{inside:.2f}")
        rows.append((shown, NORM_TITLES[found.norm], *numbers))
    remark = f"No valid guarantee is larger than y* = {best_guarantee():.4f}."
    return Table("Example 1", head, rows, (remark,))


def command(
    figure: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Where to write the figure (SVG).")
    ] = None,
    draws: Draws = 500,
    seed: Seed = 0,
) -> None:
    """Show Example 1 with exact budgets; write its figure to FILE if given."""
    from surefoot.report.svg import svg_text

    sets = example_one()
    typer.echo("\n".join(markdown_section(example_table(sets))))
    if figure is not None:
        drawn = draw_example(sets, draws, np.random.default_rng(seed))
        with replacing(figure, "w", encoding="utf-8") as file:
            file.write(svg_text(drawn, "example", FIGURE_WORDS))
