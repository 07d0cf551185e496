"""The backtest of a run: a policy is chosen on one half of the log and tested on the other."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from surefoot._work import begin
from surefoot._workers import all_parts, current
from surefoot.certificates import curse as choosing
from surefoot.certificates.backtest import held_out_rewards, new_successors, newly_seen
from surefoot.certificates.by_step import Policy
from surefoot.certificates.curse import WHOLE, balanced_halves
from surefoot.certificates.evidence import (
    Advantage,
    Backtest,
    Curse,
    HeldOutRewards,
    NewSuccessors,
)
from surefoot.certificates.halves import Half, LogBuckets
from surefoot.certificates.plays import plays_of
from surefoot.data.buckets import NUM_BUCKETS, BucketCounts, part
from surefoot.data.counts import Counts
from surefoot.data.reward_uncertainty import negated
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.posterior.learned import LearnedPosterior
from surefoot.posterior.protocol import Divisible
from surefoot.posterior.rows import RowLayout

MASS_DRAWS = 200
"""How many draws of the rows' unseen mass are made."""
MOST_ROWS = 20_000
"""The most rows that are tested for new successors; the most played ones are taken."""
STEP_DRAWS, MOST_STEPS = 1000, 1000
"""Draws that predict the steps of a policy, and the most rows of the policy that are tested."""
TOLERATED = 0.2
"""How much too small the unseen mass may be, as a share of it. On 5,000 patients of the clinic it
is 7% too small; that hardly moves any promise, but would fail one log in five."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def luck_and_backtest(
    log: LogBuckets, counts: Counts, parts: BucketCounts, policy: Policy | None,
    rng: np.random.Generator, *, seed: int,
) -> tuple[Curse, Backtest]:  # fmt: skip
    """Return how much luck in choosing flatters ``policy``, and the backtest that allows for it.

    On a cluster both are computed at once: only the verdict of the backtest depends on the luck.
    """
    begin("luck")
    seen: Looked | None = None
    if current() is not None and log.mdp.num_rows >= choosing.SHARED_ROWS:
        halves = choosing.halves_of(log, None, seed)
        jobs: list[tuple[Any, ...]] = [(choosing.both_ways, log, None, half) for half in halves]
        *lost, seen = all_parts(_call, (), [*jobs, (_look, log, counts, parts, rng, seed)])
        for half, pair in zip(halves, lost, strict=True):
            log.losses.update({(half, turn): loss for turn, loss in enumerate(pair)})
    luck = choosing.curse_of_choosing(log, policy, seed=seed)
    begin("backtest")
    seen = seen or _look(log, counts, parts, rng, seed)
    return luck, seen.allowing_for(luck)


def _call(work: Callable[..., Any], *given: Any) -> Any:
    """Do a part that names its own work."""
    return work(*given)


def backtest(
    log: LogBuckets, counts: Counts, parts: BucketCounts, curse: Curse, rng: np.random.Generator, *,
    seed: int,
) -> Backtest:  # fmt: skip
    """Choose a policy on one half of the log and test successors, rewards, steps on the other."""
    return _look(log, counts, parts, rng, seed).allowing_for(curse)


@dataclass(frozen=True, kw_only=True, eq=False)
class HeldOutSteps:
    """How held-out steps did, and their prediction: the mean and the spread in each draw."""

    found: Advantage
    mean: Floats
    spread: Floats

    def allowing_for(self, curse: Curse) -> Advantage:
        """Return the result with a p-value that allows for luck in choosing the policy."""
        luck = (curse.mean + curse.spread) / WHOLE  # luck is larger for half of the log
        if not self.found.error > 0:
            return self.found
        reached = self.found.statistic + luck
        return replace(self.found, p_value=_below(reached, self.mean, self.spread))


@dataclass(frozen=True, kw_only=True, eq=False)
class Looked:
    """The results of a backtest before the luck in choosing is known."""

    new_successors: NewSuccessors | None
    steps: HeldOutSteps | None
    rewards: HeldOutRewards | None

    def allowing_for(self, curse: Curse) -> Backtest:
        """Return the backtest."""
        return Backtest(
            new_successors=self.new_successors,
            advantage=None if self.steps is None else self.steps.allowing_for(curse),
            rewards=self.rewards,
        )


def _look(
    log: LogBuckets, counts: Counts, parts: BucketCounts, rng: np.random.Generator, seed: int
) -> Looked:
    """Compare the two halves of the log."""
    chosen = np.array(balanced_halves(1, seed)[0])
    rest = np.setdiff1d(np.arange(NUM_BUCKETS), chosen)
    first, second = (part(counts, parts, half) for half in (chosen, rest))
    if not (first.count.any() and second.count.any()):  # a log of a few rows
        return Looked(new_successors=None, steps=None, rewards=None)
    return Looked(
        new_successors=_new_successors(log.posterior, first, second, rng),
        steps=_steps(log, log.half(chosen), log.half(rest), rng),
        rewards=_rewards(log, first, second, rng.spawn(1)[0]),
    )


def _rewards(
    log: LogBuckets, first: Counts, second: Counts, rng: np.random.Generator
) -> HeldOutRewards | None:
    """Test the second half's rewards against the first half's; None if all rewards are certain."""
    if not log.posterior.counts.rewards_vary and log.posterior.counts.reward_range is None:
        return None
    if log.sign < 0:
        first, second = negated(first), negated(second)
    return held_out_rewards(first, second, rng)


def _new_successors(
    posterior: Divisible, first: Counts, second: Counts, rng: np.random.Generator
) -> NewSuccessors | None:
    """Return how many successors are new in the second half; None if all successors are declared.

    Also None for a user's own posterior: only ours can be made again from half of a log.
    """
    if posterior.counts.unseen is None:
        return None
    if not isinstance(posterior, DirichletPosterior | LearnedPosterior):
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


def _made_like(
    posterior: DirichletPosterior | LearnedPosterior, counts: Counts
) -> DirichletPosterior | LearnedPosterior:
    """Return the posterior of a part of the log, made in the same way as that of the whole log."""
    report = posterior.counts.report
    support = None if report is None else report.support
    placed = counts.on_support(support if support in ("unseen", "learned") else None)
    if isinstance(posterior, LearnedPosterior):
        return LearnedPosterior(placed)
    prior = np.asarray(posterior.prior)
    return DirichletPosterior(placed, prior=posterior.prior if prior.ndim == 0 else 1.0)


def _steps(
    log: LogBuckets, own: Half, other: Half, rng: np.random.Generator
) -> HeldOutSteps | None:
    """Return how the steps of the first half's policy did in the second half.

    They are compared with what the first half's posterior predicts for them, row by row: a row that
    showed one successor in a few tries may well show another. The policy was chosen because it
    looks good on the first half; how much that flatters it on average is estimated from the halves
    (the curse of choosing). Only a shortfall beyond that speaks against the model. Over a horizon,
    a row counts for all steps at which it is played (`surefoot.certificates.plays`).
    """
    mdp = own.mdp
    policy = log.choose(own)
    weight, ahead, *_ = plays_of(mdp, policy)
    tested = (weight > 0) & (other.visits > 0) & (own.visits > 0)
    most = np.argsort(-np.where(tested, weight, -1.0), kind="stable")[:MOST_STEPS]
    rows = np.sort(most[tested[most]])
    if len(rows) == 0:
        return None
    weight_at = weight[rows]
    start = mdp.row_start[:-1]
    z, gained = mdp.entry_reward + ahead, other.mdp.entry_reward + ahead
    number = other.visits[rows]
    expected = np.add.reduceat(mdp.probability * z, start)[rows]
    got = np.add.reduceat(other.count * gained, start)[rows] / number
    statistic = float(weight_at @ (got - expected))
    mean, variance = _predicted(log, own, rows, z, weight_at, number, rng)
    # The first half's mean rewards are noisy too: their variance is the noise over its tries.
    noise = log.reward_noise[rows] * (1.0 / number + 1.0 / own.visits[rows])
    spread = np.sqrt(variance + weight_at**2 @ noise)
    mean = mean - float(weight_at @ expected)
    error = float(np.sqrt(mean.var() + (spread**2).mean()))
    total = float(weight.sum())
    found = Advantage(
        statistic=statistic,
        error=error,
        uncovered=1.0 - float(weight_at.sum()) / total if total > 0 else 1.0,
        p_value=None,
    )
    return HeldOutSteps(found=found, mean=mean, spread=spread)


def _predicted(
    log: LogBuckets, own: Half, rows: Ints, z: Floats, weight: Floats, number: Ints,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Return, for each draw of a half's posterior, mean and variance of the weighted mean of z."""
    posterior = log.posterior.given(own.count)
    layout = RowLayout.of(own.mdp)
    entries, sizes = layout.entries_of(rows), np.diff(own.mdp.row_start)[rows]
    starts = np.cumsum(sizes) - sizes
    # z is centred in each row: squares of large numbers would lose the variance to rounding.
    middle = np.add.reduceat(z[entries], starts) / sizes
    apart = z[entries] - np.repeat(middle, sizes)
    means, variances = [], []
    for block in posterior.stream(STEP_DRAWS, rng, rows):
        first = np.add.reduceat(block * apart, starts, axis=1)
        second = np.add.reduceat(block * apart**2, starts, axis=1)
        means.append((first + middle) @ weight)
        variances.append(np.maximum(second - first**2, 0.0) @ (weight**2 / number))
    return np.concatenate(means), np.concatenate(variances)


def _below(reached: float, mean: Floats, spread: Floats) -> float:
    """Return the probability of a result this low, averaged over the drawn models."""
    sure = np.where(mean <= reached, 1.0, 0.0)
    chance = stats.norm.cdf(np.divide(reached - mean, spread, out=np.zeros_like(mean),
                                      where=spread > 0))  # fmt: skip
    likely = np.where(spread > 0, chance, sure)
    return float((1.0 + likely.sum()) / (1.0 + len(likely)))
