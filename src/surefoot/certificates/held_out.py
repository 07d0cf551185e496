"""The backtest of a run: one half of the log chooses, the other looks at what was chosen."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats

from surefoot.certificates.backtest import (
    advantage,
    held_out_rewards,
    new_successors,
    newly_seen,
)
from surefoot.certificates.curse import WHOLE, balanced_halves
from surefoot.certificates.evidence import (
    Advantage,
    Backtest,
    Curse,
    HeldOutRewards,
    NewSuccessors,
)
from surefoot.certificates.halves import Conjugate, Half, Log
from surefoot.data.buckets import NUM_BUCKETS, BucketCounts, part
from surefoot.data.counts import Counts
from surefoot.data.reward_uncertainty import negated
from surefoot.model.mdp import MDP
from surefoot.model.policies import check_policy
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.posterior.learned import LearnedPosterior
from surefoot.solvers.solver import evaluate

MASS_DRAWS = 200
"""Draws of the unseen mass of rows."""
MOST_ROWS = 20_000
"""Rows looked at for new successors: the most played ones."""
TOLERATED = 0.2
"""How much too small the unseen mass may be, as a share of it. On 5,000 patients of the clinic it
is 7% too small, which moves no promise by much and would fail one log in five."""
SETTLED = 1e-6
"""Visits are summed until the rest is this share of them."""

Floats = NDArray[np.float64]


def backtest(
    log: Log, counts: Counts, parts: BucketCounts, curse: Curse, rng: np.random.Generator, *,
    seed: int,
) -> Backtest:  # fmt: skip
    """Choose on one half of the log and test on the other: unseen, rewards, steps chosen."""
    chosen = np.array(balanced_halves(1, seed)[0])
    rest = np.setdiff1d(np.arange(NUM_BUCKETS), chosen)
    first, second = (part(counts, parts, half) for half in (chosen, rest))
    return Backtest(
        new_successors=_new_successors(log.posterior, first, second, rng),
        advantage=_advantage(log, log.half(chosen), log.half(rest), curse),
        rewards=_rewards(log, first, second, rng.spawn(1)[0]),
    )


def _rewards(
    log: Log, first: Counts, second: Counts, rng: np.random.Generator
) -> HeldOutRewards | None:
    """Return how the second half's rewards fit the law of the first; None where all are certain."""
    if not log.posterior.counts.rewards_vary and log.posterior.counts.reward_range is None:
        return None
    if log.sign < 0:
        first, second = negated(first), negated(second)
    return held_out_rewards(first, second, rng)


def _new_successors(
    posterior: Conjugate, first: Counts, second: Counts, rng: np.random.Generator
) -> NewSuccessors | None:
    """Return how many successors are new in the second half; None where all are declared."""
    if posterior.counts.unseen is None:
        return None
    row, trials, new = newly_seen(first, second)
    own = _made_like(posterior, first)
    most = np.sort(np.argsort(-trials, kind="stable")[:MOST_ROWS])
    row, trials, new = row[most], trials[most], new[most]
    placed = own.counts
    keys = placed.row_state * placed.num_actions + placed.row_action
    at = np.searchsorted(keys, (first.row_state * first.num_actions + first.row_action)[row])
    entries = own.layout.entries_of(at)
    unseen = (placed.count == 0)[entries]
    starts = np.concatenate(([0], np.cumsum(np.diff(own.row_start)[at])))[:-1]
    mass = np.concatenate(
        [
            np.add.reduceat(np.where(unseen, block, 0.0), starts, axis=1)
            for block in own.stream(MASS_DRAWS, rng, at)
        ]
    )
    return new_successors(trials, new, rng, draws=mass, tolerated=TOLERATED)


def _made_like(posterior: Conjugate, counts: Counts) -> Conjugate:
    """Return the posterior of part of a log, made as the whole log's was."""
    report = posterior.counts.report
    support = None if report is None else report.support
    placed = counts.on_support(support if support in ("unseen", "learned") else None)
    if isinstance(posterior, LearnedPosterior):
        return LearnedPosterior(placed)
    prior = np.asarray(posterior.prior)
    return DirichletPosterior(placed, prior=posterior.prior if prior.ndim == 0 else 1.0)


def _advantage(log: Log, own: Half, other: Half, curse: Curse) -> Advantage | None:
    """Return how the second half's steps of the first half's policy did.

    The policy was picked for looking good on the first half, and what that is worth on average is
    known from the halves: the curse of choosing. Only what falls short of it as well speaks against
    the model.
    """
    mdp = own.mdp
    policy = log.choose(own)
    rows = check_policy(mdp, policy).rows.astype(np.int64)
    value = evaluate(mdp, policy).value
    z = mdp.entry_reward + mdp.discount * value[mdp.successor]
    gained = other.mdp.entry_reward + mdp.discount * value[mdp.successor]
    start = mdp.row_start[:-1]
    expected = np.add.reduceat(mdp.probability * z, start)
    noise = np.nan_to_num(_noise(log.posterior.counts))
    square = (z - expected[mdp.entry_row]) ** 2 + noise
    square = np.add.reduceat(mdp.probability * square, start)
    number = other.visits
    mean = np.add.reduceat(other.count * gained, start) / np.maximum(number, 1)
    spread = square * (1.0 + number / (own.visits + 1.0))  # what the first half expects is unsure
    found = advantage(
        visits_of(mdp, rows), expected[rows], spread[rows], mean[rows],
        np.where(own.visits > 0, number, 0)[rows],
    )  # fmt: skip
    if found.p_value is None:
        return found
    lucky = found.statistic + (curse.mean + curse.spread) / WHOLE  # a half has more of it
    # Luck itself differs from split to split, as the halves show: by more where rows are thin.
    varied = float(np.std(curse.differences, ddof=1)) if len(curse.differences) > 1 else 0.0
    return replace(found, p_value=float(stats.norm.cdf(lucky / np.hypot(found.error, varied))))


def _noise(counts: Counts) -> Floats:
    """Return ``(E,)``: how rewards of one and the same transition scatter, as a variance."""
    nothing = np.zeros(counts.num_entries)
    return nothing if counts.reward_var is None else np.asarray(counts.reward_var)


def visits_of(mdp: MDP, rows: NDArray[np.int64]) -> Floats:
    """Return ``(S,)`` discounted visits of a policy that plays one row in each state."""
    sizes = np.diff(mdp.row_start)[rows]
    entries = np.repeat(mdp.row_start[rows] - np.cumsum(sizes) + sizes, sizes) + np.arange(
        sizes.sum()
    )
    matrix = sparse.csr_matrix(
        (mdp.probability[entries], mdp.successor[entries], np.concatenate(([0], np.cumsum(sizes)))),
        shape=(mdp.num_states, mdp.num_states),
    ).T.tocsr()
    visits = np.array(mdp.initial, dtype=np.float64)
    step = visits.copy()
    while step.sum() > SETTLED * visits.sum() * (1.0 - mdp.discount):
        step = mdp.discount * (matrix @ step)
        visits += step
    return visits
