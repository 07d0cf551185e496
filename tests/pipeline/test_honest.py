"""A true split: chosen on one part of the log, certified on the other."""

from dataclasses import replace

import numpy as np
import pandas as pd

from surefoot import Settings, load_run, run, verify_run
from surefoot.pipeline.model import build_model, read_log
from surefoot.pipeline.promises import certify_policy, difference


def two_step_log(*, memory, episodes=200, steps=12):
    """States 0 and 1; with memory, the next state repeats the one before last."""
    rng = np.random.default_rng(0)
    rows = []
    for episode in range(episodes):
        before, state = rng.integers(2, size=2)
        for step in range(steps):
            sure = before if memory else state
            after = int(sure if rng.random() < 0.9 else 1 - sure)
            rows.append((episode, step, int(state), int(rng.integers(2)), float(after), after))
            before, state = state, after
    names = ["episode", "step", "state", "action", "reward", "next_state"]
    return pd.DataFrame(rows, columns=names)


def honest_run(tmp_path, log):
    log.to_csv(tmp_path / "log.csv", index=False)
    settings = Settings(
        log=str(tmp_path / "log.csv"), discount=0.9, episode="episode", step="step", draws=500
    )
    return run(replace(settings, honest=True), tmp_path / "run")


def test_an_honest_run_is_certified_by_the_other_part(tmp_path):
    made = honest_run(tmp_path, two_step_log(memory=False, episodes=100, steps=60))
    split = made.certificate.split
    assert split is not None
    assert split.by == "episodes"
    assert split.choosing + split.certifying == 100
    assert made.certificate.curse is None
    assert made.certificate.backtest is not None
    assert made.certificate.gain is not None
    assert made.certificate.gain.lower_bound is not None
    told = [
        found.values for found in made.certificate.findings if found.code == "whole_would_promise"
    ]
    assert told[0]["promise"] > made.certificate.promise - 2.0
    assert not made.certificate.withheld
    assert verify_run(tmp_path / "run", np.random.default_rng(1)).stands
    assert load_run(tmp_path / "run").certificate.promise == made.certificate.promise


def test_checks_of_the_whole_log_take_an_honest_promise_back(tmp_path):
    made = honest_run(tmp_path, two_step_log(memory=True))
    assert made.certificate.has("not_markov")
    assert made.certificate.has("memory_seen")
    # The state before last decides: adding the previous state cures it.
    assert made.certificate.has("previous_state_helps")
    assert [one.share for one in made.certificate.tilted][:2] == [0.0, 0.02]
    assert "by the episodes" in made.certificate.summary()
    assert made.certificate.sentence.startswith("NOT CERTIFIED")


def test_other_promises_about_such_a_log_are_taken_back_too(tmp_path):
    two_step_log(memory=True).to_csv(tmp_path / "log.csv", index=False)
    settings = Settings(
        log=str(tmp_path / "log.csv"), discount=0.9, episode="episode", step="step", draws=500
    )
    made = run(replace(settings, basis="frequentist"), tmp_path / "run")
    assert made.certificate.has("not_markov")
    for basis in ("bayesian", "frequentist"):
        model = build_model(replace(settings, basis=basis), read_log(settings))
        policy = np.zeros(model.mdp.num_states, dtype=int)
        brought = certify_policy(model, policy)
        assert brought.sentence.startswith("NOT CERTIFIED")
        other = policy.copy()
        other[0] = 1
        compared = difference(model, policy, other)
        assert compared.withheld
        assert compared.sentence.startswith("NOT CERTIFIED")
        assert compared.to_mapping()["withheld"]
