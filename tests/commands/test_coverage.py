"""``surefoot coverage``: the zoo by default, models drawn from a prior with ``--domain``."""

import json

import numpy as np
import pytest

from command_line import run
from surefoot.studies.zoo import methods
from surefoot.studies.zoo.cells import SMOKE, find_cells
from surefoot.studies.zoo.claims import Claim
from surefoot.studies.zoo.replications import read_records
from surefoot.studies.zoo.truth import Choice


@pytest.fixture
def fake(monkeypatch):
    """Put a method that claims one number always."""

    def put(value, name="fake"):
        nothing = Choice(states=(), actions=(), policy=np.zeros((0, 0)))

        def claims(columns, facts, deltas, rng):
            return [
                Claim(kind="promise", value=value, delta=delta, subject=nothing) for delta in deltas
            ]

        monkeypatch.setitem(methods.METHODS, name, claims)

    return put


CELL = ("coverage", "--cells", "survival-greedy", "--methods", "fake")


@pytest.mark.parametrize(("value", "code"), [(-100.0, 0), (100.0, 3), (None, 0)])
def test_the_exit_code_says_whether_sentences_hold(tmp_path, capsys, fake, value, code):
    fake(value)
    options = (*CELL, "--replications", 10, "--out", tmp_path / "counted")
    found, out, err = run(capsys, *options)
    assert found == code
    assert ("**NO**" in out) == (code == 3)
    assert "600 episodes, greedy 0.2" in out
    assert "10 replications" in err
    table = (tmp_path / "counted" / "table.md").read_text(encoding="utf-8")
    assert ("**NO**" in table) == (code == 3)
    found, out, err = run(capsys, *options, "--json")
    assert (found, err) == (code, "")
    facts = json.loads(out)
    assert [one["delta"] for one in facts] == [0.05, 0.2]
    assert {one["holds"] for one in facts} == {code == 0}
    assert {one["trials"] for one in facts} == {0 if value is None else 10}


def test_it_goes_on_and_takes_names_with_commas(tmp_path, capsys, fake):
    fake(0.0)
    fake(0.0, "other")
    options = ("coverage", "--methods", "fake,other", "--out", tmp_path)
    run(capsys, *options, "--cells", "survival-greedy", "--replications", 2)
    more = ("--cells", "survival-greedy,lake4-tries", "--replications", 3)
    assert run(capsys, *options, *more)[0] == 0
    assert len(read_records(tmp_path)) == 3 * 2 * 2
    (tmp_path / "records-0123456789ab.jsonl").write_text("", encoding="utf-8")
    assert "records of other code" in run(capsys, *options, *more)[2]


@pytest.mark.parametrize("half", ["development", "test"])
def test_quick_takes_a_few_small_cells(tmp_path, capsys, fake, half):
    fake(0.0)
    options = ("--set", half, "--methods", "fake", "--out", tmp_path, "--json")
    facts = json.loads(run(capsys, "coverage", "--quick", *options)[1])
    cells = {cell.name for cell in find_cells(half)} & set(SMOKE)
    assert {one["cell"] for one in facts} == cells
    assert len(cells) > 1


def test_quick_runs_what_a_run_does_today(tmp_path, capsys):
    options = ("--cells", "survival-greedy", "--replications", 1, "--out", tmp_path, "--json")
    code, out, _ = run(capsys, "coverage", "--quick", *options)
    facts = json.loads(out)
    assert code == 0
    assert [one["kind"] for one in facts[:4]] == ["promise", "upper", "gain", "difference"]
    assert {one["delta"] for one in facts} == {0.05, 0.2}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--cells", "machine-tries"], "there is no cell 'machine-tries'"),
        (["--set", "tests"], "set='tests'; choose one of 'development', 'test'"),
        (["--methods", "defualt"], "did you mean 'default'?"),
        (["--domain", "machine", "--cells", "lake4-tries"], "--cells is about the worlds"),
        (["--draws", "100"], "--draws goes with --domain only"),
    ],
)
def test_mistakes_are_one_line(tmp_path, capsys, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    code, _, err = run(capsys, "coverage", *options)
    assert code == 1
    assert message in err
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())
