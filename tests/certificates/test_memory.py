"""The check for memory: as quiet as it says in Markov worlds, loud where types are hidden."""

import numpy as np
import pytest
from scipy import stats

from surefoot.certificates.memory import Memory, early_and_late

LOGS, EPISODES, STEPS = 200, 100, 12


def walk(seed: int, *, learns: bool = False, hidden: bool = False) -> Memory:
    """Log a walk over four states, two actions; perhaps with a type that the state lacks."""
    rng = np.random.default_rng(seed)
    chance = np.random.default_rng(7).dirichlet(np.ones(4), size=(2, 4, 2))
    worth = np.array([0.0, 1.0, 3.0, -2.0])
    kind = (rng.random(EPISODES) < 0.5).astype(int) if hidden else np.zeros(EPISODES, dtype=int)
    state = np.zeros(EPISODES, dtype=int)
    paid, tried = np.zeros((4, 2)), np.ones((4, 2))
    row, value = np.empty((EPISODES, STEPS), dtype=int), np.empty((EPISODES, STEPS))
    for i in range(EPISODES):
        state = 0
        for t in range(STEPS):
            action = int(rng.integers(2))
            if learns and rng.random() < 0.8:
                action = int(np.argmax(paid[state] / tried[state]))
            after = int(rng.choice(4, p=chance[kind[i], state, action]))
            row[i, t], value[i, t] = 2 * state + action, worth[after]
            paid[state, action] += worth[after]
            tried[state, action] += 1
            state = after
    half = rng.permutation(EPISODES) % 2 == 0
    start = np.arange(0, EPISODES * STEPS + 1, STEPS)
    return early_and_late(start, row.ravel(), value.ravel(), half)


@pytest.mark.parametrize("learns", [False, True])
def test_quiet_in_a_markov_world(learns: bool) -> None:
    found = [walk(seed, learns=learns) for seed in range(LOGS)]
    p_values = [memory.p_value for memory in found if memory.p_value is not None]
    assert len(p_values) > LOGS // 2
    alarms = sum(p < 0.05 for p in p_values)
    assert alarms <= stats.binom.isf(0.001, len(p_values), 0.05)
    # Not merely quiet: the statistic has the spread that it is judged by.
    assert 0.8 < np.std([memory.statistic for memory in found]) < 1.2
    assert abs(np.mean([memory.statistic for memory in found])) < 0.25


def test_hidden_types_are_found() -> None:
    found = [walk(seed, hidden=True).p_value for seed in range(30)]
    assert sum(p is not None and p < 0.01 for p in found) >= 24


def test_by_hand() -> None:
    """Two episodes a half, one row: every mean is the value of the one other step."""
    start, row = np.array([0, 2, 4, 6, 8]), np.zeros(8, dtype=int)
    value = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    half = np.array([True, True, False, False])
    parts = []
    for i in range(4):
        same = [j for j in range(4) if half[j] == half[i] and j != i]
        others = [j for j in range(4) if half[j] != half[i]]
        mean = np.mean([value[2 * j : 2 * j + 2] for j in same])
        past = value[2 * i] - np.mean([value[2 * j : 2 * j + 2] for j in others])
        parts.append((value[2 * i + 1] - mean) * past)
    wanted = np.sum(parts) / np.sqrt(np.sum(np.square(parts)))
    found = early_and_late(start, row, value, half)
    assert found.statistic == pytest.approx(wanted)
    assert found.p_value is None  # four episodes are not enough


def test_rows_played_by_one_episode_say_nothing() -> None:
    start = np.array([0, 3, 6])
    found = early_and_late(start, np.arange(6), np.ones(6), np.array([True, False]))
    assert found == Memory(statistic=0.0, p_value=None, informative=0.0)
