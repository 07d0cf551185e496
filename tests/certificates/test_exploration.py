"""What rows are worth that a policy does not use."""

import numpy as np
import pytest
from scipy.stats import beta

import surefoot as sf
from surefoot.certificates.exploration import exploration


def rng(seed):
    return np.random.default_rng(seed)


def bandit():
    """One state that leads on, win or lose; arm 0 is known, arm 1 hardly."""
    array = np.zeros((3, 3, 3), dtype=int)
    array[0, 0, 1:] = 600, 400
    array[0, 1, 1:] = 1, 1
    array[0, 2, 1:] = 1, 900
    array[1, 0, 1] = array[2, 0, 2] = 1
    support = np.zeros((3, 3, 3))
    support[0, :, 1:] = 1
    support[1, 0, 1] = support[2, 0, 2] = 1
    rewards = np.zeros((3, 3, 3))
    rewards[0, :, 1] = 1.0
    counts = sf.Counts.from_arrays(array, rewards=rewards, support=support)
    return sf.DirichletPosterior(counts), counts.to_mdp(
        discount=0.9, prior=1.0, initial=[1.0, 0.0, 0.0]
    )


def test_a_bandit_arm_is_worth_its_perfect_information():
    posterior, mdp = bandit()
    policy = np.zeros(3, dtype=int)
    found = exploration(posterior, mdp, policy, rng(0))
    assert found.rows.tolist() == [1, 2]
    known = 601 / 1002
    assert found.chance[0] == pytest.approx(beta(2, 2).sf(known), abs=0.07)
    better = np.mean(np.maximum(rng(1).beta(2, 2, size=100_000) - known, 0.0))
    assert found.value[0] == pytest.approx(better, rel=0.2)
    assert found.chance[1] == found.value[1] == 0.0


def test_only_rows_that_may_be_played_count():
    posterior, mdp = bandit()
    found = exploration(posterior, mdp, np.zeros(3, dtype=int), rng(0), rows=np.array([0, 2, 3]))
    assert found.rows.tolist() == [2]
    none = exploration(posterior, mdp, np.zeros(3, dtype=int), rng(0), rows=np.array([0, 3]))
    assert len(none.rows) == 0


def test_a_horizon_is_refused():
    posterior, mdp = bandit()
    with pytest.raises(ValueError, match="horizon"):
        exploration(posterior, mdp.over(3), np.zeros(3, dtype=int), rng(0))
