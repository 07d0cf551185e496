"""Halves of a log on the entries of one model."""

from dataclasses import replace

import numpy as np
import pytest

import surefoot as sf
from surefoot.certificates.halves import LogBuckets, as_seen
from surefoot.data.buckets import NUM_BUCKETS, BucketCounts, deal
from surefoot.data.reward_uncertainty import negated

FIRST, SECOND = np.arange(8), np.arange(8, NUM_BUCKETS)


def two_arms(tries, wins, bucket):
    """State 0 with two arms that win (state 1 pays 1) or lose (state 2): all in one bucket each."""
    counts = np.zeros((3, 2, 3), dtype=int)
    counts[0, :, 1], counts[0, :, 2] = wins, np.subtract(tries, wins)
    support = np.zeros(counts.shape, dtype=bool)
    support[0, :, 1:] = support[1, 0, 1] = support[2, 0, 2] = True
    rewards = np.zeros(counts.shape)
    rewards[0, :, 1] = 1.0
    made = sf.Counts.from_arrays(counts, support=support, rewards=rewards)
    entry = np.flatnonzero(made.count)
    parts = BucketCounts(
        entry=entry, bucket=np.asarray(bucket)[made.entry_action[entry]], count=made.count[entry],
        reward_mean=made.reward_mean[entry], reward_var=made.reward_var[entry],
    )  # fmt: skip
    mdp = made.to_mdp(discount=0.5, prior=1.0, initial=[1.0, 0.0, 0.0])
    return LogBuckets.of(sf.DirichletPosterior(made), mdp, made, parts, costs=False, delta=0.05)


@pytest.fixture(scope="module")
def machines():
    """The demo's log with its noise: rewards that vary within a transition."""
    log = sf.machine_replacement().log(episodes=40, rng=np.random.default_rng(0))
    return sf.read_transitions(log, episode="episode", step="step")


@pytest.mark.parametrize("learned", [True, False])
def test_all_buckets_are_the_whole_log_and_two_halves_add_up(machines, learned):
    posterior = sf.LearnedPosterior(machines) if learned else sf.DirichletPosterior(machines)
    mdp = replace(
        posterior.counts.to_mdp(discount=0.9, unseen="absorbing"), probability=posterior.mean()
    )
    log = LogBuckets.of(posterior, mdp, machines, deal(machines, 0), costs=False, delta=0.05)
    whole = log.half(np.arange(NUM_BUCKETS))
    assert np.array_equal(whole.count, posterior.counts.count)
    assert whole.mdp.probability == pytest.approx(posterior.mean(), rel=1e-9)
    assert whole.mdp.entry_reward == pytest.approx(mdp.entry_reward, rel=1e-9)
    halves = log.half(FIRST), log.half(SECOND)
    assert np.array_equal(halves[0].count + halves[1].count, whole.count)
    assert np.array_equal(halves[0].visits + halves[1].visits, posterior.counts.visits)
    for half in halves:
        rows = np.add.reduceat(half.mdp.probability, mdp.row_start[:-1])
        assert rows == pytest.approx(np.ones(mdp.num_rows))
        assert not np.array_equal(half.mdp.probability, whole.mdp.probability)


def test_rows_that_the_model_left_out_are_left_out(machines):
    fewest = int(np.median(machines.visits)) + 1
    placed = machines.on_support("unseen", min_visits=fewest)
    posterior = sf.DirichletPosterior(placed)
    mdp = placed.to_mdp(discount=0.9, prior=1.0)
    log = LogBuckets.of(posterior, mdp, machines, deal(machines, 0), costs=False, delta=0.05)
    kept = machines.visits >= fewest
    assert 0 < np.count_nonzero(kept) < len(kept)
    assert log.half(np.arange(NUM_BUCKETS)).count.sum() == machines.visits[kept].sum()


def test_rewards_of_a_half_are_its_own_means_and_costs_turn():
    table = {
        "state": [0] * 8 + [1], "action": [0] * 9, "next_state": [0] * 8 + [1],
        "reward": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
    }  # fmt: skip
    counts = sf.read_transitions(table)
    parts = BucketCounts(
        entry=np.array([0, 0, 1]), bucket=np.array([0, 9, 0]), count=np.array([2, 6, 1]),
        reward_mean=np.array([1.5, 5.5, 9.0]), reward_var=np.array([0.5, 3.5, np.nan]),
    )  # fmt: skip
    for costs, sign in ((False, 1.0), (True, -1.0)):
        placed = (negated(counts) if costs else counts).on_support("observed")
        posterior, mdp = sf.DirichletPosterior(placed), placed.to_mdp(discount=0.5)
        log = LogBuckets.of(posterior, mdp, counts, parts, costs=costs, delta=0.05)
        assert log.half(FIRST).mdp.entry_reward[0] == sign * 1.5
        assert log.half(SECOND).mdp.entry_reward.tolist() == [sign * 5.5, sign * 9.0]


def test_a_half_chooses_only_what_it_tried():
    log = two_arms(tries=[10, 40], wins=[1, 39], bucket=[0, 8])
    assert log.choose(log.half(FIRST))[0] == 0
    assert log.choose(log.half(SECOND))[0] == 1


def test_a_half_is_cautious():
    """Two wins of two are worth more on average than 60 of 90, and are trusted less."""
    log = two_arms(tries=[2, 90], wins=[2, 60], bucket=[0, 0])
    half = log.half(FIRST)
    mean = np.add.reduceat(half.mdp.probability * half.mdp.entry_reward, half.mdp.row_start[:-1])
    assert mean[0] > mean[1]
    assert log.choose(half)[0] == 1


def test_a_half_as_seen_has_no_prior_and_borrows_what_it_never_tried():
    log = two_arms(tries=[10, 40], wins=[1, 39], bucket=[0, 8])
    own, other = log.half(FIRST), log.half(SECOND)
    made = as_seen(other, own)
    first, second = made.row_start[0], made.row_start[1]
    assert np.array_equal(made.probability[first:second], own.mdp.probability[first:second])
    rest = slice(second, made.row_start[2])
    assert sorted(made.probability[rest]) == [1 / 40, 39 / 40]
