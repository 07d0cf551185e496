"""How often a policy plays each row, and the luck of choosing over a horizon."""

from dataclasses import replace

import numpy as np
import pytest

import surefoot as sf
from surefoot.certificates.curse import curse_of_choosing
from surefoot.certificates.halves import LogBuckets
from surefoot.certificates.held_out import backtest
from surefoot.certificates.plays import plays_of, row_values
from surefoot.data.buckets import deal
from surefoot.model.step_policy import StepPolicy


def rng(seed):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("horizon", [1, 2, 7, 16])
@pytest.mark.parametrize("discount", [0.8, 1.0])
def test_plays_add_up_to_the_value(horizon, discount):
    mdp = replace(sf.garnet(6, 3, 4, discount=0.9, rng=rng(1)).mdp, discount=discount)
    mdp = mdp.over(horizon, rng(2).normal(size=6))
    policy = StepPolicy.from_array(rng(3).integers(0, 3, size=(horizon, 6)))
    plays = plays_of(mdp, policy)
    dense = mdp.to_arrays()
    visits, weight = np.array(mdp.initial), np.zeros((6, 3))
    for step in range(horizon):
        actions = policy.actions_at(step)
        weight[np.arange(6), actions] += visits
        visits = discount * visits @ dense.transitions[np.arange(6), actions]
    assert plays.weight == pytest.approx(weight[mdp.row_state, mdp.row_action])
    assert plays.weight.sum() == pytest.approx(np.sum(discount ** np.arange(horizon)))
    # Rewards on the way and the final one make up the value.
    final = visits @ mdp.final_reward
    gains = np.add.reduceat(mdp.probability * mdp.entry_reward, mdp.row_start[:-1])
    assert plays.weight @ gains + final == pytest.approx(plays.return_lower)


def test_a_small_error_in_a_row_costs_its_plays_times_its_mean_worth():
    """The first order of the return in a row's probabilities, which the curse and backtest use."""
    mdp = sf.garnet(6, 2, 4, discount=0.9, rng=rng(1)).mdp.over(11)
    policy = sf.solve(mdp).policy
    plays = plays_of(mdp, policy)
    row = int(np.argmax(plays.weight))
    first = mdp.row_start[row]
    for small in (1e-5, 1e-6):
        probability = mdp.probability.copy()
        probability[first : first + 2] += np.array([small, -small])
        other = replace(mdp, probability=probability)
        mean = [row_values(one, plays.ahead)[0][row] for one in (mdp, other)]
        expected = plays.weight[row] * (mean[1] - mean[0])
        found = sf.evaluate(other, policy).return_lower - plays.return_lower
        assert found == pytest.approx(expected, rel=1e-2)


def split_log(horizon, *, stationary=False, discount=1.0):
    domain = sf.garnet(8, 3, 4, discount=0.9, rng=rng(5))
    counts = sf.read_transitions(
        domain.log(episodes=40, rng=rng(6)), episode="episode", step="step"
    )
    posterior = sf.LearnedPosterior(counts)
    mdp = posterior.to_mdp(discount=discount, horizon=horizon)
    parts = deal(counts, 0)
    log = LogBuckets.of(
        posterior, mdp, counts, parts, costs=False, delta=0.05, stationary=stationary
    )
    return log, counts, parts


@pytest.mark.parametrize("stationary", [False, True])
def test_luck_of_choosing_is_measured_over_a_horizon(stationary):
    log, counts, parts = split_log(6, stationary=stationary)
    policy = log.choose(log.half(np.arange(16)))
    assert isinstance(policy, StepPolicy) != stationary
    curse = curse_of_choosing(log, policy, seed=0)
    assert 0 <= curse.mean < 6 * float(np.ptp(log.mdp.reward))
    assert curse.spread > 0
    held = backtest(log, counts, parts, curse, rng(0), seed=0)
    assert 0 < held.advantage.p_value <= 1
    assert 0 <= held.advantage.uncovered < 1


def test_a_long_discounted_horizon_has_the_luck_of_a_future_without_end():
    endless, long = (
        curse_of_choosing(split_log(horizon, discount=0.8)[0], seed=0) for horizon in (None, 80)
    )
    assert long.mean == pytest.approx(endless.mean, rel=0.2, abs=1e-3)
