"""The same model from dense arrays, sparse matrices, entries and Gymnasium tables."""

from itertools import pairwise

import gymnasium
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from surefoot.model.mdp import MDP


def random_dense(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Dense transitions with zeros, some absent actions, and rewards per successor."""
    rng = np.random.default_rng(seed)
    shape = (4, 3, 4)
    p = rng.random(shape) * (rng.random(shape) < 0.6)
    p[..., 0] += 1e-3
    p /= p.sum(axis=2, keepdims=True)
    absent = rng.random((4, 3)) < 0.3
    absent[:, 0] = False
    p[absent] = 0
    return p, rng.normal(size=shape)


@given(st.integers(0, 10_000))
def test_dense_arrays_come_back(seed):
    p, r = random_dense(seed)
    mdp = MDP.from_arrays(p, r, discount=0.9)
    back = mdp.to_arrays()
    assert np.array_equal(back.transitions, p)
    assert np.array_equal(back.rewards, np.where(p > 0, r, 0))
    assert np.array_equal(mdp.available, p.any(axis=2))
    assert np.array_equal(mdp.support, p > 0)


@given(st.integers(0, 10_000))
def test_rewards_per_row_come_back(seed):
    p, r = random_dense(seed)
    mdp = MDP.from_arrays(p, r[:, :, 0], discount=0.9)
    assert not mdp.reward_per_entry
    assert mdp.reward.shape == (mdp.num_rows,)
    assert np.array_equal(mdp.to_arrays().rewards, np.where(p.any(axis=2), r[:, :, 0], 0))


@given(st.integers(0, 10_000))
def test_sparse_matrices_give_the_dense_model(same_model, seed):
    p, r = random_dense(seed)
    dense = MDP.from_arrays(p, r, discount=0.9)
    for make in (sp.csr_array, sp.csc_matrix, sp.coo_array, sp.lil_array):
        matrices = [make(p[:, a]) for a in range(p.shape[1])]
        assert same_model(MDP.from_arrays(matrices, r, discount=0.9), dense)


@given(st.integers(0, 10_000))
def test_entries_in_any_order_give_the_dense_model(seed):
    p, r = random_dense(seed)
    s, a, t = np.nonzero(p)
    order = np.random.default_rng(seed).permutation(len(s))
    s, a, t = s[order], a[order], t[order]
    mdp = MDP.from_rows(
        state=s, action=a, successor=t, probability=p[s, a, t], reward=r[s, a, t], discount=0.9,
        num_states=4, num_actions=3,
    )  # fmt: skip
    dense = MDP.from_arrays(p, r, discount=0.9)
    assert np.array_equal(mdp.probability, dense.probability)
    assert np.array_equal(mdp.to_arrays().transitions, p)
    assert np.array_equal(mdp.available, dense.available)


def test_explicit_zeros_of_sparse_matrices_are_reachable():
    matrix = sp.csr_array(([1.0, 0.0, 1.0], ([0, 0, 1], [0, 1, 1])), shape=(2, 2))
    mdp = MDP.from_arrays([matrix], np.zeros((2, 1)), discount=0.5)
    assert mdp.successor.tolist() == [0, 1, 1]
    assert mdp.probability.tolist() == [1.0, 0.0, 1.0]


def test_entries_stored_twice_in_a_sparse_matrix_are_summed_and_the_matrix_is_left_alone():
    matrix = sp.coo_array(([0.5, 0.5, 1.0], ([0, 0, 1], [1, 1, 1])), shape=(2, 2))
    mdp = MDP.from_arrays([matrix], np.zeros((2, 1)), discount=0.5)
    assert mdp.probability.tolist() == [1.0, 1.0]
    assert matrix.nnz == 3


def test_support_keeps_successors_of_probability_zero():
    p = np.array([[[1.0, 0.0]], [[0.5, 0.5]]])
    support = np.ones((2, 1, 2), dtype=bool)
    mdp = MDP.from_arrays(p, np.zeros((2, 1)), discount=0.5, support=support)
    assert mdp.probability.tolist() == [1.0, 0.0, 0.5, 0.5]
    assert np.array_equal(mdp.support, support)


def test_initial_distribution_is_uniform_unless_given():
    p = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
    assert MDP.from_arrays(p, np.zeros((2, 1)), discount=0.5).initial.tolist() == [0.5, 0.5]
    given_one = MDP.from_arrays(p, np.zeros((2, 1)), discount=0.5, initial=[1, 0])
    assert given_one.initial.tolist() == [1.0, 0.0]


def test_arrays_are_our_own_and_read_only():
    p, r = random_dense(0)
    initial = np.full(4, 0.25)
    looked_at = initial.view()
    looked_at.setflags(write=False)
    before = p.copy(), r.copy()
    mdp = MDP.from_arrays(p, r, discount=0.9, initial=looked_at)
    assert np.array_equal(p, before[0])
    assert np.array_equal(r, before[1])
    initial[0] = 9.0  # the caller's array stays writeable and is not ours
    assert mdp.initial[0] == 0.25
    with pytest.raises(ValueError, match="read-only"):
        mdp.probability[0] = 1.0


def test_rows_are_found_by_state_and_action():
    p, r = random_dense(3)
    mdp = MDP.from_arrays(p, r, discount=0.9)
    for row in range(mdp.num_rows):
        assert mdp.row_of(int(mdp.row_state[row]), int(mdp.row_action[row])) == row


def test_a_gymnasium_table_sums_successors_and_averages_their_rewards():
    table = {
        0: {
            0: [
                (0.25, 0, 4.0, False),
                (0.25, 0, 0.0, False),
                (0.5, 1, 1.0, True),
                (0, 0, 9.0, True),
            ]
        },
        1: {0: [(1.0, 0, 7.0, False)]},
    }
    mdp = MDP.from_gymnasium(table, discount=0.9)
    assert mdp.probability.tolist() == [0.5, 0.5, 1.0]
    assert mdp.reward.tolist() == [2.0, 1.0, 0.0]
    assert mdp.successor.tolist() == [0, 1, 1]  # state 1 is terminal: absorbing


@pytest.mark.parametrize(
    ("name", "states", "actions"),
    [("FrozenLake-v1", 16, 4), ("CliffWalking-v1", 48, 4), ("Taxi-v4", 500, 6)],
)
def test_gymnasium_environments(name, states, actions):
    table = gymnasium.make(name).unwrapped.P
    mdp = MDP.from_gymnasium(table, discount=0.95)
    assert (mdp.num_states, mdp.num_actions) == (states, actions)
    ends = {t for acts in table.values() for row in acts.values() for _, t, _, end in row if end}
    for state in range(states):
        for action in range(actions):
            row = mdp.row_of(state, action)
            entries = slice(mdp.row_start[row], mdp.row_start[row + 1])
            if state in ends:
                assert mdp.successor[entries].tolist() == [state]
                assert reward_of(mdp, row) == 0
                continue
            # Recount from the table: mass per successor, expected reward of the row.
            mass: dict[int, float] = {}
            for probability, successor, _, _ in table[state][action]:
                mass[int(successor)] = mass.get(int(successor), 0.0) + probability
            assert mdp.successor[entries].tolist() == sorted(mass)
            assert mdp.probability[entries] == pytest.approx([mass[t] for t in sorted(mass)])
            expected = sum(p * r for p, _, r, _ in table[state][action])
            assert reward_of(mdp, row) == pytest.approx(expected)


def reward_of(mdp: MDP, row: int) -> float:
    """Expected reward of a row."""
    if not mdp.reward_per_entry:
        return float(mdp.reward[row])
    entries = slice(mdp.row_start[row], mdp.row_start[row + 1])
    return float(mdp.probability[entries] @ mdp.reward[entries])


def test_the_layout_keeps_rows_of_a_state_together():
    p, r = random_dense(5)
    mdp = MDP.from_arrays(p, r, discount=0.9)
    for first, last in pairwise(mdp.state_start):
        assert np.all(np.diff(mdp.row_action[first:last]) > 0)
    for first, last in pairwise(mdp.row_start):
        assert np.all(np.diff(mdp.successor[first:last]) > 0)


def test_a_model_prints_its_size():
    p, r = random_dense(5)
    assert repr(MDP.from_arrays(p, r, discount=0.9)).startswith("MDP(4 states, 3 actions, ")


def test_a_gymnasium_environment_brings_its_table_and_its_start():
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("FrozenLake-v1", is_slippery=True)  # wrapped
    mdp = MDP.from_gymnasium(env, discount=0.95)
    assert mdp.num_states == 16
    assert mdp.initial.tolist() == [1.0] + [0.0] * 15
    table = MDP.from_gymnasium(env.unwrapped.P, discount=0.95)
    np.testing.assert_array_equal(mdp.probability, table.probability)
    given = MDP.from_gymnasium(env, discount=0.95, initial=np.full(16, 1 / 16))
    assert given.initial[3] == 1 / 16


def test_an_environment_without_a_table_is_refused():
    gymnasium = pytest.importorskip("gymnasium")
    with pytest.raises(ValueError, match=r"CartPoleEnv, which keeps no table P\[state\]\[action\]"):
        MDP.from_gymnasium(gymnasium.make("CartPole-v1"), discount=0.95)
