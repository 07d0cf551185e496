"""A policy for other programs: SQL that databases run, sheets without formulas."""

import sqlite3
import zipfile

import duckdb
import pytest

from surefoot.data.side_files import LabelColumns
from surefoot.pipeline.export import export_policy, run_sql
from surefoot.pipeline.policy_sql import policy_sql
from surefoot.report.tables import PolicyLine


def lines_of(rule):
    return [
        PolicyLine(state=state, action=action, probability=1.0, visits=1, margin=None)
        for state, action in rule.items()
    ]


NASTY = {
    ("o'clock", 1): "it's; DROP TABLE states --",
    ('a "quote"', 2): "new\nline",
    ("o'clock", 2): "=1+1",
    ("plain", 1.5): "it's; DROP TABLE states --",
}


@pytest.mark.parametrize("database", ["duckdb", "sqlite"])
def test_databases_decide_as_the_policy_does(database):
    connection = duckdb.connect() if database == "duckdb" else sqlite3.connect(":memory:")
    columns = LabelColumns(state=('the "kind"', "level of wear"), action=("to do",))
    connection.execute('CREATE TABLE states ("the ""kind""" VARCHAR, "level of wear" DOUBLE)')
    asked = [*NASTY, ("plain", 7.0)]
    for state in asked:
        connection.execute("INSERT INTO states VALUES (?, ?)", state)
    remark = "a comment\nwith two lines; DROP TABLE states"
    expression = policy_sql(lines_of(NASTY), columns, remark=remark)
    found = connection.execute(f"SELECT *, {expression} FROM states").fetchall()
    assert {(kind, level): action for kind, level, action in found} == NASTY | {
        ("plain", 7.0): None
    }
    connection.close()


def test_several_action_columns_are_several_expressions():
    rule = {"old": ("low", 1), "new": ("high", 1)}
    expression = policy_sql(lines_of(rule), LabelColumns(state=("age",), action=("dose", "times")))
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT {expression} FROM (SELECT 'new' AS age)").fetchall()
    assert found == [("high", 1)]


def test_the_log_itself_is_decided(finished):
    log = finished.settings.log[0]
    with duckdb.connect() as connection:
        found = connection.execute(
            f"SELECT DISTINCT condition, {run_sql(finished)} FROM read_csv('{log}')"
        ).fetchall()
    assert dict(found) == {line.state: line.action for line in finished.policy}


def test_randomised_policies_have_no_sql():
    line = PolicyLine(state="a", action="b", probability=0.5, visits=1, margin=None)
    with pytest.raises(ValueError, match="randomised"):
        policy_sql([line], LabelColumns(state=("s",), action=("a",)))


@pytest.mark.parametrize("database", ["duckdb", "sqlite"])
def test_a_rule_by_step_asks_for_the_step(database):
    rule = [
        PolicyLine(
            state=(state, number), action=action, probability=1.0, visits=1, margin=None,
            first_step=first, last_step=last,
        )
        for state, number, action, first, last in (
            ("a", 0, "wait", 0, 4), ("a", 0, "act", 5, 11), ("b", 0, "wait", 0, 11),
            ("a", 1, "act", 0, 11), ("b", 1, "wait", 0, 4), ("b", 1, "act", 5, 11),
        )
    ]  # fmt: skip
    expression = policy_sql(rule, LabelColumns(state=("s", "n"), action=("a",)))
    assert expression.startswith('-- The rule depends on the step: "step" counts from 0')
    connection = duckdb.connect() if database == "duckdb" else sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE visits (s VARCHAR, n INTEGER, step INTEGER)")
    asked = [(*line.state, step, line.action) for line in rule
             for step in (line.first_step, line.last_step)]  # fmt: skip
    connection.executemany("INSERT INTO visits VALUES (?, ?, ?)", [one[:3] for one in asked])
    found = connection.execute(f"SELECT s, n, step, {expression} FROM visits").fetchall()
    assert sorted(found) == sorted(asked)
    connection.close()


def test_a_sheet_holds_rule_and_promise(finished, tmp_path):
    path = tmp_path / "policy.xlsx"
    export_policy(finished, path)
    with zipfile.ZipFile(path) as book:
        texts = book.read("xl/sharedStrings.xml").decode()
        rule = book.read("xl/worksheets/sheet1.xml").decode()
        names = book.read("xl/workbook.xml").decode()
    assert all(text in texts for text in ("condition", "decision", "wear 4", "repair"))
    assert finished.certificate.sentence.split(", ")[0] in texts
    assert "<f>" not in rule
    assert rule.count("<row ") == 1 + len(finished.policy)
    assert 'name="policy"' in names
    assert 'name="promise"' in names


def test_texts_that_look_like_formulas_stay_texts(tmp_path):
    from dataclasses import replace

    from surefoot import Settings, run

    log = tmp_path / "log.csv"
    steps = ["=A1,@x,1,=A1", "=A1,go,0,b", "b,go,1,=A1", "b,@x,0,b"] * 10
    log.write_text("\n".join(["state,action,reward,next_state", *steps]), encoding="utf-8")
    made = run(Settings(log=str(log), discount=0.5, draws=300, eta=0.1), tmp_path / "run")
    export_policy(replace(made), tmp_path / "p.xlsx")
    with zipfile.ZipFile(tmp_path / "p.xlsx") as book:
        assert "<f>" not in book.read("xl/worksheets/sheet1.xml").decode()
        assert "<t>=A1</t>" in book.read("xl/sharedStrings.xml").decode()


def test_without_the_extra_it_is_named(finished, tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(ImportError, match=r"surefoot\[excel\]"):
        export_policy(finished, tmp_path / "policy.xlsx")
    assert list(tmp_path.iterdir()) == []
