"""The shape of a credible set, chosen on separate draws.

Everything here uses the shape draws only: passes with the robust value, the search for a centre,
the choice among alternatives. The sizes are set afterwards, once, on other draws: a choice made
after seeing the sizes would bias them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot._order_statistics import covering_rank
from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.calibration.levels import Level, order_statistics
from surefoot.calibration.weights import (
    SEARCH,
    USUAL_CENTER,
    ChosenWeights,
    centers,
    choose_weights,
    successor_values,
    weights_at,
)
from surefoot.model.mdp import MDP
from surefoot.posterior.batch import Batch

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

OUTER_DRAWS = 10
"""A quantile is estimated only as far out as this many shape draws lie beyond it."""
GRID = np.concatenate(([-4.0, -1.0, -0.3], np.linspace(0.0, 1.0, 13), [1.3, 2.0, 5.0]))
"""Centres tried first: 0 is the lowest value of a row, 1 the highest; some lie beyond."""
FINER = np.linspace(-0.06, 0.06, 7)
"""Offsets tried next, around the best centre of the first round."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Shaping:
    """The inputs that the choice of weights may use."""

    mdp: MDP
    norm: str
    objective: str
    batch: Batch | None
    level: Level

    def sizes(self, weights: Floats) -> Floats:
        """Return ``(J, R)``: the budgets that weights ``(J, E)`` would need on the shape draws."""
        if self.batch is None:
            raise TypeError("this choice of weights needs draws.")
        n = self.batch.draws
        parts = self.level.rows if self.level.union == "joint" else 1
        alpha = max(self.level.alpha / parts, OUTER_DRAWS / (n + 1))
        rank = min(n, covering_rank(n, min(alpha, 0.5), None))
        return order_statistics(
            self.batch, self.mdp, norm=self.norm, weights=weights, rank=rank,
            rows=np.flatnonzero(self.mdp.uncertain_rows),
        )  # fmt: skip

    def value(self, ambiguity: AmbiguitySet | None = None) -> tuple[Floats, float]:
        """Return the optimal value function, nominal or robust, and its return (larger: better)."""
        from surefoot.solvers.solver import solve

        solution = solve(self.mdp, ambiguity, objective=self.objective)
        sign = 1.0 if self.objective == "max" else -1.0
        middle = 0.5 * (solution.return_lower + solution.return_upper)
        return solution.value, sign * middle

    def row_values(self, weights: Floats, budget: Floats, value: Floats) -> Floats:
        """Return each row's worst case over its ball at a value function (larger is better)."""
        from surefoot.solvers.pair_kernels import NEVER
        from surefoot.solvers.problem import make_problem
        from surefoot.solvers.sweep_kernels import sweeps_of

        mdp = self.mdp
        made = AmbiguitySet(mdp=mdp, norm=self.norm, budget=budget, weights=weights)
        problem = make_problem(mdp, made, objective=self.objective, nature="worst")
        out = np.empty(mdp.num_rows)
        v = value if self.objective == "max" else -value
        rows = np.arange(mdp.num_rows, dtype=np.uint64)
        memory = np.full((mdp.num_rows, 2), NEVER)
        scratch = np.empty((4, problem.longest))
        sweeps_of(problem).row_values(problem, v, rows, memory, out, scratch)
        return out


def choose_shape(
    shaping: Shaping, weights: str | ArrayLike, center: str | float | None, passes: int
) -> ChosenWeights:
    """Return the weights; of several passes, those with the best robust return.

    A search for the centre follows a pass with the usual centre: it fits the weights closely to one
    value function, so that should be the robust one.
    """
    if not isinstance(weights, str) or weights == "uniform":
        return choose_weights(
            shaping.mdp, weights, norm=shaping.norm, center=center, z=shaping.mdp.probability
        )
    value, _ = shaping.value()
    best: ChosenWeights | None = None
    best_return = -np.inf
    plan = [center] * passes
    if weights == "analytic" and isinstance(center, str) and center == SEARCH:
        plan = [None, *plan]
    for turn, where in enumerate(plan):
        chosen = _at_value(shaping, value, weights, where)
        if len(plan) == 1 or chosen.weights is None:
            return chosen
        budget = shaping.sizes(chosen.weights[None])[0]
        made = AmbiguitySet(
            mdp=shaping.mdp, norm=shaping.norm, budget=budget, weights=chosen.weights
        )
        value, robust_return = shaping.value(made)
        if best is None or robust_return > best_return:
            best = chosen._replace(name=f"{chosen.name}, pass {turn + 1} of {len(plan)}")
            best_return = robust_return
    if best is None:
        raise ValueError(f"passes={passes}; it must be at least 1.")
    return best


def _at_value(
    shaping: Shaping, value: Floats, weights: str, center: str | float | None
) -> ChosenWeights:
    z = successor_values(shaping.mdp, value)
    if weights == "analytic" and isinstance(center, str) and center == SEARCH:
        return ChosenWeights(search_weights(shaping, value, z), "analytic, searched centre", "unit")
    return choose_weights(shaping.mdp, weights, norm=shaping.norm, center=center, z=z)


def search_weights(shaping: Shaping, value: Floats, z: Floats) -> Floats:
    """Return weights of the centre, row by row, whose calibrated ball has the best worst case.

    A centre determines the row's weights; the ball of that shape gets the size that the shape draws
    require, and its worst case at ``z`` is compared. First a grid is tried (with the usual centre,
    the mean, and uniform weights, the limit of distant centres), then a finer one around the best.
    """
    mdp = shaping.mdp
    starts = mdp.row_start[:-1]
    low = np.minimum.reduceat(z, starts)
    width = np.maximum.reduceat(z, starts) - low
    usual = centers(mdp, z, USUAL_CENTER[shaping.norm])
    uniform = 1.0 / np.sqrt(np.diff(mdp.row_start))[mdp.entry_row]
    tried = [usual, centers(mdp, z, "mean"), *(low + place * width for place in GRID)]
    alternatives = [weights_at(mdp, z, at, shaping.norm) for at in tried]
    best, worth, which = _best_rows(shaping, np.stack([*alternatives, uniform]), value)
    center = np.stack([*tried, usual])[which, np.arange(mdp.num_rows)]
    finer = [weights_at(mdp, z, center + step * width, shaping.norm) for step in FINER if step]
    more, improved, _ = _best_rows(shaping, np.stack(finer), value)
    return np.asarray(np.where((improved > worth)[mdp.entry_row], more, best))


def _best_rows(
    shaping: Shaping, alternatives: Floats, value: Floats
) -> tuple[Floats, Floats, NDArray[Any]]:
    """Return the best alternative of every row: its weights, its worst case and its index."""
    budgets = shaping.sizes(alternatives)
    worth = np.stack(
        [
            shaping.row_values(weights, budget, value)
            for weights, budget in zip(alternatives, budgets, strict=True)
        ]
    )
    which = worth.argmax(axis=0)
    rows = shaping.mdp.entry_row
    chosen = alternatives[which[rows], np.arange(len(rows))]
    return chosen, worth.max(axis=0), which
