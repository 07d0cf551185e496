"""Solves on a device: one for `solve` and `evaluate`, many of the same model for a search."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.model.mdp import MDP
from surefoot.solvers.algorithms import Outcome, Stopping, value_iteration
from surefoot.solvers.gpu.device import Device, doubles
from surefoot.solvers.gpu.robust_work import DeviceWork
from surefoot.solvers.problem import make_problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_SWEEPS = 20_000
FURTHEST = 2.0
"""No two distributions lie further apart, in the L1 norm."""


class Solved(NamedTuple):
    """A policy of action ids, its values about, and about its return."""

    policy: Ints
    value: Floats
    mean_return: float


class DeviceSolver:
    """A model that stays on the device, to be solved with other rewards, budgets or policies."""

    def __init__(self, device: Device, mdp: MDP, ambiguity: AmbiguitySet | None) -> None:
        self.mdp = mdp
        problem = make_problem(mdp, ambiguity, objective="max", nature="worst")
        self.work = DeviceWork(device, problem, None, MOST_SWEEPS)
        self.models, self.shares = self.work.models, self.work.shares
        self.start = self.work.v

    def solve(self, tolerance: float, *, less: Floats | None = None, scale: float = 1.0) -> Solved:
        """Solve with ``less[r]`` off the reward of every row and budgets times ``scale``."""
        work = self.work
        with doubles():
            models = self.models
            if less is not None:
                models = [
                    model._replace(reward=model.reward - work.put(_on_rows(work, k, less)))
                    for k, model in enumerate(models)
                ]
            if scale != 1.0:
                models = [
                    model._replace(budget=(scale * model.budget).clip(max=FURTHEST))
                    for model in models
                ]
            work.start_again(models, self.shares, self.start)
        outcome = self._run(tolerance)
        if less is None and scale == 1.0:
            self.start = work.lifted  # later ones are not far from it
            work.recheck()
        return self._solved(outcome, self.mdp.row_action[work.choice])

    def evaluate(self, policy: Ints, tolerance: float) -> float:
        """Return about what a policy earns."""
        work = self.work
        action = self.mdp.row_action
        shares = [
            np.where(
                (tile.row >= 0) & (action[tile.row] == policy[tile.states]), tile.share, np.nan
            )
            for tile in work.tiling.tiles
        ]
        with doubles():
            work.start_again(self.models, work.put(shares), self.start)
        return self._solved(self._run(tolerance), policy).mean_return

    def _run(self, tolerance: float) -> Outcome:
        stopping = Stopping(tolerance=tolerance, max_iterations=MOST_SWEEPS, progress=None)
        return value_iteration(self.work, stopping)

    def _solved(self, outcome: Outcome, policy: Ints) -> Solved:
        value = self.work.image + 0.5 * (outcome.bracket.below + outcome.bracket.above)
        start = self.mdp.initial / self.mdp.initial.sum()
        return Solved(policy, value, float(start @ value))


def _on_rows(work: DeviceWork, which: int, values: Floats) -> Floats:
    """Return numbers of rows as the rewards of a tile lie."""
    tile, laid = work.tiling.tiles[which], work.laid[which]
    row = tile.row.ravel()
    own = np.zeros(laid.model.budget.shape[0])
    own[: len(row)] = np.where(row < 0, 0.0, values[work.rows[row]])
    if laid.model.reward.ndim == 1:
        return own
    return own[:, None] if laid.long else own[None]
