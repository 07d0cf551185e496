"""Figures and the gain take the draws of the promise where others would take a while."""

import numpy as np
import pytest

from surefoot import load_run
from surefoot.pipeline import figures, runs
from surefoot.pipeline.finished_runs import report_run, verify_run
from surefoot.pipeline.folder import RETURNS
from surefoot.pipeline.runs import run
from surefoot.pipeline.settings import Settings


@pytest.fixture
def costly(monkeypatch):
    """Let no draws of their own be cheap, and none be made for figures."""

    def drawn(*_arguments, **_options):
        raise AssertionError("figures made draws")

    monkeypatch.setattr(figures, "WORK", 1.0)
    monkeypatch.setattr(figures, "policy_returns", drawn)


def cheap(log):
    return Settings(log=(str(log),), reward="cost", costs=True, discount=0.9, draws=300, eta=0.01)


def test_figures_show_the_draws_of_the_promise(small_log, tmp_path, costly):
    made = run(cheap(small_log), tmp_path / "run")
    assert made.certificate.returns.shape == (300,)
    np.testing.assert_array_equal(np.load(tmp_path / "run" / RETURNS), made.certificate.returns)
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "in 300 processes" in page
    assert verify_run(tmp_path / "run", np.random.default_rng(0)).stands
    report_run(tmp_path / "run")  # from the file, without a draw
    assert (tmp_path / "run" / "report.html").read_text(encoding="utf-8") == page
    # In rewards, whatever is shown: the promise is one of them, what was taken off aside.
    least = -(made.certificate.upper_bound) + made.certificate.taken_off
    assert np.abs(made.certificate.returns - least).min() < 1e-9


def test_a_run_that_goes_on_shows_the_same(small_log, tmp_path, costly, monkeypatch):
    def stop(*_arguments, **_options):
        raise ValueError("stop")

    settings = cheap(small_log)
    run(settings, tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(runs, "write_report", stop)
        with pytest.raises(ValueError, match="stop"):
            run(settings, tmp_path / "again")
    run(settings, tmp_path / "again")
    for name in ("report.html", RETURNS, "certificate.json"):
        one, other = ((tmp_path / folder / name).read_bytes() for folder in ("whole", "again"))
        assert one == other, name


def test_cheap_figures_have_draws_of_their_own(small_log, tmp_path):
    made = run(cheap(small_log), tmp_path / "run")
    assert made.certificate.returns is not None
    assert not (tmp_path / "run" / RETURNS).exists()
    assert load_run(tmp_path / "run").certificate.returns is None


def test_returns_of_another_run_are_refused(small_log, tmp_path, costly):
    run(cheap(small_log), tmp_path / "run")
    np.save(tmp_path / "run" / RETURNS, np.zeros(7))
    with pytest.raises(ValueError, match="300 returns behind the certificate"):
        load_run(tmp_path / "run")
    (tmp_path / "run" / RETURNS).write_bytes(b"no array")
    with pytest.raises(ValueError, match="not a file of returns"):
        load_run(tmp_path / "run")
