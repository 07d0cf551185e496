"""How long a job still takes, by a clock of our own."""

from dataclasses import replace
from pathlib import Path

import pytest

from surefoot import _work
from surefoot.demo import demo_settings
from surefoot.pipeline.added_log import count_log
from surefoot.pipeline.honest import model_for
from surefoot.pipeline.run_work import FOUND, expected_work
from surefoot.pipeline.settings import Settings
from surefoot.pipeline.time_left import TimeLeft


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def left_of(clock: Clock, cores: int = 1, **parts: float) -> TimeLeft:
    return TimeLeft(parts, clock=clock, cores=cores)


def test_time_left_follows_the_speed_that_was_shown() -> None:
    clock = Clock()
    left = left_of(clock, draw=10.0, write=2.0)
    left.begin("draw")
    told = []
    for _ in range(5):
        clock.now += 6.0  # three times slower than usual
        left.add(2.0)
        told.append(left.left)
    assert told[:4] == pytest.approx([30.0, 24.0, 18.0, 12.0])
    assert told[4] == pytest.approx(9.0)  # a part that is not over has something left
    left.begin("write")
    assert left.left == pytest.approx(6.0)


def test_before_anything_is_known_the_usual_speed_counts() -> None:
    assert left_of(Clock(), draw=10.0).left == pytest.approx(5.0)
    assert left_of(Clock(), cores=2, draw=10.0).left == pytest.approx(3.25)


def test_a_part_that_takes_longer_is_told_when_it_is_known() -> None:
    clock = Clock()
    left = left_of(clock, promise=1.0, limit=1.0)
    left.begin("promise")
    left.expect("promise", 8.0)
    assert left.left == pytest.approx(4.5)
    left.begin("limit")
    left.expect("promise", 80.0)  # over: nobody cares
    assert left.expected == {"promise": 8.0, "limit": 1.0}


def test_parts_never_go_back_and_unknown_ones_belong_to_the_last() -> None:
    left = left_of(Clock(), search=1.0, promise=1.0, limit=1.0)
    for part in ("promise", "search", "elsewhere"):
        left.begin(part)
    left.add(0.5)
    assert left.done == {"search": 0.0, "promise": 0.5, "limit": 0.0}
    assert left.share(("search", "promise")) == pytest.approx(0.75)


def test_work_that_nobody_counts_is_taken_to_be_done_with_its_part() -> None:
    clock = Clock()
    left = left_of(clock, luck=4.0, doubt=4.0)
    left.begin("luck")
    clock.now = 8.0
    left.begin("doubt")
    assert left.left == pytest.approx(8.0)


def test_less_work_than_expected_says_nothing_about_speed() -> None:
    clock = Clock()
    left = left_of(clock, search=10.0, limit=5.0)
    left.begin("search")
    left.add(4.0)  # ended early
    clock.now = 4.0
    left.begin("limit")
    assert left.left == pytest.approx(5.0)


def test_work_is_heard_inside_only() -> None:
    left = left_of(Clock(), draw=1.0)
    with _work.heard_by(left):
        _work.begin("draw")
        _work.expect("draw", 2.0)
        _work.count(0.5)
        with _work.heard_by(None):
            _work.count(7.0)
    _work.count(7.0)
    assert left.done == {"draw": 0.5}
    assert left.expected == {"draw": 2.0}


def test_the_work_of_a_run_is_foreseen_part_by_part() -> None:
    settings = demo_settings().in_full()
    model = model_for(settings, count_log(settings, None), None, None)
    work = expected_work(model)
    assert tuple(work) == (*FOUND, "set", "report")
    assert all(each > 0 for each in work.values())
    more = expected_work(replace(model, settings=replace(model.settings, draws=50_000)))
    assert more["promise"] > 2 * work["promise"]
    without = expected_work(replace(model, settings=replace(model.settings, episode=None)))
    assert work["practice"] == without["practice"]  # the gain takes the draws of the promise
    few, alone = (
        expected_work(replace(model, settings=replace(model.settings, draws=150, episode=one)))
        for one in (model.settings.episode, None)
    )
    assert few["practice"] > alone["practice"]  # its share of delta needs 170
    plain = replace(model, settings=replace(model.settings, basis="frequentist"))
    assert expected_work(plain) == {}


def test_no_search_and_no_limit_are_foreseen_without_a_choice(tmp_path: Path) -> None:
    steps = "".join(f"{t % 3},go,{t % 2},{(t + 1) % 3}\n" for t in range(30))
    log = tmp_path / "log.csv"
    log.write_text(f"state,action,reward,next_state\n{steps}", encoding="utf-8")
    settings = Settings(log=(str(log),), discount=0.9).in_full()
    work = expected_work(model_for(settings, count_log(settings, None), None, None))
    assert work["search"] == work["limit"] == 0.0
    assert work["promise"] > 0.0
