"""Doubt by row: the delta method against exact variances, and against draws."""

from dataclasses import replace

import numpy as np
import pytest

import surefoot as sf
from surefoot.certificates.plays import plays_of
from surefoot.certificates.row_doubt import row_doubt
from surefoot.model.step_policy import StepPolicy


def rng(seed):
    return np.random.default_rng(seed)


def machine(samples, discount=0.95):
    counts = sf.machine_replacement().simulate(samples, rng(1))
    return sf.DirichletPosterior(counts), counts.to_mdp(discount=discount, prior=1.0)


def test_shares_are_those_of_exact_dirichlet_rows():
    posterior, mdp = machine(30)
    policy = sf.solve(mdp).policy
    found = row_doubt(posterior, mdp, policy, rng(2), delta=0.05, draws=20_000)
    plays = plays_of(mdp, policy)
    z = mdp.entry_reward + plays.ahead
    start = mdp.row_start[:-1]
    mean = np.add.reduceat(posterior.mean() * z, start)
    square = np.add.reduceat(posterior.mean() * z**2, start)
    total = np.add.reduceat(posterior.shape, start)
    exact = (plays.weight**2 * np.maximum(square - mean**2, 0.0) / (total + 1.0))[found.rows]
    assert found.spread == pytest.approx(exact, rel=0.06, abs=1e-6 * exact.max())
    assert found.share.sum() == pytest.approx(1.0)
    # A row is known as well as its Dirichlet parameters say.
    doubted = exact > 1e-3 * exact.max()
    assert found.size[doubted] == pytest.approx(total[found.rows][doubted], rel=0.08)


def test_rows_together_explain_the_draws_where_much_is_known():
    posterior, mdp = machine(500)
    found = row_doubt(posterior, mdp, sf.solve(mdp).policy, rng(3), delta=0.05)
    assert found.explained > 0.97
    assert found.common < 0.1
    assert found.spread.sum() == pytest.approx(np.var(found.returns), rel=0.15)
    assert found.findings == ()


def test_far_from_linear_is_a_warning():
    counts = sf.riverswim().simulate(3, rng(0))
    posterior, mdp = sf.DirichletPosterior(counts), counts.to_mdp(discount=0.99, prior=1.0)
    found = row_doubt(posterior, mdp, np.ones(6, dtype=int), rng(1), delta=0.05)
    assert found.explained < 0.8
    (told,) = found.findings
    assert (told.code, told.level) == ("doubt_not_linear", "warning")
    assert f"{100 * max(0.0, found.explained):.0f}%" in told.text


def hidden_loss():
    """Two states that pay; a third that was never seen to be reached, and pays nothing."""
    array = np.zeros((3, 1, 3), dtype=int)
    array[0, 0, :2] = 30, 10
    array[1, 0, :2] = 200, 200
    array[2, 0, 2] = 5
    support = np.ones((3, 1, 3))
    support[2, 0, :2] = 0
    rewards = [[1.0], [0.9], [0.0]]
    return sf.Counts.from_arrays(array, rewards=rewards, support=support)


def test_amounts_add_up_from_the_averages_to_the_quantile():
    counts = hidden_loss()
    posterior, mdp = sf.DirichletPosterior(counts), counts.to_mdp(discount=0.5, prior=1.0)
    policy = np.zeros(3, dtype=int)
    found = row_doubt(posterior, mdp, policy, rng(1), delta=0.05, draws=20_000)
    seen = counts.count / np.add.reduceat(counts.count, mdp.row_start[:-1])[mdp.entry_row]
    as_seen = sf.evaluate(replace(mdp, probability=seen), policy).return_lower
    low = np.quantile(found.returns, 0.05)
    assert found.amount.sum() == pytest.approx(as_seen - low, rel=0.1)
    parts = found.amounts
    assert parts["unseen"][0] > parts["unseen"][1] > 0  # tried forty times against 400
    assert parts["transitions"].min() > -1e-9
    assert parts["rewards"] == pytest.approx(np.zeros(len(found.rows)))


def test_uncertain_rewards_have_their_part():
    noise = rng(4).normal(size=60)
    log = {"state": ["a"] * 60 + ["b"], "action": ["go"] * 60 + ["stay"],
           "next_state": ["b"] * 61, "reward": [*noise, 0.0]}  # fmt: skip
    counts = sf.read_transitions(log, rewards="normal").on_support("observed")
    posterior = sf.DirichletPosterior(counts)
    mdp = counts.to_mdp(discount=0.5, prior=1.0, initial=[1.0, 0.0])
    policy = mdp.row_action[mdp.state_start[:-1]]
    found = row_doubt(posterior, mdp, policy, rng(5), delta=0.05, draws=4000)
    assert found.amounts["rewards"].sum() == pytest.approx(found.amount.sum())
    assert found.size[0] == pytest.approx(60.0, rel=0.2)
    # One play of a mean that is known to sd / sqrt(60).
    assert found.spread[0] == pytest.approx(np.var(noise, ddof=1) / 60, rel=0.2)


def test_a_policy_by_step_is_played_at_all_steps():
    counts = sf.garnet(5, 2, 3, discount=0.9, rng=rng(1)).simulate(200, rng(2))
    posterior = sf.DirichletPosterior(counts)
    mdp = replace(counts.to_mdp(discount=0.9, prior=1.0), discount=1.0).over(6)
    policy = StepPolicy.from_array(rng(3).integers(0, 2, size=(6, 5)))
    found = row_doubt(posterior, mdp, policy, rng(4), delta=0.05)
    assert found.weight.sum() == pytest.approx(6.0)
    assert found.explained > 0.9


def test_only_one_successor_is_no_doubt():
    counts = sf.Counts.from_arrays([[[5]]], rewards=[[1.0]], support=[[[1]]])
    posterior, mdp = sf.DirichletPosterior(counts), counts.to_mdp(discount=0.5, prior=1.0)
    found = row_doubt(posterior, mdp, [0], rng(0), delta=0.05, draws=200)
    assert found.share.tolist() == [0.0]
    assert found.explained == 1.0
    assert found.reach == pytest.approx(0.0, abs=1e-6)
