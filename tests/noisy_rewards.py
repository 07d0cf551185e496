"""Two states that lead to each other, with rewards that vary."""

from dataclasses import replace
from typing import Any

import numpy as np

from surefoot.data.counts import Counts


def noisy_log(size: int, rng: np.random.Generator, draw: Any) -> dict[str, Any]:
    """Return a log whose rewards are drawn by ``draw(size, rng)``."""
    state = np.arange(size) % 2
    return {"state": state, "action": np.zeros(size, int), "next_state": 1 - state,
            "reward": draw(size, rng)}  # fmt: skip


def with_seen(counts: Counts, rewards: Any) -> Counts:
    """Return counts of two entries whose rewards are the rows of an array."""
    return replace(
        counts,
        count=np.full(2, rewards.shape[1]),
        reward_mean=rewards.mean(axis=1),
        reward_var=rewards.var(axis=1, ddof=1),
    )
