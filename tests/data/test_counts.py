"""Counts from arrays and models, initial distributions, sums, files."""

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import random_logs as lg
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.data.conversions import initial_distribution
from surefoot.data.counts import Counts
from surefoot.data.reward_sums import RewardSums
from surefoot.data.transitions import read_transitions
from surefoot.domains import machine_replacement

DENSE = np.array([[[3, 1], [0, 0]], [[0, 2], [5, 0]]])


def test_from_arrays() -> None:
    counts = Counts.from_arrays(DENSE, state_labels=("a", "b"), action_labels=("x", "y"))
    assert not counts.declared
    assert lg.counted(counts) == {
        ("a", "x", "a"): 3, ("a", "x", "b"): 1, ("b", "x", "b"): 2, ("b", "y", "a"): 5,
    }  # fmt: skip
    assert counts.visits.tolist() == [4, 2, 5]
    declared = Counts.from_arrays(DENSE, support=np.ones((2, 2, 2)))
    assert declared.declared
    assert declared.count.tolist() == DENSE.ravel().tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"counts": np.zeros((2, 2))}, "must be \\(states, actions, states\\)"),
        ({"counts": DENSE - 1}, "counts\\[0, 0, 1\\]|counts\\[0, 1, 0\\] is -1"),
        ({"counts": DENSE + 0.5}, "whole numbers"),
        ({"counts": [[["a"]]]}, "whole numbers"),
        ({"counts": DENSE, "support": np.zeros((2, 2, 2))}, "support excludes successor 0"),
        ({"counts": DENSE, "support": np.zeros((2, 2))}, "support has shape"),
        ({"counts": DENSE, "rewards": [1.0]}, "rewards has shape"),
        ({"counts": DENSE, "rewards": np.full((2, 2), np.inf)}, "infinite"),
        ({"counts": DENSE, "state_labels": ("a",)}, "1 labels for 2 ids"),
        ({"counts": DENSE, "state_labels": ("a", "a")}, "twice"),
        ({"counts": DENSE, "starts": [1]}, "starts has shape"),
    ],
)
def test_bad_arrays(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Counts.from_arrays(**arguments)


def test_arrays_are_neither_shared_nor_changed() -> None:
    mine = DENSE.copy()
    counts = Counts.from_arrays(mine)
    mine[:] = 0
    assert counts.count.sum() == DENSE.sum()
    with pytest.raises(ValueError, match="read-only"):
        counts.count[0] = 1


def test_on_rows_of_a_model_gives_the_model_back() -> None:
    mdp = machine_replacement().mdp
    counts = Counts.on_rows_of(mdp, np.arange(mdp.num_entries))
    back = counts.to_mdp(discount=0.95)
    for name in ("state_start", "row_action", "row_start", "successor", "reward"):
        np.testing.assert_array_equal(getattr(back, name), getattr(mdp, name))
    assert back.state_labels == mdp.state_labels
    with pytest.raises(ValueError, match="count has shape"):
        Counts.on_rows_of(mdp, [1, 2])


def test_priors_of_every_shape() -> None:
    counts = Counts.from_arrays(DENSE, rewards=np.zeros((2, 2)), support=np.ones((2, 2, 2)))

    def probability(prior: Any) -> Any:
        return counts.to_mdp(discount=0.9, prior=prior).probability

    np.testing.assert_allclose(probability(None)[:4], [0.75, 0.25, 0.5, 0.5])
    np.testing.assert_allclose(probability(1.0)[:4], [4 / 6, 2 / 6, 0.5, 0.5])
    np.testing.assert_allclose(probability(np.full(4, 1.0)), probability(1.0))
    np.testing.assert_allclose(probability(np.full(8, 1.0)), probability(1.0))
    for bad in (np.ones(3), -1.0, np.nan):
        with pytest.raises(ValueError, match="prior"):
            probability(bad)


def test_initial_distributions_and_where_they_come_from() -> None:
    counts = Counts.from_arrays(DENSE, rewards=np.zeros((2, 2)), starts=[1, 3])
    assert initial_distribution(counts).origin == "4 episode starts"
    assert initial_distribution(counts, "uniform").probability.tolist() == [0.5, 0.5]
    assert initial_distribution(counts, [0.0, 1.0]).origin == "given"
    assert "first state: 4 episode starts" in counts.summary()
    assert counts.to_mdp(discount=0.9).initial.tolist() == [0.25, 0.75, 0.0]  # unseen: never
    given = counts.to_mdp(discount=0.9, initial=[0.0, 1.0])
    assert given.initial.tolist() == [0.0, 1.0, 0.0]
    plain = Counts.from_arrays(DENSE, rewards=np.zeros((2, 2)))
    assert plain.to_mdp(discount=0.9).initial.tolist() == [0.5, 0.5, 0.0]
    with pytest.raises(ValueError, match="needs episode starts"):
        plain.to_mdp(discount=0.9, initial="episodes")
    with pytest.raises(ValueError, match="initial='first'"):
        plain.to_mdp(discount=0.9, initial="first")


def test_uniform_starts_leave_out_terminal_states() -> None:
    log = pd.DataFrame({"state": ["a", "b"], "action": 0, "reward": 0.0, "next_state": ["b", "c"],
                        "done": [0, 1]})  # fmt: skip
    counts = read_transitions(log, terminal="done")
    assert counts.to_mdp(discount=0.9, support="observed").initial.tolist() == [0.5, 0.5, 0.0]


OPTIONS = {"episode": "e", "step": "k", "terminal": "done"}


def table(rows: list[Any]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["state", "action", "reward", "next_state", "e", "k", "done"])


steps = st.tuples(
    st.sampled_from("abcd"), st.sampled_from("xy"), st.integers(0, 3).map(float),
    st.sampled_from("abcd"), st.integers(0, 3), st.integers(0, 9), st.booleans(),
)  # fmt: skip


@settings(max_examples=15, deadline=None)
@given(rows=st.lists(steps, min_size=4, max_size=30), cut=st.integers(1, 3))
def test_a_sum_equals_reading_everything_at_once(rows: list[Any], cut: int) -> None:
    # Episodes are kept whole, so that starts add up.
    rows = [("a", "x", 0.0, "b", 0, -1, False), ("a", "x", 0.0, "b", 3, -1, False), *rows]
    rows = [(*row[:5], i, row[6]) for i, row in enumerate(rows)]
    first = [row for row in rows if row[4] < cut]
    second = [row for row in rows if row[4] >= cut]
    whole = read_transitions(table(rows), **OPTIONS)
    both = read_transitions(table(first), **OPTIONS) + read_transitions(table(second), **OPTIONS)
    assert set(both.state_labels or ()) == set(whole.state_labels or ())
    assert lg.counted(both) == lg.counted(whole)
    for entry, (mean, variance) in lg.rewarded(whole).items():
        found = lg.rewarded(both)[entry]
        np.testing.assert_allclose(found, (mean, variance), atol=1e-12)
    for name in ("starts", "is_terminal"):
        own = dict(zip(whole.state_labels or (), getattr(whole, name).tolist(), strict=True))
        summed = dict(zip(both.state_labels or (), getattr(both, name).tolist(), strict=True))
        assert own == summed
    np.testing.assert_array_equal(both.reward_low, whole.reward_low)
    np.testing.assert_array_equal(both.reward_high, whole.reward_high)
    assert both.reward_model == whole.reward_model
    assert both.log is not None
    assert whole.log is not None
    assert both.log.rows == whole.log.rows


def test_sums_that_make_no_sense() -> None:
    plain = Counts.from_arrays(DENSE)
    with pytest.raises(ValueError, match="has no rewards"):
        plain + Counts.from_arrays(DENSE, rewards=np.zeros((2, 2)))
    with pytest.raises(ValueError, match="declared can only be added"):
        plain + Counts.from_arrays(DENSE, support=np.ones((2, 2, 2)))
    with pytest.raises(ValueError, match="state '1' is text in one log and a number"):
        Counts.from_arrays(DENSE, state_labels=(0, 1)) + Counts.from_arrays(
            DENSE, state_labels=("1", "2")
        )
    with pytest.raises(TypeError, match="not to int"):
        plain + 1  # type: ignore[operator]
    first = Counts.from_arrays(DENSE, rewards=np.zeros((2, 2)))
    with pytest.raises(ValueError, match="given rewards differ"):
        first + Counts.from_arrays(DENSE, rewards=np.ones((2, 2)))
    log = read_transitions({"state": [0, 1], "action": [0, 0], "reward": [0.0, 0.0],
                            "next_state": [1, 0]})  # fmt: skip
    with pytest.raises(ValueError, match="one of the two counts has given rewards"):
        first + log


def test_declared_counts_add_on_the_same_support() -> None:
    domain = machine_replacement()
    one, two = (domain.simulate(5, np.random.default_rng(seed)) for seed in (0, 1))
    assert ((one + two).count == one.count + two.count).all()
    assert (one + two).declared


def test_plain_ids_add_by_id() -> None:
    wide = np.zeros((3, 2, 3), dtype=int)
    wide[2, 1, 0] = 4
    both = Counts.from_arrays(DENSE, rewards=np.zeros((2, 2))) + Counts.from_arrays(
        wide, rewards=np.zeros((3, 2))
    )
    assert both.num_states == 3
    assert both.count.sum() == DENSE.sum() + 4
    assert both.given is not None


def test_old_and_new_data_are_compared() -> None:
    old = Counts.from_arrays([[[500, 500]], [[500, 500]]])
    new = Counts.from_arrays([[[900, 100]], [[500, 500]]])
    (check,) = (old + new).checks
    assert check.warns
    assert "Next states differ between the old and the new data" in (old + new).summary()
    (fine,) = (old + old).checks
    assert not fine.warns


def array_rewards(counts: Counts) -> Counts:
    return counts.with_rewards(
        np.arange(counts.num_states * counts.num_actions, dtype=float).reshape(
            counts.num_states, counts.num_actions
        )
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda counts: counts,
        lambda counts: counts.on_support(),
        lambda counts: counts.on_support("action", min_visits=2),
        lambda counts: counts + counts,
        lambda counts: counts.with_rewards({("é,", 1): 2.0, ('q"', 1, "é,"): 3.0}),
        array_rewards,
    ],
)
def test_saved_counts_come_back(change: Callable[[Counts], Counts], tmp_path: Path) -> None:
    log = {"state": ["é,", 'q"', "", "é,"], "action": [1, 1, 2, 1], "reward": [0.1, 1.0, 2.0, 0.3],
           "next_state": ['q"', "é,", "é,", 'q"'], "e": [0, 0, 0, 1], "k": [0, 1, 2, 0],
           "done": [0, 0, 1, 0]}  # fmt: skip
    counts = change(read_transitions(log, **OPTIONS, rewards="normal", reward_range=(0, 5)))
    counts.save(tmp_path / "counts.npz")
    back = Counts.load(tmp_path / "counts.npz")
    for field in fields(Counts):
        mine, theirs = getattr(counts, field.name), getattr(back, field.name)
        if isinstance(mine, np.ndarray):
            np.testing.assert_array_equal(mine, theirs)
            assert mine.dtype == theirs.dtype
        elif isinstance(mine, RewardSums):
            for part in fields(RewardSums):
                np.testing.assert_array_equal(getattr(mine, part.name), getattr(theirs, part.name))
        elif field.name not in ("log", "given"):
            assert mine == theirs
    assert back.summary() == counts.summary()
    assert back.checks == counts.checks
    assert lg.counted(back + back) == {key: 2 * n for key, n in lg.counted(counts).items()}
    with np.load(tmp_path / "counts.npz", allow_pickle=False) as file:
        assert all(file[name].dtype != object for name in file.files)


def test_tuples_and_plain_ids_survive_saving(tmp_path: Path) -> None:
    labelled = Counts.from_arrays(DENSE, state_labels=((0, "a"), (1, "b")))
    labelled.save(tmp_path / "a.npz")
    assert Counts.load(tmp_path / "a.npz").state_labels == ((0, "a"), (1, "b"))
    Counts.from_arrays(DENSE).save(tmp_path / "b.npz")
    assert Counts.load(tmp_path / "b.npz").state_labels is None


def test_a_read_only_view_does_not_change_with_its_base() -> None:
    made = Counts.from_arrays(DENSE)
    base = np.array(made.count)
    counts = replace(made, count=_read_only(base))
    base[0] += 96
    assert counts.count[0] == made.count[0]


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array[:]
    view.setflags(write=False)
    return view


def test_files_that_cannot_be_saved_or_loaded(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a function cannot be saved"):
        Counts.from_arrays(DENSE, rewards=lambda s, a, t: 0.0).save(tmp_path / "x.npz")
    with pytest.raises(ValueError, match=r"state_labels holds b'a'; a file can hold text, numbers"):
        Counts.from_arrays(DENSE, state_labels=(b"a", b"b")).save(tmp_path / "x.npz")
    Counts.from_arrays(DENSE, state_labels=(0.5, 1.5)).save(tmp_path / "x.npz")
    assert Counts.load(tmp_path / "x.npz").state_labels == (0.5, 1.5)
    with pytest.raises(FileNotFoundError, match="no such file"):
        Counts.load(tmp_path / "none.npz")
    for text in ("x", ""):
        (tmp_path / "bad.npz").write_text(text)
        with pytest.raises(ValueError, match=r"bad.npz: not a file of saved counts"):
            Counts.load(tmp_path / "bad.npz")
    np.savez(tmp_path / "other.npz", about=np.array('{"format": "surefoot counts 99"}'))
    with pytest.raises(ValueError, match=r"the format is 'surefoot counts 99'"):
        Counts.load(tmp_path / "other.npz")
