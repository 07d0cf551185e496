"""The job behind ``surefoot demo``: what doubt about the model costs, on RiverSwim."""

from collections.abc import Callable
from dataclasses import dataclass

from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.domains.riverswim import riverswim
from surefoot.model.mdp import MDP
from surefoot.solve.solution import Solution
from surefoot.solve.solver import evaluate, solve

BUDGETS = (0.0, 0.1, 0.5)
"""L1 distances: half of each is how much probability may move between successors."""

Progress = Callable[[int, float], None]


@dataclass(frozen=True, kw_only=True, eq=False)
class DemoRow:
    """One budget: how the nominal policy fares in the worst model of the set, and the best policy.

    Attributes
    ----------
    budget
        The L1 budget of every row.
    nominal
        The policy that is optimal without doubt, in the worst model.
    robust
        The policy that is optimal in the worst model.
    """

    budget: float
    nominal: Solution
    robust: Solution

    @property
    def mdp(self) -> MDP:
        """The model."""
        return self.robust.mdp


def solve_demo(budget: float, progress: Progress | None = None) -> DemoRow:
    """Solve RiverSwim with an L1 ball of that budget around every row.

    Examples
    --------
    >>> row = solve_demo(0.5)
    >>> row.nominal.return_upper < row.robust.return_lower
    True
    """
    mdp = riverswim().mdp
    ambiguity = AmbiguitySet.from_arrays(mdp, norm="l1", budget=budget)
    nominal_policy = solve(mdp, progress=progress).policy
    return DemoRow(
        budget=budget,
        nominal=evaluate(mdp, nominal_policy, ambiguity, progress=progress),
        robust=solve(mdp, ambiguity, progress=progress),
    )
