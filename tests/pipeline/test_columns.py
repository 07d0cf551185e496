"""Several columns, bins, rules and orders: they stay columns in every file and option."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from surefoot import Settings, load_run, read_policy, run, verify_run
from surefoot.data.bins import raw_label, read_bins
from surefoot.pipeline.model import build_model, read_log

HEADER = "age;blood pressure;visits;reward;next_age;next_blood pressure"


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Patients: a measured age, a label that holds an umlaut, a column named like one of ours."""
    rng = np.random.default_rng(3)
    lines = [HEADER]
    for _ in range(600):
        age, after = rng.uniform(20, 80, 2)
        pressure, following = rng.choice(["normal", "erhöht"], 2)
        action = rng.choice(["none", "drug 2", "drug 10"])
        reward = rng.integers(0, 3) + (action == "drug 10") * (pressure == "erhöht")
        lines.append(
            f"{age:.1f};{pressure};{action};{reward},5;{after:.1f};{following}".replace(".", ",")
        )
    path = tmp_path_factory.mktemp("log") / "patients.csv"
    path.write_bytes(("\n".join(lines) + "\n").encode("cp1252"))
    return path


@pytest.fixture(scope="module")
def settings(log):
    return Settings(
        log=log, state=("age", "blood pressure"), action="visits", bins="age=40,60",
        discount=0.8, draws=400, eta=0.02, prior=1.0, support="observed",
    )  # fmt: skip


@pytest.fixture(scope="module")
def model(settings):
    return build_model(settings, read_log(settings))


def side_file(folder, text, name="side.csv"):
    path = folder / name
    path.write_bytes(text.encode("cp1252"))
    return str(path)


def test_a_run_keeps_columns_bins_and_order(tmp_path, log, settings):
    order = side_file(tmp_path, "blood pressure;visits\nnormal;none\nerhöht;drug 2\n", "order.csv")
    forbidden = side_file(tmp_path, "blood pressure;visits\nnormal;drug 10\n", "forbidden.csv")
    made = run(replace(settings, order=order, forbidden=forbidden), tmp_path / "run")
    with (made.folder / "policy.csv").open(encoding="utf-8", newline="") as file:
        head, *lines = csv.reader(file)
    assert head == ["age", "blood pressure", "visits", "probability", "visits_", "margin"]
    bins = ["age below 40", "age 40-60", "age 60 or more"]
    assert [line[:2] for line in lines] == [[a, p] for a in bins for p in ("normal", "erhöht")]
    assert all(line[2] != "drug 10" for line in lines if line[1] == "normal")
    content = json.loads((made.folder / "policy.json").read_text("utf-8"))
    assert content["columns"] == {"state": ["age", "blood pressure"], "action": ["visits"]}
    assert content["action"]["age 40-60"]["erhöht"] == lines[3][2]
    assert "('" not in (made.folder / "report.html").read_text("utf-8")
    # The mapping lies in the folder: raw measurements find their state.
    kept = read_bins(made.folder / "bins.json")
    raw = {"age": "47,3", "blood pressure": "erhöht"}
    assert raw_label(settings.columns.state, kept, raw) == ("age 40-60", "erhöht")
    # The folder works without the files beside the log.
    for path in (order, forbidden):
        Path(path).unlink()
    again = load_run(made.folder)
    assert [line.state for line in again.policy] == [line.state for line in made.policy]
    assert verify_run(made.folder, np.random.default_rng(0)).stands
    policy = read_policy(made.folder / "policy.csv", again.model.mdp, columns=settings.columns)
    np.testing.assert_array_equal(policy, made.certificate.policy)


def test_policies_and_first_states_in_the_columns_of_the_log(tmp_path, settings, model):
    lines = [
        f"{age};{pressure};{action};{share}"
        for age in ("age below 40", "age 40-60", "age 60 or more")
        for pressure in ("normal", "erhöht")
        for action, share in (("none", "0,25"), ("drug 2", "0,75"))
    ]
    text = "\n".join(["age;blood pressure;visits;probability", *lines]) + "\n"
    share = read_policy(side_file(tmp_path, text), model.mdp, columns=settings.columns)
    assert sorted(set(share[:6].ravel())) == [0.0, 0.25, 0.75]
    first = side_file(
        tmp_path, "age;blood pressure;probability\nage 40-60;erhöht;0,5\nage 40-60;normal;0,5\n"
    )
    there = build_model(replace(settings, initial=first), model.counts).mdp.initial
    assert sorted(there)[-2:] == [0.5, 0.5]


def allowed(settings, model, **rules):
    there = build_model(replace(settings, **rules), model.counts)
    return {
        (there.mdp.state_labels[s], there.mdp.action_labels[a])
        for s, a in np.argwhere(there.allowed)
    }


def test_columns_left_out_mean_any(tmp_path, settings, model):
    drug = side_file(tmp_path, "visits\ndrug 10\n")
    left = allowed(settings, model, forbidden=drug)
    assert {action for _, action in left} == {"none", "drug 2"}
    old = side_file(tmp_path, "age;visits\nage 60 or more;none\n", "old.csv")
    left = allowed(settings, model, forbidden=old)
    assert (("age 60 or more", "normal"), "none") not in left
    assert (("age 40-60", "normal"), "none") in left
    only = side_file(tmp_path, "visits\nnone\n", "only.csv")
    assert {action for _, action in allowed(settings, model, allowed=only)} == {"none"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("agee;visits\nage 40-60;none\n", r"there is no column 'age'; .* Did you mean 'agee'"),
        ("age;blood pressure;visits\nage 40-50;normal;none\n", r"line 2: unknown age 'age 40-50'"),
        ("age;blood pressure;visits\nage 40-60;hoch;none\n", r"line 2: unknown blood pressure 'ho"),
        (
            "age;visits\nage 40-60;drug 11\n",
            r"line 2: unknown action 'drug 11'. Did you mean 'drug",
        ),
        ("age\nage 40-60\n", r"there is no column"),
    ],
)
def test_wrong_rules_are_refused(tmp_path, settings, model, text, message):
    with pytest.raises(ValueError, match=message):
        allowed(settings, model, forbidden=side_file(tmp_path, text))


def test_a_state_must_keep_an_action(tmp_path, settings, model):
    rule = side_file(tmp_path, "visits\nnone\ndrug 2\ndrug 10\n")
    with pytest.raises(ValueError, match="left without an action that the log supports"):
        allowed(settings, model, forbidden=rule)


def test_support_and_rewards_may_use_semicolons(tmp_path, settings, model):
    states = [label for label in model.counts.state_labels if isinstance(label, tuple)]
    lines = ["age;blood pressure;visits;next_age;next_blood pressure"]
    lines += [
        ";".join((*state, action, *after))
        for state in states for action in model.counts.action_labels for after in states
    ]  # fmt: skip
    listed = side_file(tmp_path, "\n".join(lines) + "\n")
    placed = build_model(replace(settings, support=listed), model.counts).placed
    assert placed.num_entries == 6 * 3 * 6
    table = "age;blood pressure;visits;reward\n" + "\n".join(
        ";".join((*state, action, "2,5"))
        for state in states for action in model.counts.action_labels
    )  # fmt: skip
    path = side_file(tmp_path, table + "\n", "rewards.csv")
    given = read_log(replace(settings, reward_table=path))
    assert set(given.reward_mean) == {2.5}


def test_unknown_labels_in_an_order_are_refused(tmp_path, settings, model):
    order = side_file(tmp_path, "visits\nnone\ndrug 3\n")
    there = build_model(replace(settings, order=order), model.counts)
    with pytest.raises(ValueError, match=r"line 3: unknown visits 'drug 3'; the log has drug 2, d"):
        _ = there.order


def test_labels_come_in_natural_order(model):
    keys = sorted(model.mdp.action_labels, key=model.order.action_key)
    assert keys == ["drug 2", "drug 10", "none"]
