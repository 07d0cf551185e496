"""A log in two halves, on the entries of one model: what each half alone says of it."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from surefoot.certificates.by_step import Policy, best_rule
from surefoot.certificates.plays import row_values, standard_error
from surefoot.certificates.usual import (
    caution_at,
    ends_by_counts,
    keep_usual,
    lower_ends,
    surer_rows,
    usual_rows,
)
from surefoot.data.buckets import NUM_BUCKETS, BucketCounts
from surefoot.data.counts import Counts
from surefoot.data.rewards import RewardStatistics, pool
from surefoot.model.mdp import MDP
from surefoot.model.policies import check_policy
from surefoot.model.step_policy import StepPolicy
from surefoot.posterior.protocol import Divisible
from surefoot.solvers.backward import Ranges
from surefoot.solvers.solver import evaluate, solve
from surefoot.solvers.steps import counted_steps, largest_value, until_the_end

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CAUTION = 0.6
"""How many deviations of its row a half takes off an action when it chooses, per deviation that
delta is worth: a search for the 5% quantile is more cautious than one for the 20% quantile, and is
lucky less often."""
AS_WHOLE = 2
"""A half judges departures from the usual action as if it had the tries of the whole log. By its
own it would depart less often than the whole log does, or never, and the luck of those would not
show."""
ROUNDS = 2
"""How often the deviations are computed again with the values that they led to."""
REMEMBERED_ENTRIES, REMEMBERED = 100_000, 32
"""Halves are remembered for models with at most this many entries, and this many of them."""

_MEANS: WeakKeyDictionary[Divisible, dict[bytes, Floats]] = WeakKeyDictionary()
"""Posterior means of parts of a log, by the posterior of the whole and the counts of the part."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Half:
    """What some of the buckets say of a model.

    Attributes
    ----------
    mdp
        The model with the posterior mean of the half, and its mean rewards where rewards vary.
    count
        ``(E,)``: its transitions.
    visits
        ``(R,)``: its tries of each row.
    quarters
        Its buckets, in two parts.
    """

    mdp: MDP
    count: Ints
    visits: Ints
    quarters: tuple[Ints, Ints]


@dataclass(frozen=True, kw_only=True, eq=False)
class LogBuckets:
    """A log in buckets, on the entries of a model.

    Attributes
    ----------
    posterior, mdp
        What the whole log says.
    entry
        ``(M,)``: the model's entry of each bucket count.
    parts
        The bucket counts.
    sign
        -1 where the model counts costs as negative rewards.
    caution
        Deviations of a row's value that are taken off it when a half chooses.
    stationary
        With a horizon: whether one rule for all steps is chosen.
    least
        How often a half must have tried what it chooses, where it can.
    keep
        How many deviations count where a half keeps the usual action (`keep_usual`); None: never.
    """

    posterior: Divisible
    mdp: MDP
    entry: Ints
    parts: BucketCounts
    sign: float
    caution: float
    stationary: bool = False
    least: int = 1
    keep: float | None = None

    @classmethod
    def of(
        cls, posterior: Divisible, mdp: MDP, counts: Counts, parts: BucketCounts, *, costs: bool,
        delta: float, stationary: bool = False, least_tries: int = 1, keeps_usual: bool = False,
    ) -> "LogBuckets":  # fmt: skip
        """Place bucket counts of a log on the model made from it; rows left out are left out."""
        placed = posterior.counts
        states, actions = placed.num_states, placed.num_actions
        key = (placed.entry_state * actions + placed.entry_action) * states + placed.successor
        own = (counts.entry_state * actions + counts.entry_action) * states + counts.successor
        at = np.minimum(np.searchsorted(key, own[parts.entry]), len(key) - 1)
        kept = (key[at] == own[parts.entry]) & (placed.count[at] > 0)
        some = replace(
            parts,
            **{
                name: getattr(parts, name)[kept]
                for name in ("entry", "bucket", "count", "reward_mean", "reward_var")
            },
        )
        return cls(
            posterior=posterior,
            mdp=mdp,
            entry=at[kept],
            parts=some,
            sign=-1.0 if costs else 1.0,
            caution=CAUTION * float(norm.isf(delta)),
            stationary=stationary,
            least=max(1, (least_tries + 1) // 2),
            keep=caution_at(delta) if keeps_usual else None,
        )

    @cached_property
    def reward_noise(self) -> Floats:
        """``(R,)``: the variance of a single reward in each row, given the successor.

        Rows that say little of it themselves take it from all rows together.
        """
        rows = self.mdp.num_rows
        if not self.posterior.counts.rewards_vary:
            return np.zeros(rows)
        statistics = RewardStatistics(self.parts.reward_mean, self.parts.reward_var)
        size = self.mdp.num_entries
        found = pool(self.entry, self.parts.count, statistics, size).variance
        freedom = np.maximum(np.bincount(self.entry, self.parts.count, size) - 1.0, 0.0)
        square = np.where(freedom > 0, np.nan_to_num(found) * freedom, 0.0)
        start = self.mdp.row_start[:-1]
        own, free = np.add.reduceat(square, start), np.add.reduceat(freedom, start)
        usual = float(own.sum() / max(1.0, free.sum()))
        return np.asarray((own + usual) / (free + 1.0))

    @cached_property
    def losses(self) -> dict[tuple[Any, ...], Any]:
        """What halves of this log lost, by halves; several questions about the log share it."""
        return {}

    @cached_property
    def _value(self) -> Floats:
        """``(S,)``: the best value by the whole log, from which every half sets out."""
        return solve(self.mdp, tolerance=max(1e-6 * largest_value(self.mdp), 1e-300)).value

    @cached_property
    def whole(self) -> Half:
        """What the whole log says, in the form of a half."""
        count = self.posterior.counts.count.astype(np.int64)
        visits = np.add.reduceat(count, self.mdp.row_start[:-1])
        every = np.arange(NUM_BUCKETS)
        return Half(mdp=self.mdp, count=count, visits=visits, quarters=(every[::2], every[1::2]))

    def half(self, buckets: Ints) -> Half:
        """Return what some buckets say, the laws of rows as learned from all."""
        count, reward = self._counted(buckets, self.mdp)
        mdp = replace(self.mdp, probability=_mean_given(self.posterior, count))
        if reward is not None:
            mdp = replace(mdp, reward=reward, reward_per_entry=True)
        visits = np.add.reduceat(count, self.mdp.row_start[:-1])
        return Half(mdp=mdp, count=count, visits=visits, quarters=(buckets[::2], buckets[1::2]))

    def quarter_seen(self, buckets: Ints, seen: MDP) -> MDP:
        """Return what some buckets of a half saw; rows they never tried are as the half saw them.

        Any split of a half's buckets will do: they were filled at random.
        """
        count, reward = self._counted(buckets, seen)
        visits = np.add.reduceat(count, seen.row_start[:-1])
        paid = seen.entry_reward if reward is None else reward
        return _frequencies(count, visits, paid, belief=seen.probability, untried=seen)

    def _counted(self, buckets: Ints, rest: MDP) -> tuple[Ints, Floats | None]:
        """Return transitions of some buckets and, where rewards vary, their mean rewards.

        Entries they do not have are paid as in another model.
        """
        wanted = np.zeros(NUM_BUCKETS, dtype=np.bool_)
        wanted[buckets] = True
        here = wanted[self.parts.bucket]
        entry, number = self.entry[here], self.parts.count[here]
        size = self.mdp.num_entries
        count = np.bincount(entry, number, size).astype(np.int64)
        if not self.posterior.counts.rewards_vary:
            return count, None
        statistics = RewardStatistics(self.parts.reward_mean[here], self.parts.reward_var[here])
        mean = self.sign * pool(entry, number, statistics, size).mean
        return count, np.where(np.isnan(mean), rest.entry_reward, mean)

    def choose(self, half: Half) -> Policy:
        """Return a cautious policy by a half: its mean, less a deviation of each row's value.

        Only rows that the half has tried `least` times are chosen, in states where there are any;
        in others those tried most.
        """
        mdp = half.mdp
        most = np.maximum.reduceat(half.visits, mdp.state_start[:-1])[mdp.row_state]
        low, high = float(mdp.reward.min()), float(mdp.reward.max())
        floor = (high - low + 1.0) * counted_steps(mdp) + 2 * _final_size(mdp)
        missing = np.where(half.visits < np.minimum(self.least, most), floor, 0.0)
        if mdp.horizon is not None and not self.stationary:
            return self._choose_by_step(half, missing)
        tolerance = max(1e-6 * largest_value(mdp), 1e-300)
        value = self._value
        policy: Ints = np.zeros(mdp.num_states, dtype=np.int64)
        for _ in range(ROUNDS):
            deviation = row_values(mdp, mdp.discount * value[mdp.successor])[1]
            off = missing + self.caution * standard_error(deviation, half.visits)
            less = mdp.entry_reward - off[mdp.entry_row]
            careful = replace(mdp, reward=less, reward_per_entry=True)
            if mdp.horizon is not None:
                policy = best_rule(careful)
                value = evaluate(careful, policy, tolerance=tolerance).value
                continue
            found = solve(careful, tolerance=tolerance)
            policy, value = np.asarray(found.policy, dtype=np.int64), found.value
        if self.keep is None or mdp.horizon is not None:
            return policy
        rows = check_policy(mdp, policy).rows.astype(np.int64)
        ends = ends_by_counts(mdp, AS_WHOLE * half.visits, self.keep)
        return np.asarray(mdp.row_action[keep_usual(mdp, rows, half.visits, ends)])

    def _choose_by_step(self, half: Half, missing: Floats) -> StepPolicy:
        """Return the cautious policy by step, by backward induction."""
        mdp = half.mdp
        horizon = mdp.horizon or 1
        found = Ranges(mdp, horizon)
        value = np.zeros(mdp.num_states) if mdp.final_reward is None else mdp.final_reward
        usual = usual_rows(mdp, half.visits)
        for step in reversed(range(horizon)):
            mean, deviation = row_values(mdp, mdp.discount * value[mdp.successor])
            error = standard_error(deviation, half.visits)
            worth = mean - missing - self.caution * error
            value = np.maximum.reduceat(worth, mdp.state_start[:-1])
            best = np.flatnonzero(worth == value[mdp.row_state])
            rows = best[np.unique(mdp.row_state[best], return_index=True)[1]]
            if self.keep is not None:
                less = standard_error(deviation, AS_WHOLE * half.visits)
                ends = lower_ends(mdp, half.visits, mean, less, self.keep)
                rows = surer_rows(rows, usual, half.visits, ends)
                value = worth[rows]
            found.note(step, rows)
        return found.policy()


def _mean_given(posterior: Divisible, count: Ints) -> Floats:
    """Return the posterior mean of a part of a log; the same parts are asked for at every delta."""
    if len(count) > REMEMBERED_ENTRIES:
        return posterior.given(count).mean()
    try:
        known = _MEANS.setdefault(posterior, {})
    except TypeError:  # a posterior of the user's that nothing can refer to
        return posterior.given(count).mean()
    key = count.tobytes()
    if key not in known:
        if len(known) == REMEMBERED:
            known.pop(next(iter(known)))
        known[key] = posterior.given(count).mean()
    return known[key]


def _final_size(mdp: MDP) -> float:
    return 0.0 if mdp.final_reward is None else float(np.abs(mdp.final_reward).max())


def as_seen(other: Half, own: Half) -> MDP:
    """Return a model of the plain frequencies of one half, without any prior.

    So it can contradict the prior as well as the luck of the other half. Rows that it never tried
    are taken from the other half.
    """
    return _frequencies(
        other.count,
        other.visits,
        other.mdp.entry_reward,
        belief=other.mdp.probability,
        untried=own.mdp,
    )


def _frequencies(count: Ints, visits: Ints, reward: Floats, *, belief: Floats, untried: MDP) -> MDP:
    """Return a model of plain frequencies; rows never tried are taken from another model."""
    at = untried.entry_row
    tried = (visits > 0)[at]
    share = count / np.maximum(visits, 1)[at]
    if until_the_end(untried):  # what was never left must still end: one try as believed
        share = (count + belief) / (visits + 1.0)[at]
    return replace(
        untried,
        probability=np.where(tried, share, untried.probability),
        reward=np.where(tried, reward, untried.entry_reward),
        reward_per_entry=True,
    )
