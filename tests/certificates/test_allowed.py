"""Where only some pairs are allowed, the other end of the certificate speaks of those."""

from copy import deepcopy

import numpy as np
import pytest

import surefoot as sf
from surefoot.certificates.models import allowed_rows
from surefoot.posterior.rows import RowLayout, SomeRows
from surefoot.solvers.evaluation.rewards import rewards_of


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def problem():
    counts = sf.garnet(8, 4, 3, discount=0.9, rng=rng(3)).simulate(10, rng(0))
    return sf.DirichletPosterior(counts), counts.to_mdp(discount=0.9, prior=1.0)


@pytest.fixture(scope="module")
def allowed():
    some = rng(4).random((8, 4)) < 0.4
    some[np.arange(8), rng(5).integers(0, 4, 8)] = True
    return some


@pytest.mark.parametrize("most", [4096, 0])
def test_the_other_end_speaks_of_what_is_allowed(problem, allowed, most, monkeypatch):
    monkeypatch.setattr("surefoot.certificates.limit.MAX_POLICIES", most)
    posterior, mdp = problem
    policy = allowed.argmax(axis=1)
    options = {"delta": 0.1, "draws": 1000}
    free = sf.certify(policy, posterior, mdp, rng=rng(1), **options)
    bound = sf.certify(policy, posterior, mdp, rng=rng(1), allowed=allowed, **options)
    assert bound.lower_bound == free.lower_bound
    assert bound.upper_bound < free.upper_bound
    said = "no deterministic policy among those allowed can be promised more than"
    assert said in bound.sentence
    assert "allowed" not in free.sentence
    everything = sf.certify(
        policy, posterior, mdp, rng=rng(1), allowed=np.ones((8, 4), dtype=bool), **options
    )
    assert everything.sentence == free.sentence


def test_a_single_policy_is_bracketed_by_itself(problem, allowed):
    posterior, mdp = problem
    one = allowed & (np.cumsum(allowed, axis=1) == 1)
    result = sf.optimize(posterior, mdp, delta=0.1, rng=rng(2), draws=20_000, allowed=one)
    np.testing.assert_array_equal(result.policy, one.argmax(axis=1))
    assert result.certificate.relative_gap < 0.02
    assert "among those allowed" in result.certificate.sentence


def test_no_allowed_policy_beats_the_bound(problem, allowed):
    """The best of many random allowed policies stays below the end that speaks of them."""
    posterior, mdp = problem
    found = sf.optimize(posterior, mdp, delta=0.1, rng=rng(3), draws=4000, allowed=allowed)
    for seed in range(20):
        chance = rng(seed).random((8, 4)) * allowed
        other = sf.certify(
            chance.argmax(axis=1), posterior, mdp, delta=0.1, rng=rng(seed), draws=2000, upper=False
        )
        assert other.lower_bound <= found.certificate.upper_bound


def test_a_policy_outside_is_refused(problem, allowed):
    posterior, mdp = problem
    policy = allowed.argmax(axis=1)
    policy[3] = int((~allowed[3]).argmax())
    with pytest.raises(ValueError, match=r"the policy uses state 3, action \d, which is not allow"):
        sf.certify(policy, posterior, mdp, rng=rng(1), draws=500, allowed=allowed)


def test_some_rows_have_the_draws_of_the_whole(problem, allowed):
    posterior, mdp = problem
    rows = allowed_rows(mdp, allowed)
    part = SomeRows(posterior, RowLayout.of(mdp), rows)
    whole = posterior.sample(50, rng(6))
    np.testing.assert_array_equal(part.sample(50, rng(6)), whole[:, part.entries])
    np.testing.assert_array_equal(
        np.concatenate(list(part.stream(50, rng(6), rows=[2, 0]))),
        whole[:, RowLayout.of(mdp).entries_of(rows[[2, 0]])],
    )
    np.testing.assert_allclose(part.layout.sum_rows(part.mean()), 1.0)
    assert part.num_draws is None
    assert part.independent_rows
    assert isinstance(part, sf.Posterior)
    assert "rows)" in repr(part)


def test_some_entries_have_the_rewards_of_the_whole():
    size = 600
    source = rng(7)
    log = {
        "state": source.integers(0, 4, size), "action": source.integers(0, 3, size),
        "next_state": source.integers(0, 4, size), "reward": source.normal(size=size),
    }  # fmt: skip
    counts = sf.read_transitions(log).on_support("observed")
    mdp, posterior = counts.to_mdp(discount=0.9), sf.DirichletPosterior(counts)
    rewards = rewards_of(mdp, posterior, objective="max")
    key = (np.uint64(3), np.uint64(4))
    whole = rewards.block(key, 0, 40, np.arange(mdp.num_entries))
    some = np.array([5, 2, 11])
    part = rewards.of(np.array([0, 5, 2, 11])).of(np.array([1, 2, 3]))
    np.testing.assert_array_equal(part.block(key, 0, 40, np.arange(3)), whole[:, some])
    again = deepcopy(part).block(key, 8, 40, np.array([2]))
    np.testing.assert_array_equal(again, whole[8:, [11]])
