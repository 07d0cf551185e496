"""Episodes, ends, several columns, weights, missing values."""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import random_logs as lg
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.data.transitions import read_transitions
from surefoot.domains import machine_replacement, riverswim


def write(folder: Path, text: str, name: str = "log.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


@st.composite
def episodes(draw: Any) -> list[tuple[int, int, str, str, float, bool]]:
    """Return shuffled rows (episode, step, state, action, reward, terminal)."""
    rows = []
    for episode in range(draw(st.integers(1, 4))):
        length = draw(st.integers(1, 6))
        first = draw(st.integers(-2, 3))
        ends = draw(st.booleans())
        for step in range(length):
            state, action = draw(st.sampled_from("ABC")), draw(st.sampled_from("xy"))
            terminal = ends and step == length - 1
            rows.append((episode, first + step, state, action, float(step), terminal))
    return draw(st.permutations(rows))


@settings(max_examples=25, deadline=None)
@given(rows=episodes())
def test_following_rows_supply_next_states(rows: list[Any]) -> None:
    expected: Counter[Any] = Counter()
    starts: Counter[Any] = Counter()
    for episode in {row[0] for row in rows}:
        ordered = sorted(row for row in rows if row[0] == episode)
        starts[ordered[0][2]] += 1
        for this, after in pairwise(ordered):
            expected[this[2], this[3], after[2]] += 1
        if ordered[-1][5]:
            expected[ordered[-1][2], ordered[-1][3], "terminal"] += 1
    table = pd.DataFrame(rows, columns=["episode", "step", "state", "action", "reward", "done"])
    options = {"episode": "episode", "step": "step", "terminal": "done"}
    states = {s for key in expected for s in (key[0], key[2])} | set(starts)
    if not expected or len(states) < 2:
        with pytest.raises(ValueError, match=r"no transition|one state only"):
            read_transitions(table, **options)
        return
    counts = read_transitions(table, **options)
    assert lg.counted(counts) == expected
    assert counts.starts is not None
    assert counts.state_labels is not None
    found = dict(zip(counts.state_labels, counts.starts.tolist(), strict=True))
    assert {k: n for k, n in found.items() if n} == starts
    assert set(np.array(counts.state_labels)[counts.is_terminal]) <= {"terminal"}


def test_a_log_without_next_states_counts_all_but_the_ends() -> None:
    log = riverswim().log(20, np.random.default_rng(0), steps=30)
    whole = read_transitions(log, episode="episode", step="step")
    following = read_transitions(
        {name: log[name] for name in log if name != "next_state"}, episode="episode", step="step"
    )
    last = log["step"] == 29
    cut = read_transitions({name: values[~last] for name, values in log.items()})
    assert lg.counted(following) == lg.counted(cut)
    assert whole.count.sum() == following.count.sum() + 20
    assert following.log is not None
    assert following.log.cut == 20
    np.testing.assert_array_equal(whole.starts, following.starts)


def test_steps_may_be_times_and_need_not_be_one_apart(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "state,action,reward,e,t\nb,x,2,1,2024-01-01 10:00\na,x,1,1,2024-01-01 09:00\n"
        "c,x,3,1,2024-02-01 00:00\n",
    )
    counts = read_transitions(path, episode="e", step="t")
    assert lg.counted(counts) == {("a", "x", "b"): 1, ("b", "x", "c"): 1}
    log = {"state": ["a", "b", "c"], "action": [0] * 3, "reward": [0.0] * 3, "e": [1] * 3,
           "t": [0, 10, 40]}  # fmt: skip
    assert read_transitions(log, episode="e", step="t").count.sum() == 2


def test_a_state_of_several_columns() -> None:
    table = pl.DataFrame(
        {
            "row": [0, 0, 1], "column": ["left", "right", "left"], "action": ["go"] * 3,
            "next_row": [0, 1, 0], "next_column": ["right", "left", "left"], "reward": [0.0] * 3,
        }
    )  # fmt: skip
    counts = read_transitions(table, state=["row", "column"])
    assert counts.state_labels == ((0, "left"), (0, "right"), (1, "left"))
    assert lg.counted(counts)[(0, "right"), "go", (1, "left")] == 1
    named = read_transitions(table, state=["row", "column"], next_state=["next_row", "next_column"])
    assert lg.counted(named) == lg.counted(counts)


def test_several_columns_from_following_rows() -> None:
    table = pd.DataFrame({"x": [0, 1, 1], "y": [5, 5, 6], "action": 0, "reward": 1.0, "e": 0,
                          "k": [0, 1, 2]})  # fmt: skip
    counts = read_transitions(table, state=["x", "y"], episode="e", step="k")
    assert lg.counted(counts) == {((0, 5), 0, (1, 5)): 1, ((1, 5), 0, (1, 6)): 1}


def test_weights_equal_repeated_rows() -> None:
    rng = np.random.default_rng(3)
    log = {
        "state": rng.integers(0, 3, 200),
        "action": rng.integers(0, 2, 200),
        "reward": rng.integers(0, 3, 200) / 10,
        "next_state": rng.integers(0, 3, 200),
        "n": rng.integers(0, 4, 200),
    }
    weighted = read_transitions(log, count="n")
    repeated = read_transitions({name: np.repeat(v, log["n"]) for name, v in log.items()})
    assert lg.counted(weighted) == lg.counted(repeated)
    np.testing.assert_allclose(weighted.reward_mean, repeated.reward_mean, rtol=1e-12)
    np.testing.assert_allclose(weighted.reward_var, repeated.reward_var, rtol=1e-9, atol=1e-15)
    np.testing.assert_array_equal(weighted.reward_low, repeated.reward_low)
    assert weighted.log is not None
    assert weighted.log.zero_rows == np.count_nonzero(log["n"] == 0)
    assert weighted.log.rows == 200


def test_variance_survives_a_large_offset() -> None:
    rewards = 1e9 + np.array([0.0, 1.0, 2.0, 3.0])
    log = {"state": [0] * 4 + [1], "action": [0] * 5, "next_state": [1] * 4 + [0],
           "reward": [*rewards, 0.0]}  # fmt: skip
    for source in (log, log | {"n": [1] * 5}):
        counts = read_transitions(source, count="n" if "n" in source else None)
        np.testing.assert_allclose(counts.reward_var[0], np.var(rewards, ddof=1), rtol=1e-9)


def test_constant_rewards_are_exact_in_every_format(tmp_path: Path) -> None:
    value = 0.1
    log = {"state": np.arange(3000) % 2, "action": np.zeros(3000, int),
           "next_state": (np.arange(3000) + 1) % 2, "reward": np.full(3000, value)}  # fmt: skip
    pl.DataFrame(log).write_parquet(tmp_path / "log.parquet")
    pl.DataFrame(log).write_csv(tmp_path / "log.csv")
    for source in (log, tmp_path / "log.parquet", tmp_path / "log.csv"):
        counts = read_transitions(source)
        assert counts.reward_mean.tolist() == [value, value]
        assert counts.reward_model == "fixed"


TERMINAL = pd.DataFrame(
    {
        "state": ["a", "a", "b", "b", "a"],
        "action": ["x"] * 5,
        "next_state": ["b", "goal", "pit", "a", "b"],
        "reward": [0.0, 5.0, -5.0, 0.0, 1.0],
        "done": [False, True, True, False, True],
    }
)


def test_ends_are_absorbing_without_reward() -> None:
    counts = read_transitions(TERMINAL, terminal="done")
    assert counts.state_labels == ("a", "b", "goal", "pit", "terminal")
    # 'b' lives on in other episodes, so an end in it goes to the extra state.
    assert counts.is_terminal.tolist() == [False, False, True, True, True]
    assert lg.counted(counts)["a", "x", "terminal"] == 1
    assert lg.counted(counts)["a", "x", "b"] == 1
    mdp = counts.to_mdp(discount=0.9)
    for state in (2, 3, 4):
        row = mdp.row_of(state, 0)
        entries = slice(mdp.row_start[row], mdp.row_start[row + 1])
        assert mdp.successor[entries].tolist() == [state]
        assert mdp.reward[entries].tolist() == [0.0]


@pytest.mark.parametrize(
    "marks",
    [[0, 1, 1, 0, 1], ["no", "YES", "true", "False", "1"], [0.0, 1.0, 1.0, 0.0, 1.0]],
)
def test_terminal_marks_may_be_spelled_in_many_ways(marks: list[Any]) -> None:
    counts = read_transitions(TERMINAL.assign(done=marks), terminal="done")
    assert lg.counted(counts) == lg.counted(read_transitions(TERMINAL, terminal="done"))


def test_an_end_needs_no_next_state(tmp_path: Path) -> None:
    path = write(tmp_path, "state,action,reward,next_state,done\na,x,0,b,0\nb,x,1,,1\n")
    counts = read_transitions(path, terminal="done")
    assert lg.counted(counts) == {("a", "x", "b"): 1, ("b", "x", "terminal"): 1}


def test_a_cut_episode_is_not_an_end() -> None:
    table = pd.DataFrame({"state": ["a", "b"], "action": "x", "reward": [1.0, 2.0], "e": 0,
                          "k": [0, 1]})  # fmt: skip
    counts = read_transitions(table, episode="e", step="k")
    assert not counts.is_terminal.any()
    mdp = counts.to_mdp(discount=0.5, support="observed")
    assert mdp.reward.tolist() == [1.0, 1.0]  # 'b' is stuck at the lowest reward counted


def test_the_last_row_of_an_episode_may_only_show_its_state() -> None:
    table = pd.DataFrame({"state": ["a", "b"], "action": ["x", None], "reward": [1.0, None],
                          "e": 0, "k": [0, 1]})  # fmt: skip
    assert read_transitions(table, episode="e", step="k").count.tolist() == [1]


@pytest.mark.parametrize("column", ["state", "action", "next_state", "reward"])
@pytest.mark.parametrize("kind", ["csv", "pandas", "polars", "arrow", "dict", "parquet"])
def test_missing_values_are_named_or_dropped(column: str, kind: str, tmp_path: Path) -> None:
    values: dict[str, list[Any]] = {
        "state": [1, 2, 3, 1], "action": [5, 5, 5, 5], "reward": [0.5, 1.0, 0.0, 2.0],
        "next_state": [2, 3, 1, 2],
    }  # fmt: skip
    values[column][2] = None
    source: Any = pl.DataFrame(values)
    if kind == "csv":
        source.write_csv(tmp_path / "log.csv")
        source, place = tmp_path / "log.csv", "log.csv, line 4"
    elif kind == "parquet":
        source.write_parquet(tmp_path / "log.parquet")
        source, place = tmp_path / "log.parquet", "log.parquet, row 3"
    else:
        place = r"row 2 \(the first is 0\)"
        convert = {"pandas": pd.DataFrame, "arrow": pa.table, "polars": pl.DataFrame}
        source = convert[kind](values) if kind in convert else values
    with pytest.raises(ValueError, match=rf"{place}: {column} is (empty|missing).*missing='drop'"):
        read_transitions(source)
    counts = read_transitions(source, missing="drop")
    assert counts.count.sum() == 3
    assert counts.log is not None
    assert counts.log.dropped == {column: 1}
    assert counts.log.rows == 4
    assert f"1 row without {column} was left out on request." in counts.summary()


def test_nan_is_a_missing_reward(tmp_path: Path) -> None:
    table = pl.DataFrame({"state": [1, 2], "action": [0, 0], "next_state": [2, 1],
                          "reward": [1.0, float("nan")]})  # fmt: skip
    table.write_parquet(tmp_path / "log.parquet")
    with pytest.raises(ValueError, match=r"log.parquet, row 2: reward is NaN"):
        read_transitions(tmp_path / "log.parquet")
    assert read_transitions(tmp_path / "log.parquet", missing="drop").count.sum() == 1


def test_dropping_a_row_does_not_join_its_neighbours() -> None:
    table = pd.DataFrame({"state": ["a", None, "c", "d"], "action": "x", "reward": 0.0, "e": 0,
                          "k": range(4)})  # fmt: skip
    counts = read_transitions(table, episode="e", step="k", missing="drop")
    assert lg.counted(counts) == {("c", "x", "d"): 1}
    assert counts.log is not None
    assert counts.log.dropped == {"state": 1, "the next state": 1}
    gone = table[table.k != 1]
    with pytest.raises(ValueError, match="episode 0, step 0: the next step is missing"):
        read_transitions(gone, episode="e", step="k")
    counts = read_transitions(gone, episode="e", step="k", missing="drop")
    assert lg.counted(counts) == {("c", "x", "d"): 1}
    assert counts.log is not None
    assert counts.log.dropped == {"a following step": 1}


def test_empty_quotes_are_a_label_and_an_empty_field_is_missing(tmp_path: Path) -> None:
    path = write(tmp_path, 'state,action,reward,next_state\n"",x,0,NA\nNA,x,0,""\n,x,0,NA\n')
    with pytest.raises(ValueError, match="line 4: state is empty"):
        read_transitions(path)
    assert read_transitions(path, missing="drop").state_labels == ("", "NA")


def test_bom_crlf_semicolons_and_column_order(tmp_path: Path) -> None:
    text = "\ufeffnext_state;reward;extra;action;state\r\nb;1;?;x;a\r\na;0;?;x;b\r\n"
    counts = read_transitions(write(tmp_path, text))
    assert lg.counted(counts) == {("a", "x", "b"): 1, ("b", "x", "a"): 1}


def test_files_may_have_their_columns_in_any_order(tmp_path: Path) -> None:
    write(tmp_path, "state,action,reward,next_state\na,x,0,b\n", "1.csv")
    write(tmp_path, "reward,next_state,state,action\n2,a,b,x\n", "2.csv")
    counts = read_transitions(tmp_path)
    assert lg.counted(counts) == {("a", "x", "b"): 1, ("b", "x", "a"): 1}
    assert counts.reward_mean.tolist() == [0.0, 2.0]


def test_odd_file_names(tmp_path: Path) -> None:
    for name in ("it's [1].csv", "star*.csv", "spa ce?.csv"):
        path = write(tmp_path, "state,action,reward,next_state\na,x,0,b\nb,x,0,a\n", name)
        assert read_transitions(path).count.sum() == 2
    assert read_transitions(str(tmp_path)).count.sum() == 6


def test_whole_decimals_are_whole_numbers() -> None:
    table = pd.DataFrame({"state": [1.0, 2.0], "action": [0, 0], "next_state": [2, 1],
                          "reward": [0, 1]})  # fmt: skip
    assert read_transitions(table).state_labels == (1, 2)


def test_a_table_in_memory_is_not_changed() -> None:
    table = pd.DataFrame({"state": pd.Series([1, 2], dtype=object), "action": ["x", "y"],
                          "next_state": [2, 1], "reward": [0.0, 1.0]})  # fmt: skip
    before = table.copy(deep=True)
    read_transitions(table)
    pd.testing.assert_frame_equal(table, before)


def test_unused_columns_may_hold_anything() -> None:
    table = pd.DataFrame({"state": [1, 2], "action": ["x", "y"], "next_state": [2, 1],
                          "reward": [0.0, 1.0], "junk": [[1], "two"]})  # fmt: skip
    assert read_transitions(table).count.sum() == 2


def test_domain_logs_go_through() -> None:
    domain = machine_replacement()
    counts = read_transitions(
        domain.log(30, np.random.default_rng(1)), episode="episode", step="step"
    )
    assert set(counts.state_labels or ()) == set(domain.mdp.state_labels or ())
    assert counts.reward_model == "fixed"
    mdp = counts.to_mdp(discount=0.95)
    assert mdp.state_labels is not None
    assert mdp.state_labels[-1] == "unseen"


def test_mostly_whole_numbers_are_mentioned(tmp_path: Path) -> None:
    lines = [f"{i},x,0,{i + 1}" for i in range(20)] + ["A7,x,0,1"]
    path = write(tmp_path, "state,action,reward,next_state\n" + "\n".join(lines) + "\n")
    counts = read_transitions(path)
    assert all(isinstance(label, str) for label in counts.state_labels or ())
    assert any("'A7'" in warning for warning in counts.warnings)


def test_a_list_of_files_is_one_log(tmp_path: Path) -> None:
    one = write(tmp_path, "state,action,reward,next_state\na,x,0,b\n", "1.csv")
    two = write(tmp_path, "state,action,reward,next_state\nb,x,0,a\n", "2.csv")
    assert read_transitions([one, str(two), one]).count.sum() == 2


def test_an_unused_mark_of_ends_is_mentioned() -> None:
    assert any("terminal='done'" in text for text in read_transitions(TERMINAL).warnings)
    assert read_transitions(TERMINAL, terminal="done").warnings == ()


def test_columns_whose_names_are_numbers_are_left_alone() -> None:
    table = TERMINAL.assign(x=1).rename(columns={"x": 0})
    assert read_transitions(table, terminal="done").count.sum() == 5


def test_a_column_that_looks_like_episodes_is_mentioned_where_it_is_not_used():
    log = {"Episode": [0, 0, 1], "t": [0, 1, 0], "state": [0, 1, 0], "action": [0, 0, 0],
           "reward": [0, 1, 0], "next_state": [1, 0, 1]}  # fmt: skip
    found = read_transitions(log).findings
    assert [one.values for one in found if one.code == "episode_column_unused"] == [
        {"column": "Episode"}
    ]
    used = read_transitions(log, episode="Episode", step="t").findings
    assert "episode_column_unused" not in {one.code for one in used}
    assert not read_transitions(log | {"Episode": [0, 1, 2]}, state="Episode").findings
