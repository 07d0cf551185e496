"""What it would be worth to know the rows that a policy does not use.

Such rows do not change its return, so they contribute nothing to the doubt about it. But a better
policy may use them. To first order, knowing row r of state s, and playing it if it is better,
brings ``d_s max(0, x_r - v_s)``: ``x_r`` is what a play of the row is worth in a drawn model,
``v_s`` the value of the policy from s in the mean model, and ``d_s`` its discounted visits of s.
The mean over draws is the value of perfect information about that row alone.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefoot.model.mdp import MDP
from surefoot.model.policies import check_policy
from surefoot.posterior.protocol import Posterior, at_most
from surefoot.posterior.rows import RowLayout
from surefoot.solvers.evaluation.draws import Draws
from surefoot.solvers.evaluation.rewards import rewards_of
from surefoot.solvers.evaluation.visits import visits_of
from surefoot.solvers.solver import evaluate

DRAWS, VALUES = 500, 2**22
"""The most draws, and the most numbers that they may hold; larger models get fewer draws."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Exploration:
    """Rows that a policy does not use, the most worth knowing first.

    Attributes
    ----------
    rows
        ``(M,)``: the rows.
    chance
        ``(M,)``: the probability that knowing the row would change the policy.
    value
        ``(M,)``: the expected gain in return if the row were known exactly.
    """

    rows: Ints
    chance: Floats
    value: Floats


def exploration(
    posterior: Posterior, mdp: MDP, policy: NDArray[np.int64], rng: np.random.Generator, *,
    rows: Ints | None = None,
) -> Exploration:  # fmt: skip
    """Return what it is worth to know each row that a policy does not play, without a horizon.

    ``rows``: the rows that may be played; None: all.

    Examples
    --------
    >>> from surefoot import DirichletPosterior, riverswim
    >>> counts = riverswim().simulate(10, np.random.default_rng(0))
    >>> mdp, posterior = counts.to_mdp(discount=0.99, prior=1.0), DirichletPosterior(counts)
    >>> found = exploration(posterior, mdp, np.ones(6, dtype=int), np.random.default_rng(1))
    >>> len(found.rows), bool(np.all(np.diff(found.value) <= 0))
    (6, True)
    """
    if mdp.horizon is not None:
        raise ValueError("the value of exploration is not computed for models with a horizon.")
    played = check_policy(mdp, policy)
    offered = np.arange(mdp.num_rows) if rows is None else rows
    other = np.setdiff1d(offered, played.rows.astype(np.int64))
    if len(other) == 0:
        return Exploration(rows=other, chance=np.zeros(0), value=np.zeros(0))
    layout = RowLayout.of(mdp)
    entries, sizes = layout.entries_of(other), np.diff(mdp.row_start)[other]
    start = np.cumsum(sizes) - sizes
    value = evaluate(mdp, policy).value
    ahead = mdp.discount * value[mdp.successor[entries]]
    n = at_most(posterior, int(max(50, min(DRAWS, VALUES // max(len(entries), 1)))))
    draws = Draws.take(posterior, mdp, rewards_of(mdp, posterior, objective="max"), n, rng)
    worth = np.concatenate(
        [
            np.add.reduceat(block * (reward + ahead), start, axis=1)
            for block, reward in draws.blocks(other, entries)
        ]
    )
    state = mdp.row_state[other]
    visits = visits_of(mdp, played)[state]
    better = np.maximum(worth - value[state], 0.0)
    small = 1e-9 * max(1.0, float(np.abs(value).max()))
    gain = visits * better.mean(axis=0)
    chance = np.mean(better > small, axis=0)
    order = np.argsort(-gain, kind="stable")
    return Exploration(rows=other[order], chance=chance[order], value=gain[order])
