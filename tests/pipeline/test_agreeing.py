"""``verify --log``: a promise that holds is hardly ever called into question, one that fails is."""

import json

import numpy as np
import pytest

from surefoot import Settings, run
from surefoot.certificates.betting import ANYTIME_WEIGHTS, anytime_evidence
from surefoot.cli import main
from surefoot.pipeline.agreeing import agreement_with


def world(path, size, seed, *, bad=0.1, reward=1.0):
    """Write a log of two states; the action "mend" leads to "down" with probability ``bad``."""
    rng = np.random.default_rng(seed)
    lines = ["state,action,reward,next_state"]
    for _ in range(size):
        state, action = rng.choice(["up", "down"]), rng.choice(["mend", "wait"])
        down = rng.random() < (bad if action == "mend" else 0.5)
        gain = reward if state == "up" else 0.0
        lines.append(f"{state},{action},{gain},{'down' if down else 'up'}")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("agreeing")
    settings = Settings(
        log=world(folder / "log.csv", 2000, 0), discount=0.9, draws=400, eta=0.02, prior=1.0,
        support="all",
    )  # fmt: skip
    return run(settings, folder / "run")


def test_bets_are_fair():
    assert ANYTIME_WEIGHTS.sum() == pytest.approx(1.0)


def test_looking_again_and_again_raises_no_false_alarm():
    # The largest evidence over all looks exceeds 1/alpha with probability alpha at most.
    rng = np.random.default_rng(0)
    runs, looks = 300, 40
    alarms = 0
    for _ in range(runs):
        values = rng.choice([0.0, 1.0], size=(looks, 10), p=[0.7, 0.3]).ravel()
        ever = max(
            anytime_evidence(values[:n], np.full(n, 0.3), np.ones(n), 1.0)
            for n in range(10, len(values) + 1, 10)
        )
        alarms += ever >= np.log(1 / 0.05)
    assert alarms <= 24  # 15 expected at most; 24 has probability 0.99


def test_evidence_is_at_most_fair_on_average():
    rng = np.random.default_rng(1)
    found = [
        np.exp(anytime_evidence(rng.random(50), np.full(50, 0.5), np.ones(50), 1.0))
        for _ in range(2000)
    ]
    assert np.mean(found) < 1.0 + 4 * np.std(found) / np.sqrt(len(found))


def test_counts_stand_for_repetitions():
    values = np.array([0.1, 0.9])
    once = anytime_evidence(np.repeat(values, 3), np.full(6, 0.4), np.ones(6), 1.0)
    assert anytime_evidence(values, np.full(2, 0.4), [3, 3], 1.0) == pytest.approx(once)


def test_new_data_of_the_same_world_agree(made, tmp_path):
    for seed in range(1, 6):
        found = agreement_with(made.folder, world(tmp_path / "new.csv", 1500, seed))
        assert found.agrees, found.message
        assert 0 < found.steps < found.transitions == 1500


@pytest.mark.parametrize("change", [{"bad": 0.6}, {"reward": 0.5}])
def test_a_world_that_changed_is_noticed(made, tmp_path, change):
    found = agreement_with(made.folder, world(tmp_path / "new.csv", 1500, 1, **change))
    assert not found.agrees
    assert found.shortfall > found.bearable
    assert found.finding.level == "failed"


def test_a_better_world_is_no_alarm(made, tmp_path):
    assert agreement_with(made.folder, world(tmp_path / "new.csv", 1500, 1, bad=0.0)).agrees


def test_states_never_seen_count_as_the_worst(made, tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("state,action,reward,next_state\n" + "up,mend,1.0,burnt\n" * 300)
    assert not agreement_with(made.folder, path).agrees


def test_data_without_a_step_of_the_policy_say_nothing(made, tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("state,action,reward,next_state\n" + "elsewhere,mend,1.0,up\n" * 30)
    found = agreement_with(made.folder, path)
    assert found.agrees
    assert "say nothing" in found.message


def test_the_command(made, tmp_path, capsys):
    good = world(tmp_path / "good.csv", 1500, 7)
    bad = world(tmp_path / "bad.csv", 1500, 8, bad=0.6)
    assert main(["verify", str(made.folder), "--log", good, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["stands"]
    assert facts["agreement"]["agrees"]
    assert main(["verify", str(made.folder), "--log", good, "--log", bad]) == 3
    assert "does not agree with the new data" in capsys.readouterr().out
