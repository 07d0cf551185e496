"""What a run leaves on the disk: links, leftovers, damage, and which of them it may touch."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from surefoot.pipeline import runs
from surefoot.pipeline.finished_runs import load_run, report_run, verify_run
from surefoot.pipeline.folder import FILES, _holder, unfinished_name
from surefoot.pipeline.journal import Nobody
from surefoot.pipeline.manifest import read_manifest
from surefoot.pipeline.runs import earlier_counts, run
from surefoot.pipeline.settings import Settings

SMALL = {"reward": "cost", "costs": True, "discount": 0.9, "draws": 300, "eta": 0.01}


class Teller(Nobody):
    """Remembers what it was told."""

    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)


@pytest.fixture
def settings(small_log):
    return Settings(log=small_log, **SMALL)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """One finished run with a side file."""
    place = tmp_path_factory.mktemp("whole")
    lines = ["state,action,cost,next_state"]
    for i in range(40):
        lines += [
            f"up,wait,{i % 3},{'up' if i % 3 else 'down'}",
            f"up,mend,1,{'up' * (i % 9 > 0) or 'down'}",
        ]
        lines += [
            f"down,wait,5,{'down' if i % 5 else 'up'}",
            f"down,mend,2,{'up' if i % 4 else 'down'}",
        ]
    (place / "log.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (place / "mine.csv").write_text("state,action\nup,mend\ndown,wait\ndown,mend\n")
    settings = Settings(log=place / "log.csv", allowed=str(place / "mine.csv"), **SMALL)
    return run(settings, place / "run")


def stopped(settings, out, monkeypatch):
    """Leave an unfinished run behind that has found its policy."""

    def stop(*_arguments, **_options):
        raise ValueError("stop")

    with monkeypatch.context() as patch:
        patch.setattr(runs, "write_report", stop)
        with pytest.raises(ValueError, match="stop"):
            run(settings, out)
    assert unfinished_name(out).is_dir()


def files_of(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


SIDE = {
    "allowed": (
        "state,action\nup,wait\nup,mend\ndown,mend\n",
        "state,action\nup,mend\ndown,wait\n",
    ),
    "initial": ("state,probability\nup,1\n", "state,probability\ndown,1\n"),
    "reward_table": (
        "state,action,reward\nup,wait,1\nup,mend,2\ndown,wait,3\ndown,mend,4\n",
        "state,action,reward\nup,wait,9\nup,mend,2\ndown,wait,3\ndown,mend,8\n",
    ),
}


@pytest.mark.parametrize("name", SIDE)
def test_an_edited_side_file_is_not_resumed(settings, tmp_path, monkeypatch, name):
    side, (before, after) = tmp_path / "side.csv", SIDE[name]
    side.write_text(before)
    mine = replace(settings, **{name: str(side)})
    stopped(mine, tmp_path / "run", monkeypatch)
    side.write_text(after)
    teller = Teller()
    made = run(mine, tmp_path / "run", teller=teller)
    assert f"with another {name}: starting again" in teller.notes[0]
    fresh = run(mine, tmp_path / "fresh")
    assert made.certificate.to_json() == fresh.certificate.to_json()
    copy = made.folder / "inputs" / f"{name}.csv"
    assert copy.read_text() == after
    side.unlink()
    assert verify_run(made.folder, np.random.default_rng(0)).stands


def test_a_changed_log_or_earlier_run_is_not_resumed(settings, small_log, tmp_path, monkeypatch):
    first = run(settings, tmp_path / "first")
    mine = replace(settings, add=str(first.folder))
    stopped(mine, tmp_path / "run", monkeypatch)
    shutil.rmtree(first.folder)
    run(replace(settings, log=[small_log, small_log]), first.folder)
    teller = Teller()
    run(mine, tmp_path / "run", teller=teller)
    assert "with another add: starting again" in teller.notes[0]
    stopped(settings, tmp_path / "two", monkeypatch)
    small_log.write_text(small_log.read_text() + "up,wait,0,up\n")
    run(settings, tmp_path / "two", teller=teller)
    assert any("with another log: starting again" in text for text in teller.notes)


def test_files_behind_a_pattern_are_not_resumed_once_they_changed(
    settings, small_log, tmp_path, monkeypatch
):
    """Version 0.1 saw no files behind ``logs/*/x.csv``, and went on with counts of the old log."""
    file = tmp_path / "logs" / "monday" / "x.csv"
    file.parent.mkdir(parents=True)
    shutil.copy(small_log, file)
    mine = replace(settings, log=str(tmp_path / "logs" / "*" / "x.csv"))
    stopped(mine, tmp_path / "run", monkeypatch)
    file.write_text(file.read_text() + "up,wait,0,up\n")
    teller = Teller()
    made = run(mine, tmp_path / "run", teller=teller)
    assert "with another log: starting again" in teller.notes[0]
    lines = file.read_text().count("\n") - 1
    assert int(made.model.placed.count.sum()) == lines


@pytest.mark.parametrize("name", ["counts.npz", "found.json", "candidates.csv", "manifest.json"])
@pytest.mark.parametrize("damage", ["emptied", "halved"])
def test_damaged_leftovers_start_anew(settings, tmp_path, monkeypatch, name, damage):
    out = tmp_path / "run"
    stopped(settings, out, monkeypatch)
    file = unfinished_name(out) / name
    content = file.read_bytes()
    file.write_bytes(b"" if damage == "emptied" else content[: len(content) // 2])
    teller = Teller()
    run(settings, out, teller=teller)
    assert f"{name} is damaged: starting again" in teller.notes[0]
    assert files_of(out) == sorted(FILES)


def test_temporary_files_of_a_killed_run_are_cleared(settings, tmp_path, monkeypatch):
    out = tmp_path / "run"
    stopped(settings, out, monkeypatch)
    (unfinished_name(out) / ".policy.csv.x1y2").touch()
    (unfinished_name(out) / "counts.partial").touch()
    run(settings, out)
    assert files_of(out) == sorted(FILES)


def test_what_others_left_is_never_removed(settings, tmp_path):
    elsewhere = tmp_path / "precious"
    elsewhere.mkdir()
    (elsewhere / "thesis.txt").touch()
    link = unfinished_name(tmp_path / "run")
    link.symlink_to(elsewhere)
    with pytest.raises(FileExistsError, match="is in the way"):
        run(settings, tmp_path / "run")
    link.unlink()
    elsewhere.rename(link)
    with pytest.raises(FileExistsError, match="is in the way"):
        run(settings, tmp_path / "run")
    assert (link / "thesis.txt").is_file()
    shutil.rmtree(link)
    other = tmp_path / ".run.replaced"
    other.mkdir()
    (other / "thesis.txt").touch()
    run(settings, tmp_path / "run")
    run(settings, tmp_path / "run", force=True)
    assert (other / "thesis.txt").is_file()


def test_a_link_is_followed_and_stays(settings, tmp_path):
    (tmp_path / "disk").mkdir()
    link = tmp_path / "run"
    link.symlink_to(tmp_path / "disk" / "real")
    run(settings, link)
    run(replace(settings, seed=1), link, force=True)
    assert link.is_symlink()
    assert load_run(link).settings.seed == 1
    assert sorted(path.name for path in (tmp_path / "disk").iterdir()) == ["real"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["costs.csv", "disk", "run"]


def test_a_replaced_run_comes_back_after_a_kill_at_the_very_end(settings, tmp_path):
    out = tmp_path / "run"
    run(settings, out)
    before = files_of(out)
    out.rename(_holder(out) / "run")  # killed here: the new run has not taken the name yet
    with pytest.raises(OSError, match="no such file"):
        run(replace(settings, log=tmp_path / "no.csv"), out, force=True)
    assert files_of(out) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["costs.csv", "run"]


@pytest.mark.parametrize("name", [*FILES, "inputs/allowed.csv"])
def test_verify_covers_every_file(whole, tmp_path, name):
    copy = shutil.copytree(whole.folder, tmp_path / "copy")
    content = (copy / name).read_bytes()
    middle = len(content) // 2
    (copy / name).write_bytes(
        content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    )
    verdict = verify_run(copy)
    assert not verdict.stands
    assert name in verdict.message
    if name not in (
        "manifest.json",
        "certificate.json",
        "config.toml",
        "counts.npz",
        "candidates.csv",
    ):
        (copy / name).unlink()
        with pytest.raises(ValueError, match="not a finished run folder"):
            verify_run(copy)


def test_a_folder_works_elsewhere_without_its_log(whole, tmp_path):
    copy = shutil.copytree(whole.folder, tmp_path / "copy")
    for name in ("log.csv", "mine.csv"):
        (whole.folder.parent / name).rename(tmp_path / name)
    try:
        assert verify_run(copy, np.random.default_rng(0)).stands
        assert load_run(copy).model.allowed is not None
        before = (copy / "report.html").read_bytes()
        report_run(copy)
        assert (copy / "report.html").read_bytes() == before
        assert verify_run(copy, np.random.default_rng(0)).stands
    finally:
        for name in ("log.csv", "mine.csv"):
            (tmp_path / name).rename(whole.folder.parent / name)


def test_a_report_hides_no_change(whole, tmp_path):
    copy = shutil.copytree(whole.folder, tmp_path / "copy")
    (copy / "policy.csv").write_text("state,action\n")
    with pytest.raises(ValueError, match=r"policy\.csv is missing or was changed"):
        report_run(copy)


def test_changed_counts_are_not_used(whole, tmp_path):
    copy = shutil.copytree(whole.folder, tmp_path / "copy")
    shutil.copy(whole.folder / "policy.csv", copy / "counts.npz")
    with pytest.raises(ValueError, match="was changed after it was written"):
        earlier_counts(copy)


def test_the_manifest_says_what_the_answer_depends_on(whole):
    manifest = read_manifest(whole.folder)
    assert set(json.loads((whole.folder / "manifest.json").read_text())) == {
        "format", "identity", "inputs", "files", "digest"
    }  # fmt: skip
    assert manifest.identity["settings"]["discount"] == 0.9
    assert "threads" not in manifest.identity["settings"]
    assert set(manifest.identity["contents"]) == {"log", "allowed"}
    assert manifest.inputs["allowed"]["file"] == "inputs/allowed.csv"
    listed = {*FILES, "inputs/allowed.csv"} - {"manifest.json"}
    assert set(manifest.files) == listed


def test_nested_json_is_no_traceback(whole, tmp_path):
    copy = shutil.copytree(whole.folder, tmp_path / "copy")
    (copy / "certificate.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match="nested too deeply"):
        load_run(copy)
    (copy / "manifest.json").write_text("[" * 100_000)
    assert not verify_run(copy).stands


def test_a_log_that_changes_during_the_run_is_refused(settings, small_log, tmp_path, monkeypatch):
    def edit(*_arguments, **_options):
        small_log.write_text(Path(small_log).read_text() + "up,wait,0,up\n")

    monkeypatch.setattr(runs, "write_report", edit)
    with pytest.raises(ValueError, match="changed while the run was going on"):
        run(settings, tmp_path / "run")
