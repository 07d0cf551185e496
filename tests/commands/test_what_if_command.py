"""``surefoot what-if``: a table, a page, mistakes in one line."""

import json

import numpy as np
import pytest

from command_line import run
from surefoot import Settings
from surefoot import run as run_settings


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(0)
    lines = ["state,action,cost,next_state"]
    for _ in range(60):
        lines.append(f"up,wait,1,{'up' if rng.random() < 0.7 else 'down'}")
        lines.append("down,wait,5,down")
        lines.append(f"down,<mend>,2,{'up' if rng.random() < 0.8 else 'down'}")
    (folder / "log.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    settings = Settings(
        log=str(folder / "log.csv"), reward="cost", costs=True, discount=0.8, draws=400, eta=0.1
    )
    return run_settings(settings, folder / "run").folder


def test_asked_lines_are_a_table_and_a_page(capsys, made, tmp_path):
    page = tmp_path / "page.html"
    asked = ["--discount", 0.6, "--forbid", "<mend>", "--delta", 0.2, "--delta", 0.001]
    code, out, _ = run(capsys, "what-if", made, *asked, "--out", page)
    assert code == 0
    assert "discount 0.6" in out
    assert "without <mend>" in out
    assert "Each number holds alone" in out
    assert "needs at least" in out  # 400 draws are too few for delta 0.001
    text = page.read_text(encoding="utf-8")
    assert "Each number holds alone" in text
    assert "without &lt;mend&gt;" in text
    assert "<mend>" not in text
    assert "aria-label" in text
    assert "://" not in text  # no request leaves the file
    assert "exists already" in run(capsys, "what-if", made, "--out", page)[2]


def test_json_has_all_digits(capsys, made):
    code, out, err = run(capsys, "what-if", made, "--delta", 0.2, "--json")
    facts = json.loads(out)
    assert (code, err) == (0, "")
    own, other = facts["lines"]
    stored = json.loads((made / "certificate.json").read_text())
    assert own["promise"] == stored["upper_bound"]
    assert other["promise"] < own["promise"]  # costs: surer promises are higher
    assert (other["setting"], other["value"]) == ("delta", 0.2)


def test_no_run_is_one_line(capsys, tmp_path):
    code, _, err = run(capsys, "what-if", tmp_path, "-q")
    assert (code, err.count("\n")) == (1, 1)
