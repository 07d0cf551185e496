"""Baselines on logs of the zoo: what each promises, and that it is what its name says."""

import numpy as np
import pytest

from surefoot.certificates.policies import behaviour_policy
from surefoot.studies.zoo.baselines import LEAST_COUNT, EpisodeSteps, _weights, bootstrapped
from surefoot.studies.zoo.catalogue import make_world
from surefoot.studies.zoo.claims import facts_of, judge
from surefoot.studies.zoo.log_model import read_log
from surefoot.studies.zoo.logs import fixed_tries, greedy_shares, trajectories
from surefoot.studies.zoo.methods import find_method
from surefoot.studies.zoo.rsvf import smallest_ball
from surefoot.studies.zoo.truth import Choice, earned, shares_of

NAMES = ("behaviour", "importance", "weighted-importance", "spibb", "rsvf")


@pytest.fixture(scope="module")
def survival():
    world = make_world("survival")
    log = trajectories(world, greedy_shares(world, 0.5), 300, np.random.default_rng(0))
    return world, log, facts_of(world, log, declared=("range", "support"))


@pytest.mark.parametrize("name", NAMES)
def test_baselines_make_sentences_that_can_be_judged(survival, name):
    world, log, facts = survival
    claims = find_method(name)(log.columns, facts, [0.05, 0.2], np.random.default_rng(1))
    assert {claim.delta for claim in claims} == {0.05, 0.2}
    promises = [judge(claim, world, log) for claim in claims if claim.kind == "promise"]
    assert not any(sentence.broken for sentence in promises)
    first, second = (sentence.claimed for sentence in promises)
    assert first is None or second is None or first <= second + 0.05 * abs(second)


@pytest.mark.parametrize("name", ["behaviour", "importance", "weighted-importance"])
def test_without_episodes_nothing_is_promised(name):
    world = make_world("riverswim")
    log = fixed_tries(world, 5, np.random.default_rng(0))
    claims = find_method(name)(log.columns, facts_of(world, log), [0.2], np.random.default_rng(1))
    assert [claim.value for claim in claims] == [None]


def test_importance_weights_are_right_on_average(survival):
    world, _, facts = survival
    many = trajectories(world, greedy_shares(world, 0.1), 2000, np.random.default_rng(3))
    seen = EpisodeSteps.of(many.columns, facts)
    best = np.argmax(greedy_shares(world, 0.0), axis=1)
    choice = Choice(states=world.labels, actions=world.actions, policy=best)
    weight = _weights(seen, seen, choice)
    assert weight.mean() == pytest.approx(1.0, abs=0.15)
    value = float(weight @ seen.earned / weight.sum())
    assert value == pytest.approx(earned(world, shares_of(world, choice)).total, rel=0.1)


def test_bootstrapping_keeps_behaviour_where_little_was_tried(survival):
    _, log, facts = survival
    read = read_log(log.columns, facts, prior=None)
    usual = behaviour_policy(read.counts, read.mdp)
    policy = bootstrapped(read, usual)
    visits = np.zeros(usual.shape)
    visits[read.counts.row_state, read.counts.row_action] = read.counts.visits
    rare = visits < LEAST_COUNT
    assert np.allclose(policy.sum(axis=1), 1.0)
    assert np.all(policy[rare] >= usual[rare] - 1e-12)
    assert np.any(policy != usual)


def test_smallest_ball_has_a_point_below_every_limit():
    mean = np.array([0.2, 0.3, 0.5])
    one = np.array([0.0, 1.0, 2.0])
    center, budget = smallest_ball(mean, [one], [1.0])
    assert budget < 1e-5  # one limit needs a point only
    assert center @ one <= 1.0 + 1e-6
    center, budget = smallest_ball(mean, [one, -one], [0.5, -1.5])
    # points with means 0.5 and 1.5 lie apart by at least 1 in L1: half of it from the middle
    assert budget == pytest.approx(0.5, abs=1e-4)
    assert center.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["importance", "weighted-importance"])
def test_a_half_that_shows_no_reward_is_promised_the_least(name):
    world = make_world("frozen-lake-4x4")
    log = trajectories(world, greedy_shares(world, 0.3), 40, np.random.default_rng(0))
    judged = np.unique(log.columns["episode"], return_inverse=True)[1] % 2 == 1
    columns = {**log.columns, "reward": np.where(judged, 0.0, log.columns["reward"])}
    assert columns["reward"].max() > 0
    claims = find_method(name)(columns, facts_of(world, log), [0.2], np.random.default_rng(1))
    assert all(claim.value in (None, 0.0) for claim in claims)
