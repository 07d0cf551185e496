"""``surefoot decide``: one state, a file of states, states never seen."""

import csv
import json
from dataclasses import replace

import pytest

from command_line import run
from surefoot import run as run_settings
from surefoot.demo import demo_settings


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    settings = replace(demo_settings(), draws=600, eta=0.01)
    return run_settings(settings, tmp_path_factory.mktemp("runs") / "run").folder


def test_a_state_is_answered(capsys, made):
    code, out, err = run(capsys, "decide", made, "--state", "condition=wear 4")
    assert (code, err) == (0, "")
    assert out.startswith("condition wear 4: repair. Tried 127 times")
    assert run(capsys, "decide", made, "--state", "wear 4")[1] == out
    facts = json.loads(run(capsys, "decide", made, "--state", "wear 4", "--json")[1])
    assert (facts["action"], facts["visits"], facts["habit"]) == ("repair", 127, "run")


def test_a_state_never_seen_is_exit_code_1(capsys, made):
    code, out, err = run(capsys, "decide", made, "--state", "condition=wear 12")
    assert (code, out) == (1, "")
    assert "the log never shows this state" in err
    assert err.count("\n") == 1
    code, out, _ = run(capsys, "decide", made, "--state", "condition=wear 12", "--json")
    assert (code, json.loads(out)["code"]) == (1, 1)


def test_a_file_of_states_is_answered(capsys, made, tmp_path):
    path, out = tmp_path / "states.csv", tmp_path / "out.csv"
    path.write_text("machine,condition\nfiller 01,wear 4\nfiller 02,wear 12\n", encoding="utf-8")
    code, shown, _ = run(capsys, "decide", made, "--states", path)
    assert code == 0
    assert "2 states, 1 of them without advice." in shown
    assert run(capsys, "decide", made, "--states", path, "--out", out)[0] == 0
    with out.open(encoding="utf-8", newline="") as file:
        known, unknown = csv.DictReader(file)
    assert (known["machine"], known["decision"], known["known"]) == ("filler 01", "repair", "yes")
    assert (unknown["decision"], unknown["known"]) == ("", "no")
    assert "exists already" in run(capsys, "decide", made, "--states", path, "--out", out)[2]
    facts = json.loads(run(capsys, "decide", made, "--states", path, "--json")[1])
    assert [fact["known"] for fact in facts] == [True, False]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a state with --state"),
        (["--state", "a", "--states", "b"], "name a state with --state"),
        (["--state", "wear 4", "--out", "x.csv"], "--out goes with --states"),
        (["--state", "wear 4", "--state", "wear 5"], "names condition twice"),
        (["--state", "level=wear 4"], "there is no state column 'level'"),
        (["--state", "wear 4", "--step", "2"], "the same at every step"),
        (["--states", "nowhere.csv"], "there is no such file"),
    ],
)
def test_mistakes_are_one_line(capsys, made, arguments, message):
    code, out, err = run(capsys, "decide", made, *arguments)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert message in err


def test_the_policy_is_exported(capsys, made, tmp_path):
    path = tmp_path / "policy.sql"
    code, out, _ = run(capsys, "export", made, path)
    assert code == 0
    assert out == f"Policy: {path} (10 states)\n"
    assert 'END AS "decision"' in path.read_text(encoding="utf-8")
    assert "exists already" in run(capsys, "export", made, path)[2]
    assert run(capsys, "export", made, tmp_path / "policy.xlsx")[0] == 0
    code, _, err = run(capsys, "export", made, tmp_path / "policy.txt")
    assert (code, "must end in .sql or .xlsx" in err) == (1, True)
