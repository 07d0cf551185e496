"""A time budget for a whole run: the time left for the search, and how many draws are affordable.

Only the search looks at the clock, and the number of its steps is recorded; everything else depends
on the budget and the model alone. So a run can be repeated bit for bit.
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
"""A run that exceeds its budget by more than this factor says so."""
PACE = 1e9
"""Operations per second of one core, as `draw_plan.policy_work` counts them."""
PASSES = 4
"""How often a policy is evaluated on all draws: when chosen, certified, and compared (twice)."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Seconds of wall clock for a whole run, from the creation of this object; None: no limit."""

    seconds: float | None
    began: float = field(default_factory=working_clock)

    def remark(self) -> str:
        """Return a sentence for a budget that was too short, or "" if it was kept."""
        spent = working_clock() - self.began
        if self.seconds is None or spent <= KEPT * self.seconds:
            return ""
        return (
            f"The time budget of {self.seconds:g} s was too short: the run took {spent:.0f} s. "
            "Every run has to read the log, build the model, make the fewest draws that a promise "
            "needs, check it against the log and write the report."
        )

    def applied(self, model: Model) -> Model:
        """Return the model with settings that fit into the rest of the budget."""
        if self.seconds is None:
            return model
        used = working_clock() - self.began
        left = max((1.0 - BOUNDS) * self.seconds - used, 0.0)
        draws = draws_within(model, self.seconds)
        return replace(model, settings=replace(model.settings, time_budget=left, draws=draws))


def draws_within(model: Model, seconds: float | None) -> int | None:
    """Return the number of draws requested, or affordable in the time budget; None: the usual.

    It does not depend on the clock.
    """
    asked = model.settings.draws
    if asked is not None or seconds is None or not model.bayesian:
        return asked
    return affordable(model, BOUNDS * seconds)


def affordable(model: Model, seconds: float) -> int | None:
    """Return how many draws each bound can have in some seconds; None if the usual number fits."""
    mdp, settings = model.mdp, model.settings
    rewards = rewards_of(mdp, model.posterior, objective="max")
    some_policy = check_policy(mdp, mdp.row_action[mdp.state_start[:-1]])
    best = draw_plan.best_work(mdp, rewards)
    work = PASSES * draw_plan.policy_work(mdp, rewards, some_policy) + best
    needed = draws_needed(settings.delta, settings.eta)
    usual = draw_plan.affordable_draws(best, draw_plan.LEAST, draw_plan.MOST)
    draws = int(PACE * seconds / work)
    return None if draws >= max(usual, 4 * needed) else max(draws, needed)
