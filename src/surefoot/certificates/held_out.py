"""The backtest of a run: one half of the log chooses, the other looks at what was chosen."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats

from surefoot.certificates.backtest import advantage, new_successors, newly_seen
from surefoot.certificates.by_step import Policy, rows_at
from surefoot.certificates.curse import balanced_halves
from surefoot.certificates.evidence import Advantage, Backtest, Curse, NewSuccessors
from surefoot.certificates.halves import Conjugate, Half, Log
from surefoot.data.buckets import NUM_BUCKETS, BucketCounts, part
from surefoot.data.counts import Counts
from surefoot.model.mdp import MDP
from surefoot.model.policies import check_policy
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.posterior.learned import LearnedPosterior
from surefoot.solvers.solver import evaluate
from surefoot.solvers.steps import counted_steps, ends_of, until_the_end

MASS_DRAWS = 200
"""Draws of the unseen mass of rows."""
MOST_ROWS = 20_000
"""Rows looked at for new successors: the most played ones."""
MOST_VALUES = 2**25
"""Values of all steps that are held at a time (a quarter of a gigabyte)."""
SETTLED = 1e-6
"""Visits are summed until the rest is this share of them."""

Floats = NDArray[np.float64]


def backtest(
    log: Log, counts: Counts, parts: BucketCounts, curse: Curse, rng: np.random.Generator, *,
    seed: int,
) -> Backtest:  # fmt: skip
    """Choose on one half of the log and test on the other: new successors, and the steps chosen."""
    chosen = np.array(balanced_halves(1, seed)[0])
    rest = np.setdiff1d(np.arange(NUM_BUCKETS), chosen)
    return Backtest(
        new_successors=_new_successors(log.posterior, counts, parts, (chosen, rest), rng),
        advantage=_advantage(log, log.half(chosen), log.half(rest), curse),
    )


def _new_successors(
    posterior: Conjugate, counts: Counts, parts: BucketCounts,
    halves: tuple[NDArray[np.int64], NDArray[np.int64]], rng: np.random.Generator,
) -> NewSuccessors | None:  # fmt: skip
    """Return how many successors are new in the second half; None where all are declared."""
    if posterior.counts.unseen is None:
        return None
    first, second = (part(counts, parts, half) for half in halves)
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
    return new_successors(trials, new, rng, draws=mass)


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
    if mdp.horizon is not None:
        return _advantage_of_steps(own, other, policy, curse)
    rows = check_policy(mdp, policy).rows.astype(np.int64)
    value = evaluate(mdp, policy).value
    z = mdp.entry_reward + mdp.discount * value[mdp.successor]
    gained = other.mdp.entry_reward + mdp.discount * value[mdp.successor]
    start = mdp.row_start[:-1]
    expected = np.add.reduceat(mdp.probability * z, start)
    square = np.add.reduceat(mdp.probability * (z - expected[mdp.entry_row]) ** 2, start)
    number = other.visits
    mean = np.add.reduceat(other.count * gained, start) / np.maximum(number, 1)
    spread = square * (1.0 + number / (own.visits + 1.0))  # what the first half expects is unsure
    found = advantage(
        visits_of(mdp, rows), expected[rows], spread[rows], mean[rows],
        np.where(own.visits > 0, number, 0)[rows],
    )  # fmt: skip
    return _but_for_luck(found, curse)


def _but_for_luck(found: Advantage, curse: Curse) -> Advantage:
    if found.p_value is None:
        return found
    lucky = found.statistic + curse.mean + curse.spread
    return replace(found, p_value=float(stats.norm.cdf(lucky / found.error)))


def _advantage_of_steps(own: Half, other: Half, policy: Policy, curse: Curse) -> Advantage | None:
    """Return the same over a horizon; None where values of all steps do not fit in memory.

    A row is played at several steps, whose values differ. Its steps in the second half speak of
    all of them at once: of ``sum_t d_t(s) (r + discount v_{t+1}(s'))`` over the steps ``t`` at
    which it is played.
    """
    mdp = own.mdp
    horizon = mdp.horizon or 1
    if horizon * mdp.num_states > MOST_VALUES:
        return None
    rows = [rows_at(mdp, policy, step) for step in range(horizon)]
    values = [np.zeros(mdp.num_states) if mdp.final_reward is None else mdp.final_reward]
    for step in reversed(range(horizon)):
        z = mdp.entry_reward + mdp.discount * values[-1][mdp.successor]
        values.append(np.add.reduceat(mdp.probability * z, mdp.row_start[:-1])[rows[step]])
    weight, ahead = np.zeros(mdp.num_rows), np.zeros(mdp.num_entries)
    visits = mdp.initial / mdp.initial.sum()
    for step in range(horizon):
        played = np.zeros(mdp.num_rows)
        played[rows[step]] = visits
        weight += played
        part = played[mdp.entry_row]
        ahead += part * mdp.discount * values[horizon - step - 1][mdp.successor]
        pushed = mdp.discount * part * mdp.probability
        visits = np.bincount(mdp.successor, pushed, mdp.num_states)
    z = weight[mdp.entry_row] * mdp.entry_reward + ahead
    gained = weight[mdp.entry_row] * other.mdp.entry_reward + ahead
    start = mdp.row_start[:-1]
    expected = np.add.reduceat(mdp.probability * z, start)
    square = np.add.reduceat(mdp.probability * (z - expected[mdp.entry_row]) ** 2, start)
    number = other.visits
    mean = np.add.reduceat(other.count * gained, start) / np.maximum(number, 1)
    spread = square * (1.0 + number / (own.visits + 1.0))
    used = np.flatnonzero(weight > 0)
    share = weight[used]
    tried = np.where(own.visits > 0, number, 0)[used]
    found = advantage(
        share, expected[used] / share, spread[used] / share**2, mean[used] / share, tried
    )
    return _but_for_luck(found, curse)


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
    goes_on = ~ends_of(mdp) if until_the_end(mdp) else np.ones(mdp.num_states, dtype=np.bool_)
    ahead = counted_steps(mdp)
    while step.sum() * ahead > SETTLED * visits.sum():
        step = mdp.discount * (matrix @ step) * goes_on
        visits += step
    return visits
