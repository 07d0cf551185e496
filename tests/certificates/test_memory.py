"""The check for memory: as quiet as it says in Markov worlds, loud where types are hidden."""

import numpy as np
import pytest
from scipy import stats

from surefoot.certificates.memory import Memory, early_and_late

LOGS, EPISODES, STEPS, BATCH = 150, 200, 12, 20


def walk(seed: int, *, learns: bool = False, hidden: bool = False) -> Memory:
    """Log a walk over four states, two actions; perhaps with a type that the state lacks.

    Behaviour that learns goes after the action that paid best in the batches of episodes so far.
    """
    rng = np.random.default_rng(seed)
    chance = np.random.default_rng(7).dirichlet(np.ones(4), size=(4, 2))
    better = 0.7 * chance + 0.3 * np.array([0.0, 0.0, 1.0, 0.0])  # the hardy do better everywhere
    sure = np.array([chance, better]).cumsum(axis=-1)
    worth = np.array([0.0, 1.0, 3.0, -2.0])
    paid, tried = np.zeros((4, 2)), np.ones((4, 2))
    row, value = np.empty((EPISODES, STEPS), dtype=int), np.empty((EPISODES, STEPS))
    for first in range(0, EPISODES, BATCH):
        here = slice(first, first + BATCH)
        kind = rng.integers(2, size=BATCH) if hidden else np.zeros(BATCH, dtype=int)
        state = np.zeros(BATCH, dtype=int)
        best = np.argmax(paid / tried, axis=1)
        for t in range(STEPS):
            action = rng.integers(2, size=BATCH)
            if learns:
                action = np.where(rng.random(BATCH) < 0.8, best[state], action)
            after = (rng.random((BATCH, 1)) > sure[kind, state, action]).sum(axis=1).clip(max=3)
            row[here, t], value[here, t] = 2 * state + action, worth[after]
            np.add.at(paid, (state, action), worth[after])
            np.add.at(tried, (state, action), 1)
            state = after
    half = rng.permutation(EPISODES) % 2 == 0
    start = np.arange(0, EPISODES * STEPS + 1, STEPS)
    return early_and_late(start, row.ravel(), value.ravel(), half)


@pytest.mark.parametrize("learns", [False, True])
def test_quiet_in_a_markov_world(learns: bool) -> None:
    found = [walk(seed, learns=learns) for seed in range(LOGS)]
    p_values = [memory.p_value for memory in found if memory.p_value is not None]
    assert len(p_values) > 0.9 * LOGS
    alarms = sum(p < 0.05 for p in p_values)
    assert alarms <= stats.binom.isf(0.001, len(p_values), 0.05)
    # Not merely quiet: the statistic has the spread that it is judged by.
    assert 0.7 < np.std([memory.statistic for memory in found]) < 1.2
    assert abs(np.mean([memory.statistic for memory in found])) < 0.3


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
    assert found == Memory(statistic=0.0, p_value=None, informative=0)


def test_rounding_errors_are_no_memory() -> None:
    """Rows that always bring the same leave residuals of rounding only, which have patterns."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(5, 40, size=200)
    start = np.concatenate(([0], np.cumsum(lengths)))
    row = rng.integers(0, 30, size=start[-1])
    value = (-13.7 + rng.normal(size=30) / 3)[row]
    found = early_and_late(start, row, value, rng.random(200) < 0.5)
    assert found.p_value is None
    assert found.informative == 0
