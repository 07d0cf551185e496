"""Which files a log consists of, and what their bytes may hide."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from surefoot.data.csv_bytes import LONGEST
from surefoot.data.log_files import log_files
from surefoot.data.transitions import read_transitions
from surefoot.pipeline.log_stamps import read_twice
from surefoot.pipeline.settings import Settings

HEADER = "state,action,reward,next_state\n"
ROWS = "0,0,1,1\n1,0,0,0\n"


def write(path: Path, text: str = HEADER + ROWS) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def total(source: object) -> int:
    return int(read_transitions(source).count.sum())


def test_hidden_copies_are_passed_over_and_mentioned(tmp_path: Path) -> None:
    write(tmp_path / "a.csv")
    write(tmp_path / ".ipynb_checkpoints" / "a-checkpoint.csv")
    counts = read_transitions(tmp_path)
    assert int(counts.count.sum()) == 2
    assert any("1 hidden file skipped" in note for note in counts.warnings)
    assert total(tmp_path / ".ipynb_checkpoints" / "a-checkpoint.csv") == 2


def test_a_file_with_two_names_counts_once(tmp_path: Path) -> None:
    file = write(tmp_path / "logs" / "a.csv")
    (tmp_path / "logs" / "b.csv").symlink_to(file)
    counts = read_transitions(tmp_path / "logs")
    assert int(counts.count.sum()) == 2
    assert any("named twice and read once" in note for note in counts.warnings)
    assert total([file, tmp_path / "logs" / ".." / "logs" / "a.csv"]) == 2


def test_settings_list_the_same_files(tmp_path: Path) -> None:
    files = [write(tmp_path / "logs" / day / "x.csv") for day in ("monday", "tuesday")]
    pattern = str(tmp_path / "logs" / "*" / "x.csv")
    assert log_files(pattern).files == tuple(files)
    assert all(str(file.resolve()) in Settings(log=(pattern,)).to_toml() for file in files)
    twice = read_twice((pattern, str(tmp_path / "logs" / ".." / "logs")), None)
    assert twice == [str(file.resolve()) for file in files]


def test_a_very_long_last_line_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", f"{HEADER}{ROWS}1,0,0,{'9' * (LONGEST + 2_000_000)}\n")
    with pytest.raises(ValueError, match=r"a\.csv: a line is longer than 2,000,000 bytes"):
        read_transitions(tmp_path / "a.csv")


@pytest.mark.parametrize("at", [-8, -4])
def test_a_gz_with_a_wrong_checksum_is_refused(tmp_path: Path, at: int) -> None:
    broken = bytearray(gzip.compress((HEADER + ROWS).encode()))
    broken[at] ^= 1
    (tmp_path / "a.csv.gz").write_bytes(bytes(broken))
    with pytest.raises(ValueError, match=r"a\.csv\.gz: the file is "):
        read_transitions(tmp_path / "a.csv.gz")


def test_underscores_make_no_numbers(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", f"{HEADER}0,0,1,1\n1,0,1_000,0\n")
    with pytest.raises(ValueError, match=r"a\.csv, line 3: reward is '1_000', not a number"):
        read_transitions(tmp_path / "a.csv")
    write(tmp_path / "a.csv", f"{HEADER}s_0_1,0,1,s_1_0\ns_1_0,0,2,s_0_1\n")
    assert read_transitions(tmp_path / "a.csv").state_labels == ("s_0_1", "s_1_0")


def test_one_and_one_point_zero_are_one_state(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", f"{HEADER}1,0,1,2.0\n2,0,1,1.0\n")
    counts = read_transitions(tmp_path / "a.csv")
    assert counts.state_labels == (1, 2)
    assert any("both as 1 and as 1.0" in note for note in counts.warnings)
    write(tmp_path / "a.csv", f"{HEADER}1,0,1,end\n2,0,1,1.0\n")
    with pytest.raises(ValueError, match=r"state '1' is also written '1\.0'"):
        read_transitions(tmp_path / "a.csv")
    assert read_transitions(tmp_path / "a.csv", labels="text").num_states == 4
    other = read_transitions({"state": ["1.0", "3.0"], "action": [0, 0], "reward": [1, 1],
                              "next_state": ["3.0", "1.0"]})  # fmt: skip
    with pytest.raises(ValueError, match=r"is text in one log and a number in the other"):
        _ = counts + other


def test_headers_as_excel_and_people_write_them(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "state,action,reward,next_state,\n0,0,1,1,\n1,0,0,0,\n")
    assert total(tmp_path / "a.csv") == 2
    write(tmp_path / "a.csv", f"\n{HEADER}{ROWS}")
    with pytest.raises(ValueError, match=r"a\.csv: line 1 is blank"):
        read_transitions(tmp_path / "a.csv")
    write(tmp_path / "a.csv", f"{'x' * 200_000},{HEADER}")
    with pytest.raises(ValueError, match=r"a\.csv, line 1: the names of the columns"):
        read_transitions(tmp_path / "a.csv")


def test_control_characters_are_shown_escaped(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        read_transitions(tmp_path / "a\x1b[31m.csv")
    assert "\x1b" not in str(caught.value)
    write(tmp_path / "b\x1b.csv", "state,action,re\x1bward,next_state\n0,0,,1\n1,0,0,0\n")
    with pytest.raises(ValueError, match="is empty") as wrong:
        read_transitions(tmp_path / "b\x1b.csv", reward="re\x1bward")
    assert "\x1b" not in str(wrong.value)


def test_nan_is_a_missing_step(tmp_path: Path) -> None:
    log = {"state": [0, 1, 0, 1], "action": [0] * 4, "reward": [1.0] * 4, "e": [0] * 4,
           "k": np.array([0.0, 1.0, 2.0, np.nan])}  # fmt: skip
    with pytest.raises(ValueError, match="k is missing"):
        read_transitions(log, episode="e", step="k")
    counts = read_transitions(log, episode="e", step="k", missing="drop")
    assert int(counts.count.sum()) == 2
    assert counts.log is not None
    assert counts.log.dropped == {"k": 1}


def test_steps_in_nanoseconds_stay_apart(tmp_path: Path) -> None:
    start = 1_700_000_000_000_000_000
    lines = "".join(f"0,{start + i},{i % 2},0,1\n" for i in range(4))
    write(tmp_path / "a.csv", f"e,k,state,action,reward\n{lines}")
    assert int(read_transitions(tmp_path / "a.csv", episode="e", step="k").count.sum()) == 3


def test_a_column_may_have_two_roles(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "e,k,reward,action\n0,0,5,0\n0,1,7,0\n0,2,5,0\n")
    counts = read_transitions(tmp_path / "a.csv", state="reward", episode="e", step="k")
    assert counts.state_labels == (5, 7)
    counts = read_transitions(tmp_path / "a.csv", state="k", episode="e", step="k")
    assert counts.state_labels == (0, 1, 2)


def test_an_empty_support_is_not_a_folder() -> None:
    counts = read_transitions({"state": [0, 1], "action": [0, 0], "reward": [0, 1],
                               "next_state": [1, 0]})  # fmt: skip
    with pytest.raises(ValueError, match="support=''; it must be"):
        counts.on_support("")
