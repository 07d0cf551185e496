"""A certificate that was changed, or that no computation could have made, does not stand."""

import json
from dataclasses import replace

import numpy as np
import pytest

import surefoot as sf
from surefoot.certificates.json_fields import kept_fields
from surefoot.certificates.provenance import posterior_fingerprint, posterior_fingerprint_1


def rng(seed):
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def made():
    counts = sf.machine_replacement().simulate(20, rng(1))
    posterior, mdp = sf.DirichletPosterior(counts), counts.to_mdp(discount=0.95, prior=1.0)
    policy = sf.solve(mdp).policy
    return sf.certify(policy, posterior, mdp, draws=500, rng=rng(2)), posterior, mdp


@pytest.mark.parametrize(
    "changes",
    [
        {"lower_bound": float("nan")},
        {"upper_bound": float("nan")},
        {"upper_bound": -1e9},
        {"lower_bound": 1e9, "draws": 1},
        {"lower_bound": 1e9, "draws": 0},
        {"lower_bound": 1e9, "upper_bound": 2e9},
        {"lower_bound": 1e9, "upper_bound": 2e9, "delta": 1.0},
        {"lower_bound": 1e9, "upper_bound": 2e9, "delta": float("nan")},
        {"lower_bound": 1e9, "upper_bound": 2e9, "eta": -1.0},
        {"lower_bound": 1e9, "upper_bound": 2e9, "eta": 1e-300},
        {"objective": "neither"},
        {"basis": "frequentist"},
        {"data_fingerprint": "0"},
    ],
)
def test_changed_certificates_fall(made, changes):
    certificate, posterior, mdp = made
    verdict = sf.verify(replace(certificate, **changes), posterior, mdp, rng=rng(3))
    assert not verdict.stands
    assert verdict.message.startswith("The certificate does not stand: ")


@pytest.mark.parametrize("value", ["x", [], {}, True, [1, "a"], {"a": 1}, "nan"])
def test_a_field_of_another_kind_is_named(made, value):
    content = json.loads(made[0].to_json())
    for name in kept_fields(made[0]):
        if isinstance(value, type(content[name])) and not isinstance(value, bool):
            continue  # a text for a text: as good as any
        if name == "unit" and isinstance(value, str):
            continue  # no unit was given here; any text may be one
        with pytest.raises(ValueError, match=f"the certificate's {name} cannot be"):
            sf.Certificate.from_json(json.dumps(content | {name: value}))


def test_too_few_new_draws_are_refused(made):
    certificate, posterior, mdp = made
    with pytest.raises(ValueError, match="at least 135 posterior draws"):
        sf.verify(certificate, posterior, mdp, draws=2)


def test_a_certificate_from_half_of_the_draws_is_about_the_whole(made):
    _, exact, mdp = made
    posterior = sf.PosteriorDraws.from_arrays(exact.sample(600, rng(1)), mdp=mdp, independent=True)
    certificate = sf.optimize(posterior, mdp, delta=0.1, rng=rng(2)).certificate
    verdict = sf.verify(certificate, posterior, mdp, rng=rng(3))
    assert verdict.stands
    assert "no new ones" in verdict.message
    other = sf.PosteriorDraws.from_arrays(exact.sample(600, rng(9)), mdp=mdp, independent=True)
    assert not sf.verify(certificate, other, mdp).stands


def test_parts_of_draws_are_not_tested_for_order(monkeypatch):
    """Parts were shuffled: what they show by chance is no sign of a Markov chain."""
    draws = rng(0).dirichlet([3.0, 1.0], size=(200, 2, 1))
    posterior = sf.PosteriorDraws.from_arrays(draws, independent=True)
    assert posterior.num_draws == 200
    monkeypatch.setattr("surefoot.posterior.draws.correlated", lambda _: True)
    assert [part.num_draws for part in posterior.split(50, rng(1))] == [50, 150]


def test_a_curve_uses_the_draws_there_are(made):
    certificate, exact, mdp = made
    posterior = sf.PosteriorDraws.from_arrays(exact.sample(600, rng(1)), mdp=mdp, independent=True)
    curve = sf.guarantee_curve(certificate.policy, posterior, mdp, rng=rng(1))
    assert curve.draws == 600
    assert "ends at" in curve.note
    with pytest.raises(ValueError, match=r"must lie in \[0.5, 1\)"):
        sf.guarantee_curve(
            certificate.policy, exact, mdp, confidences=[0.9, float("nan"), 0.5], rng=rng(1)
        )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rng": 3}, "rng must be a numpy Generator, got int"),
        ({"delta": None}, "delta=None"),
        ({"draws": 500.5}, "got 500.5"),
    ],
)
def test_arguments_of_another_type_are_named(made, options, words):
    certificate, posterior, mdp = made
    with pytest.raises(ValueError, match=words):
        sf.certify(certificate.policy, posterior, mdp, **{"rng": rng(1)} | options)


@pytest.mark.parametrize("change", [{"reward_model": "fixed"}, {"reward_var": "halved"}])
def test_how_sure_the_rewards_are_is_under_the_fingerprint(change):
    log = {"state": [0, 0, 1, 1], "action": [0] * 4, "next_state": [1, 1, 0, 1],
           "reward": [1.0, 2.0, 5.0, 5.0]}  # fmt: skip
    counts = sf.read_transitions(log, rewards="normal").on_support("all")
    if "reward_var" in change:
        change = {"reward_var": counts.reward_var / 2}
    other = replace(counts, **change)
    one, two = (sf.DirichletPosterior(given) for given in (counts, other))
    assert posterior_fingerprint_1(one) == posterior_fingerprint_1(two)
    assert posterior_fingerprint(one) != posterior_fingerprint(two)
