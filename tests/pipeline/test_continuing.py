"""A log that goes on from an earlier run: episodes, starts, bins, and what checks speak of."""

import datetime
from dataclasses import replace

import numpy as np
import pytest

from surefoot import Counts, Settings
from surefoot.pipeline.continuing import count_log
from surefoot.pipeline.manifest import COUNTS

HEADER = "patient,day,state,action,reward"


def visits(patients=30, days=60, seed=0, ends=False):
    """Yield (patient, day, line) of a log without a column of next states."""
    rng = np.random.default_rng(seed)
    for patient in range(patients):
        for day in range(days):
            state, action = rng.choice(["well", "ill", "worse"]), rng.choice(["wait", "treat"])
            yield patient, day, f"{state},{action},{rng.integers(0, 9)}"


def written(path, rows, date=False):
    lines = [HEADER]
    for patient, day, rest in rows:
        when = datetime.date(2026, 1, 1) + datetime.timedelta(days=day) if date else day
        lines.append(f"{patient},{when},{rest}")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def settings_for(log, **more):
    return Settings(log=log, episode="patient", step="day", discount=0.9, **more)


def first_run(folder, log, **more):
    """Leave what a finished run leaves of its counts."""
    folder.mkdir()
    count_log(settings_for(log, **more)).save(folder / COUNTS)
    return folder


def added(folder, log, **more):
    settings = settings_for(log, add=str(folder), **more)
    return count_log(settings, Counts.load(folder / COUNTS))


def assert_same(counts, whole):
    assert counts.state_labels == whole.state_labels
    for name in ("count", "reward_mean", "reward_var", "starts", "successor", "row_action"):
        np.testing.assert_array_equal(getattr(counts, name), getattr(whole, name), err_msg=name)
    assert counts.log.episodes == whole.log.episodes


@pytest.mark.parametrize("date", [False, True])
def test_three_months_one_by_one_are_the_log_as_a_whole(tmp_path, date):
    rows = list(visits())
    whole = count_log(settings_for(written(tmp_path / "all.csv", rows, date)))
    months = [
        written(tmp_path / f"{m}.csv", [r for r in rows if r[1] // 20 == m], date) for m in range(3)
    ]
    one = first_run(tmp_path / "one", months[0])
    second = added(one, months[1])
    two = tmp_path / "two"
    two.mkdir()
    second.save(two / COUNTS)
    third = added(two, months[2])
    assert_same(third, whole)
    told = [found for found in third.log.findings if found.code == "episodes_go_on"]
    assert told[0].values == {"episodes": 30, "across": 30}
    spoken = [check.sentence for check in third.checks]
    for month in ("0.csv", "1.csv", "2.csv"):
        assert any(month in sentence for sentence in spoken)
    # Given at once, files are one log too.
    assert_same(count_log(settings_for(tuple(months))), whole)


def test_one_row_a_night(tmp_path):
    rows = list(visits(patients=8, days=30))
    whole = count_log(settings_for(written(tmp_path / "all.csv", rows)))
    place = first_run(tmp_path / "0", written(tmp_path / "a.csv", [r for r in rows if r[1] < 27]))
    for night in (27, 28, 29):
        log = written(tmp_path / f"{night}.csv", [r for r in rows if r[1] == night])
        counted = added(place, log)
        place = tmp_path / str(night)
        place.mkdir()
        counted.save(place / COUNTS)
    assert_same(counted, whole)
    alone = written(tmp_path / "alone.csv", [(99, 1, "well,wait,1")])
    with pytest.raises(ValueError, match="no row has a following row in its episode"):
        added(place, alone)


def test_a_gap_at_the_boundary_is_not_joined(tmp_path):
    rows = list(visits())
    one = first_run(tmp_path / "one", written(tmp_path / "a.csv", [r for r in rows if r[1] < 20]))
    late = added(one, written(tmp_path / "b.csv", [r for r in rows if r[1] > 20]))
    assert late.count.sum() == 30 * 19 + 30 * 38
    assert late.starts.sum() == 30
    (told,) = [found for found in late.log.findings if found.code == "episodes_go_on"]
    assert told.values["across"] == 0


def test_steps_that_were_read_before_are_noticed(tmp_path):
    rows = list(visits())
    one = first_run(tmp_path / "one", written(tmp_path / "a.csv", [r for r in rows if r[1] < 20]))
    again = added(one, written(tmp_path / "b.csv", [r for r in rows if 15 <= r[1] < 40]))
    (told,) = [found for found in again.findings if found.code == "steps_read_twice"]
    assert told.level == "warning"
    assert told.values["episodes"] == 30


def test_new_episodes_are_starts(tmp_path):
    rows = list(visits())
    one = first_run(tmp_path / "one", written(tmp_path / "a.csv", [r for r in rows if r[1] < 20]))
    fresh = [(patient + 100, day, rest) for patient, day, rest in rows]
    counts = added(one, written(tmp_path / "b.csv", fresh))
    assert counts.starts.sum() == 60
    assert not [found for found in counts.log.findings if found.code == "episodes_go_on"]


def test_a_new_log_is_cut_with_the_old_edges(tmp_path):
    rng = np.random.default_rng(0)

    def ages(low, high):
        return [(p, d, f"{rng.uniform(low, high):.1f},wait,1") for p in range(9) for d in range(9)]

    one = first_run(tmp_path / "one", written(tmp_path / "a.csv", ages(20, 60)), bins="state=3")
    edges = Counts.load(one / COUNTS).log.bins[0].edges
    later = [(p + 50, d, rest) for p, d, rest in ages(40, 90)]
    log = written(tmp_path / "b.csv", later)
    counts = added(one, log, bins="state=3")
    assert counts.log.bins[0].edges == edges
    assert len(counts.state_labels) == 3
    with pytest.raises(ValueError, match="the earlier run cut 'state' otherwise"):
        added(one, log, bins="state=30,50")


def test_what_is_kept_of_episodes_are_hashes(tmp_path):
    rows = [(f"Ms {patient}", day, rest) for patient, day, rest in visits(patients=5)]
    one = first_run(tmp_path / "one", written(tmp_path / "a.csv", rows))
    with np.load(one / COUNTS, allow_pickle=False) as file:
        assert not any("Ms" in str(file[key]) for key in file.files)


def test_settings_may_be_replaced(tmp_path):
    rows = list(visits(patients=3))
    log = written(tmp_path / "a.csv", rows)
    settings = replace(settings_for(log), missing="drop")
    assert count_log(settings).log.ends is not None
