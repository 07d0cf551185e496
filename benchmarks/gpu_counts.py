"""Counts of a large random log without writing the log: ``python -m benchmarks.gpu_counts N FILE``.

For ``python -m surefoot.gpu`` on machines that have NumPy and no more: 5 actions, 8 successors and
20 tries a pair, as in `benchmarks.whole_run`. ``--noisy`` gives every try a reward of its own.
"""

import argparse
from pathlib import Path

import numpy as np

from surefoot.data.counts import Counts

ACTIONS, SUCCESSORS, TRIES = 5, 8, 20


def make_counts(states: int, *, noisy: bool = False, seed: int = 0) -> Counts:
    """Return what a log in which every action of every state was tried 20 times is counted to."""
    rng = np.random.default_rng(seed)
    rows = states * ACTIONS
    places = rng.integers(0, states, (rows, SUCCESSORS))
    chance = rng.dirichlet(np.ones(SUCCESSORS), rows)
    count = rng.multinomial(TRIES, chance)
    key = (np.arange(rows)[:, None] * states + places)[count > 0]
    keys, entry = np.unique(key, return_inverse=True)
    tries = np.bincount(entry, count[count > 0]).astype(np.int64)
    row = keys // states
    mean = rng.random(rows).round(3)[row]
    var = np.zeros(len(keys))
    if noisy:
        mean = mean + rng.standard_normal(len(keys)) / np.sqrt(tries)
        var = np.where(
            tries > 1, rng.chisquare(np.maximum(tries - 1, 1)) / np.maximum(tries - 1, 1), np.nan
        )
    return Counts(
        state_start=ACTIONS * np.arange(states + 1),
        row_action=np.tile(np.arange(ACTIONS), states),
        row_start=np.searchsorted(row, np.arange(rows + 1)),
        successor=(keys % states).astype(np.int32),
        count=tries,
        num_actions=ACTIONS,
        reward_mean=mean,
        reward_var=var,
        reward_low=np.full(ACTIONS, mean.min()),
        reward_high=np.full(ACTIONS, mean.max()),
        reward_model="normal" if noisy else "fixed",
    )


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_counts", description=__doc__)
    parser.add_argument("states", type=int)
    parser.add_argument("file", type=Path)
    parser.add_argument("--noisy", action="store_true")
    given = parser.parse_args()
    make_counts(given.states, noisy=given.noisy).save(given.file)


if __name__ == "__main__":
    main()
