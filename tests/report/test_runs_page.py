"""The page that compares runs."""

import shutil
from dataclasses import replace

import pytest
from test_page import parsed

from surefoot import Finding
from surefoot.cli import main
from surefoot.pipeline.several_runs import _facts, compare_report
from surefoot.report.runs_page import runs_page


def test_runs_that_agree(demo, tmp_path):
    again = shutil.copytree(demo.folder, tmp_path / "again")
    html = compare_report([demo.folder, again], tmp_path / "both.html").read_text(encoding="utf-8")
    assert "The rules agree in 10 of 10 states." in html
    assert "None: all runs have the same settings." in html
    assert "Nowhere." in html
    assert "+0%" in html
    assert html.count("<svg") == 2
    assert parsed(html).open == []
    assert parsed(html).unnamed == 0


def test_runs_that_measure_differently_share_no_axis(demo, pumps):
    page = runs_page({"demo": _facts(demo), "pumps": _facts(pumps)})
    assert page.picture is None
    assert page.headline == "These runs have no state in common."
    differing = {row[0]: row[1:] for row in page.tables[2].rows}
    assert differing["unit"] == ("kEUR", "EUR")
    assert differing["costs"] == ("no", "yes")
    assert parsed(page.to_html()).open == []


def test_a_withheld_promise_is_said_first(demo):
    failed = Finding.of("not_markov", p_value=1e-9)
    bad = replace(demo.certificate, findings=(*demo.certificate.findings, failed))
    page = runs_page(
        {"good": _facts(demo), "bad": replace(_facts(demo), certificate=bad, actions={"x": "run"})}
    )
    assert page.withheld == ["bad"]
    assert page.tables[0].rows[1][1].startswith("(")
    html = page.to_html()
    assert html.index("NOT CERTIFIED") < html.index('class="rule"')
    assert "bad (not certified)" in html


def test_where_rules_differ_is_listed(demo):
    facts = _facts(demo)
    turned = {s: "repair" if a == "run" else "run" for s, a in list(facts.actions.items())[:3]}
    page = runs_page({"a": facts, "b": replace(facts, actions=dict(facts.actions) | turned)})
    assert page.headline == "The rules agree in 7 of 10 states."
    rules = page.tables[3]
    assert rules.head == ("condition", "a", "b")
    assert {row[0] for row in rules.rows} == set(turned)
    assert all({row[1], row[2]} == {"run", "repair"} for row in rules.rows)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["report", "a", "b"], "pass --out FILE"),
        (["report", "a", "--out", "x.html"], "the report of one is in its folder"),
        (["report", "a", "b", "--out", "x.html"], "there is no such folder"),
    ],
)
def test_what_goes_wrong_is_said(capsys, tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 1
    assert says in capsys.readouterr().err


def test_a_page_is_not_written_over(capsys, demo, tmp_path):
    (tmp_path / "there.html").write_text("mine")
    assert main(["report", str(demo.folder), "b", "--out", str(tmp_path / "there.html")]) == 1
    assert "exists already" in capsys.readouterr().err
    assert (tmp_path / "there.html").read_text() == "mine"
    with pytest.raises(ValueError, match="named twice"):
        compare_report([demo.folder, demo.folder], tmp_path / "x.html")
