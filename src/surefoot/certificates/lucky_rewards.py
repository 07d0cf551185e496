"""What a policy owes to lucky rewards: how much less it earns when they regress to their action's.

A search prefers rows whose rewards were lucky. Halves of a log show such luck, but not that of rare
losses: a row that met fewer of them than its due has met fewer in both halves. So the mean of each
row's rewards is also pulled towards those of its action, by as much as the scatter of single
rewards says (`surefoot.posterior.pooled_rewards`).
"""

import numpy as np
from numpy.typing import NDArray

from surefoot.data.counts import Counts
from surefoot.data.reward_uncertainty import mean_rewards, uncertain_rewards, uncertain_tries
from surefoot.model.mdp import MDP
from surefoot.posterior.pooled_rewards import pooled_means

Floats = NDArray[np.float64]


def lucky_rewards(mdp: MDP, counts: Counts, plays: Floats) -> float:
    """Return how much of what these plays bring is luck, by regression; at least 0.

    ``plays`` is ``(R,)``: how often each row of the model is played, or how much more often than by
    another policy. ``counts`` are those of the model's entries. Normal means regress in every draw
    of their posterior, and owe nothing here.

    Examples
    --------
    >>> from surefoot import read_transitions
    >>> log = {"state": [0, 0, 1, 1, 2, 2], "action": [0] * 6, "next_state": [1, 1, 2, 2, 0, 0],
    ...        "reward": [0.0, 1.0, 0.0, 1.0, 1.0, 1.0]}
    >>> counts = read_transitions(log).on_support("observed")
    >>> mdp = counts.to_mdp(discount=0.5, prior=1.0)
    >>> round(lucky_rewards(mdp, counts, np.array([0.0, 0.0, 1.0])), 2)  # of two ones, as above
    0.24
    """
    uncertain = uncertain_rewards(counts)
    if counts.reward_model != "bounded" or not uncertain.any():
        return 0.0
    tries, start = uncertain_tries(counts), mdp.row_start[:-1]
    seen = np.add.reduceat(np.where(uncertain, tries * mean_rewards(counts), 0.0), start)
    size = np.add.reduceat(tries, start)
    seen = np.divide(seen, size, out=np.zeros_like(seen), where=size > 0)
    luck = np.where(size > 0, seen - np.nan_to_num(pooled_means(counts)), 0.0)
    chance = np.add.reduceat(np.where(uncertain, mdp.probability, 0.0), start)
    return max(0.0, float(plays @ (chance * luck)))
