"""Every bad log is answered with one clear line: the place, the rule, the remedy."""

import gzip
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from surefoot.data.transitions import read_transitions

HEADER = "state,action,reward,next_state\n"
GOOD = "a,x,1,b\nb,x,0,a\n"


def write(folder: Path, text: str | bytes, name: str = "log.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


BAD_CSV = {
    "empty file": ("", "log.csv: the file is empty"),
    "header only": (HEADER, "log.csv: the log has no rows"),
    "short row": (HEADER + GOOD + "a,x\n", "line 4: 2 fields where the header has 4"),
    "long row": (HEADER + GOOD + "a,x,1,b,c\n", "line 4: 5 fields where the header has 4"),
    "open quote": (HEADER + GOOD + 'a,"x,1,b\n' + GOOD, "line 4: a quote is not closed"),
    "text reward": (HEADER + GOOD + "a,x,much,b\n", "line 4: reward is 'much', not a number"),
    "nan reward": (HEADER + GOOD + "a,x,nan,b\n", "line 4: reward is NaN"),
    "infinite reward": (HEADER + GOOD + "a,x,-inf,b\n", "line 4: reward is -inf"),
    "empty reward": (HEADER + GOOD + "a,x,,b\n", "line 4: reward is empty"),
    "empty state": (HEADER + GOOD + ",x,0,b\n", "line 4: state is empty"),
    "one state": (HEADER + "a,x,1,a\na,y,1,a\n", "one state only ('a')"),
    "not utf-8": (
        HEADER.encode() + "ä,x,1,b\n".encode() * 3 + b"\xff,x,1,b\n",
        "line 5: the text is not UTF-8",
    ),
    "mixed line ends": (HEADER + "a,x,1,b\r\nb,x,1,a\n", "line endings or quotes are mixed"),
    "twice the same column": ("state,action,reward,state\na,x,1,b\n", "'state' is named twice"),
    "same but for the case": (
        "state,State,action,reward,next_state\na,q,x,1,b\n", "'state' and 'State' differ in case"
    ),
    "no reward": ("state,action,next_state\na,x,b\n", "no column 'reward'"),
    "other state name": ("State,action,reward,next_state\na,x,1,b\n", "state='State'?"),
    "misspelt": ("state,acton,reward,next_state\na,x,1,b\n", "Did you mean action='acton'?"),
    "no next state": ("state,action,reward\na,x,1\n", "episode= and step="),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_CSV)
def test_bad_csv(name: str, tmp_path: Path) -> None:
    text, message = BAD_CSV[name]
    path = write(tmp_path, text)
    with pytest.raises(ValueError, match=r"log\.csv") as caught:
        read_transitions(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_file_that_lacks_a_column_is_named(tmp_path: Path) -> None:
    write(tmp_path, HEADER + GOOD, "a.csv")
    write(tmp_path, "state,action,next_state\na,x,b\n", "b.csv")
    with pytest.raises(ValueError, match=r"b\.csv: there is no column 'reward', which other files"):
        read_transitions(tmp_path)


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    try:
        path = write(tmp_path, HEADER + GOOD, os.fsdecode(b"l\xe9g.csv"))
    except OSError:  # some file systems have no such names
        return
    with pytest.raises(ValueError, match="the name of the file is not UTF-8"):
        read_transitions(path)


def test_one_column_for_two_things(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER + GOOD)
    with pytest.raises(ValueError, match="'reward' is named for reward= and terminal="):
        read_transitions(path, terminal="reward")


def test_a_list_may_mix_a_number_and_its_spelling() -> None:
    log = {"state": [1, "1", "x"], "action": [0] * 3, "reward": [0.0] * 3, "next_state": ["x"] * 3}
    with pytest.raises(ValueError, match="column 'state' mixes int and str: 1 in row 0"):
        read_transitions(log)


@pytest.mark.parametrize("name", ["short row", "text reward", "empty state", "nan reward"])
def test_bad_csv_compressed_and_among_others(name: str, tmp_path: Path) -> None:
    text, message = BAD_CSV[name]
    write(tmp_path, HEADER + GOOD, "a.csv")
    write(tmp_path, gzip.compress(str(text).encode()), "b.csv.gz")
    with pytest.raises(ValueError, match=r"b\.csv\.gz, line 4") as caught:
        read_transitions(tmp_path)
    assert message in str(caught.value)


def test_lines_are_counted_with_breaks_inside_quotes_and_blank_lines(tmp_path: Path) -> None:
    text = HEADER + '"two\nlines",x,1,b\n\nb,x,1,a\nb,x,,a\n'
    with pytest.raises(ValueError, match="line 6: reward is empty"):
        read_transitions(write(tmp_path, text))
    with pytest.raises(ValueError, match="line 6: reward is 'q'"):
        read_transitions(write(tmp_path, text.replace("b,x,,a", "b,x,q,a")))


def test_a_reward_that_becomes_text_half_way(tmp_path: Path) -> None:
    lines = ["a,x,1,b\n"] * 60_000
    lines[50_000] = "a,x,one,b\n"
    with pytest.raises(ValueError, match="line 50002: reward is 'one', not a number"):
        read_transitions(write(tmp_path, HEADER + "".join(lines)))


def test_labels_that_become_text_half_way_are_all_text(tmp_path: Path) -> None:
    lines = [f"{i % 50},1,0,{(i + 1) % 50}\n" for i in range(60_000)]
    lines[50_000] = "x7,1,0,3\n"
    counts = read_transitions(write(tmp_path, HEADER + "".join(lines)))
    assert counts.count.sum() == 60_000
    assert set(counts.state_labels or ()) == {*map(str, range(50)), "x7"}
    assert any("'x7'" in note for note in counts.warnings)


def test_a_column_that_changes_type_between_files(tmp_path: Path) -> None:
    table = pl.DataFrame({"state": [1, 2], "action": [0, 0], "reward": [0.0, 1.0],
                          "next_state": [2, 1]})  # fmt: skip
    table.write_parquet(tmp_path / "a.parquet")
    table.with_columns(pl.col("state").cast(pl.String)).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"b.parquet: column 'state' has type VARCHAR, but BIGINT"):
        read_transitions(tmp_path)


def test_text_and_number_in_one_column() -> None:
    columns: dict[str, Any] = {"state": [1, "1"], "action": [0, 0], "reward": [0.0, 0.0],
                               "next_state": ["a", "b"]}  # fmt: skip
    message = r"column 'state' mixes int and str: 1 in row 0, '1' in row 1"
    with pytest.raises(ValueError, match=message):
        read_transitions(pd.DataFrame(columns))
    with pytest.raises(ValueError, match=message):
        read_transitions({k: np.array(v, dtype=object) for k, v in columns.items()})
    with pytest.raises(ValueError, match=message):
        read_transitions(pl.DataFrame({**columns, "state": pl.Series([1, "1"], dtype=pl.Object)}))
    with pytest.raises(ValueError, match=message):
        read_transitions(
            pd.DataFrame({**columns, "state": pd.Categorical([1, "1"], categories=[1, "1"])})
        )


def test_text_and_number_in_two_columns() -> None:
    table = pa.table({"state": [1, 2], "action": [0, 0], "reward": [0.0, 0.0],
                      "next_state": ["2", "1"]})  # fmt: skip
    with pytest.raises(ValueError, match="'state' holds whole numbers and column 'next_state'"):
        read_transitions(table)


@pytest.mark.parametrize(
    ("count", "message"),
    [(-2, "n is -2; counts cannot be negative"), (0.5, "n is 0.5; counts are whole numbers"),
     (None, "n is missing"), (float("inf"), "counts must stay below")],
)  # fmt: skip
def test_bad_counts(count: Any, message: str) -> None:
    table = pa.table({"state": [1, 2], "action": [0, 0], "reward": [0.0, 0.0],
                      "next_state": [2, 1], "n": [3.0, count]})  # fmt: skip
    with pytest.raises(ValueError, match="row 1") as caught:
        read_transitions(table, count="n")
    assert message in str(caught.value)


def test_bad_terminal_marks(tmp_path: Path) -> None:
    path = write(tmp_path, "state,action,reward,next_state,done\na,x,1,b,maybe\n")
    with pytest.raises(ValueError, match=r"line 2: done is 'maybe'; it must be true or false"):
        read_transitions(path, terminal="done")
    table = pd.DataFrame({"state": [1, 2], "action": 0, "reward": 0.0, "next_state": [2, 1],
                          "done": [0, 2]})  # fmt: skip
    with pytest.raises(ValueError, match=r"row 1 .*done is '2'"):
        read_transitions(table, terminal="done")


EPISODE = {"state": ["a", "b", "c"], "action": ["x"] * 3, "reward": [0.0] * 3}


@pytest.mark.parametrize(
    ("episode", "step", "done", "message"),
    [
        ([0, 0, 0], [0, 1, 1], [0, 0, 0], "episode 0, step 1: the step occurs twice"),
        ([0, 0, 0], [0, 1, 3], [0, 0, 0], "episode 0, step 1: the next step is missing"),
        ([0, 0, 0], [0, 1, 2], [0, 1, 0], "episode 0, step 1: done is set, but the episode goes"),
        ([0, 1, 2], [0, 0, 0], [0, 0, 0], "no row has a following row"),
        ([0, 0, None], [0, 1, 2], [0, 0, 0], "e is missing"),
        ([0, 0, 0], [0, 1, None], [0, 0, 0], "k is missing"),
    ],
)
def test_bad_episodes(episode: Any, step: Any, done: Any, message: str) -> None:
    table = pl.DataFrame(EPISODE | {"e": episode, "k": step, "done": done})
    with pytest.raises(ValueError, match="the polars table") as caught:
        read_transitions(table, episode="e", step="k", terminal="done")
    assert message in str(caught.value)


def test_a_gap_inside_an_episode_that_misses_an_action() -> None:
    table = pl.DataFrame(EPISODE | {"action": ["x", None, "x"], "e": [0] * 3, "k": [0, 1, 2]})
    with pytest.raises(ValueError, match="episode 0, step 1: action is missing"):
        read_transitions(table, episode="e", step="k")


def test_continuous_states_point_to_discretize() -> None:
    table = pd.DataFrame({"state": [0.5, 1.0], "action": 0, "reward": 0.0, "next_state": [1, 2]})
    with pytest.raises(ValueError, match=r"holds 0.5.*discretize"):
        read_transitions(table)
    with pytest.raises(ValueError, match=r"'state' has shape \(2, 3\).*discretize"):
        read_transitions({"state": np.zeros((2, 3)), "action": [0, 0], "reward": [0, 0],
                          "next_state": [0, 1]})  # fmt: skip


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("state", pd.to_datetime(["2024-01-01", "2024-01-02"]), "has type TIMESTAMP"),
        ("reward", ["a", "b"], "column 'reward' has type text"),
        ("reward", [b"a", b"b"], "bytes"),
        ("state", [[1], [2]], "list"),
        ("state", [2**70, 1], "64 bits"),
    ],
)
def test_bad_types(column: str, values: Any, message: str) -> None:
    table = pd.DataFrame(
        {"state": ["u", "v"], "action": 0, "reward": 0.0, "next_state": ["v", "u"]}
    )
    table[column] = values
    with pytest.raises(ValueError, match=message):
        read_transitions(table)


def test_steps_as_text_are_refused() -> None:
    table = pl.DataFrame(EPISODE | {"e": [0] * 3, "k": ["9", "10", "11"]})
    with pytest.raises(ValueError, match="'k' is text; steps are numbers or times"):
        read_transitions(table, episode="e", step="k")


def test_files_that_are_not_there_or_not_logs(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        read_transitions(tmp_path / "nothing.csv")
    with pytest.raises(FileNotFoundError, match="no file matches"):
        read_transitions(str(tmp_path / "*.csv"))
    with pytest.raises(FileNotFoundError, match="the folder holds no log"):
        read_transitions(tmp_path)
    with pytest.raises(ValueError, match=r"notes.txt: unknown kind of file"):
        read_transitions(write(tmp_path, "x", "notes.txt"))
    with pytest.raises(ValueError, match=r"not a readable Parquet file"):
        read_transitions(write(tmp_path, "x", "bad.parquet"))
    with pytest.raises(ValueError, match=r"none.parquet: the file is empty"):
        read_transitions(write(tmp_path, "", "none.parquet"))
    with pytest.raises(ValueError, match=r"bad.csv.gz: the file is not readable text"):
        read_transitions(write(tmp_path, "x,y", "bad.csv.gz"))
    write(tmp_path, HEADER + GOOD, "log.csv")
    (tmp_path / "none.parquet").unlink()
    (tmp_path / "bad.csv.gz").unlink()
    with pytest.raises(ValueError, match=r"holds both CSV \(log.csv\) and Parquet"):
        read_transitions(tmp_path)


def test_things_that_are_not_logs() -> None:
    for thing in (3, [1, 2], None, pd.Series([1])):
        with pytest.raises(ValueError, match="cannot be read"):
            read_transitions(thing)
    with pytest.raises(ValueError, match="different lengths"):
        read_transitions({"state": [1], "action": [1, 2], "reward": [0.0], "next_state": [2]})
    twice = pd.DataFrame([[1, 2, 3, 0.0, 4]], columns=["state", "state", "action", "reward",
                                                       "next_state"])  # fmt: skip
    with pytest.raises(ValueError, match="column 'state' twice"):
        read_transitions(twice)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"missing": "ignore"}, "missing='ignore'; it must be one of 'error', 'drop'"),
        ({"rewards": "sure"}, "rewards='sure'"),
        ({"labels": "int"}, "labels='int'"),
        ({"reward_range": (1, 0)}, "must be (lowest, highest)"),
        ({"reward_range": (0, 0.5)}, "the log holds rewards from 0 to 1. Widen"),
        ({"state": []}, "state=[]"),
        ({"state": ["state", "action"]}, "'next_action'"),
        ({"next_state": ["next_state", "action"]}, "state has 1 columns and next_state 2"),
        ({"next_state": None}, "episode= and step="),
        ({"count": "reward", "episode": "state"}, "count= is for logs that are already aggregated"),
        ({"next_state": "nxt_state", "episode": "state"}, "next_state='next_state'?"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = write(tmp_path, HEADER + GOOD)
    with pytest.raises(ValueError, match=re.escape(message)):
        read_transitions(path, **options)


def test_a_bad_file_with_steps_names_the_line(tmp_path: Path) -> None:
    path = write(tmp_path, "state,action,reward,e,k\na,x,1,0,0\nb,x\n")
    with pytest.raises(ValueError, match="line 3: 2 fields where the header has 5"):
        read_transitions(path, episode="e", step="k")
    path = write(tmp_path, "state,action,reward,e,k,done\na,x,1,0,0,0\nb,x,1,0,1,maybe\n")
    with pytest.raises(ValueError, match="line 3: done is 'maybe'"):
        read_transitions(path, episode="e", step="k", terminal="done")
    path = write(tmp_path, "state,action,reward,e,k\na,x,1,0,0\nb,x,1,,1\n")
    with pytest.raises(ValueError, match="line 3: e is empty"):
        read_transitions(path, episode="e", step="k")
    path = write(tmp_path, "state,action,reward,e,k\na,x,1,0,0\nb,x,1,0,soon\n")
    with pytest.raises(ValueError, match="line 3: k is 'soon', not a number"):
        read_transitions(path, episode="e", step="k")


def test_a_header_without_rows(tmp_path: Path) -> None:
    path = write(tmp_path, "state,action,reward,next_state,e,k\n")
    with pytest.raises(ValueError, match="the log has no rows"):
        read_transitions(path, episode="e", step="k")
