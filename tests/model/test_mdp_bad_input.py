"""Every bad input gets one error that names the place and says what to do."""

import numpy as np
import pytest
import scipy.sparse as sp

from surefoot.model.mdp import MDP

P = np.array([[[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [0.25, 0.75]]])
R = np.zeros((2, 2))
LABELS = {"state_labels": ("good", "bad"), "action_labels": ("run", "repair")}


def changed(place: tuple[int, ...], value: float, array: np.ndarray = P) -> np.ndarray:
    copy = array.copy()
    copy[place] = value
    return copy


@pytest.mark.parametrize(
    ("transitions", "message"),
    [
        (changed((1, 1, 0), 0.18), r"state 'bad', action 'repair' sum to 0\.93; .*1 of 4 rows"),
        (changed((0, 0, 1), np.nan), r"state 'good', action 'run', successor 'bad' is nan"),
        (changed((0, 0, 1), np.inf), r"successor 'bad' is inf; probabilities lie in \[0, 1\]"),
        (changed((0, 0, 1), -0.5), r"successor 'bad' is -0\.5; probabilities lie in \[0, 1\]"),
        (changed((0, 0, 1), 1.5), r"successor 'bad' is 1\.5; probabilities lie in \[0, 1\]"),
        (P[0], r"shape \(2, 2\); it must be \(states, actions, states\)"),
        (P[:, :, :1], r"shape \(2, 2, 1\)"),
        (np.zeros((0, 2, 0)), r"there must be states"),
        (np.zeros((2, 2, 2)), r"all zero"),
        (np.array([P[0], np.zeros((2, 2))]), r"state 'bad' has no actions .*terminal state"),
        ([["a"]], r"transitions must be an array of numbers"),
    ],
)
def test_transitions(transitions, message):
    with pytest.raises(ValueError, match=message):
        MDP.from_arrays(transitions, R, discount=0.9, **LABELS)


@pytest.mark.parametrize("discount", [1 + 1e-15, -0.1, 1.5, np.nan, np.inf, "0.9", None])
def test_discount(discount):
    with pytest.raises(ValueError, match=r"discount=.*in \[0, 1\].*horizon"):
        MDP.from_arrays(P, R, discount=discount)


@pytest.mark.parametrize(
    ("rewards", "message"),
    [
        (np.zeros(2), r"rewards has shape \(2,\).*\(2, 2\) or .*\(2, 2, 2\)"),
        (np.zeros((2, 2, 1)), r"rewards has shape \(2, 2, 1\)"),
        (changed((1, 0), np.nan, R), r"reward of state 'bad', action 'run' is nan"),
        (changed((0, 0, 1), np.inf, np.zeros((2, 2, 2))), r"successor 'bad' is inf"),
        ("free", r"rewards must be an array of numbers"),
    ],
)
def test_rewards(rewards, message):
    with pytest.raises(ValueError, match=message):
        MDP.from_arrays(P, rewards, discount=0.9, **LABELS)


@pytest.mark.parametrize(
    ("initial", "message"),
    [
        ([1.0], r"initial has shape \(1,\); it must be \(2,\)"),
        ([0.5, 0.4], r"initial sums to 0\.9; it must sum to 1"),
        ([1.5, -0.5], r"initial\[0\] is 1\.5"),
        ([np.nan, 1.0], r"initial\[0\] is nan"),
    ],
)
def test_initial(initial, message):
    with pytest.raises(ValueError, match=message):
        MDP.from_arrays(P, R, discount=0.9, initial=initial)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"state_labels": ("a",)}, r"state_labels has 1 labels for 2 ids"),
        ({"state_labels": ("a", "a")}, r"state_labels holds 'a' twice"),
        ({"action_labels": (["x"], "y")}, r"action_labels holds \['x'\]"),
    ],
)
def test_labels(labels, message):
    with pytest.raises(ValueError, match=message):
        MDP.from_arrays(P, R, discount=0.9, **labels)


def test_support_of_another_shape():
    with pytest.raises(ValueError, match=r"support has shape \(2, 2\)"):
        MDP.from_arrays(P, R, discount=0.9, support=np.ones((2, 2)))


def test_support_that_excludes_a_possible_successor():
    with pytest.raises(ValueError, match=r"successor 1 of state 0, action 0, .* 0\.5 \(1 such"):
        MDP.from_arrays(P, R, discount=0.9, support=changed((0, 0, 1), 0, np.ones((2, 2, 2))))


def test_support_with_sparse_matrices():
    matrices = [sp.csr_array(P[:, a]) for a in range(2)]
    with pytest.raises(ValueError, match="store the reachable entries explicitly"):
        MDP.from_arrays(matrices, R, discount=0.9, support=np.ones((2, 2, 2)))


def test_sparse_matrices_of_different_shapes():
    with pytest.raises(ValueError, match=r"action 1 have shape \(3, 3\); they must be \(2, 2\)"):
        MDP.from_arrays([sp.eye_array(2), sp.eye_array(3)], R, discount=0.9)


ENTRIES = {
    "state": [0, 1],
    "action": [0, 0],
    "successor": [1, 1],
    "probability": [1, 1],
    "reward": [0, 0],
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"successor": [1, 2], "num_states": 2}, r"unknown successor 2 \(entry 1\)"),
        ({"state": [0, -1]}, r"unknown state -1 \(entry 1\)"),
        ({"state": [0, 0.5]}, r"state ids must be whole numbers, got .*0\.5"),
        ({"state": ["a", "b"]}, r"state ids must be whole numbers"),
        ({"state": [0, np.nan]}, r"state ids must be whole numbers, got .*nan"),
        ({"state": [0, 1e300]}, r"state id 1e\+300 is too large"),
        ({"action": [0]}, r"five lists of equal length"),
        ({"state": [0, 0], "successor": [0, 0]}, r"state 0, action 0, successor 0 is listed more"),
        ({"successor": [1, 5]}, r"state 2 has no actions"),
        ({"probability": [1, 0.5]}, r"sum to 0\.5"),
        ({name: [] for name in ENTRIES}, r"no entries"),
    ],
)
def test_entries(changes, message):
    with pytest.raises(ValueError, match=message):
        MDP.from_rows(**(ENTRIES | changes), discount=0.9)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "no states"),
        ({1: {0: [(1.0, 1, 0.0, False)]}}, r"must have states 0\.\.0"),
        ({0: {0: [(1.0, 3, 0.0, False)]}}, "unknown successor 3"),
        ({0: {0: [(1.0, 0, 0.0)]}}, r"state 0, action 0; it must be \(probability"),
        ({0: {0: [(-1.0, 0, 0.0, False)]}}, r"state 0, action 0; it must be \(probability"),
        ({0: {0: [(np.nan, 0, 0.0, False)]}}, r"state 0, action 0; it must be \(probability"),
        ({0: {}}, "no entries"),
        ({0: {0: [(0.5, 0, 0.0, False)]}}, r"sum to 0\.5"),
    ],
)
def test_gymnasium_tables(table, message):
    with pytest.raises(ValueError, match=message):
        MDP.from_gymnasium(table, discount=0.9)


def test_rows_that_do_not_exist():
    mdp = MDP.from_arrays(changed((1, 1), 0, P), R, discount=0.9, **LABELS)
    with pytest.raises(ValueError, match="action 'repair' is not available in state 'bad'"):
        mdp.row_of(1, 1)
    with pytest.raises(ValueError, match="action 7 is not available in state 'bad'"):
        mdp.row_of(1, 7)
    with pytest.raises(ValueError, match="unknown state 2; ids go from 0 to 1"):
        mdp.row_of(2, 0)


def test_the_allowed_error_of_a_row_sum_grows_with_its_length():
    rng = np.random.default_rng(0)
    weight = rng.random((500, 1, 500)).astype(np.float32)  # sums are off by rounding
    weight /= weight.sum(axis=2, keepdims=True)
    MDP.from_arrays(weight, np.zeros((500, 1)), discount=0.9)
    with pytest.raises(ValueError, match="sum to"):
        MDP.from_arrays([[[1 - 1e-5]]], [[0.0]], discount=0.9)
    with pytest.raises(ValueError, match=r"sum to 0\.9998"):
        MDP.from_arrays(weight * (1 - 1e-4), np.zeros((500, 1)), discount=0.9)
