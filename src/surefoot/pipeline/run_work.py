"""The expected work of a run, part by part."""

import numpy as np

from surefoot._order_statistics import draws_needed
from surefoot._work import DRAWN, FIGURE, OPERATION, SWEPT
from surefoot.calibration.credible import EFFORT, JOINT_VALUES
from surefoot.certificates import doubt, draw_plan, held_out, row_doubt
from surefoot.certificates.behaviour import share_delta
from surefoot.certificates.curse import DEFAULT_HALVES, FEW_HALVES, MANY_ROWS
from surefoot.certificates.models import allowed_rows
from surefoot.certificates.optimize import selection_draws
from surefoot.model.policies import check_policy
from surefoot.pipeline import figures, next_rows, practice
from surefoot.pipeline.model import Model
from surefoot.pipeline.parts import has_episodes
from surefoot.solvers.evaluation.evaluator import choose_evaluator
from surefoot.solvers.evaluation.rewards import rewards_of
from surefoot.solvers.gpu.choice import choose_engine

EVALUATIONS, SWEEPS = 15, 28
"""Evaluations of a search on all its draws, and sweeps over them, mostly of the VaR operator."""
HALF = 2e-6
"""Work per entry for half of a log: its posterior mean, a choice, two evaluations."""
PATHS = 2.5e-6
"""Work per entry for the best and the worst path through the log."""
FIGURES = 4
"""The number of figures of a report."""

FOUND = ("search", "promise", "limit", "luck", "backtest", "practice", "doubt")
"""The parts of finding and certifying a policy, in order; the set and the report come after."""


def expected_work(model: Model) -> dict[str, float]:
    """Return the parts of a run with the work of each; empty if that is not known.

    The promise is taken to have the least number of draws; `certify` reports the number it plans.
    """
    if not model.bayesian:
        return {}
    if choose_engine(model.settings.device, model.mdp, model.posterior).on_device:
        return {}
    mdp, settings = model.mdp, model.settings
    rewards = rewards_of(mdp, model.posterior, objective="max")
    some = check_policy(mdp, mdp.row_action[mdp.state_start[:-1]])
    entries, rows = mdp.num_entries, mdp.num_rows
    played = entries * mdp.num_states / rows
    work, best = draw_plan.policy_work(mdp, rewards, some), draw_plan.best_work(mdp, rewards)
    one = draw_plan.policy_time(mdp, some)
    every = choose_evaluator(mdp).work

    def draws(usual: int) -> int:
        return settings.draws or usual

    least = draw_plan.least_draws(settings.delta, settings.eta, work)
    fewest = draw_plan.least_draws(
        settings.delta, settings.eta, best, draw_plan.LIMIT_WORK, draw_plan.LIMIT_TIMES
    )
    halves = DEFAULT_HALVES if rows <= MANY_ROWS else FEW_HALVES
    tested = min(1.0, held_out.MOST_ROWS / rows) * held_out.MASS_DRAWS
    stepped = min(1.0, held_out.MOST_STEPS / rows) * held_out.STEP_DRAWS
    by_model = draw_plan.affordable_draws(
        rows / mdp.num_states * work, practice.LEAST_DRAWS, practice.MODEL_DRAWS, practice.WORK
    )
    split = draw_plan.affordable_draws(3 * work, doubt.LEAST, doubt.MOST, doubt.WORK)
    needed = draws_needed(settings.delta, settings.eta)
    sized = max(EFFORT * needed, int(JOINT_VALUES / played))
    pictured = figures.usual_draws(work)
    if draws(least) >= pictured and pictured < figures.DRAWN:
        pictured = 0  # they show those of the promise
    shares = draw_plan.affordable_draws(work, row_doubt.LEAST, row_doubt.MOST, row_doubt.WORK)
    gained = 0.0
    if has_episodes(settings) and settings.initial in (None, "episodes"):
        own = draws_needed(share_delta(settings.delta)[0], settings.eta)
        gained = own * one if draws(least) < own else 0.0  # else by the draws of the promise
    listed = 3 * shares * one if entries <= next_rows.MOST_ENTRIES else 0.0
    return {
        "search": _search(model, every),
        "promise": (draw_plan.pilot_draws(work) + draws(least)) * one,
        "limit": draws(fewest) * (draw_plan.best_time(mdp) + one) if rows > mdp.num_states else 0.0,
        "luck": 2 * halves * HALF * entries,
        "backtest": 3 * HALF * entries + (tested + stepped) * DRAWN * entries,
        "practice": PATHS * entries + by_model * (DRAWN * entries + OPERATION * every) + gained,
        "doubt": 3 * split * one,
        "set": 2 * sized * DRAWN * played * 1.2,
        "report": FIGURES * FIGURE + pictured * one + listed,
    }


def _search(model: Model, every: float) -> float:
    """Return the work of a search on drawn models, at most the time budget."""
    mdp, settings = model.mdp, model.settings
    rows = allowed_rows(mdp, model.allowed)
    if model.considered is not None:
        rows = np.intersect1d(rows, allowed_rows(mdp, model.considered))
    if len(rows) == mdp.num_states:
        return 0.0
    entries = int(np.diff(mdp.row_start)[rows].sum())
    n, _ = selection_draws(model.choosing, mdp, rows, settings.draws)
    work = n * ((DRAWN + SWEEPS * SWEPT) * entries + EVALUATIONS * OPERATION * every)
    return work if settings.time_budget is None else min(work, settings.time_budget)
