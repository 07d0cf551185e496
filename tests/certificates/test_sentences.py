"""Promises in words, and everything that stands beside them through JSON and back."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest

import surefoot as sf
from surefoot._assumption_texts import plain
from surefoot.certificates import provenance, sentences
from surefoot.certificates.evidence import (
    Advantage,
    Backtest,
    Behaviour,
    Cause,
    Curse,
    Doubt,
    Earned,
    Gain,
    Interval,
    NewSuccessors,
    Split,
)

BESIDE = {
    "split": Split(by="episodes", choosing=20, certifying=20, seed=7),
    "curse": Curse(mean=0.5, spread=0.25),
    "behaviour": Behaviour(
        log=Earned(mean=1.5, lower=1.0, upper=float("inf"), delta=0.01, episodes=40),
        model=Interval(mean=1.25, lower=1.0, upper=2.0),
    ),
    "gain": Gain(
        lower_bound=-0.5, promise=1.5, behaviour=2.0, delta_policy=0.04, delta_behaviour=0.01
    ),
    "backtest": Backtest(
        new_successors=NewSuccessors(seen=3, expected=2.5, tried=100, p_value=0.5),
        advantage=Advantage(statistic=-2.0, error=0.5, uncovered=0.125, p_value=0.0001),
    ),
    "doubt": Doubt(
        as_seen=7.0, draws=500, rewards=Cause(amount=0.25, error=0.01, promise_without=3.0)
    ),
    "horizon": 12,
    "unit": "EUR",
}


@pytest.fixture(scope="module")
def setting():
    counts = sf.riverswim().simulate(50, np.random.default_rng(0))
    return counts.to_mdp(discount=0.9, prior=1.0), sf.DirichletPosterior(counts)


@pytest.fixture(scope="module")
def certificate(setting):
    mdp, posterior = setting
    made = sf.certify([1] * 6, posterior, mdp, draws=300, rng=np.random.default_rng(1))
    return replace(made, **BESIDE).adding(sf.Finding.of("stuck_states", states=1, amount=-2.0))


def test_everything_survives_json(certificate):
    again = sf.Certificate.from_json(certificate.to_json())
    names = [field.name for field in fields(certificate) if field.name != "returns"]
    for name in names:
        np.testing.assert_equal(getattr(again, name), getattr(certificate, name))
    assert len(certificate.returns) == certificate.draws  # the run folder keeps these, if anything
    assert again.returns is None
    assert again.to_json() == certificate.to_json()


def test_the_file_has_the_names_that_others_rely_on(certificate):
    content = json.loads(certificate.to_json())
    assert content["format"] == 2
    assert content["curse"] == {"mean": 0.5, "spread": 0.25}
    log = {
        name: content["behaviour"]["log"][name] for name in ("mean", "lower", "upper", "episodes")
    }
    assert log == {"mean": 1.5, "lower": 1.0, "upper": "inf", "episodes": 40}
    assert content["behaviour"]["model"] == {"mean": 1.25, "lower": 1.0, "upper": 2.0}
    assert content["gain"]["lower_bound"] == -0.5
    (found,) = (one for one in content["findings"] if one["code"] == "stuck_states")
    assert found["level"] == "warning"
    assert found["values"] == {"states": 1, "amount": -2.0}
    assert found["text"] in content["warnings"]


def test_mirroring_twice_changes_nothing(certificate):
    turned = certificate.mirrored()
    assert turned.objective == "min"
    assert turned.promise == -certificate.promise
    assert turned.behaviour.log.lower == -float("inf")
    assert turned.doubt.rewards.promise_without == -3.0
    assert (turned.gain.lower_bound, turned.gain.promise) == (-0.5, -1.5)
    assert turned.backtest == certificate.backtest
    assert certificate.backtest.failed
    assert "(2)" in turned.warnings[0]
    assert turned.mirrored().to_json() == certificate.to_json()


def test_sentences_have_units_and_steps(certificate):
    assert "return over at most 12 steps from" in certificate.sentence
    assert certificate.sentence.count(" EUR") == 2
    assert "earns at most 0.5000 EUR less than what was done" in certificate.gain_sentence
    assert "costs at most 0.5000 EUR more" in certificate.mirrored().gain_sentence


def test_printed_bounds_are_on_the_safe_side():
    low, high = -1.000001, 2.0000001
    said = sentences.promise(low, high, scope="no policy", objective="max")
    assert "at least -1.0001; no policy can be promised more than 2.0001" in said
    said = sentences.promise(low, high, scope="no policy", objective="min")
    assert "at most 2.0001; no policy can be promised less than -1.0001" in said
    assert "at least 1.999 more" in sentences.difference(1.9999, a="a", b="b", objective="max")
    assert "at most 2.000 less" in sentences.difference(-1.9999, a="a", b="b", objective="max")


@pytest.mark.parametrize("value", [{"mean": "x", "spread": 1.0}, {"average": 1.0}, 3, "much"])
def test_a_wrong_part_of_a_file_is_named(certificate, value):
    content = json.loads(certificate.to_json())
    with pytest.raises(ValueError, match="the certificate's curse cannot be"):
        sf.Certificate.from_json(json.dumps(content | {"curse": value}))


def test_a_posterior_without_counts_says_what_is_taken_for_granted(setting):
    mdp, exact = setting
    draws = exact.sample(400, np.random.default_rng(2))
    posterior = sf.PosteriorDraws.from_arrays(draws, mdp=mdp, independent=True)
    made = sf.certify([1] * 6, posterior, mdp, rng=np.random.default_rng(1))
    assert made.has("posterior_without_counts")
    assert "taking the model's successors as complete and its rewards as exact" in made.sentence
    assert made.stream is None


def test_costs_and_rewards_are_compared_alike(setting):
    mdp, posterior = setting
    costs = replace(mdp, reward=-mdp.reward)
    options = {"draws": 300, "rng": np.random.default_rng(3)}
    gain = sf.compare([1] * 6, [0] * 6, posterior, mdp, **options)
    options["rng"] = np.random.default_rng(3)
    cost = sf.compare([1] * 6, [0] * 6, posterior, costs, **options, objective="min")
    assert cost.mirrored() == gain
    assert "policy a costs at" in cost.sentence


def test_optimising_costs_mirrors_optimising_rewards(setting):
    mdp, posterior = setting
    costs = replace(mdp, reward=-mdp.reward)
    told = []
    gain = sf.optimize(posterior, mdp, draws=300, rng=np.random.default_rng(4))
    cost = sf.optimize(
        posterior, costs, draws=300, rng=np.random.default_rng(4), objective="min",
        progress=lambda _, best: told.append(best),
    )  # fmt: skip
    turned = cost.mirrored()
    assert [repr(one) for one in turned.candidates] == [repr(one) for one in gain.candidates]
    assert turned.certificate.lower_bound == gain.certificate.lower_bound
    assert turned.certificate.upper_bound == gain.certificate.upper_bound
    assert max(told) < 0


def test_the_upper_end_says_what_it_rests_on():
    said = sentences.promise(1.0, 2.0, scope="no policy", objective="max", unseen=True)
    assert said.endswith("; taking the unseen as the model does, no policy can be promised more "
                         "than 2.0000")  # fmt: skip
    plain = sentences.promise(1.0, 2.0, scope="no policy", objective="max")
    assert "unseen" not in plain


@pytest.mark.parametrize(("declared", "end"), [(None, "seen"), ((-9.0, 2.0), "declared")])
def test_the_unseen_is_no_worse_than_what_was_declared(declared, end):
    """The model pays the lower end of a declared range there, and the sentence says that end."""
    log = {"state": [0, 0, 1], "action": [0, 0, 0], "next_state": [1, 0, 0], "reward": [1, 0, -1]}
    counts = sf.read_transitions(log, reward_range=declared)
    for support in ("unseen", "learned"):
        placed = counts.on_support(support)
        mdp = placed.to_mdp(discount=0.9, prior=1.0)
        found = provenance.findings_of(sf.DirichletPosterior(placed), mdp)
        assert f"no worse than the lowest reward {end}" in found[0].text
        assert mdp.reward.min() == (-1.0 if declared is None else -9.0)
        assert end in plain(found[0].code, found[0].values)[0]
