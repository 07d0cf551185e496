"""Supports, dropped rows, stuck states: the skeleton of a model from a log."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import random_logs as lg
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.data import support
from surefoot.data.counts import Counts
from surefoot.data.transitions import read_transitions
from surefoot.domains import machine_replacement

LOG = pd.DataFrame(
    [
        ("a", "x", 1.0, "b"), ("a", "x", 2.0, "c"), ("b", "x", 4.0, "b"), ("b", "y", -3.0, "a"),
        ("b", "y", -3.0, "a"), ("a", "x", 1.0, "b"),
    ],
    columns=["state", "action", "reward", "next_state"],
)  # fmt: skip


def rows_of(counts: Counts) -> dict[tuple[Any, Any], list[Any]]:
    """Return the successors of each row, by label."""
    assert counts.state_labels is not None
    found: dict[tuple[Any, Any], list[Any]] = {}
    for s, a, t in lg.counted(counts):
        found.setdefault((s, a), []).append(t)
    return found


def test_observed_lists_what_each_row_showed() -> None:
    counts = read_transitions(LOG).on_support("observed")
    assert rows_of(counts) == {
        ("a", "x"): ["b", "c"], ("b", "x"): ["b"], ("b", "y"): ["a"], ("c", "x"): ["c"],
    }  # fmt: skip
    assert any("assuming no transition outside those observed" in w for w in counts.warnings)


def test_action_lists_what_the_action_showed_anywhere() -> None:
    counts = read_transitions(LOG).on_support("action")
    assert rows_of(counts) == {
        ("a", "x"): ["b", "c"], ("b", "x"): ["b", "c"],
        ("b", "y"): ["a", "unseen"],  # one successor is no proof of determinism
        ("c", "x"): ["c"], ("unseen", "x"): ["unseen"],
    }  # fmt: skip


def test_all_lists_every_state() -> None:
    counts = read_transitions(LOG).on_support("all")
    assert rows_of(counts)["b", "y"] == ["a", "b", "c"]
    assert counts.unseen is None


def test_unseen_adds_one_pessimistic_state() -> None:
    counts = read_transitions(LOG).on_support("unseen")
    assert counts.state_labels == ("a", "b", "c", "unseen")
    assert counts.unseen == 3
    assert rows_of(counts)["b", "x"] == ["b", "unseen"]
    rewards = {key: mean for key, (mean, _) in lg.rewarded(counts).items()}
    assert rewards["b", "x", "unseen"] == rewards["unseen", "x", "unseen"] == -3.0


def test_the_default_is_the_studied_one_and_posterior_entries_match() -> None:
    counts = read_transitions(LOG)
    assert rows_of(counts.on_support()) == rows_of(counts.on_support(support.DEFAULT_SUPPORT))
    for choice in support.SUPPORTS:
        declared, mdp = counts.on_support(choice), counts.to_mdp(discount=0.9, support=choice)
        for name in ("state_start", "row_action", "row_start", "successor"):
            np.testing.assert_array_equal(getattr(declared, name), getattr(mdp, name))
        assert mdp.state_labels == declared.state_labels
        assert declared.on_support() is declared


def test_a_listed_support(tmp_path: Path) -> None:
    path = tmp_path / "support.csv"
    path.write_text(
        "state,action,next_state\na,x,b\na,x,c\nb,x,b\nb,x,d\nb,y,a\na,y,d\nd,x,a\nd,z,a\nc,x,c\n"
    )
    counts = read_transitions(LOG)
    dropped = counts.on_support(path)
    assert rows_of(dropped) == {
        ("a", "x"): ["b", "c"], ("b", "x"): ["b", "d"], ("b", "y"): ["a"],
        ("c", "x"): ["c"], ("d", "x"): ["d"],
    }  # fmt: skip
    assert dropped.report is not None
    assert (dropped.report.unvisited_rows, dropped.report.stuck_states) == (4, 2)
    kept = counts.on_support(str(path), unvisited="prior")
    assert rows_of(kept)["d", "z"] == ["a"]
    assert kept.action_labels == ("x", "y", "z")
    np.testing.assert_allclose(
        counts.to_mdp(discount=0.9, support=path, prior=1.0).probability[:2], [3 / 5, 2 / 5]
    )


def test_a_listed_support_must_hold_what_happened(tmp_path: Path) -> None:
    path = tmp_path / "support.csv"
    path.write_text("state,action,next_state\na,x,b\nb,x,b\nb,y,a\n")
    with pytest.raises(ValueError, match=r"does not list state 'a', action 'x', next state 'c'"):
        read_transitions(LOG).on_support(path)


def test_a_listed_support_spells_numbers_as_the_log_does(tmp_path: Path) -> None:
    path = tmp_path / "support.csv"
    path.write_text("state,action,next_state\n1,0,2\n2,0,1\n2,0,terminal\n")
    log = {"state": [1, 2], "action": [0, 0], "reward": [0.0, 1.0], "next_state": [2, 1],
           "done": [False, True]}  # fmt: skip
    counts = read_transitions(log, terminal="done").on_support(path)
    assert counts.state_labels == (1, 2, "terminal")
    texts = read_transitions({k: np.array(v).astype(str) if k != "reward" else v
                              for k, v in log.items() if k != "done"})  # fmt: skip
    path.write_text("state,action,next_state\n1,0,2\n2,0,1\n")
    assert texts.on_support(path).state_labels == ("1", "2")


def test_unvisited_rows_are_dropped_and_counted_or_left_to_the_prior() -> None:
    counts = read_transitions(LOG)
    dropped = counts.on_support("all")
    assert dropped.report is not None
    assert dropped.report.unvisited_rows == 3  # (a,y), (c,x), (c,y)
    assert dropped.report.stuck_states == 1
    assert "3 pairs never tried: not offered" in dropped.summary()
    kept = counts.on_support("all", unvisited="prior")
    assert kept.num_rows == 6
    assert kept.report is not None
    assert kept.report.stuck_states == 0
    mdp = counts.to_mdp(discount=0.9, support="all", unvisited="prior")
    row = mdp.row_of(2, 1)
    np.testing.assert_allclose(mdp.probability[mdp.row_start[row] : mdp.row_start[row + 1]], 1 / 3)
    only_unseen = counts.on_support("unseen", unvisited="prior")
    assert rows_of(only_unseen)["c", "y"] == ["unseen"]
    assert "left to the prior" in only_unseen.summary()


def test_thin_rows_are_dropped_the_same_way() -> None:
    counts = read_transitions(LOG).on_support("all", min_visits=2)
    assert rows_of(counts).keys() == {("a", "x"), ("b", "y"), ("c", "x")}
    assert counts.report is not None
    assert counts.report.thin_rows == 1
    assert "1 pair tried fewer than 2 times: not offered" in counts.summary()
    # A declared support can still be thinned, and says so.
    thinned = read_transitions(LOG).on_support("unseen").on_support(min_visits=2)
    assert rows_of(thinned) == {
        ("a", "x"): ["b", "c", "unseen"], ("b", "y"): ["a", "unseen"],
        ("c", "x"): ["c"], ("unseen", "x"): ["unseen"],
    }  # fmt: skip
    assert thinned.unseen == 3


def test_dropping_from_a_declared_simulation() -> None:
    mdp = machine_replacement().mdp
    count = np.zeros(mdp.num_entries, dtype=int)
    count[mdp.row_start[0] : mdp.row_start[5]] = 1
    counts = Counts.on_rows_of(mdp, count)
    assert counts.on_support() is counts
    dropped = counts.on_support(unvisited="drop")
    assert dropped.report is not None
    assert dropped.report.unvisited_rows == mdp.num_rows - 5
    assert (np.diff(dropped.state_start) >= 1).all()
    assert dropped.count.sum() == count.sum()


def test_stuck_states_get_the_worst_there_is() -> None:
    """With positive rewards, ending is worse than the lowest reward seen."""
    log = pd.DataFrame({"state": [0, 0, 1], "action": 0, "reward": [1.0, 1.0, 1.0],
                        "next_state": [1, 2, 3], "done": [False, False, True]})  # fmt: skip
    counts = read_transitions(log, terminal="done")
    assert counts.lowest_reward == 0.0
    mdp = counts.to_mdp(discount=0.9, support="observed")
    stuck = mdp.row_of(2, 0)
    assert mdp.reward[stuck] == 0.0  # not 1.0, which would be the best state of all
    assert read_transitions(log.drop(columns="done")).lowest_reward == 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"support": "some"}, "support='some'; it must be 'observed', 'action', 'all', 'unseen'"),
        ({"unvisited": "keep"}, "unvisited='keep'"),
        ({"min_visits": -1}, "min_visits=-1"),
        ({"min_visits": 1000}, "leaves no state-action pair: the most tried one was tried"),
        ({"min_visits": 2, "unvisited": "prior"}, "Choose one of them"),
        ({"support": "observed", "unvisited": "prior"}, "where an untried action may lead"),
    ],
)
def test_bad_choices(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_transitions(LOG).on_support(**options)
    with pytest.raises(ValueError, match="declared already"):
        read_transitions(LOG).on_support().on_support("all")


def test_large_state_spaces_are_refused_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support, "MOST_ENTRIES", 5)
    with pytest.raises(ValueError, match=r"would list 9 successors.*support='unseen'"):
        read_transitions(LOG).on_support("all")


@settings(max_examples=60, deadline=None)
@given(
    dense=st.integers(2, 5).flatmap(
        lambda s: st.lists(st.integers(0, 3), min_size=s * s * 2, max_size=s * s * 2).map(
            lambda cells: np.array(cells).reshape(s, 2, s)
        )
    ),
    choice=st.sampled_from(support.SUPPORTS),
    fewest=st.integers(0, 4),
)
def test_every_support_keeps_what_happened(dense: Any, choice: str, fewest: int) -> None:
    if not dense.any():
        return
    counts = Counts.from_arrays(dense, rewards=np.arange(dense.size).reshape(dense.shape))
    if dense.sum(axis=2).max() < fewest:
        with pytest.raises(ValueError, match="leaves no state-action pair"):
            counts.on_support(choice, min_visits=fewest)
        return
    placed = counts.on_support(choice, min_visits=fewest)
    offered = np.repeat(dense.sum(axis=2) >= max(1, fewest), dense.shape[0]).reshape(dense.shape)
    found = np.zeros((placed.num_states, 2, placed.num_states), dtype=int)
    found[placed.entry_state, placed.entry_action, placed.successor] = placed.count
    size = dense.shape[0]
    np.testing.assert_array_equal(found[:size, :, :size], np.where(offered, dense, 0))
    assert (np.diff(placed.state_start) >= 1).all()
    assert (np.diff(placed.row_start) >= 1).all()
    mdp = counts.to_mdp(discount=0.9, support=choice, min_visits=fewest)
    np.testing.assert_allclose(np.add.reduceat(mdp.probability, mdp.row_start[:-1]), 1.0)
    rewards = mdp.reward if mdp.reward_per_entry else mdp.reward[mdp.entry_row]
    assert rewards.min() >= 0
    seen = placed.count > 0
    table = np.arange(dense.size).reshape(dense.shape)
    np.testing.assert_array_equal(
        rewards[seen],
        table[placed.entry_state[seen], placed.entry_action[seen], placed.successor[seen]],
    )


def test_a_listed_support_of_many_states_is_quick() -> None:
    size = 20_000
    ids = np.arange(size)
    log = {"state": ids, "action": np.zeros(size, int), "reward": np.zeros(size),
           "next_state": (ids + 1) % size}  # fmt: skip
    counts = read_transitions(log)
    listed = {"state": np.repeat(ids, 2), "action": np.zeros(2 * size, int),
              "next_state": np.stack((ids, (ids + 1) % size), axis=1).ravel()}  # fmt: skip
    started = time.perf_counter()
    assert counts.on_support(listed).num_entries == 2 * size
    assert time.perf_counter() - started < 5  # a list searched for every label took 13 s
