"""The study of plans: it can be stopped, and counts what it says it counts."""

import numpy as np
import pytest

from surefoot.studies import plans
from surefoot.studies.plans import PlanCase, PlanOutcome, p_value, read_outcomes, rows_of, study

TRIES = PlanCase(world="riverswim", episodes=4, epsilon=0.5, whole=False, samples=20)
EPISODES = PlanCase(world="survival", episodes=20, epsilon=0.5, whole=True, samples=40)


def outcome(replication, plan, forecast=(0.0, 10.0)):
    return PlanOutcome(
        world="riverswim", replication=replication, seed=0, before=0.0, plan=plan, uniform=1.0,
        same=2.0, forecast=list(forecast), seconds=1.0,
    )  # fmt: skip


def test_a_study_goes_on_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(plans, "SIMULATED", 2)
    monkeypatch.setattr(plans, "SEARCH_STEPS", 2)
    found = study([TRIES, EPISODES], 1, 0, tmp_path, None)
    assert [one.world for one in found] == ["riverswim", "survival"]
    assert all(np.isfinite([one.before, one.plan, one.uniform, one.same]).all() for one in found)
    assert all(len(one.forecast) == 2 for one in found)
    file = plans.records_file(tmp_path)
    with file.open("a", encoding="utf-8") as lines:
        lines.write("{interrupted")
    assert read_outcomes(file) == found
    file.write_text(file.read_text(encoding="utf-8").removesuffix("{interrupted"), "utf-8")
    monkeypatch.setattr(plans, "replicate", None)  # nothing is done twice
    assert study([TRIES, EPISODES], 1, 0, tmp_path, None) == found


def test_no_time_is_no_replication(tmp_path):
    assert study([TRIES], 1, 0, tmp_path, -1.0) == []


def test_the_table_counts_wins_and_intervals():
    found = [outcome(i, 3.0 + i / 10) for i in range(7)] + [outcome(7, 20.0)]
    assert p_value(found, "uniform") == pytest.approx(2.0**-8)
    assert p_value([outcome(0, 1.0), outcome(1, 1.0)], "uniform") == 1.0
    (row,) = rows_of([TRIES], found)
    assert row[0] == "riverswim"
    assert row[-1] == "7 of 8"
