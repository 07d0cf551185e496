"""The log once more: its parts add up to it, and its episodes are followed."""

from dataclasses import replace

import numpy as np
import pytest

from surefoot.data.returns import together
from surefoot.demo import demo_settings
from surefoot.pipeline.model import build_model, read_log
from surefoot.pipeline.parts import divide_log, memory_of


@pytest.fixture(scope="module")
def settings():
    return demo_settings().in_full()


@pytest.fixture(scope="module")
def counts(settings):
    return read_log(settings)


def total(parts, counts):
    return np.bincount(parts.buckets.entry, parts.buckets.count, counts.num_entries)


def test_whole_episodes_go_to_the_parts(settings, counts):
    parts = divide_log(settings, counts)
    assert np.array_equal(total(parts, counts), counts.count)
    assert len(parts.followed.earned) == 40
    assert parts.followed.discount == 0.95
    sizes = np.bincount(parts.buckets.bucket, parts.buckets.count, 16)
    assert np.all(sizes % 103 == 0)  # 40 machines, 103 transitions each


def test_a_log_without_steps_is_dealt(settings, counts):
    parts = divide_log(replace(settings, episode=None, step=None), counts)
    assert parts.episodes == ()
    assert parts.followed is None
    assert np.array_equal(total(parts, counts), counts.count)
    sizes = np.bincount(parts.buckets.bucket, parts.buckets.count, 16)
    assert sizes.max() - sizes.min() <= 1


def test_counts_that_were_added_are_dealt_beside_the_episodes(settings, counts):
    both = counts + counts
    parts = divide_log(replace(settings, add="earlier"), both)
    assert np.array_equal(total(parts, both), both.count)
    assert len(parts.followed.earned) == 40


def ended(path, first, last, end):
    """Episodes that end in a state of no name, or in a named one; files differ in their states."""
    lines = ["machine,week,condition,decision,profit,next,done"]
    for machine in range(first, last):
        lines.append(f"{machine},0,new,run,1,{end},0")
        lines.append(f"{machine},1,{end},run,1,,1")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def test_several_files_are_followed_one_by_one(settings, tmp_path):
    one = ended(tmp_path / "one.csv", 0, 6, "worn")
    two = ended(tmp_path / "two.csv", 6, 20, "zapped")
    own = replace(settings, log=(one, two), next_state="next", terminal="done").in_full()
    counts = read_log(own)
    parts = divide_log(own, counts)
    assert np.array_equal(total(parts, counts), counts.count)
    assert len(parts.followed.earned) == 20
    assert parts.followed.ended.all()
    assert parts.followed.earned == pytest.approx(np.full(20, 1.95))


def test_counts_that_are_not_whole_are_not_divided(settings, counts):
    parts = divide_log(settings, replace(counts, count=counts.count + 0.5))
    assert parts.buckets is None
    assert parts.episodes == ()


def test_files_are_put_together(settings, counts):
    (one,) = divide_log(settings, counts).episodes
    other = replace(one, identity=one.identity ^ np.uint64(1))
    both = together((one, other))
    assert len(both.earned) == len(both.steps) == len(both.ended) == 80
    assert both.time_limit == one.time_limit == 103
    # Of an episode in two files it is not known which part came first.
    assert not together((one, one)).steps.any()


def hidden_types(path, *, hidden):
    """Two kinds of machine, of which one fails more often; or one kind in between."""
    rng = np.random.default_rng(0)
    lines = ["machine,week,condition,decision,profit"]
    for machine in range(80):
        risk = (0.05 if machine % 2 else 0.6) if hidden else 0.3
        state = "up"
        for week in range(30):
            lines.append(f"{machine},{week},{state},run,{1 if state == 'up' else 0}")
            state = "down" if rng.random() < risk else "up"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize("hidden", [True, False])
def test_hidden_types_show_in_the_past(settings, tmp_path, hidden):
    hidden_types(tmp_path / "log.csv", hidden=hidden)
    own = replace(settings, log=(str(tmp_path / "log.csv"),)).in_full()
    counts = read_log(own)
    model, parts = build_model(own, counts), divide_log(own, counts)
    found = memory_of(model, parts)
    assert (found.p_value < 1e-6) == hidden
    assert memory_of(model, replace(parts, episodes=())) is None
