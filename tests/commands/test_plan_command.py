"""``surefoot plan``: tables, files, mistakes in one line."""

import json

import pytest

from command_line import run
from surefoot import Settings
from surefoot import run as run_settings


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    lines = ["episode,step,state,action,reward,next_state"]
    for i in range(40):
        lines.append(f"{i},0,up,<wait>,1,{'up' if i % 3 else 'down'}")
        state = "up" if i % 3 else "down"
        lines.append(f"{i},1,{state},mend,{0.5 if i % 2 else 0},{'up' if i % 5 else 'down'}")
    (folder / "log.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    settings = Settings(
        log=str(folder / "log.csv"), episode="episode", step="step", discount=0.8, draws=400,
        eta=0.1, rewards="bounded",
    )  # fmt: skip
    return run_settings(settings, folder / "run").folder


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Look at one number of samples: futures take time."""
    monkeypatch.setattr("surefoot.pipeline.plan.SIZES", (10,))
    monkeypatch.setattr("surefoot.pipeline.plan.FAR_SIZES", (100,))


def test_tables_and_files(capsys, made, tmp_path):
    out = tmp_path / "next"
    code, text, _ = run(capsys, "plan", made, "--samples", 10, "--target", 99, "--out", out)
    assert code == 0
    told = "share of doubt", "What more data would bring", "is out of reach", "whole episodes"
    assert all(words in text for words in told)
    assert "have no share in the doubt" in text
    assert sorted(path.name for path in out.iterdir()) == ["plan.csv", "plan.html", "plan.json"]
    page = (out / "plan.html").read_text(encoding="utf-8")
    assert "<wait>" not in page
    assert "aria-label" in page
    assert "exists already" in run(capsys, "plan", made, "--simulations", 0, "--out", out)[2]
    assert run(capsys, "plan", made, "--simulations", 0, "--out", out, "--force")[0] == 0


def test_json_and_whole_episodes(capsys, made):
    code, out, err = run(capsys, "plan", made, "--json", "--episodes", "--samples", 10)
    facts = json.loads(out)
    assert (code, err) == (0, "")
    assert {one["way"] for one in facts["forecasts"]} == {"episodes", "same"}
    assert facts["objective"] == "max"
    assert facts["target"] is None


def test_mistakes_are_one_line(capsys, made, tmp_path):
    code, _, err = run(capsys, "plan", tmp_path, "-q")
    assert (code, err.count("\n")) == (1, 1)
    code, _, err = run(capsys, "plan", made, "--simulations", 5, "-q")
    assert code == 1
    assert "needs at least 19" in err
    assert run(capsys, "plan", made, "--samples", 0)[0] == 2
