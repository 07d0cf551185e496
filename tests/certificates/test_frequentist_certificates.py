"""Promises without a prior."""

import numpy as np
import pytest
from scipy.stats import binom

import surefoot as sf
from surefoot.calibration.frequentist import frequentist_set
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.frequentist import certify_frequentist, certify_split


def made(samples=200, seed=0, **options):
    counts = sf.riverswim(discount=0.95).simulate(samples, np.random.default_rng(seed))
    mdp = counts.to_mdp(discount=0.95, initial="uniform")
    options = {"delta": 0.05, "kind": "clopper_pearson", "fixed_design": True} | options
    return counts, mdp, frequentist_set(counts, mdp, **options)


def test_promise_is_the_robust_value_and_is_stated_as_such():
    _, mdp, box = made()
    solution = sf.solve(mdp, box)
    certificate = certify_frequentist(solution.policy, box, mdp)
    assert certificate.basis == "frequentist"
    assert certificate.lower_bound == pytest.approx(solution.return_lower, abs=1e-4)
    assert certificate.lower_bound <= solution.return_upper
    assert certificate.upper_bound >= certificate.nominal_return
    assert "given this prior" not in certificate.sentence
    assert "clopper_pearson" in certificate.summary()
    assert Certificate.from_json(certificate.to_json()).to_json() == certificate.to_json()


def test_sets_made_by_hand_are_refused():
    _, mdp, _ = made()
    by_hand = sf.AmbiguitySet.from_arrays(mdp, norm="l1", budget=0.1)
    with pytest.raises(ValueError, match="made by hand"):
        certify_frequentist(sf.solve(mdp).policy, by_hand, mdp)


def test_split_shares_delta_over_the_policy_alone():
    counts, _, _ = made(1000)
    result = certify_split(
        counts, discount=0.95, delta=0.05, rng=np.random.default_rng(1), fixed_design=True
    )
    assert result.ambiguity.confidence.union == "policy"
    assert result.certificate.lower_bound > 0
    assert "can be promised more" not in result.certificate.sentence


def test_coverage_of_split_promises():
    """One true model, many data sets: the promise may fail in a share delta of them."""
    domain = sf.riverswim(discount=0.95)
    delta, replications, failures = 0.2, 100, 0
    for seed in range(replications):
        rng = np.random.default_rng(seed)
        result = certify_split(
            domain.simulate(60, rng), discount=0.95, delta=delta, rng=rng, fixed_design=True
        )
        earned = sf.evaluate(domain.mdp, result.policy).return_upper
        failures += earned < result.certificate.lower_bound
    assert binom.sf(failures - 1, replications, delta) > 0.001
