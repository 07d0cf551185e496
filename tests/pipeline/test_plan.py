"""Plans of finished runs: rewards, costs, horizons, splits, targets, files, refusals."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

import surefoot as sf
from surefoot.pipeline.plan import check_run
from surefoot.pipeline.plan_lines import Forecast, target_of
from surefoot.pipeline.posteriors import Fitted

QUICK = {"draws": 400, "eta": 0.1}


@pytest.fixture
def few(monkeypatch):
    """Look at one number of samples: futures take time."""
    monkeypatch.setattr("surefoot.pipeline.plan.SIZES", (10,))
    monkeypatch.setattr("surefoot.pipeline.plan.FAR_SIZES", (1000,))


@pytest.fixture(scope="module")
def made(finished):
    """A plan of the demonstration, without futures."""
    return sf.plan(finished, samples=50, simulations=0)


@pytest.fixture
def costly(small_log, tmp_path):
    """A run about costs."""
    settings = sf.Settings(log=str(small_log), reward="cost", costs=True, discount=0.8, **QUICK)
    return sf.run(settings, tmp_path / "run")


def test_rows_have_all_of_the_doubt_and_the_samples(made, finished):
    assert sum(line.share for line in made.rows) == pytest.approx(1.0)
    assert sum(line.tries for line in made.rows) == 50
    first = made.rows[0]
    assert (first.state, first.action) == ("wear 4", "repair")
    for line in made.rows:
        parts = line.transitions + line.unseen + line.rewards
        assert line.amount == pytest.approx(parts, abs=1e-9)
    assert made.promise == finished.certificate.promise
    assert made.explained > 0.8


def test_a_plan_shows_itself(made):
    line = repr(made)
    assert len(line) < 250
    assert "\n" not in line
    assert " at 0x" not in line
    assert len(made.summary().splitlines()) < 40
    page = made._repr_html_()
    assert page.count("<table") == page.count("</table>")
    assert "wear 4" in page


def test_episodes_follow_the_policy(made):
    (line,) = made.episodes
    assert (line.start, line.behaviour) == (None, "policy")
    assert "whole episodes" in made.episode_words


def test_unused_actions_are_named_apart(made):
    used = {(line.state, line.action) for line in made.rows}
    assert not used & {(line.state, line.action) for line in made.unused}
    assert all(0 <= line.chance <= 1 and line.value > 0 for line in made.unused)


def test_the_same_plan_twice(finished):
    one, other = (sf.plan(finished.folder, samples=20, simulations=0) for _ in range(2))
    assert one.to_mapping() == other.to_mapping()
    assert one.forecasts == ()


def test_files_have_the_columns_of_the_log(made, tmp_path):
    made.write(tmp_path / "next")
    with (tmp_path / "next" / "plan.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert lines[0]["condition"] == "wear 4"
    assert lines[0]["decision"] == "repair"
    assert sum(int(line["tries"]) for line in lines) == 50
    content = json.loads((tmp_path / "next" / "plan.json").read_text(encoding="utf-8"))
    assert content["rows"][0]["tries"] == int(lines[0]["tries"])
    page = (tmp_path / "next" / "plan.html").read_text(encoding="utf-8")
    assert "What to measure next" in page
    assert "What to ask an expert" in page
    assert "<script src" not in page


@pytest.mark.usefixtures("few")
def test_costs_are_shown_as_costs(costly):
    promise = costly.certificate.promise
    found = sf.plan(costly, samples=10, target=-5.0)
    assert found.costs
    assert found.target.samples is None
    assert "out of reach" in found.target_words
    assert "cost no more" in found.target_words
    own = [one for one in found.forecasts if one.way == "tries"]
    assert [one.samples for one in own] == [10, 1000]
    assert own[-1].mean < promise  # costs: less is better
    assert all(one.low <= one.mean <= one.high for one in found.forecasts)
    assert {one.way for one in found.forecasts} >= {"tries", "same"}
    assert all(line.amount > -1e-9 for line in found.rows)
    assert all(one.promise <= promise for one in found.questions)
    assert "What more data would bring" in found.page().to_html()


@pytest.mark.usefixtures("few")
def test_a_policy_by_step(small_log, tmp_path):
    settings = sf.Settings(log=str(small_log), reward="cost", costs=True, horizon=4, **QUICK)
    found = sf.plan(sf.run(settings, tmp_path / "run"), samples=10)
    assert sum(line.tries for line in found.rows) == 10
    assert [finding.code for finding in found.findings][-1] == "plan_of_a_horizon"
    assert found.unused == ()
    assert [(one.way, one.samples) for one in found.forecasts] == [("tries", 10), ("same", 10)]


@pytest.mark.usefixtures("few")
def test_an_honest_run_counts_half_of_the_samples(small_log, tmp_path):
    settings = sf.Settings(
        log=str(small_log), reward="cost", costs=True, discount=0.8, honest=True, **QUICK
    )
    found = sf.plan(sf.run(settings, tmp_path / "run"), samples=10)
    assert "plan_of_a_split" in [finding.code for finding in found.findings]
    assert found.forecasts[0].low <= found.forecasts[0].high


def test_what_cannot_be_planned_is_refused(finished):
    model = finished.model
    other = replace(model, settings=replace(model.settings, basis="frequentist"))
    with pytest.raises(ValueError, match="basis='frequentist' has none"):
        check_run(replace(finished, model=other))
    draws = model.posterior.sample(50, np.random.default_rng(0))
    drawn = sf.PosteriorDraws.from_arrays(draws, mdp=model.mdp, independent=True)
    fitted = Fitted(choosing=drawn, certifying=drawn)
    with pytest.raises(ValueError, match="cannot say what it would be with more data"):
        check_run(replace(finished, model=replace(model, fitted=fitted)))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"samples": 0}, "samples=0"),
        ({"simulations": 3}, "needs at least 19"),
        ({"target": np.nan}, "target=nan"),
        ({"target": 1.0, "simulations": 0}, "needs simulated futures"),
    ],
)
def test_wrong_questions_are_one_sentence(finished, options, words):
    with pytest.raises(ValueError, match=words):
        sf.plan(finished, **options)


def line(samples, mean):
    return Forecast(way="tries", samples=samples, mean=mean, low=mean, high=mean)


def test_targets_between_at_and_beyond_what_was_simulated():
    found = [line(10, 5.0), line(100, 6.0), line(1000, 5.9)]
    assert target_of(4.0, 4.0, found, 0.9, 1.0).samples == 0
    assert target_of(5.0, 4.0, found, 0.9, 1.0).samples == 10
    assert target_of(6.0, 4.0, found, 0.9, 1.0).samples == 100
    far = target_of(6.5, 4.0, found, 0.1, 1.0)
    assert (far.samples, far.most, far.reached) == (None, 1000, 6.0)
    costs = [line(10, -5.0), line(100, -6.0)]
    assert target_of(-6.0, -4.0, costs, 0.9, -1.0).samples == 100
