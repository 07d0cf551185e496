"""A time budget is for the whole run: fewer draws where the usual number does not fit."""

import time
from dataclasses import replace

import pytest

from surefoot._order_statistics import draws_needed
from surefoot.pipeline.budget import Budget
from surefoot.pipeline.loading import load_run
from surefoot.pipeline.model import build_model, read_log
from surefoot.pipeline.running import run
from surefoot.pipeline.settings import Settings


@pytest.fixture
def model(small_log):
    settings = Settings(log=small_log, reward="cost", discount=0.9)
    return build_model(settings, read_log(settings))


def test_no_budget_changes_nothing(model):
    assert Budget(seconds=None).applied(model) is model
    assert not Budget(seconds=None).is_used


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
    late = Budget(seconds=10.0, began=time.monotonic() - 4.0)
    assert late.applied(model).settings.time_budget == pytest.approx(2.0, abs=0.5)
    assert Budget(seconds=1.0, began=time.monotonic() - 2.0).is_used


def test_a_run_without_time_leaves_out_what_it_can(small_log, tmp_path):
    settings = Settings(log=small_log, reward="cost", discount=0.9, time_budget=0.0)
    made = run(settings, tmp_path / "run")
    assert made.certificate.robust_return is None
    assert made.certificate.has("worst_case_left_out")
    assert any("left no time for the worst case" in note for note in made.notes)
    again = load_run(made.folder)
    assert again.settings.time_budget == 0.0
    assert again.settings.draws is None
