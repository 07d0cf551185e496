"""The benchmarks run: on toy sizes, with whatever is installed."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks import before_after, draw_cost, logs, pipeline, scale, scale_run, start
from benchmarks.cases import KINDS, Size, garnet_case, river_case
from benchmarks.contenders import our_solve
from benchmarks.peers import CONTENDERS, YARDSTICK
from benchmarks.table import HEADINGS, MISSING, compare, render
from benchmarks.timing import describe_machine
from benchmarks.truth import find_truth, row_bracket

import surefoot as sf

TOYS = {
    "garnet": lambda discount: garnet_case("garnet", Size(6, 2, 3), discount),
    "river": lambda discount: river_case("river", 8, discount),
}
ABSENT = replace(YARDSTICK, package="no_such_package")
HIGHS = next(one for one in CONTENDERS if "HiGHS" in one.name)


def test_the_table_has_a_line_for_every_contender_installed_or_not():
    contenders = [*(our_solve(kind) for kind in KINDS), ABSENT, HIGHS]
    lines = compare(TOYS, (0.9,), contenders, "surefoot nominal", repeats=1)
    assert len(lines) == 2 * len(contenders)
    text = render(HEADINGS, lines)
    assert text.count(MISSING) == 2
    assert "WRONG" not in text
    ratios = {line[3] for line in lines if line[1] == "surefoot nominal"}
    assert ratios == {"1"}


@pytest.mark.parametrize("build", TOYS.values(), ids=TOYS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_truth_is_proved_to_rounding(build, kind):
    assert 0 <= find_truth(build(0.95), kind).half_width < 1e-11


@pytest.mark.parametrize("kind", ["uniform", "weighted", "box"])
def test_a_choice_outside_the_set_proves_nothing(kind):
    case = TOYS["garnet"](0.9)
    outside = np.zeros((case.mdp.num_rows, case.row_length))
    outside[:, 0] = 1.0
    with pytest.raises(RuntimeError, match="outside"):
        row_bracket(case, kind, np.zeros(case.mdp.num_states), outside.ravel())


def test_a_scale_run_reports_time_and_memory():
    run = scale_run.run(100, threads=1, discount=0.9, repeats=1)
    assert run.sweeps > 0
    assert run.nanoseconds > 0
    assert run.relative_error <= scale_run.RELATIVE
    assert len(scale.as_line(run)) == len(scale.HEADINGS)


def test_the_wait_for_help_is_measured():
    assert len(start.help_line(1)) == len(start.HEADINGS)


def test_the_cost_of_a_draw_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(draw_cost, "ENTRIES", 1e4)
    told = draw_cost.line(20, tmp_path)
    assert len(told) == len(draw_cost.HEADINGS)
    assert told[0] == "20"
    assert all(float(cell.replace(",", "")) > 0 for cell in told)


def test_the_machine_is_named():
    assert "numpy" in describe_machine()


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_the_log_of_the_whole_job_can_be_read(kind, tmp_path):
    path = pipeline.write_log(tmp_path, kind, 3000)
    counts = sf.read_transitions(path)
    assert counts.count.sum() == 3000
    assert counts.num_actions == pipeline.ACTIONS
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_the_whole_job_is_reported_with_its_shares(capsys):
    stages = {pipeline.READING: 1.0, "Finding": 3.0}
    jobs = [
        pipeline.Job(stages=stages, seconds=5.0, work=4.0, peak=0.5, sentence="At least 1."),
        pipeline.Job(stages=stages, seconds=500.0, work=4.0, peak=0.5, sentence="slow"),
    ]
    runs = [logs.Run(2.0, 1.0, 0.1, 10), logs.Run(1.0, 2.0, 0.1, 10)]
    assert pipeline.quickest(runs) == logs.Run(1.0, 1.0, 0.1, 10)
    fast = logs.Run(1.0, 1.0, 0.1, 10)
    assert pipeline.report("csv", 10_000_000, jobs, fast, fast)
    shown = capsys.readouterr().out
    assert "75%" in shown
    assert "reading / bare DuckDB (1.00 s): 1.00" in shown
    assert not pipeline.report("csv", 10_000_000, jobs[1:], fast, fast)
    slow = logs.Run(9.0, 9.0, 0.1, 10)
    bare = logs.Run(0.1, 0.1, 0.1, 10)
    assert not pipeline.report("csv", 10_000_000, jobs, slow, bare)


def test_two_versions_are_timed_in_turns():
    took = iter([9.0, 9.0, 2.0, 2.3, 2.2, 2.5, 2.1, 2.4])  # the first two do not count
    trees = []

    def job(tree):
        trees.append(tree)
        return {"a job": next(took)}

    other = before_after.HERE / "other"
    found = list(before_after.turns(job, other, 3))
    assert found == [("a job", 2.1, 2.4)]
    assert trees == [other, before_after.HERE] * 4
    assert before_after.line_of(*found[0])[3:] == ("1.14", "slower")
    assert before_after.line_of("a job", 2.0, 2.1)[3:] == ("1.05", "")


def test_a_version_is_compared_with_itself(tmp_path):
    log = tmp_path / "log.csv"
    logs.write(log, 300, "noisy rewards")
    found = before_after.reading(before_after.HERE, "csv", log)
    assert found["reading, csv"] > 0
