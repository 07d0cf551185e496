"""Gymnasium rollouts, Minari datasets, and states for continuous observations."""

import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import random_logs as lg

from surefoot.data.discretization import Discretization, discretize
from surefoot.data.rollouts import collect, minari_log, read_minari
from surefoot.data.transitions import read_transitions

ORDER = {"episode": "episode", "step": "step", "terminal": "terminal"}


def test_a_rollout_matches_the_table_of_the_environment() -> None:
    env = gymnasium.make("FrozenLake-v1", is_slippery=True)
    log = collect(env, None, 300, np.random.default_rng(0))
    counts = read_transitions(log, **ORDER)
    table = env.unwrapped.P
    for (s, a, t), n in lg.counted(counts).items():
        assert n > 0
        assert t in {line[1] for line in table[s][a] if line[0] > 0}
    # Holes and the goal end episodes and keep their names.
    ends = {t for row in table.values() for acts in row.values() for _, t, _, end in acts if end}
    found = {label for label, end in zip(counts.state_labels or (), counts.is_terminal, strict=True)
             if end}  # fmt: skip
    assert found <= ends
    assert counts.starts is not None
    assert counts.starts.tolist()[0] == 300


def test_rollouts_repeat_with_the_seed() -> None:
    env = gymnasium.make("FrozenLake-v1")
    first, second = (collect(env, None, 5, np.random.default_rng(3)) for _ in range(2))
    for name, values in first.items():
        np.testing.assert_array_equal(values, second[name])


def test_policies_may_use_the_generator_or_not() -> None:
    env = gymnasium.make("CliffWalking-v1")
    still = collect(env, lambda state: 0, 2, np.random.default_rng(0), max_steps=7)
    assert len(still["step"]) == 14
    assert not still["terminal"].any()  # cut off, not ended
    noisy = collect(env, lambda state, rng: rng.integers(4), 2, np.random.default_rng(0),
                    max_steps=50)  # fmt: skip
    assert len(set(noisy["action"].tolist())) == 4


def test_several_whole_numbers_become_one_label() -> None:
    env = gymnasium.make("Blackjack-v1")
    counts = read_transitions(collect(env, None, 200, np.random.default_rng(0)), **ORDER)
    assert all(label.count(",") == 2 for label in counts.state_labels or () if label != "terminal")


def test_what_cannot_be_collected() -> None:
    with pytest.raises(ValueError, match="must be Discrete"):
        collect(gymnasium.make("Pendulum-v1"), None, 1, np.random.default_rng(0))
    with pytest.raises(ValueError, match="episodes=0"):
        collect(gymnasium.make("FrozenLake-v1"), None, 0, np.random.default_rng(0))


@pytest.mark.parametrize("method", ["quantile", "kmeans"])
def test_continuous_observations_become_states(method: Any, tmp_path: Path) -> None:
    env = gymnasium.make("CartPole-v1")
    log = collect(env, None, 30, np.random.default_rng(0))
    assert log["state"].shape == (len(log["step"]), 4)
    with pytest.raises(ValueError, match="discretize"):
        read_transitions(log, **ORDER)
    both = np.concatenate((log["state"], log["next_state"]))
    bins = 3 if method == "quantile" else 20
    cells = discretize(both, method=method, bins=bins, rng=np.random.default_rng(0))
    log |= {name: cells.states_of(log[name]) for name in ("state", "next_state")}
    counts = read_transitions(log, **ORDER)
    cells.save(tmp_path / "cells.npz")
    back = Discretization.load(tmp_path / "cells.npz")
    np.testing.assert_array_equal(back.states_of(both), cells.states_of(both))
    assert set(np.unique(cells.states_of(both))) == set(range(cells.num_states))
    # A new observation, however odd, has a state, and through it an action of a policy.
    state = back.state_of([100.0, -100.0, 0.0, 3.0])
    assert 0 <= state < cells.num_states
    assert counts.num_states >= 2


def test_quantile_cells_are_even() -> None:
    points = np.random.default_rng(0).exponential(size=(4000, 1))
    cells = discretize(points, bins=4)
    assert np.bincount(cells.states_of(points)).tolist() == [1000] * 4
    uneven = discretize(np.repeat([0.0, 1.0], [90, 10]), bins=4)
    assert uneven.num_states == 2
    assert discretize(np.random.default_rng(0).normal(size=(100, 2)), bins=[1, 3]).num_states == 3


def test_a_cell_without_data_goes_to_its_nearest_neighbour() -> None:
    diagonal = np.stack([np.arange(9.0)] * 2, axis=1)
    cells = discretize(diagonal, bins=3)
    assert cells.num_states == 3
    assert cells.state_of([8.0, 3.5]) in (1, 2)
    np.testing.assert_array_equal(cells.states_of(diagonal), np.repeat([0, 1, 2], 3))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"observations": [[np.nan]]}, "observation 0, feature 0 is nan"),
        ({"observations": np.zeros((0, 2))}, "must be"),
        ({"observations": np.zeros((3, 2)), "bins": [2]}, "one for each of the 2 features"),
        ({"observations": np.zeros((3, 2)), "bins": 0}, "bins=0"),
        ({"observations": np.zeros((3, 2)), "method": "grid"}, "method='grid'"),
        ({"observations": np.eye(3), "method": "kmeans", "bins": 9}, r"\(3\)"),
        ({"observations": np.eye(3), "method": "kmeans", "bins": 2}, "pass rng="),
    ],
)
def test_bad_discretizations(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        discretize(**arguments)


def test_bad_files_and_shapes_of_observations(tmp_path: Path) -> None:
    cells = discretize(np.random.default_rng(0).normal(size=(10, 2)), bins=2)
    with pytest.raises(ValueError, match="made for 2"):
        cells.states_of(np.zeros((3, 5)))
    with pytest.raises(FileNotFoundError, match="no such file"):
        Discretization.load(tmp_path / "none.npz")
    np.savez(tmp_path / "x.npz", a=np.zeros(2))
    with pytest.raises(ValueError, match="not a saved discretization"):
        Discretization.load(tmp_path / "x.npz")


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write a small local Minari dataset: three walks on a ring of four states."""
    import minari
    from minari.data_collector.episode_buffer import EpisodeBuffer

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    rng = np.random.default_rng(0)
    buffers = []
    for episode in range(3):
        actions = rng.integers(0, 2, 6)
        states = np.concatenate(([episode], episode + np.cumsum(2 * actions - 1))) % 4
        buffers.append(
            EpisodeBuffer(
                id=episode, observations=states, actions=actions, rewards=list(actions * 1.0),
                terminations=[False] * 5 + [episode == 0],
                truncations=[False] * 5 + [episode != 0],
            )
        )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the environment, which this dataset has none of
        return minari.create_dataset_from_buffers(
            "ring/walk-v0", buffers, observation_space=gymnasium.spaces.Discrete(4),
            action_space=gymnasium.spaces.Discrete(2), description="A ring.", author="test",
            author_email="test@example.com", code_permalink="https://example.com",
            algorithm_name="random", data_format="hdf5",
        )  # fmt: skip


def test_minari_datasets_are_counted(dataset: Any) -> None:
    counts = read_minari(dataset)
    assert counts.count.sum() == 18
    assert counts.starts is not None
    assert counts.log is not None
    assert counts.log.episodes == 3
    assert counts.is_terminal.sum() == 1
    columns = minari_log("ring/walk-v0")
    assert lg.counted(read_minari("ring/walk-v0")) == lg.counted(counts)
    moves = set(zip(columns["state"].tolist(), columns["action"].tolist(),
                    columns["next_state"].tolist(), strict=True))  # fmt: skip
    assert all((s + 2 * a - 1) % 4 == t for s, a, t in moves)
    with pytest.raises(ValueError, match="read_minari"):
        read_transitions(dataset)


def test_ends_of_rollouts_are_used_without_being_named() -> None:
    """With a reward of 1 per step, an end taken for a stuck state would be the best state."""
    log = collect(gymnasium.make("CartPole-v1"), None, 20, np.random.default_rng(0))
    cells = discretize(np.concatenate((log["state"], log["next_state"])), bins=3)
    log |= {name: cells.states_of(log[name]) for name in ("state", "next_state")}
    counts = read_transitions(log)
    assert counts.lowest_reward == 0.0
    assert counts.is_terminal.any()
    plain = read_transitions(dict(log))
    assert plain.lowest_reward == 1.0
    assert any("terminal='terminal'" in text for text in plain.warnings)
