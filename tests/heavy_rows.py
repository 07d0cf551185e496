"""Logs of heavy-tailed rows: two successors take most tries, and new ones keep turning up."""

import numpy as np

from surefoot import Counts


def heavy_counts(states: int = 60, tail: int = 12) -> Counts:
    """Return counts of one action; the labels have no order."""
    rng = np.random.default_rng(3)
    count = np.zeros((states, 1, states), dtype=np.int64)
    for s in range(states):
        usual = [s] * 10 + [(s + 1) % states] * 6
        np.add.at(count[s, 0], np.concatenate((usual, rng.integers(0, states, tail))), 1)
    words = [f"{chr(97 + i % 26)}{i}x" for i in range(states)]
    rewards = np.arange(states, dtype=np.float64)[None, None].repeat(states, axis=0)
    return Counts.from_arrays(count, rewards=rewards, state_labels=words)
