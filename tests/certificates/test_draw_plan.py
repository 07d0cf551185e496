"""How many draws there are: what they are worth, and what they cost."""

import numpy as np

import surefoot as sf
from surefoot.certificates import draw_plan
from surefoot.domains.garnet import river_chain
from surefoot.model.policies import check_policy
from surefoot.solvers.evaluation.rewards import rewards_of

RETURNS = np.random.default_rng(0).normal(size=1000)


def test_more_draws_where_the_quantile_is_uncertain():
    wide, narrow = 10 + 5 * RETURNS, 10 + 0.01 * RETURNS
    assert draw_plan.plan_draws(wide, 0.05, 0.001, 100.0) > 10_000
    assert draw_plan.plan_draws(narrow, 0.05, 0.001, 100.0) == draw_plan.LEAST
    assert draw_plan.plan_draws(np.ones(1000), 0.05, 0.001, 100.0) == draw_plan.LEAST


def test_fewer_draws_where_they_are_dear():
    wide = 10 + 5 * RETURNS
    assert draw_plan.plan_draws(wide, 0.05, 0.001, 2e6) == 5000
    assert draw_plan.plan_draws(wide, 0.05, 0.001, 1e7) == 2000
    assert draw_plan.plan_draws(wide, 0.05, 0.001, 4e7) == 1000
    assert draw_plan.plan_draws(wide, 0.05, 0.001, 1e12) == 540  # four times the fewest possible
    limit = {"most": draw_plan.LIMIT_WORK, "times": draw_plan.LIMIT_TIMES}
    assert draw_plan.plan_draws(wide, 0.05, 0.001, 1e12, **limit) == 135  # the fewest possible
    assert draw_plan.plan_draws(wide, 0.5, 0.001, 1e12, **limit) == draw_plan.FEWEST  # not ten
    assert draw_plan.plan_draws(wide, 0.05, 0.001, 1e7, **limit) == 1000  # as ten seconds pay for
    narrow = 10 + 0.01 * RETURNS
    assert draw_plan.plan_draws(narrow, 0.05, 0.001, 1e7, **limit) == 150  # one and a half will do
    assert draw_plan.affordable_draws(1e12, 2000, 20_000) == 2000


def test_work_follows_the_entries_in_use():
    river = river_chain(300, discount=0.9)
    mdp, counts = river.mdp, river.simulate(5, np.random.default_rng(0))
    posterior = sf.DirichletPosterior(counts)
    rewards = rewards_of(mdp, posterior, objective="max")
    one = draw_plan.policy_work(mdp, rewards, check_policy(mdp, np.zeros(300, dtype=int)))
    both = draw_plan.policy_work(mdp, rewards, check_policy(mdp, np.full((300, 2), 0.5)))
    assert one < both < 3 * one
    assert draw_plan.best_work(mdp, rewards) > one
