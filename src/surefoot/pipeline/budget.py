"""A time budget for a whole run: what is left for the search, and how many draws it pays for.

Only the search looks at the clock, and the steps it did are recorded; all else depends on the
budget and the model alone. So a run can be repeated bit for bit.
"""

from dataclasses import dataclass, field, replace

from surefoot._compile import working_clock
from surefoot._order_statistics import draws_needed
from surefoot.certificates import draw_plan
from surefoot.model.policies import check_policy
from surefoot.pipeline.model import Model
from surefoot.solvers.evaluation.rewards import rewards_of

BOUNDS = 0.4
"""Share of the budget for what comes after the search: certificate, worst case, comparison."""
KEPT = 1.2
"""A budget is kept within this factor, and what every run has to do."""
PACE = 1e9
"""Operations a second of one core; `draw_plan.policy_work` counts them."""
PASSES = 4
"""How often a policy is evaluated on all draws: when chosen, certified, and compared (two)."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Seconds of wall clock for a whole run, counted from when this was made; None is no limit."""

    seconds: float | None
    began: float = field(default_factory=working_clock)

    def remark(self) -> str:
        """Return what to say of a budget that was too short for what every run has to do."""
        spent = working_clock() - self.began
        if self.seconds is None or spent <= KEPT * self.seconds:
            return ""
        return (
            f"The time budget of {self.seconds:g} s was too short: the run took {spent:.0f} s. "
            "Every run has to read the log, build the model, make the fewest draws that a promise "
            "needs, check it against the log and write the report."
        )

    def applied(self, model: Model) -> Model:
        """Return the model with settings that keep to what is left of the budget."""
        if self.seconds is None:
            return model
        used = working_clock() - self.began
        left = max((1.0 - BOUNDS) * self.seconds - used, 0.0)
        draws = draws_within(model, self.seconds)
        return replace(model, settings=replace(model.settings, time_budget=left, draws=draws))


def draws_within(model: Model, seconds: float | None) -> int | None:
    """Return the draws that were asked for, or that the time budget pays for; None for the usual.

    It never looks at the clock.
    """
    asked = model.settings.draws
    if asked is not None or seconds is None or not model.bayesian:
        return asked
    return affordable(model, BOUNDS * seconds)


def affordable(model: Model, seconds: float) -> int | None:
    """Return how many draws all bounds can have in some seconds; None where the usual ones fit."""
    mdp, settings = model.mdp, model.settings
    rewards = rewards_of(mdp, model.posterior, objective="max")
    some_policy = check_policy(mdp, mdp.row_action[mdp.state_start[:-1]])
    best = draw_plan.best_work(mdp, rewards)
    work = PASSES * draw_plan.policy_work(mdp, rewards, some_policy) + best
    needed = draws_needed(settings.delta, settings.eta)
    usual = draw_plan.affordable_draws(best, draw_plan.LEAST, draw_plan.MOST)
    draws = int(PACE * seconds / work)
    return None if draws >= max(usual, 4 * needed) else max(draws, needed)
