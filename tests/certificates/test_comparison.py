"""A difference with the unseen both ways and the luck of choosing taken off."""

import numpy as np
import pytest

import surefoot as sf
from surefoot.solvers.unseen import lead_to_best


@pytest.fixture(scope="module")
def machines():
    log = sf.machine_replacement().log(episodes=30, rng=np.random.default_rng(0))
    posterior = sf.LearnedPosterior(sf.read_transitions(log, episode="episode", step="step"))
    mdp = posterior.to_mdp(discount=0.95)
    policy = sf.solve(mdp).policy
    other = np.where(mdp.available[:, 0], 0, policy)
    return posterior, mdp, policy, other


def compared(machines, **options):
    posterior, mdp, policy, other = machines
    rng = np.random.default_rng(1)
    return sf.compare(policy, other, posterior, mdp, draws=500, rng=rng, **options)


def test_luck_comes_off_the_bound_alone(machines):
    plain, unlucky = compared(machines), compared(machines, luck=0.5)
    fallen = plain.difference_lower_bound - unlucky.difference_lower_bound
    assert fallen == pytest.approx(0.5)
    assert unlucky.mean_difference == plain.mean_difference
    assert unlucky.probability_a_better <= plain.probability_a_better


def test_the_unseen_at_its_best_for_the_other_policy_never_raises_the_bound(machines):
    posterior, mdp, policy, _ = machines
    plain = compared(machines)
    both = compared(machines, mdp_b=lead_to_best(mdp, posterior.counts))
    assert both.difference_lower_bound < plain.difference_lower_bound
    assert both.mean_difference < plain.mean_difference
    assert [found.code for found in both.findings] == ["unseen_both_ways", "rewards_as_seen"]
    assert "at its best for the second" in both.sentence
    again = sf.compare(
        policy, policy, posterior, mdp, draws=500, rng=np.random.default_rng(1),
        mdp_b=lead_to_best(mdp, posterior.counts), luck=1.0,
    )  # fmt: skip
    assert again.same  # the same policy: no model tells them apart
    assert again.difference_lower_bound == 0.0
