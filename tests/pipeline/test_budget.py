"""A time budget is for the whole run: fewer draws where the usual number does not fit."""

from dataclasses import replace

import pytest

from surefoot._compile import working_clock
from surefoot._order_statistics import draws_needed
from surefoot.demo import demo_settings
from surefoot.pipeline.budget import Budget, draws_within
from surefoot.pipeline.finished_runs import load_run
from surefoot.pipeline.model import build_model, read_log
from surefoot.pipeline.page_content import make_page
from surefoot.pipeline.parts import LogParts
from surefoot.pipeline.promises import find
from surefoot.pipeline.runs import run
from surefoot.pipeline.settings import Settings


@pytest.fixture
def model(small_log):
    settings = Settings(log=small_log, reward="cost", discount=0.9)
    return build_model(settings, read_log(settings))


def test_no_budget_changes_nothing(model):
    assert Budget(seconds=None).applied(model) is model
    assert Budget(seconds=None, began=0.0).remark() == ""


def test_a_short_budget_means_fewer_draws(model):
    least = Budget(seconds=0.0).applied(model).settings
    assert least.draws == draws_needed(0.05, 0.001)
    assert least.time_budget == 0.0
    some = Budget(seconds=0.01).applied(model).settings.draws
    assert least.draws < some
    assert Budget(seconds=0.01).applied(model).settings.draws == some  # not by the clock
    assert Budget(seconds=1000.0).applied(model).settings.draws is None
    asked = replace(model, settings=replace(model.settings, draws=700))
    assert Budget(seconds=0.0).applied(asked).settings.draws == 700


def test_time_that_was_used_is_no_longer_there(model):
    late = Budget(seconds=10.0, began=working_clock() - 4.0)
    assert late.applied(model).settings.time_budget == pytest.approx(2.0, abs=0.5)
    assert Budget(seconds=10.0, began=working_clock() - 11.0).remark() == ""
    assert "the run took 13 s" in Budget(seconds=10.0, began=working_clock() - 13.0).remark()


def test_a_run_without_time_leaves_out_what_it_can(small_log, tmp_path):
    settings = Settings(log=small_log, reward="cost", discount=0.9, time_budget=0.0)
    made = run(settings, tmp_path / "run")
    assert made.certificate.robust_return is None
    assert made.certificate.has("worst_case_left_out")
    assert any("left no time for the worst case" in note for note in made.notes)
    again = load_run(made.folder)
    assert again.settings.time_budget == 0.0
    assert again.settings.draws is None
    assert again.settings.search_steps == 0


SAME = ("certificate.json", "policy.csv", "candidates.csv", "counts.npz", "report.html")


def test_a_run_that_the_clock_ended_is_repeated_bit_for_bit(small_log, tmp_path, monkeypatch):
    """The first run stops at some step of the search; its configuration makes another do so."""
    asked = []

    def clock() -> float:  # stops at the fourteenth question
        asked.append(1)
        return 0.0 if len(asked) < 15 else 1e9

    settings = Settings(log=small_log, reward="cost", discount=0.9, time_budget=5.0, draws=300)
    with monkeypatch.context() as patched:
        patched.setattr("surefoot.certificates.clock.working_clock", clock)
        first = run(settings, tmp_path / "first")
    assert first.stopped_early
    recorded = Settings.from_toml(first.folder / "config.toml")
    assert recorded.search_steps is not None
    assert recorded.search_steps > 5
    again = run(recorded, tmp_path / "again")
    for name in SAME:
        assert (first.folder / name).read_bytes() == (again.folder / name).read_bytes(), name
    more = run(replace(recorded, search_steps=recorded.search_steps + 3), tmp_path / "more")
    names = [[one.name for one in made.candidates] for made in (first, again, more)]
    assert names[0] == names[1]
    assert len(names[2]) >= len(names[0])


def test_a_search_that_came_to_its_end_is_repeated_in_full(small_log, tmp_path):
    settings = Settings(log=small_log, reward="cost", discount=0.9, time_budget=600.0, draws=300)
    first = run(settings, tmp_path / "first")
    assert not first.stopped_early
    recorded = Settings.from_toml(first.folder / "config.toml")
    again = run(replace(recorded, time_budget=1e-9, draws=300), tmp_path / "again")
    assert not again.stopped_early
    assert first.certificate.to_json() == again.certificate.to_json()


def test_a_budget_is_heeded_by_the_figures(model):
    """The report of a hurried run draws no more models than its bounds did."""
    slow = replace(model, settings=replace(model.settings, time_budget=0.0))
    assert draws_within(slow, 0.0) == draws_needed(0.05, 0.001)
    assert draws_within(replace(model, settings=replace(model.settings, draws=700)), 0.0) == 700
    certificate = find(Budget(seconds=0.0).applied(slow), LogParts(buckets=None), lambda *_: None)
    page = make_page(slow, certificate.certificate, certificate.candidates, "")
    assert any("in 135 processes" in figure.caption for figure in page.figures)


def test_few_draws_are_enough_for_a_log_with_episodes(tmp_path):
    """The gain over the log has a share of delta only, which needs more draws than all of it."""
    settings = replace(demo_settings(), draws=140, time_budget=0.0)
    made = run(settings, tmp_path / "run")
    assert made.certificate.draws == 140
    assert made.certificate.gain is not None
