"""``verify --log``: a promise that holds is hardly ever called into question, one that fails is."""

import json

import numpy as np
import pytest

from surefoot import Settings, run
from surefoot.certificates.agreement import weigh_steps
from surefoot.certificates.bets import ANYTIME_WEIGHTS, anytime_evidence
from surefoot.cli import main
from surefoot.pipeline.agreement import agreement_with
from surefoot.pipeline.step_values import averaged
from surefoot.solvers.solver import evaluate


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


def test_bets_do_not_depend_on_what_occurred():
    """A kind of step that may bring more sets their size, whether it has occurred or not."""
    found = weigh_steps([-0.5], [1.0], [20], bearable=0.1, transitions=20, highest=3.0)
    expected = anytime_evidence([1.5], [1.1], [20], 3.1)
    assert found.evidence == pytest.approx(np.exp(expected))


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
    assert found.unknown == 30


def test_transitions_that_the_run_does_not_know_are_told(made, tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("state,action,reward,next_state\n" + "up,mend,1.0,up\n" * 30 + "UP,mend,1.0,up")
    assert "1 transition has a state or an action that the run does not" in (
        agreement_with(made.folder, path).message
    )


def test_the_command(made, tmp_path, capsys):
    good = world(tmp_path / "good.csv", 1500, 7)
    bad = world(tmp_path / "bad.csv", 1500, 8, bad=0.6)
    assert main(["verify", str(made.folder), "--log", good, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["stands"]
    assert facts["agreement"]["agrees"]
    assert main(["verify", str(made.folder), "--log", good, "--log", bad]) == 3
    assert "does not agree with the new data" in capsys.readouterr().out


HORIZON = 6


def seasons(path, episodes, seed, *, bad=0.1, good=1.0, costs=False):
    """Write episodes of six steps; the action "mend" leads to "down" with probability ``bad``."""
    rng = np.random.default_rng(seed)
    lines = ["season;week;state;action;reward;next_state"]
    for season in range(episodes):
        state = "up"
        for week in range(HORIZON):
            action = rng.choice(["mend", "wait"])
            earned = (good if state == "up" else 0.0) - (0.05 if action == "mend" else 0.0)
            after = "down" if rng.random() < (bad if action == "mend" else 0.5) else "up"
            shown = f"{-earned if costs else earned:.2f}".replace(".", ",")
            lines.append(f"{season};{week};{state};{action};{shown};{after}")
            state = after
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture(scope="module", params=["by ranges", "one rule", "steps apart", "costs"])
def over_six_weeks(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("seasons")
    costs = request.param == "costs"
    settings = Settings(
        log=seasons(folder / "log.csv", 300, 0, costs=costs), episode="season", step="week",
        horizon=HORIZON, discount=0.95, draws=200, eta=0.05, delta=0.2, prior=1.0, costs=costs,
        support="all" if request.param != "steps apart" else "observed",
        stationary=request.param == "one rule", by_step=request.param == "steps apart",
    )  # fmt: skip
    return run(settings, folder / "run")


def test_over_a_horizon_the_same_world_agrees_and_a_changed_one_does_not(over_six_weeks, tmp_path):
    folder, costs = over_six_weeks.folder, over_six_weeks.settings.costs
    new = tmp_path / "new.csv"
    for seed in (1, 2):
        found = agreement_with(folder, seasons(new, 200, seed, costs=costs))
        assert found.agrees, found.message
        assert 0 < found.steps <= found.transitions == 200 * HORIZON
    for change in ({"bad": 0.7}, {"good": 0.3}):
        found = agreement_with(folder, seasons(new, 400, 3, costs=costs, **change))
        assert not found.agrees, found.message
        assert found.shortfall > found.bearable


def test_steps_of_the_model_bring_what_is_expected_on_average(over_six_weeks):
    model = over_six_weeks.model
    mdp, policy = model.mdp, model.shown(over_six_weeks.certificate).policy
    found = averaged(mdp, policy, mdp.entry_row, lambda value: value[mdp.successor])
    brought = mdp.probability * (mdp.entry_reward + mdp.discount * found.after)
    by_row = np.add.reduceat(brought, mdp.row_start[:-1])
    taken = found.quality != 0
    assert by_row[taken] == pytest.approx(found.quality[taken])
    known = evaluate(mdp, policy)
    assert known.return_lower <= found.expected + 1e-9
    assert found.expected - 1e-9 <= known.return_upper


def test_a_promise_without_discount_and_horizon_is_refused_with_advice(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["state,action,reward,next_state,done"]
    for _ in range(200):
        action = rng.choice(["go", "rest"])
        done = int(rng.random() < 0.5)
        lines.append(f"up,{action},-1,{'off' if done else 'up'},{done}")
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    own = Settings(
        log=str(tmp_path / "log.csv"), terminal="done", discount=1.0, draws=100, eta=0.1, delta=0.2,
        support="observed",
    )  # fmt: skip
    made = run(own, tmp_path / "run")
    with pytest.raises(ValueError, match="without discount and horizon"):
        agreement_with(made.folder, own.log)
