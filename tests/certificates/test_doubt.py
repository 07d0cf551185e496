"""Where doubt comes from: amounts add up, and each cause can be taken away alone."""

from dataclasses import replace

import numpy as np
import pytest

from surefoot import Counts, DirichletPosterior, certify, read_transitions
from surefoot.certificates.doubt import Surer, doubt_of
from surefoot.certificates.evidence import Curse


def two_states(**options):
    """Up or down, one action; the second state is never left for the third, which is declared."""
    array = np.zeros((3, 1, 3), dtype=int)
    array[0, 0, :2] = 30, 10
    array[1, 0, :2] = 20, 20
    array[2, 0, 2] = 5
    rewards = np.zeros((3, 1, 3))
    rewards[:, :, 0] = 1.0
    support = np.ones((3, 1, 3))
    support[2, 0, :2] = 0
    return Counts.from_arrays(array, rewards=rewards, support=support, **options)


def certified(counts, **options):
    mdp, posterior = counts.to_mdp(discount=0.9, prior=1.0), DirichletPosterior(counts)
    policy = np.zeros(mdp.num_states, dtype=int)
    made = certify(
        policy, posterior, mdp, draws=4000, rng=np.random.default_rng(0), upper=False, **options
    )
    return made, posterior, mdp


def test_amounts_add_up_to_the_distance():
    made, posterior, mdp = certified(two_states())
    made = replace(made, curse=Curse(mean=0.2, spread=0.1), lower_bound=made.lower_bound - 0.3)
    doubt = doubt_of(made, posterior, mdp, np.random.default_rng(1), draws=4000)
    assert doubt.as_seen - doubt.total == pytest.approx(made.lower_bound)
    assert doubt.choosing.amount == pytest.approx(0.3)
    assert doubt.choosing.promise_without == pytest.approx(made.lower_bound + 0.3)
    assert doubt.rewards is None
    assert doubt.unseen.amount > doubt.unseen.error > 0
    assert doubt.transitions.amount > doubt.transitions.error > 0
    assert abs(doubt.monte_carlo.amount) < 6 * doubt.monte_carlo.error
    assert doubt.mirrored().mirrored() == doubt


def test_without_the_unseen_the_promise_is_that_of_the_seen_alone():
    """The third state pays nothing for ever; without it, as if it could not be reached."""
    made, posterior, mdp = certified(two_states())
    doubt = doubt_of(made, posterior, mdp, np.random.default_rng(1), draws=2000)
    counts = two_states()
    closed = replace_support(counts)
    other, _, _ = certified(closed)
    assert doubt.unseen.promise_without == pytest.approx(other.lower_bound, abs=0.1)


def replace_support(counts):
    array = np.zeros((3, 1, 3), dtype=int)
    array[counts.entry_state, counts.entry_action, counts.successor] = counts.count
    rewards = np.zeros((3, 1, 3))
    rewards[:, :, 0] = 1.0
    return Counts.from_arrays(array, rewards=rewards, support=(array > 0).astype(float))


def test_draws_without_doubt():
    counts = two_states()
    posterior, seen = DirichletPosterior(counts), counts.count > 0
    rng = np.random.default_rng
    whole = posterior.sample(50, rng(0))
    no_unseen = Surer(posterior, seen, frozenset({"unseen"})).sample(50, rng(0))
    assert np.all(no_unseen[:, ~seen] == 0)
    assert no_unseen[:, 0] / no_unseen[:, 1] == pytest.approx(whole[:, 0] / whole[:, 1])
    at_mean = Surer(posterior, seen, frozenset({"transitions"})).sample(50, rng(0))
    assert np.array_equal(at_mean[:, ~seen], whole[:, ~seen])
    assert at_mean[:, 0] / at_mean[:, 1] == pytest.approx(31 / 11)
    for drawn in (no_unseen, at_mean):
        assert np.add.reduceat(drawn, posterior.row_start[:-1], axis=1) == pytest.approx(1.0)
    some = next(Surer(posterior, seen, frozenset({"unseen"})).stream(50, rng(0), [1]))
    assert np.array_equal(some, no_unseen[:, 3:6])


def test_noisy_rewards_are_a_cause_of_their_own():
    rng = np.random.default_rng(0)
    log = {
        "state": [0, 1] * 30, "action": [0] * 60, "next_state": [1, 0] * 30,
        "reward": rng.normal(size=60),
    }  # fmt: skip
    counts = read_transitions(log).on_support("observed")
    made, posterior, mdp = certified(counts)
    doubt = doubt_of(made, posterior, mdp, np.random.default_rng(1), draws=4000)
    assert set(doubt.causes) == {"rewards", "first_state", "choosing", "monte_carlo"}
    assert doubt.rewards.promise_without == pytest.approx(doubt.as_seen, abs=0.3)
