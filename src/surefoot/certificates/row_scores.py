"""Scores of rows summed over a batch of models, and the best row of each state."""

from collections.abc import Callable

import numpy as np

from surefoot.certificates.models import Floats, Ints, Models
from surefoot.solvers.evaluation.threads import shared

AddScores = Callable[[int, int, Floats], None]
"""Adds the scores of the models ``begin:end`` to an ``(R,)`` array."""


def summed_scores(batch: Models, add: AddScores, *, operations: float) -> Floats:
    """Return ``(R,)``: scores summed over all models, the same bits on any number of threads."""
    parts: dict[int, Floats] = {}

    def work(begin: int, end: int) -> None:
        parts[begin] = np.zeros(batch.mdp.num_rows)
        add(begin, end, parts[begin])

    shared(batch.size, work, operations=operations)
    total: Floats = np.sum([parts[begin] for begin in sorted(parts)], axis=0)
    return total


def best_rows(batch: Models, scores: Floats, now: Ints) -> Ints:
    """Return the row with the largest score in each state; in a tie, the present one."""
    margin = 1e-12 * max(float(np.abs(scores).max()), 1e-300)
    best = np.maximum.reduceat(scores, batch.mdp.state_start[:-1])
    order = np.lexsort((np.arange(len(scores)), -scores, batch.mdp.row_state))
    winner = order[batch.mdp.state_start[:-1]]
    return np.where(best > scores[now] + margin, winner, now)
