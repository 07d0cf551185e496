"""What a run would promise after more data: data are simulated, and the promise is computed again.

A truth is drawn from the posterior, data are drawn from the truth and added to the posterior, and
the promise is computed as a run does, with four shortcuts. Fewer draws are used: what counts is the
change on the same draws, which is added to the promise of the run. Fewer halves of the log measure
the luck of choosing. Instead of a search there are two policies, the run's and the cautious choice
on the new data (the one that the luck is measured with); the better one is taken. And the prior
that all rows share is not learned again.

The posterior's mass for successors that follow no pattern of the log is charged as the worst state.
Real data never lead there, but to some state that may be as bad or as good as any other. So a truth
keeps a random share of that mass, uniform between none and all; the rest goes to listed successors.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from surefoot._order_statistics import lower_rank
from surefoot.certificates import draw_plan
from surefoot.certificates.by_step import Policy, same
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.curse import (
    DEFAULT_HALVES,
    FEW_HALVES,
    MANY_ROWS,
    curse_of_choosing,
)
from surefoot.certificates.halves import LogBuckets
from surefoot.data.buckets import NUM_BUCKETS, BucketCounts
from surefoot.data.counts import Counts
from surefoot.data.reward_uncertainty import pooled_variance, uncertain_rewards
from surefoot.data.rewards import RewardStatistics, pool
from surefoot.model.mdp import MDP
from surefoot.model.policies import check_policy
from surefoot.pipeline.first_state import first_state_doubt
from surefoot.pipeline.model import Model
from surefoot.pipeline.reward_ends import least_return
from surefoot.posterior.protocol import Divisible, at_most, is_divisible, stream_key
from surefoot.solvers.evaluation.returns import policy_returns
from surefoot.solvers.evaluation.rewards import Rewards, rewards_of
from surefoot.solvers.solver import evaluate

LEAST, MOST, WORK = 200, 500, 1e8
"""The fewest and the most draws of one simulated promise, and the operations they may cost."""
HALVES = 3
"""Pairs of halves that measure luck in a simulated future; only the change counts."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Truth:
    """A model that may be the true one: ``(E,)`` probabilities and mean rewards.

    ``luck`` is how much of the policy's apparent return is luck in choosing rather than this truth.
    """

    mdp: MDP
    probability: Floats
    reward: Floats
    luck: float = 0.0

    @cached_property
    def running(self) -> Floats:
        """``(E,)``: cumulative probabilities; those of row ``r`` end at ``r + 1``."""
        mdp = self.mdp
        total = np.cumsum(self.probability)
        before = np.concatenate(([0.0], total))[mdp.row_start[:-1]]
        return np.asarray(np.minimum(total - before[mdp.entry_row], 1.0) + mdp.entry_row)

    def entries(self, rows: Ints, rng: np.random.Generator) -> Ints:
        """Draw an entry for each play of a row."""
        start = self.mdp.row_start
        found = np.searchsorted(self.running, rows + rng.random(len(rows)), side="right")
        return np.asarray(np.clip(found, start[rows], start[rows + 1] - 1))


@dataclass(frozen=True, kw_only=True, eq=False)
class NewData:
    """New transitions on the entries of a model.

    Attributes
    ----------
    entry, part
        ``(n,)``: the entry of each transition, and the part of the log it goes to, the same for all
        transitions of an episode.
    starts
        ``(S,)``: how many of the new episodes show each first state; None for none.
    """

    entry: Ints
    part: Ints
    starts: Ints | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Future:
    """The promise of a run as a function of further data, in rewards.

    Attributes
    ----------
    model
        What the promise rests on.
    certificate
        The promise, in rewards.
    log
        The log in parts, for the curse of choosing; None if it was not measured.
    seed
        The seed of the draws that all simulated promises share.
    """

    model: Model
    certificate: Certificate
    log: LogBuckets | None
    seed: int

    @cached_property
    def posterior(self) -> Divisible:
        """The certifying posterior."""
        found = self.model.posterior
        if not is_divisible(found):
            raise ValueError(
                "this posterior cannot say what it would be with more data: it has no counts, or "
                "no given(count). A plan needs one that has (docs/posteriors.md)."
            )
        return found

    @cached_property
    def draws(self) -> int:
        """The number of draws of a simulated promise."""
        mdp = self.model.mdp
        work = draw_plan.policy_work(mdp, self._rewards, check_policy(mdp, self.policy))
        return at_most(self.posterior, draw_plan.affordable_draws(work, LEAST, MOST, WORK))

    @property
    def policy(self) -> Policy:
        """The run's policy."""
        return self.certificate.policy

    @cached_property
    def _rewards(self) -> Rewards:
        return rewards_of(self.model.mdp, self.posterior, objective="max").of_one_policy

    @cached_property
    def _from_counts(self) -> NDArray[np.bool_]:
        """``(E,)``: whether the model takes the reward of an entry from the counts."""
        counts = self.posterior.counts
        if counts.reward_mean is None:
            return np.zeros(counts.num_entries, dtype=np.bool_)
        return np.asarray(counts.reward_mean == self.model.mdp.entry_reward)

    @cached_property
    def now(self) -> float:
        """The quantile of the run's policy on the shared draws."""
        one = self.certificate
        level = self._rank / one.draws
        return self._quantile(self.posterior, self.model.mdp, self._rewards, self.policy, level)

    @cached_property
    def _rank(self) -> int:
        """The rank of the promise among the sorted draws."""
        one = self.certificate
        return lower_rank(one.draws, one.delta, one.eta)

    def _level(self, rng: np.random.Generator) -> float:
        """Draw the quantile level that an order statistic has on fresh draws."""
        return float(rng.beta(self._rank, self.certificate.draws + 1 - self._rank))

    def _quantile(
        self, posterior: Divisible, mdp: MDP, rewards: Rewards, policy: Policy, level: float
    ) -> float:
        rng = np.random.default_rng([self.seed, 1])
        rows = check_policy(mdp, policy)
        found = policy_returns(posterior, mdp, rows, self.draws, rng, rewards=rewards).lower
        return float(np.quantile(found, level))

    def truth(self, rng: np.random.Generator) -> Truth:
        """Draw a model that may be true; it keeps a random share of the unseen state's mass."""
        mdp, counts = self.model.mdp, self.posterior.counts
        share = self.posterior.sample(1, rng)[0]
        if counts.unseen is not None:
            away = (counts.successor == counts.unseen) & (counts.entry_state != counts.unseen)
            kept = np.where(away, rng.random() * share, share)
            some = np.add.reduceat(kept, mdp.row_start[:-1])[mdp.entry_row] > 0
            share = np.where(some, kept, share)
        share = share / np.add.reduceat(share, mdp.row_start[:-1])[mdp.entry_row]
        every = np.arange(mdp.num_entries)
        reward = self._rewards.block(stream_key(rng), 0, 1, every)[0]
        return Truth(mdp=mdp, probability=share, reward=reward, luck=self._luck(rng))

    def _luck(self, rng: np.random.Generator) -> float:
        """Draw the luck of choosing, with the mean and error that the log measured."""
        curse = self.certificate.curse
        if curse is None or not np.isfinite(curse.mean):
            return 0.0
        return max(0.0, curse.mean + curse.spread * float(rng.standard_normal()))

    def promise(self, data: NewData, truth: Truth, rng: np.random.Generator) -> float:
        """Return what would be promised after further data from a truth."""
        if len(data.entry) == 0:
            return self.certificate.lower_bound
        added = self._measured(data, truth, rng)
        placed = self.posterior.counts
        count = placed.count + np.bincount(data.entry, minlength=placed.num_entries)
        posterior = self.posterior.given(count)
        if not is_divisible(posterior):  # the posterior it was made from is divisible
            raise TypeError("given(count) must return a posterior of the same kind.")
        counts = self._with_rewards(count, added)
        mean = self.model.mdp.entry_reward
        if counts.reward_mean is not None:
            mean = np.where(self._from_counts, counts.reward_mean, mean)
        mdp = replace(
            self.model.mdp, probability=posterior.mean(), reward=mean, reward_per_entry=True
        )
        uncertain = uncertain_rewards(counts) & self._from_counts
        rewards = replace(self._rewards, fixed=mdp.entry_reward, counts=counts, uncertain=uncertain)
        starts = placed.starts
        if starts is not None and data.starts is not None:
            starts = starts + data.starts
        model = replace(self.model, mdp=mdp, placed=replace(self.model.placed, starts=starts))
        log = None if self.log is None else self._longer(posterior, mdp, added)
        policy, low = self._better(posterior, mdp, rewards, log, self._level(rng))
        return self._lowered(model, policy, low, log, truth.luck)

    def _measured(self, data: NewData, truth: Truth, rng: np.random.Generator) -> BucketCounts:
        """Return the new data as counts, with mean and variance of rewards, per entry and part."""
        key, number = np.unique(data.entry * NUM_BUCKETS + data.part, return_counts=True)
        entry = key // NUM_BUCKETS
        mean = truth.reward[entry].copy()
        variance = np.where(number > 1, 0.0, np.nan)
        noisy = self._rewards.uncertain[entry]
        if noisy.any():
            mean[noisy], variance[noisy] = self._scattered(
                entry[noisy], number[noisy], mean[noisy], rng
            )
        sign = 1.0 if self.log is None else self.log.sign
        return BucketCounts(
            entry=entry, bucket=key % NUM_BUCKETS, count=number, reward_mean=sign * mean,
            reward_var=variance,
        )  # fmt: skip

    def _scattered(
        self, entry: Ints, number: Ints, mean: Floats, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Simulate rewards around their true means; return their sample means and variances.

        Rewards in a range are either the lowest one or `BoundedLaw.width` above it, as in their
        distribution.
        """
        counts = self.posterior.counts
        if counts.reward_model == "normal":
            spread = pooled_variance(counts)[0][counts.entry_action[entry]]
            seen = mean + np.sqrt(spread / number) * rng.standard_normal(len(mean))
            return seen, np.where(number > 1, spread, np.nan)
        law = self._rewards.means.law
        width = np.maximum(law.width[entry], mean - law.lowest)
        share = np.divide(mean - law.lowest, width, out=np.zeros_like(mean), where=width > 0)
        got = rng.binomial(number, np.clip(share, 0.0, 1.0)) / number
        square = width**2 * got * (1.0 - got) * number / np.maximum(number - 1, 1)
        return law.lowest + width * got, np.where(number > 1, square, np.nan)

    def _with_rewards(self, count: Ints, added: BucketCounts) -> Counts:
        """Return the counts after the new data, with pooled rewards."""
        placed = self.posterior.counts
        if placed.reward_mean is None or placed.reward_var is None:
            return replace(placed, count=count)
        sign = 1.0 if self.log is None else self.log.sign
        size = placed.num_entries
        found = pool(
            np.concatenate((np.arange(size), added.entry)),
            np.concatenate((placed.count, added.count)),
            RewardStatistics(
                np.concatenate((placed.reward_mean, sign * added.reward_mean)),
                np.concatenate((placed.reward_var, added.reward_var)),
            ),
            size,
        )
        mean = np.where(np.isnan(found.mean), placed.reward_mean, found.mean)
        return replace(placed, count=count, reward_mean=mean, reward_var=found.variance)

    def _longer(self, posterior: Divisible, mdp: MDP, added: BucketCounts) -> LogBuckets:
        log = self.log
        if log is None:
            raise ValueError("there is no log in parts.")
        names = ("bucket", "count", "reward_mean", "reward_var")
        joined = {
            name: np.concatenate((getattr(log.parts, name), getattr(added, name))) for name in names
        }
        entry = np.concatenate((log.entry, added.entry))
        parts = BucketCounts(entry=entry, **joined)
        return replace(log, posterior=posterior, mdp=mdp, entry=entry, parts=parts)

    def _better(
        self, posterior: Divisible, mdp: MDP, rewards: Rewards, log: LogBuckets | None, level: float
    ) -> tuple[Policy, float]:
        """Return the better of the run's policy and the cautious choice, and its quantile."""
        own = self._quantile(posterior, mdp, rewards, self.policy, level)
        if log is None or self.model.allowed is not None:
            return self.policy, own
        other = log.choose(log.half(np.arange(NUM_BUCKETS)))
        if same(other) == same(self.policy):
            return self.policy, own
        found = self._quantile(posterior, mdp, rewards, other, level)
        return (other, found) if found > own else (self.policy, own)

    def _lowered(
        self, model: Model, policy: Policy, low: float, log: LogBuckets | None, luck: float
    ) -> float:
        """Subtract luck and doubt about the first state, as a run does.

        In a truth drawn from this posterior the policy is not flattered by luck; in reality it is,
        and more data either reveal that or leave it to be charged. So at least the luck that was
        drawn is subtracted.
        """
        bound = self._before_taking_off + low - self.now
        if log is not None:
            charged = self._charged_by_run + self._charge(log, policy) - self._charged_now
            bound = max(bound - max(charged, luck), min(bound, self._least))
        reach = evaluate(model.mdp, policy).return_lower - bound
        delta = self.certificate.delta
        return bound - first_state_doubt(model, policy, reach=reach, delta=delta)

    def _charge(self, log: LogBuckets, policy: Policy) -> float:
        """Return the charge for luck from a few halves, with the error of the usual number."""
        usual = DEFAULT_HALVES if log.mdp.num_rows <= MANY_ROWS else FEW_HALVES
        few = min(HALVES, usual)
        curse = curse_of_choosing(log, policy, halves=few, seed=self.model.settings.seed)
        return float(curse.mean + curse.spread * (few / usual) ** 0.5)

    @cached_property
    def _charged_now(self) -> float:
        return 0.0 if self.log is None else self._charge(self.log, self.policy)

    @property
    def _charged_by_run(self) -> float:
        curse = self.certificate.curse
        return 0.0 if curse is None else curse.mean + curse.spread

    @cached_property
    def _least(self) -> float:
        return least_return(self.model)

    @cached_property
    def _before_taking_off(self) -> float:
        """The order statistic of the run, before luck and first state were subtracted."""
        one = self.certificate
        for found in one.findings:
            if found.code == "curse_taken_off":
                return float(found.values["promise"] or 0.0)
        return one.lower_bound + one.taken_off
