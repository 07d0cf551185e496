"""Which rows the doubt about a policy comes from.

To first order the return moves by ``sum_r d_r (x_r - E x_r)``: ``x_r = p_r . z`` is what one play
of row r is worth in a drawn model, ``z`` the reward plus the value ahead in the mean model, and
``d_r`` the expected discounted plays of the row (the delta method). If rows are independent, its
variance is ``sum_r d_r^2 z' Sigma_r z``, and each term is the contribution of one row. The return
itself is computed in the same draws; comparing the two shows what is not linear, or common to all
rows.

Besides the spread there is what the posterior subtracts on average: mass for what was never seen
and, in a declared range, mean rewards below those seen. Both are measured row by row, on the same
draws with that cause removed.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from surefoot._findings import Finding
from surefoot.certificates import draw_plan
from surefoot.certificates.by_step import Policy
from surefoot.certificates.doubt import Surer
from surefoot.certificates.plays import plays_of
from surefoot.model.mdp import MDP
from surefoot.model.policies import check_policy
from surefoot.posterior.protocol import Posterior, at_most
from surefoot.posterior.rows import RowLayout
from surefoot.solvers.evaluation.draws import Draws
from surefoot.solvers.evaluation.missed_losses import missed_by_luck, missed_losses
from surefoot.solvers.evaluation.returns import policy_returns
from surefoot.solvers.evaluation.rewards import Rewards, rewards_of

LEAST, MOST, WORK = 200, 2000, 3e8
"""The fewest and the most draws, and the operations they may cost (a fraction of a second)."""
LINEAR = 0.8
"""If less than this share of the variance is explained, shares by row are only a rough guide."""
LEAST_SIZE = 0.5
"""The smallest number of tries that a row counts as, however little is known about it."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class RowDoubt:
    """The doubt about the return of a policy, row by row, in rewards.

    Attributes
    ----------
    rows
        ``(K,)``: the rows that the policy plays.
    weight
        ``(K,)``: expected discounted plays of each.
    variance
        ``(K,)``: the posterior variance of the mean worth of a play of the row.
    unseen, rewards
        ``(K,)``: the parts of it that come from what was never seen, and from mean rewards.
    unseen_shift, reward_shift
        ``(K,)``: how much these two lower the return on average.
    unlisted
        ``(K,)``: the average charge for successors that follow no pattern of the log. They are
        charged as the worst state; more tries remove this part.
    size
        ``(K,)``: the number of tries after which a row would be known as well as this one.
    returns, linear
        ``(n,)``: the return in each draw, and its deviation as the linear form predicts it.
    delta
        The level of the promise.
    """

    rows: Ints
    weight: Floats
    variance: Floats
    unseen: Floats
    rewards: Floats
    unseen_shift: Floats
    reward_shift: Floats
    unlisted: Floats
    size: Floats
    returns: Floats
    linear: Floats
    delta: float

    @cached_property
    def spread(self) -> Floats:
        """``(K,)``: the contribution of each row to the variance of the return."""
        return np.asarray(self.weight**2 * self.variance)

    @property
    def share(self) -> Floats:
        """``(K,)``: the contributions as shares of their sum; zeros if nothing is in doubt."""
        total = float(self.spread.sum())
        return self.spread / total if total > 0 else np.zeros_like(self.spread)

    @cached_property
    def expected(self) -> float:
        """The mean return."""
        return float(self.returns.mean())

    @cached_property
    def reach(self) -> float:
        """How far the quantile of the promise lies below the mean return."""
        return max(0.0, self.expected - float(np.quantile(self.returns, self.delta)))

    @property
    def amounts(self) -> dict[str, Floats]:
        """By how much each row lowers the promise, ``(K,)`` by cause."""
        total = float(self.spread.sum())
        each = self.reach / total if total > 0 else 0.0
        unseen = each * self.weight**2 * self.unseen
        rewards = each * self.weight**2 * self.rewards
        return {
            "transitions": each * self.spread - unseen - rewards,
            "unseen": unseen + self.unseen_shift,
            "rewards": rewards + self.reward_shift,
        }

    @property
    def amount(self) -> Floats:
        """By how much each row lowers the promise in all, ``(K,)``."""
        return np.asarray(sum(self.amounts.values()))

    @cached_property
    def explained(self) -> float:
        """The share of the variance of returns that the linear form explains."""
        total = float(np.var(self.returns))
        if total <= 1e-18 * max(1.0, self.expected**2):
            return 1.0
        return float(1.0 - np.var(self.returns - self.linear) / total)

    @cached_property
    def common(self) -> float:
        """The share of the variance that rows have in common, which no single row removes."""
        total = float(np.var(self.linear))
        return max(0.0, 1.0 - float(self.spread.sum()) / total) if total > 0 else 0.0

    @property
    def findings(self) -> tuple[Finding, ...]:
        """A warning where the return is far from linear in the posterior."""
        if self.explained >= LINEAR:
            return ()
        reach = -float(np.quantile(self.linear, self.delta))
        values = {"explained": max(0.0, self.explained), "linear": reach, "reach": self.reach}
        return (Finding.of("doubt_not_linear", **values, draws=len(self.returns)),)


def row_doubt(
    posterior: Posterior, mdp: MDP, policy: Policy, rng: np.random.Generator, *,
    delta: float, draws: int | None = None,
) -> RowDoubt:  # fmt: skip
    """Return where the doubt about a policy's return comes from, row by row.

    ``draws``: how many to use; None takes as many as can be evaluated in a fraction of a second.

    Examples
    --------
    >>> from surefoot import DirichletPosterior, machine_replacement
    >>> counts = machine_replacement().simulate(20, np.random.default_rng(1))
    >>> mdp, posterior = counts.to_mdp(discount=0.95, prior=1.0), DirichletPosterior(counts)
    >>> policy = np.zeros(10, dtype=int)
    >>> found = row_doubt(posterior, mdp, policy, np.random.default_rng(2), delta=0.05)
    >>> round(float(found.share.sum()), 9), bool(found.explained > 0.8)
    (1.0, True)
    """
    played = check_policy(mdp, policy)
    rewards = rewards_of(mdp, posterior, objective="max").of_one_policy
    plays = plays_of(mdp, policy)
    rows = np.flatnonzero(plays.weight > 0)
    work = draw_plan.policy_work(mdp, rewards, played)
    wanted = draw_plan.affordable_draws(work, LEAST, MOST, WORK) if draws is None else draws
    n = at_most(posterior, wanted)
    worth = _Worth(mdp=mdp, rows=rows, ahead=plays.ahead)
    whole = worth.of(posterior, rewards, n, rng)
    without_rewards = whole
    if rewards.uncertain.any():
        certain = replace(rewards, uncertain=np.zeros_like(rewards.uncertain))
        without_rewards = worth.of(posterior, certain, n, rng)
    counts = posterior.counts
    closed = whole
    if counts is not None:
        closed = worth.of(
            Surer(posterior, np.asarray(counts.count > 0), frozenset({"unseen"})), rewards, n, rng
        )
    weight = plays.weight[rows]
    variance = whole.values.var(axis=0)
    single = worth.single(posterior, whole.reward_variance)
    size = np.divide(single, variance, out=np.full(len(rows), np.inf), where=variance > 0) - 1.0
    returns = policy_returns(posterior, mdp, played, n, deepcopy(rng), rewards=rewards).lower
    mean = whole.values.mean(axis=0)
    key = Draws.take(posterior, mdp, rewards, n, deepcopy(rng)).reward_key
    losses = missed_losses(mdp, plays.weight, rewards)
    missed = np.zeros((n, len(rows)))
    missed[:, np.searchsorted(rows, losses.rows)] = losses.of_rows(missed_by_luck(key, n))
    wide = missed.var(axis=0) / weight**2
    return RowDoubt(
        rows=rows,
        weight=weight,
        variance=variance + wide,
        unseen=np.clip(variance - closed.values.var(axis=0), 0.0, variance),
        rewards=np.clip(variance - without_rewards.values.var(axis=0), 0.0, variance) + wide,
        unseen_shift=weight * (closed.values.mean(axis=0) - mean),
        reward_shift=weight * (without_rewards.values.mean(axis=0) - mean) + missed.mean(axis=0),
        unlisted=weight * worth.unlisted(posterior),
        size=np.maximum(size, LEAST_SIZE),
        returns=returns,
        linear=(whole.values - mean) @ weight - (missed - missed.mean(axis=0)).sum(axis=1),
        delta=delta,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Drawn:
    """The worth of rows in each draw, ``(n, K)``, and the variance of mean rewards, ``(E',)``."""

    values: Floats
    reward_variance: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class _Worth:
    """What plays of some rows are worth, given the value ahead of each entry."""

    mdp: MDP
    rows: Ints
    ahead: Floats

    @cached_property
    def entries(self) -> Ints:
        return RowLayout.of(self.mdp).entries_of(self.rows)

    @cached_property
    def start(self) -> Ints:
        sizes = np.diff(self.mdp.row_start)[self.rows]
        return np.asarray(np.cumsum(sizes) - sizes)

    def of(
        self, posterior: Posterior, rewards: Rewards, n: int, rng: np.random.Generator
    ) -> _Drawn:
        """Return the worth of the rows; equal generators give equal draws."""
        values, drawn = [], []
        for block, reward in self._blocks(posterior, rewards, n, rng):
            worth = block * (reward + self.ahead[self.entries])
            values.append(np.add.reduceat(worth, self.start, axis=1))
            drawn.append(reward)
        return _Drawn(values=np.concatenate(values), reward_variance=np.var(drawn[0], axis=0))

    def _blocks(
        self, posterior: Posterior, rewards: Rewards, n: int, rng: np.random.Generator
    ) -> Iterator[tuple[Floats, Floats]]:
        draws = Draws.take(posterior, self.mdp, rewards, n, deepcopy(rng))
        return draws.blocks(self.rows, self.entries)

    def single(self, posterior: Posterior, reward_variance: Floats) -> Floats:
        """Return ``(K,)``: the variance of the outcome of a single try, by the posterior mean."""
        z = self.mdp.entry_reward[self.entries] + self.ahead[self.entries]
        share = posterior.mean()[self.entries]
        row = np.repeat(np.arange(len(self.rows)), np.diff(self.mdp.row_start)[self.rows])
        mean = np.add.reduceat(share * z, self.start)
        count = np.zeros(len(self.entries))
        if posterior.counts is not None:
            count = posterior.counts.count[self.entries].astype(np.float64)
        noise = reward_variance * (count + 1.0)  # a mean of n has 1/n of the variance of one
        return np.asarray(np.add.reduceat(share * ((z - mean[row]) ** 2 + noise), self.start))

    def unlisted(self, posterior: Posterior) -> Floats:
        """Return ``(K,)``: how much the mass on the unseen state lowers the worth of a play."""
        counts = posterior.counts
        if counts is None or counts.unseen is None:
            return np.zeros(len(self.rows))
        z = self.mdp.entry_reward[self.entries] + self.ahead[self.entries]
        share = posterior.mean()[self.entries]
        away = (self.mdp.successor[self.entries] == counts.unseen) & (
            self.mdp.entry_state[self.entries] != counts.unseen
        )
        kept = np.where(away, 0.0, share)
        total = np.add.reduceat(kept, self.start)
        rest = np.add.reduceat(kept * z, self.start)
        known = total > 0
        usual = np.divide(rest, total, out=np.zeros_like(rest), where=known)
        worth = np.add.reduceat(share * z, self.start)
        return np.where(known, np.maximum(usual - worth, 0.0), 0.0)
