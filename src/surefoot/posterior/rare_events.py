"""How often a try reaches a successor new to its row, counted over all rows of an action.

The learned laws say how many successors rows have and how even these are. Rare successors next to
common ones fit no such law: where rows have two common successors and one try in a thousand ends in
an accident, rows look as if they had two successors. What the laws miss can be counted. Of ``N``
tries of an action, the number of those whose successor their row showed just once estimates how
many of the next ``N`` tries would reach a successor new to their row (Good 1953), corrected for
what these tries have themselves shown (Chao and Jost 2012). The rate of such tries has a Beta
posterior with a flat prior. The part of it that the laws do not explain is added to every row of
the action, as a separate Beta variate: the numbers of new successors that the laws expect and that
they miss add up to the total (as gamma variates of one scale do).

Rows do not all get the same share. Rows that were tried often have less left to show, so what the
laws miss is counted among rows with a similar number of tries. And a successor that a row has shown
cannot be new to it: a successor (or, where states are ordered, a displacement) that several rows of
the action have shown is expected only in the rows that have not shown it. A policy is chosen among
rows that look good because they have shown no accident: with equal shares these rows got half of
the probability they hide.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, gammaln

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BEFORE = 1.0
"""New successors assumed before any was counted: the flat prior of their rate."""
FEWEST_ROWS = 3
"""A pattern counts only if at least this many rows have shown it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RareEvents:
    """How often tries reach successors new to their row.

    Attributes
    ----------
    tries, new, by_laws
        ``(A,)``: the tries of each action; how many of as many further tries are expected to reach
        a new successor; and how many the laws alone expect.
    open
        ``(R,)``: a row's rate of new successors, relative to the mean of its action.
    """

    tries: Floats
    new: Floats
    by_laws: Floats
    open: Floats

    @classmethod
    def count(
        cls, *, count: Floats, row_start: Ints, action: Ints, num_actions: int, missing: Floats,
        patterns: tuple[Ints, ...],
    ) -> "RareEvents":  # fmt: skip
        """Count over the rows of every action; ``missing``, ``(R,)``, is the laws' unseen mass.

        Each array of ``patterns`` numbers what entries show, such as their successor; negative
        means no pattern.
        """
        visits = np.add.reduceat(count, row_start[:-1])

        def total(of_row: NDArray[np.floating]) -> Floats:
            return np.asarray(np.bincount(action, of_row, num_actions), dtype=np.float64)

        once = total(np.add.reduceat(count == 1, row_start[:-1]).astype(np.float64))
        twice = total(np.add.reduceat(count == 2, row_start[:-1]).astype(np.float64))
        tries, rows = total(visits), total((visits > 0).astype(np.float64))
        again = np.maximum(tries / np.maximum(rows, 1.0) - 1.0, 0.0) * once
        kept = np.divide(again, again + 2 * twice, out=np.ones_like(once), where=again > 0)
        singletons = np.add.reduceat(count == 1, row_start[:-1]) * kept[action]
        lacking = _lacking_by_tries(action, visits, singletons, visits * missing)
        return cls(
            tries=tries, new=once * kept, by_laws=total(visits * missing),
            open=lacking * _open_rows(count, row_start, action, patterns),
        )  # fmt: skip

    @property
    def _beyond(self) -> Floats:
        """The expected new successors in ``tries`` that the laws do not explain."""
        return np.where(self.tries > 0, np.maximum(self.new + BEFORE - self.by_laws, 0.0), 0.0)

    def draw(self, uniform: Floats) -> Floats:
        """Return ``(n, actions)``: the share of mass moved to unseen successors in each action."""
        beyond = np.broadcast_to(self._beyond, uniform.shape)
        found = np.zeros(uniform.shape)
        some = beyond > 0
        rest = np.broadcast_to(self.tries + 1.0, uniform.shape)
        found[some] = betaincinv(beyond[some], rest[some], uniform[some])
        return found

    def row_means(self, action: Ints) -> Floats:
        """Return ``(R,)``: the mean share moved in each row, ``1 - (1 - drawn) ** open``."""
        beyond, rest = self._beyond[action], self.tries[action] + 1.0
        left = gammaln(rest + self.open) - gammaln(rest)
        left += gammaln(beyond + rest) - gammaln(beyond + rest + self.open)
        return np.where(beyond > 0, -np.expm1(left), 0.0)


def _lacking_by_tries(action: Ints, visits: Floats, new: Floats, by_laws: Floats) -> Floats:
    """Return ``(R,)``: what the laws miss in rows tried similarly often, over the action's mean.

    Rows tried ten thousand times have little left to show, however much rows tried once hide. So a
    row is grouped with the rows of its action whose number of tries has the same power of two.
    """
    level = np.log2(np.maximum(visits, 1.0)).astype(np.int64)
    levels = int(level.max(initial=0)) + 1
    group = action * levels + level
    tries = np.bincount(action, visits)
    in_group = np.bincount(group, visits)
    share = np.divide(visits, tries[action], out=np.zeros_like(visits), where=tries[action] > 0)
    lacks = np.maximum(np.bincount(group, new + BEFORE * share - by_laws), 0.0)
    total = np.bincount(np.arange(len(lacks)) // levels, lacks, len(tries))[action]
    known = (total > 0) & (visits > 0)
    part = np.divide(lacks[group], total, out=np.ones_like(visits), where=known)
    tried = np.divide(in_group[group], tries[action], out=np.ones_like(visits), where=known)
    return np.asarray(part / tried)


def _open_rows(count: Floats, row_start: Ints, action: Ints, patterns: tuple[Ints, ...]) -> Floats:
    """Return ``(R,)``: a row's rate of new successors by patterns, over the mean of its action.

    A pattern that ``N`` rows have shown just once is expected in a try of a row that has not shown
    it with probability ``N / (tries of all rows that have not, plus the tries of one that has)``:
    the empirical Bayes estimate of Robbins (1956). An entry with several patterns counts for the
    one that most rows have shown. An entry without a pattern of enough rows is expected anywhere.
    """
    visits = np.add.reduceat(count, row_start[:-1])
    tries = np.bincount(action, visits)
    seen = np.flatnonzero(count > 0)
    row = np.repeat(np.arange(len(visits)), np.diff(row_start))[seen]
    once = count[seen] == 1
    keys = [_keys(action[row], names[seen]) for names in patterns]
    rows = [
        np.where(names[seen] >= 0, np.bincount(key)[key], 0)
        for key, names in zip(keys, patterns, strict=True)
    ]
    most = np.max(rows, axis=0, initial=FEWEST_ROWS)
    anywhere, expected = once.copy(), np.zeros(len(visits))
    for key, shown_by in zip(keys, rows, strict=True):
        counts_here = anywhere & (shown_by == most)
        anywhere &= ~counts_here
        first_time, shown = np.bincount(key, counts_here), np.bincount(key, visits[row])
        one_more = np.bincount(key, visits[row] * counts_here) / np.maximum(first_time, 1.0)
        hazard = first_time[key] / np.maximum(tries[action[row]] - (shown - one_more)[key], 1.0)
        # All hazards of the action, less those of what the row has shown.
        of_action = np.bincount(action[row], hazard / shown_by.clip(1), len(tries))
        expected += of_action[action] - np.bincount(row, hazard, len(visits))
    free = BEFORE + np.bincount(action[row], anywhere, len(tries))
    total = BEFORE + np.bincount(action[row], once, len(tries))
    # Rounding may leave a difference of equal sums below zero.
    share = (np.maximum(expected, 0.0) * tries[action] + free[action]) / total[action]
    return np.asarray(share, dtype=np.float64)


def _keys(action: Ints, name: Ints) -> Ints:
    """Return a number for each pair of action and pattern; without a pattern, one per action."""
    both = action * (int(name.max(initial=0)) + 2) + name + 1
    return np.asarray(np.unique(both, return_inverse=True)[1])
