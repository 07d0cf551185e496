"""A time budget for a whole run: what is left for the search, and how many draws it pays for."""

import time
from dataclasses import dataclass, field, replace

from surefoot._order_statistics import draws_needed
from surefoot.certificates import planning
from surefoot.model.policies import check_policy
from surefoot.pipeline.model import Model
from surefoot.solvers.evaluation.rewards import rewards_of

BOUNDS = 0.4
"""Share of the budget for what comes after the search: certificate, worst case, comparison."""
PACE = 1e9
"""Operations a second of one core; `planning.WORK` counts them."""
PASSES = 4
"""How often a policy is evaluated on all draws: when chosen, certified, and compared (two)."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Seconds of wall clock for a whole run, counted from when this was made; None is no limit."""

    seconds: float | None
    began: float = field(default_factory=time.monotonic)

    @property
    def is_used(self) -> bool:
        """Whether nothing is left."""
        return self.seconds is not None and time.monotonic() - self.began >= self.seconds

    def applied(self, model: Model) -> Model:
        """Return the model with settings that keep to what is left of the budget.

        The number of draws depends on the budget and the model alone, never on the clock, so that
        a run can be repeated.
        """
        if self.seconds is None:
            return model
        used = time.monotonic() - self.began
        left = max((1.0 - BOUNDS) * self.seconds - used, 0.0)
        draws = model.settings.draws
        if draws is None and model.bayesian:
            draws = affordable(model, BOUNDS * self.seconds)
        return replace(model, settings=replace(model.settings, time_budget=left, draws=draws))


def affordable(model: Model, seconds: float) -> int | None:
    """Return how many draws all bounds can have in some seconds; None where the usual ones fit."""
    mdp, settings = model.mdp, model.settings
    rewards = rewards_of(mdp, model.posterior, objective="max")
    some_policy = check_policy(mdp, mdp.row_action[mdp.state_start[:-1]])
    best = planning.best_work(mdp, rewards)
    work = PASSES * planning.policy_work(mdp, rewards, some_policy) + best
    needed = draws_needed(settings.delta, settings.eta)
    usual = planning.affordable_draws(best, planning.LEAST, planning.MOST)
    draws = int(PACE * seconds / work)
    return None if draws >= max(usual, 4 * needed) else max(draws, needed)
