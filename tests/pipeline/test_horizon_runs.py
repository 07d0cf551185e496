"""Whole runs over a horizon: policy by step, what was done, verification, refusals."""

import csv
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from surefoot import Settings, StepPolicy, evaluate, load_run, read_policy, run, verify_run
from surefoot.model.policies import action_at
from surefoot.pipeline.agreement import agreement_with
from surefoot.pipeline.answers import answer_file
from surefoot.pipeline.model import build_model, place, read_log
from surefoot.pipeline.parts import divide_log, steps_alike
from surefoot.pipeline.practice import return_limits
from surefoot.pipeline.reward_ends import least_return
from surefoot.pipeline.variations import usual_variations
from surefoot.pipeline.what_if import what_if
from surefoot.studies.zoo.catalogue import make_world
from surefoot.studies.zoo.logs import random_shares, trajectories

SMALL = {"draws": 600, "eta": 0.01}


@pytest.fixture(scope="module")
def visits(tmp_path_factory) -> Settings:
    """Patients who are treated or not, at most sixty visits; twelve of them count."""
    world = make_world("survival")
    log = trajectories(world, random_shares(world), 250, np.random.default_rng(3)).columns
    path = tmp_path_factory.mktemp("logs") / "visits.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(log)
        writer.writerows(zip(*log.values(), strict=True))
    return Settings(
        log=str(path), episode="episode", step="step", terminal="terminal", horizon=12, **SMALL
    )


@pytest.fixture(scope="module")
def finished(visits, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    final = folder / "final.csv"
    final.write_text("state,reward\ndead,-1\nseverity 0,0.5\n", encoding="utf-8")
    return run(replace(visits, final_reward=str(final)), folder / "run")


def test_the_policy_is_written_by_step(finished) -> None:
    certificate = finished.certificate
    assert certificate.horizon == 12
    assert certificate.discount == 1.0
    assert "with a rule for each step, the policy" in certificate.sentence
    with (finished.folder / "policy.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0])[:4] == ["state", "first_step", "last_step", "action"]
    by_state: dict[str, list[tuple[int, int]]] = {}
    for line in lines:
        ends = int(line["first_step"]), int(line["last_step"])
        by_state.setdefault(line["state"], []).append(ends)
    for ranges in by_state.values():
        steps = [step for first, last in ranges for step in range(first, last + 1)]
        assert steps == list(range(12))
    content = json.loads((finished.folder / "policy.json").read_text(encoding="utf-8"))
    assert content["horizon"] == 12
    stored = json.loads((finished.folder / "certificate.json").read_text(encoding="utf-8"))
    assert stored["horizon"] == 12
    page = (finished.folder / "report.html").read_text(encoding="utf-8")
    assert "At most 12 steps count, and what the last state is worth." in page
    assert "All steps count the same (no discount)." in page
    assert '<th scope="col">steps</th>' in page


def test_a_run_is_read_back_and_verified(finished) -> None:
    again = load_run(finished.folder)
    policy = read_policy(finished.folder / "policy.csv", again.model.mdp)
    assert isinstance(again.certificate.policy, StepPolicy)
    mdp = again.model.mdp
    for label, step in (("severity 0", 0), ("severity 3", 5), ("severity 7", 11)):
        state = mdp.state_labels.index(label)
        line = next(
            one
            for one in finished.policy
            if one.state == label and one.first_step <= step <= one.last_step
        )
        assert mdp.action_labels[action_at(policy, state, step)] == line.action
    assert verify_run(finished.folder, np.random.default_rng(0)).stands


def test_what_was_done_is_counted_over_the_same_steps(visits, finished) -> None:
    shown = finished.behaviour.log
    assert shown.horizon == 12
    assert shown.cut == 0  # of at most sixty visits, each reached an end or the twelfth
    assert shown.lower <= shown.mean <= shown.upper
    assert finished.behaviour.model.lower <= shown.upper
    assert shown.lower <= finished.behaviour.model.upper
    assert finished.certificate.gain is not None
    with Path(visits.log[0]).open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    last = {}
    total = 0.0
    for row in rows:
        if int(row["step"]) < 12:
            total += float(row["reward"])
            last[row["episode"]] = row["next_state"]
    worth = {"dead": -1.0, "severity 0": 0.5}
    total += sum(worth.get(state, 0.0) for state in last.values())
    assert shown.mean == pytest.approx(total / 250)


def test_behaviour_without_discount_is_the_mean_of_the_log(visits, tmp_path) -> None:
    with Path(visits.log[0]).open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    over = {row["episode"] for row in rows if row["terminal"] == "True"}
    path = tmp_path / "ended.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(row for row in rows if row["episode"] in over)
    long = replace(visits, log=(str(path),), horizon=2000, support="observed", prior=1e-9)
    counts = read_log(long)
    followed = divide_log(long, counts).followed
    model = build_model(long, counts)
    # At discount 1 flows in equal flows out: the empirical model under empirical shares earns what
    # the log earned.
    by_model = evaluate(model.mdp, model.behaviour)
    assert followed.ended.all()
    assert by_model.return_lower == pytest.approx(followed.earned.mean(), abs=1e-6)
    low, high = return_limits(model)
    assert low <= followed.earned.min()
    assert followed.earned.max() <= high


def test_one_rule_for_all_steps_and_costs(visits, tmp_path) -> None:
    made = run(replace(visits, stationary=True, costs=True, horizon=5), tmp_path / "run")
    assert np.ndim(made.certificate.policy) == 1
    assert "one rule for all steps, the policy's expected cost over at most 5 steps" in (
        made.certificate.sentence
    )
    assert {(line.first_step, line.last_step) for line in made.policy} == {(0, 4)}
    assert verify_run(made.folder, np.random.default_rng(0)).stands


def test_without_a_prior(visits, tmp_path) -> None:
    settings = replace(visits, basis="frequentist", horizon=4, draws=None)
    made = run(settings, tmp_path / "run")
    assert made.certificate.horizon == 4
    assert isinstance(made.certificate.policy, StepPolicy)
    assert verify_run(made.folder).stands


def test_what_needs_a_horizon_says_so(visits) -> None:
    for more in ({"stationary": True}, {"final_reward": "x.csv"}, {"by_step": True}):
        with pytest.raises(ValueError, match="goes with a horizon"):
            replace(visits, horizon=None, discount=0.9, **more).check_complete()
    with pytest.raises(ValueError, match="or --horizon 12 to count"):
        replace(visits, horizon=None).check_complete()
    with pytest.raises(ValueError, match="1 or more"):
        replace(visits, horizon=0)
    with pytest.raises(ValueError, match="contradict"):
        replace(visits, by_step=True, stationary=True).check_complete()


def test_steps_kept_apart(visits, tmp_path) -> None:
    made = run(replace(visits, by_step=True, horizon=3), tmp_path / "run")
    assert made.certificate.has("rows_by_step")
    assert "with a rule for each step" in made.certificate.sentence
    assert {line.first_step for line in made.policy} == {0, 1, 2}
    assert all(line.first_step == line.last_step for line in made.policy)
    seen: dict[tuple[str, int, str], int] = {}
    with Path(visits.log[0]).open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            key = row["state"], int(row["step"]), row["action"]
            seen[key] = seen.get(key, 0) + 1
    for line in made.policy:
        assert line.visits == seen[str(line.state), line.first_step, str(line.action)]
    assert verify_run(made.folder, np.random.default_rng(0)).stands


def test_states_after_the_last_step_are_not_stuck(tmp_path) -> None:
    lines = ["case,visit,state,action,reward"]
    lines += [f"{c},{v},{'ab'[(c + v) % 2]},{'xy'[c % 2]},1" for c in range(40) for v in range(5)]
    (tmp_path / "log.csv").write_text("\n".join(lines), encoding="utf-8")
    own = Settings(
        log=str(tmp_path / "log.csv"), episode="case", step="visit", horizon=4, by_step=True
    )
    report = place(own, read_log(own)).report
    assert report is not None
    assert report.stuck_states == 0


def test_pooling_is_checked(visits, tmp_path) -> None:
    counts = read_log(visits)
    alike = steps_alike(build_model(visits, counts), divide_log(visits, counts))
    assert [one.code for one in alike] == ["steps_alike"]
    path = tmp_path / "fading.csv"
    lines = ["episode,step,state,action,reward,next_state"]
    for i in range(200):  # what was sure at first is a coin toss later
        lines += [f"{i},0,up,wait,1,up", f"{i},1,up,wait,1,{'up' if i % 2 else 'down'}"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    fading = Settings(log=str(path), episode="episode", step="step", horizon=2, **SMALL)
    counts = read_log(fading)
    found = steps_alike(build_model(fading, counts), divide_log(fading, counts))
    assert [(one.code, one.level) for one in found] == [("steps_differ", "warning")]


def test_runs_until_the_end(visits, tmp_path) -> None:
    made = run(replace(visits, horizon=None, discount=1.0), tmp_path / "run")
    assert "expected return until the end from first states as in" in made.certificate.sentence
    assert made.certificate.horizon is None
    assert verify_run(made.folder, np.random.default_rng(0)).stands
    path = tmp_path / "endless.csv"
    lines = ["state,action,reward,next_state,terminal"]
    lines += ["up,wait,1,up,False", "up,stop,1,down,False", "down,stop,1,done,True"] * 9
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    settings = Settings(log=str(path), terminal="terminal", discount=1.0, support="observed")
    with pytest.raises(ValueError, match=r"state 'up' leads to no end"):
        run(settings, tmp_path / "none")


@pytest.mark.parametrize("reward", [-1.0, 0.0])
def test_few_episodes_that_linger_are_no_endless_ones(tmp_path, reward) -> None:
    """Rows that were only seen to stay where they are end by what was never seen, or not at all."""
    rng = np.random.default_rng(5)
    lines = ["episode,step,state,action,reward,next_state,terminal"]
    for episode in range(12):
        state, step = "first", 0
        while state != "end":
            act = "b" if rng.random() < 0.3 else "a"
            leave = rng.random() < {"first": 1.0, "stay": 0.5 if act == "a" else 0.25}[state]
            after = ("stay" if state == "first" else "end") if leave else state
            lines.append(f"{episode},{step},{state},{act},{reward},{after},{after == 'end'}")
            state, step = after, step + 1
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    columns = {name: name for name in ("episode", "step", "terminal")}
    made = run(
        Settings(log=str(path), discount=1.0, draws=300, eta=0.01, **columns), tmp_path / "r"
    )
    assert made.certificate.lower_bound <= made.certificate.nominal_return <= 0
    assert np.isfinite(made.certificate.lower_bound)


def test_decisions_know_the_step(finished) -> None:
    again = load_run(finished.folder)
    for line in finished.policy:
        assert again.action(line.state, step=line.last_step).action == line.action
    several = next(line.state for line in finished.policy if line.first_step)
    with pytest.raises(ValueError, match="depends on the step"):
        again.action(several)
    with pytest.raises(ValueError, match="counts the steps 0 to 11"):
        again.action(several, step=12)


def test_a_file_of_states_needs_their_steps(finished, tmp_path) -> None:
    asked = tmp_path / "states.csv"
    asked.write_text("state;visit\nseverity 0;1\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"depends on the step, and .* 'visit'. Add it \(0 is"):
        answer_file(finished.advice, asked, ["action"])
    asked.write_text("state;step\nseverity 0;1\n", encoding="utf-8")
    assert answer_file(finished.advice, asked, ["action"]).decisions[0].known


def test_nothing_that_is_earned_falls_below_the_least(finished) -> None:
    low = least_return(finished.model)
    mdp = finished.model.mdp
    assert low == pytest.approx(12 * mdp.reward.min() + mdp.final_reward.min())
    assert low <= finished.certificate.lower_bound


def test_what_if_leaves_out_the_discount_and_says_so(finished) -> None:
    found = what_if(finished.folder, delta=[0.2])
    assert found.lines[0].per_step == pytest.approx(finished.certificate.promise / 12)
    assert "no discount to vary" in found.to_mapping()["note"]
    assert all(one.setting != "discount" for one in usual_variations(load_run(finished.folder)))
    assert "return per step" in found.page().to_html()


def test_the_log_itself_agrees_with_the_promise(finished) -> None:
    found = agreement_with(finished.folder, finished.settings.log)
    assert found.agrees
    assert 0 < found.steps < found.transitions


MEASURED = """
import re, sys
from pathlib import Path
import numpy as np
from surefoot import Settings, run

folder, rng = Path(sys.argv[1]), np.random.default_rng(0)


def written(name, states):
    lines = ["episode,step,state,action,reward,next_state"]
    for episode in range(5 * states):
        state = int(rng.integers(states))
        for step in range(12):
            action = int(rng.integers(2))
            after = (3 * state + 7 * action + int(rng.integers(4))) % states
            lines.append(f"{episode},{step},{state},{action},{state % 7 - action},{after}")
            state = after
    (folder / name).write_text("\\n".join(lines))


def peak(name, horizon):
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted anew
    own = Settings(
        log=str(folder / name), episode="episode", step="step", horizon=horizon, draws=20,
        eta=0.4, delta=0.4, prior=1.0, support="observed",
    )
    run(own, folder / f"{name} {horizon}")
    status = Path("/proc/self/status").read_text()
    return [int(re.search(f"{what}:\\\\s+(\\\\d+)", status)[1]) for what in ("VmHWM", "VmRSS")]


written("small.csv", 5)
written("log.csv", 60)
_, before = peak("small.csv", 3)
print(before, peak("log.csv", 1)[0], peak("log.csv", 1000)[0])
"""


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="Linux tells the peak")
def test_a_whole_run_of_a_thousand_steps_takes_little_more_memory(tmp_path) -> None:
    """Everything counts: compiled kernels, DuckDB, figures. What was there before does not."""
    told = subprocess.run(
        [sys.executable, "-c", MEASURED, str(tmp_path)], capture_output=True, text=True, check=True
    ).stdout
    before, short, long = map(int, told.split())
    assert before < short
    assert long - before < 2 * (short - before)
