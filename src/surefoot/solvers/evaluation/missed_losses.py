"""What losses that a log may have missed can cost a policy, where rewards lie in a known range.

A log that shows no losses does not prove that there are none. Gaffke's bound (2005) for the mean
of n rewards gives them, and one more at the low end of the range, random weights from
Dirichlet(1, ..., 1); the further one has weight ``1 - U ** (1/n)`` with a uniform ``U``. That is
the largest rate of losses that n tries miss with probability ``U``.

A policy's return is a sum over rows, weighted by how often it plays them. Were every row given a
further reward of its own, the same doubt would count once for each of them: in a hundred rows of
ten tries, a hundred losses in a thousand tries. So it is given to all rows together. Losses of
rates ``p_i``, missed in all ``n_i`` tries, have probability ``prod (1 - p_i) ** n_i``, and they
cost ``sum c_i p_i``, where ``c_i`` is the row's plays, on average over the draws, times how far its
mean lies above the low end. In a draw with ``E = -log(U)`` the policy pays::

    max  sum c_i p_i   s.t.  sum -n_i log(1 - p_i) <= E,   0 <= p_i <= 1.

The multiplier ``m`` of the constraint leaves ``1 - p_i = min(1, m n_i / c_i)``, so that rows are
filled in the order of their cost for each try: sorted once, every draw takes a binary search. One
row alone, and rows that are alike, have exactly Gaffke's law with all their tries. Whether it holds
where some losses were seen is counted (docs/reading-logs.md).

How much better one policy is than another depends on the difference of their plays. Where the other
one plays a row more often, a gain that was missed costs: the high end counts there.

Policies must not depend on the draws; what choosing them on the same log is worth is another matter
(`surefoot.certificates.curse`).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from surefoot.model.mdp import MDP
from surefoot.posterior.of_counts import Key
from surefoot.solvers.evaluation.rewards import Rewards

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STREAM = 1
"""The last word of the counter of these random numbers; that of all others is 0."""
ROUNDING = 1e-12
"""Costs are computed to this relative precision, and rounded up by it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MissedLosses:
    """What losses that the log may have missed can cost.

    Attributes
    ----------
    rows, tries, cost
        ``(K,)``: rows, how often they were tried, and what they cost if they bring nothing but
        losses; the highest cost for each try first.
    """

    rows: Ints
    tries: Floats
    cost: Floats

    def total(self, missed: Floats) -> Floats:
        """Return what all rows cost in draws whose losses are missed with ``exp(-missed)``.

        Examples
        --------
        >>> one = MissedLosses(rows=np.array([0]), tries=np.array([9.0]), cost=np.array([2.0]))
        >>> one.total(np.array([0.0, 9.0 * np.log(2.0)])).round(9).tolist()
        [0.0, 1.0]
        """
        if len(self.rows) == 0:
            return np.zeros(len(missed))
        filled = np.searchsorted(self._full, missed)
        cost = np.cumsum(self.cost)[filled] - self._level(missed) * np.cumsum(self.tries)[filled]
        return np.asarray(np.maximum(cost, 0.0) * (1.0 + ROUNDING))

    def of_rows(self, missed: Floats) -> Floats:
        """Return ``(n, K)``: what each row costs."""
        if len(self.rows) == 0:
            return np.zeros((len(missed), 0))
        return np.maximum(self.cost - self._level(missed)[:, None] * self.tries, 0.0)

    @cached_property
    def _value(self) -> Floats:
        return np.asarray(np.log(self.cost / self.tries))

    @cached_property
    def _full(self) -> Floats:
        """``(K - 1,)``: how much is missed when the next row begins to count."""
        tries, spent = np.cumsum(self.tries), np.cumsum(self.tries * self._value)
        return np.asarray(np.maximum.accumulate(spent[:-1] - tries[:-1] * self._value[1:]))

    def _level(self, missed: Floats) -> Floats:
        """Return the multiplier of every draw."""
        filled = np.searchsorted(self._full, missed)
        tries, spent = np.cumsum(self.tries), np.cumsum(self.tries * self._value)
        return np.asarray(np.exp((spent[filled] - missed) / tries[filled]))


def missed_losses(mdp: MDP, plays: Floats, rewards: Rewards) -> MissedLosses:
    """Return what losses cost that may have been missed.

    ``plays`` is ``(R,)``: how often each row is played (`plays_of_rows`), less, for a difference,
    how often the other policy plays it.

    Examples
    --------
    >>> from surefoot import DirichletPosterior, read_transitions
    >>> from surefoot.solvers.evaluation.rewards import rewards_of
    >>> log = {"state": [0, 1] * 9, "action": [0] * 18, "next_state": [1, 0] * 9,
    ...        "reward": [1.0] * 18}
    >>> counts = read_transitions(log, reward_range=(0.0, 1.0)).on_support("observed")
    >>> mdp = counts.to_mdp(discount=0.5, prior=1.0)
    >>> rewards = rewards_of(mdp, DirichletPosterior(counts), objective="max")
    >>> found = missed_losses(mdp, np.array([1.0, 1.0]), rewards)
    >>> paid = found.total(missed_by_luck((np.uint64(1), np.uint64(2)), 10_000))
    >>> bool(abs(paid.mean() - 2 / (18 + 1)) < 0.01)  # as one more reward in eighteen tries
    True
    """
    entries = mdp.entries_of(np.flatnonzero(plays))
    entries = entries[rewards.uncertain[entries]]
    if not (rewards.may_have_missed and len(entries)):
        nothing = np.zeros(0)
        return MissedLosses(rows=np.zeros(0, dtype=np.int64), tries=nothing, cost=nothing)
    places = entries if rewards.places is None else rewards.places[entries]
    row, means = mdp.entry_row[entries].astype(np.int64), rewards.means
    far = np.where(plays[row] > 0, means.above[places], means.below[places])
    far_of_row = np.bincount(row, mdp.probability[entries] * far, mdp.num_rows)
    cost = np.asarray(np.abs(plays) * far_of_row, dtype=np.float64)
    tries = np.asarray(np.bincount(row, means.tries[places], mdp.num_rows), dtype=np.float64)
    rows = np.flatnonzero((cost > 0) & (tries > 0))
    rows = rows[np.argsort(-cost[rows] / tries[rows], kind="stable")]
    return MissedLosses(rows=rows, tries=tries[rows], cost=cost[rows])


def missed_by_luck(key: Key, draws: int) -> Floats:
    """Return ``-log U`` for each draw, from the stream that a key of random rewards has for it."""
    stream = np.random.Philox(counter=[0, 0, 0, STREAM], key=np.array(key, dtype=np.uint64))
    return -np.log1p(-np.random.Generator(stream).random(draws))
