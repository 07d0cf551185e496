"""A log that goes on from an earlier run: episodes, starts, bins, and what checks speak of."""

import datetime
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from surefoot import Counts, Settings
from surefoot.data.returns import Returns
from surefoot.pipeline.added_log import count_log
from surefoot.pipeline.finished_runs import verify_run
from surefoot.pipeline.manifest import COUNTS, EPISODES, PARTS, read_manifest
from surefoot.pipeline.parts import divide_log
from surefoot.pipeline.runs import run

HEADER = "patient,day,state,action,reward"


def visits(patients=30, days=60, seed=0, ends=False):
    """Yield (patient, day, line) of a log without a column of next states."""
    rng = np.random.default_rng(seed)
    for patient in range(patients):
        for day in range(days):
            state, action = rng.choice(["well", "ill", "worse"]), rng.choice(["wait", "treat"])
            yield patient, day, f"{state},{action},{rng.integers(0, 9)}"


def written(path, rows, date=False, header=HEADER):
    lines = [header]
    for patient, day, rest in rows:
        when = datetime.date(2026, 1, 1) + datetime.timedelta(days=day) if date else day
        lines.append(f"{patient},{when},{rest}")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def settings_for(log, **more):
    return Settings(**{"log": log, "episode": "patient", "step": "day", "discount": 0.9} | more)


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
    with pytest.raises(ValueError, match="the earlier run cut 'state' differently"):
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


def run_folder(folder, settings, earlier=None):
    """Leave what a finished run leaves of its log, and return its parts."""
    folder.mkdir()
    counts = count_log(settings, earlier)
    counts.save(folder / COUNTS)
    parts = divide_log(settings, Counts.load(folder / COUNTS))
    parts.buckets.save(folder / PARTS)
    parts.returns.save(folder / EPISODES)
    return counts, parts


def month_by_month(tmp_path, months, **more):
    """Return the parts of a run, to which the months were added one after the other."""
    earlier, place = None, None
    for number, log in enumerate(months):
        given = {} if place is None else {"add": str(place)}
        place = tmp_path / f"run{number}"
        earlier, parts = run_folder(place, settings_for(log, **more | given), earlier)
    return earlier, parts


def assert_same_returns(parts, whole):
    for name in ("identity", "earned", "steps", "ended", "reached", "until"):
        found, wanted = getattr(parts.returns, name), getattr(whole.returns, name)
        np.testing.assert_array_equal(found, wanted, err_msg=name)
    for name in ("entry", "bucket", "count", "starts"):
        found, wanted = getattr(parts.buckets, name), getattr(whole.buckets, name)
        np.testing.assert_array_equal(found, wanted, err_msg=name)
    np.testing.assert_allclose(parts.buckets.reward_mean, whole.buckets.reward_mean)
    assert parts.lacking == whole.lacking == ""


@pytest.mark.parametrize("horizon", [None, 30])
@pytest.mark.parametrize("kind", ["days", "dates", "named", "nights"])
def test_returns_are_carried_over_months_to_the_last_bit(tmp_path, kind, horizon):
    rows = list(visits(patients=12, days=40))
    rows = [row for row in rows if row[1] < 25 + row[0]]  # some are cut early
    cuts = [0, 7, 20, 40] if kind != "nights" else [0, 7, 8, 9, 10, 40]
    if kind == "dates":  # a gap inside a month, and one at a boundary
        rows = [row for row in rows if (row[0], row[1]) not in {(3, 12), (4, 20), (5, 7), (6, 0)}]
    if kind == "named":
        after = [*(row[2].split(",")[0] for row in rows[1:]), "ill"]
        rows = [(*row[:2], f"{row[2]},{s}") for row, s in zip(rows, after, strict=True)]
    more = {"horizon": horizon, "next_state": "next" if kind == "named" else ()}
    date = kind == "dates"
    header = HEADER + (",next" if kind == "named" else "")
    whole_log = written(tmp_path / "all.csv", rows, date, header)
    months = [
        written(tmp_path / f"{a}.csv", [r for r in rows if a <= r[1] < b], date, header)
        for a, b in pairwise(cuts)
    ]
    counts, whole = run_folder(tmp_path / "whole", settings_for(whole_log, **more))
    added_up, parts = month_by_month(tmp_path, months, **more)
    assert_same(added_up, counts)
    assert_same_returns(parts, whole)
    if horizon is not None:
        assert whole.returns.ended.any()


def test_returns_with_another_discount_are_left_out_and_said(tmp_path):
    rows = list(visits(patients=12, days=40))
    months = [
        written(tmp_path / f"{m}.csv", [r for r in rows if r[1] // 20 == m]) for m in range(2)
    ]
    earlier, _ = run_folder(tmp_path / "one", settings_for(months[0]))
    fresh = [(patient + 50, day, rest) for patient, day, rest in rows]
    both = written(tmp_path / "both.csv", [*[r for r in rows if r[1] > 19], *fresh])
    for change, reason in (
        ({"discount": 0.8}, "discount"), ({"horizon": 9}, "horizon"), ({"seed": 3}, "seed"),
        ({}, "folder"),
    ):  # fmt: skip
        if reason == "folder":
            (tmp_path / "one" / EPISODES).unlink()
        settings = replace(settings_for(both, add=str(tmp_path / "one")), **change)
        parts = divide_log(settings, count_log(settings, earlier))
        assert parts.lacking == reason
        expected = 24 if reason == "seed" else 12
        assert len(parts.returns.identity) == expected
    # What is lacking once stays so in every run that goes on from there.
    parts.returns.save(tmp_path / "kept.npz")
    assert Returns.load(tmp_path / "kept.npz").lacking == "folder"


def test_a_damaged_file_of_returns_is_refused(tmp_path):
    path = tmp_path / "episodes.npz"
    path.write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="not the returns of episodes"):
        Returns.load(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("identity", np.array([2, 1], dtype=np.uint64)),  # searched as if in order
        ("earned", np.array([0.0, np.nan])),
        ("earned", np.array(["a", "b"])),
        ("steps", np.array([-1, 1])),
        ("reached", np.array([-2, 0])),
        ("until", np.zeros((2, 1))),
    ],
)
def test_returns_that_no_log_could_have_shown_are_refused(name, value, tmp_path):
    arrays = {
        "identity": np.array([1, 2], dtype=np.uint64), "earned": np.zeros(2),
        "steps": np.ones(2, dtype=np.int64), "ended": np.zeros(2, dtype=bool),
        "reached": np.zeros(2, dtype=np.int64), "until": np.zeros(2),
    }  # fmt: skip
    path = tmp_path / "episodes.npz"
    about = {"about": np.array([0, -1]), "discount": np.float64(0.9), "lacking": np.array("")}
    np.savez(path, **about, **arrays)
    assert len(Returns.load(path)) == 2
    np.savez(path, **about, **(arrays | {name: value}))
    with pytest.raises(ValueError, match="not the returns of episodes"):
        Returns.load(path)


def test_a_run_that_is_added_to_promises_what_one_of_the_whole_log_does(tmp_path):
    rows = list(visits(patients=30, days=24))
    own = {"draws": 300, "eta": 0.05, "delta": 0.2}
    whole = run(settings_for(written(tmp_path / "all.csv", rows), **own), tmp_path / "whole")
    half = [r for r in rows if r[1] < 12], [r for r in rows if r[1] >= 12]
    first = run(settings_for(written(tmp_path / "a.csv", half[0]), **own), tmp_path / "first")
    later = settings_for(written(tmp_path / "b.csv", half[1]), add=str(first.folder), **own)
    both = run(later, tmp_path / "both").certificate
    assert both.behaviour == whole.certificate.behaviour
    assert both.gain == whole.certificate.gain
    assert both.lower_bound == pytest.approx(whole.certificate.lower_bound)
    kept = first.folder / EPISODES
    stamp = read_manifest(tmp_path / "both").identity["contents"]["add_episodes"]
    assert stamp == read_manifest(first.folder).files[EPISODES]
    told = [found.code for found in both.findings]
    assert "earlier_returns_left_out" not in told
    damaged = bytearray(kept.read_bytes())
    damaged[-30] ^= 1
    kept.write_bytes(damaged)
    assert not verify_run(first.folder).stands
    with pytest.raises(ValueError, match=r"episodes.npz was changed after it was written"):
        run(later, tmp_path / "again")
    kept.unlink()
    (first.folder / "manifest.json").unlink()  # as an older version left it
    without = run(later, tmp_path / "without").certificate
    assert without.behaviour.log.episodes == 0
    (told,) = [one for one in without.findings if one.code == "earlier_returns_left_out"]
    assert "earlier version" in told.text


def test_an_end_that_lives_on_in_a_later_log_stays_an_end(tmp_path):
    head = HEADER + ",next,done"
    first = [
        (p, d, f"ill,wait,1,{'ill' if d < 2 else 'out'},{int(d == 2)}")
        for p in range(12)
        for d in range(3)
    ]
    later = [
        (p + 50, d, f"{'out' if d else 'ill'},wait,2,out,{int(d == 3)}")
        for p in range(12)
        for d in range(4)
    ]
    own = {"next_state": "next", "terminal": "done"}
    logs = [
        written(tmp_path / f"{i}.csv", rows, header=head) for i, rows in enumerate((first, later))
    ]
    counts, parts = month_by_month(tmp_path, logs, **own)
    _, whole = run_folder(tmp_path / "whole", settings_for(tuple(logs), **own))
    total = np.bincount(parts.buckets.entry, parts.buckets.count, counts.num_entries)
    np.testing.assert_array_equal(total, counts.count)
    assert_same_returns(parts, whole)
    assert parts.returns.ended.all()
