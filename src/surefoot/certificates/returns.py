"""Returns of a policy, and best returns, over posterior draws: streamed, bracketed, in parallel."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.certificates.return_kernels import (
    direct_optima,
    direct_returns,
    swept_optima,
    swept_returns,
)
from surefoot.data.reward_uncertainty import draw_mean_rewards, uncertain_rewards
from surefoot.model.mdp import MDP
from surefoot.posterior.protocol import Posterior
from surefoot.solvers.policies import RowPolicy
from surefoot.solvers.workspace import available_cores

Floats = NDArray[np.float64]

DIRECT_STATES = 220
"""Up to here a model is solved by elimination, above by sweeps."""
MAX_ROUNDS = 200
MAX_SWEEPS = 20_000
DRAWS_PER_THREAD = 64


@dataclass(frozen=True, kw_only=True, eq=False)
class ReturnDraws:
    """Lower and upper ends of the return in each drawn model, ``(n,)`` each."""

    lower: Floats
    upper: Floats

    @property
    def numerical_error(self) -> float:
        """The widest bracket."""
        return float((self.upper - self.lower).max())


@dataclass(frozen=True, kw_only=True, eq=False)
class Rewards:
    """The rewards of every entry, and which of them are uncertain means (with their counts)."""

    fixed: Floats
    counts: Any
    uncertain: NDArray[np.bool_]

    def draw(self, n: int, entries: NDArray[np.int64], rng: np.random.Generator) -> Floats:
        """Return ``(n, entries)`` rewards, or one line where all are certain."""
        if not self.uncertain[entries].any():
            return self.fixed[entries][None]
        drawn = draw_mean_rewards(self.counts, n, rng)
        return np.where(self.uncertain, drawn, self.fixed)[:, entries]


def rewards_of(mdp: MDP, posterior: Posterior, *, objective: str) -> Rewards:
    """Return the model's rewards (costs with the other sign), uncertain where the counts say so.

    A reward that the model does not take from the counts was given by the user and is certain.
    """
    fixed = mdp.reward if mdp.reward_per_entry else mdp.reward[mdp.entry_row]
    counts = getattr(posterior, "counts", None)
    uncertain = np.zeros(mdp.num_entries, dtype=np.bool_)
    if counts is not None and counts.reward_mean is not None:
        uncertain = uncertain_rewards(counts) & (counts.reward_mean == fixed)
    if objective == "min" and uncertain.any():
        raise ValueError(
            "uncertain mean rewards are supported for objective='max'; state costs as negative "
            "rewards."
        )
    return Rewards(
        fixed=fixed if objective == "max" else -fixed, counts=counts, uncertain=uncertain
    )


def policy_returns(
    posterior: Posterior,
    mdp: MDP,
    policy: RowPolicy,
    n: int,
    rng: np.random.Generator,
    *,
    rewards: Rewards,
    tolerance: float | None = None,
) -> ReturnDraws:
    """Return brackets of the policy's return in ``n`` fresh draws.

    Only the rows that the policy plays are drawn, where rows are independent.
    """
    rows = policy.rows.astype(np.int64)
    lengths = np.diff(mdp.row_start)[rows]
    row_start = np.concatenate(([0], np.cumsum(lengths)))
    entries = np.repeat(mdp.row_start[rows] - row_start[:-1], lengths) + np.arange(row_start[-1])
    model = (
        policy.start.astype(np.int64),
        row_start,
        policy.share,
        mdp.successor[entries].astype(np.int64),
        mdp.discount,
        mdp.initial / mdp.initial.sum(),
        int(lengths.max()) * int(np.diff(policy.start.astype(np.int64)).max()),
    )
    size = mdp.num_states
    close = tolerance or 1e-9 * max(1.0, float(np.abs(rewards.fixed).max())) / (1 - mdp.discount)

    def work(draws: Floats, reward: Floats, begin: int, end: int, out: Floats) -> None:
        value, image = np.zeros(size), np.empty(size)
        if size <= DIRECT_STATES:
            matrix = np.empty((size, size))
            direct_returns(draws, reward, *model, begin, end, matrix, value, image, out)
        else:
            swept_returns(draws, reward, *model, begin, end, close, MAX_SWEEPS, value, image, out)

    return _collect(posterior, n, rng, rows, entries, rewards, work)


def best_returns(
    posterior: Posterior,
    mdp: MDP,
    n: int,
    rng: np.random.Generator,
    *,
    rewards: Rewards,
    start: NDArray[np.int64] | None = None,
    tolerance: float | None = None,
) -> ReturnDraws:
    """Return brackets of the best return of any policy in each of ``n`` fresh draws.

    ``start`` is the row per state to begin with; each draw begins where the one before ended.
    """
    entries = np.arange(mdp.num_entries)
    model = (
        mdp.state_start,
        mdp.row_start,
        mdp.successor.astype(np.int64),
        mdp.discount,
        mdp.initial / mdp.initial.sum(),
        int(np.diff(mdp.row_start).max()),
    )
    size = mdp.num_states
    first = mdp.state_start[:-1] if start is None else start
    close = tolerance or 1e-9 * max(1.0, float(np.abs(rewards.fixed).max())) / (1 - mdp.discount)

    def work(draws: Floats, reward: Floats, begin: int, end: int, out: Floats) -> None:
        value, image, choice = np.zeros(size), np.empty(size), np.array(first)
        if size <= DIRECT_STATES:
            matrix = np.empty((size, size))
            direct_optima(
                draws, reward, *model, begin, end, MAX_ROUNDS, choice, matrix, value, image, out
            )
        else:
            swept_optima(
                draws, reward, *model, begin, end, close, MAX_SWEEPS, choice, value, image, out
            )

    return _collect(posterior, n, rng, None, entries, rewards, work)


def _collect(
    posterior: Posterior,
    n: int,
    rng: np.random.Generator,
    rows: NDArray[np.int64] | None,
    entries: NDArray[np.int64],
    rewards: Rewards,
    work: Any,
) -> ReturnDraws:
    """Stream the draws and share each block among threads."""
    ends = np.empty((n, 2))
    done = 0
    reward_rng = rng.spawn(1)[0]
    with ThreadPoolExecutor(available_cores()) as pool:
        for draws in posterior.stream(n, rng, rows):
            block = len(draws)
            reward = rewards.draw(block, entries, reward_rng)
            out = ends[done : done + block]
            list(pool.map(lambda cut, d=draws, r=reward, o=out: work(d, r, *cut, o), _cuts(block)))
            done += block
    return ReturnDraws(lower=ends[:, 0].copy(), upper=ends[:, 1].copy())


def _cuts(block: int) -> Iterator[tuple[int, int]]:
    """Cut a block of draws for the threads, the same way on every machine."""
    for begin in range(0, block, DRAWS_PER_THREAD):
        yield begin, min(begin + DRAWS_PER_THREAD, block)
