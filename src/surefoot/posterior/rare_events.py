"""How often a try shows what its row has never shown, counted over all rows of an action.

The learned laws say how many successors rows have and how even these are. Rare ones beside usual
ones fit no such law: where a thousand tries of two successors each end in one accident, rows look
as if they had two. What such a law misses can be counted. Of ``N`` tries of an action, those that
ended where their row went just once estimate how many of the next ``N`` would end somewhere new
(Good 1953); corrected for what these tries have shown themselves (Chao and Jost 2012). Their rate
has a Beta posterior with a flat prior. What the laws lack of it is added to every row of the
action: a number of new ones that is drawn, since numbers of new ones drawn from the laws and from
the rest add up to those of the whole (as gamma variates of one scale do).

Not to all rows alike. Rows that were tried often have less left to show: what the laws lack is
counted among rows with about as many tries. And a row that has shown the ditch cannot show it for
the first time. A successor (or, where states have an order, a step) that several rows of the action
have shown is expected in the rows that have not, and only there. A policy is chosen among rows that
look good because they have shown no accident: spread over all rows, they got half of what they
hide.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, gammaln

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BEFORE = 1.0
"""New ones before any was counted: a flat prior of their rate."""
FEWEST_ROWS = 3
"""Rows that must have shown something before it is expected in the others more than elsewhere."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RareEvents:
    """How often rows show something new.

    Attributes
    ----------
    tries, new, by_laws
        ``(A,)``: tries of each action, how many of as many more are expected to be new, and by the
        laws alone.
    open
        ``(R,)``: how many times as often as the mean of its action a row is expected to do so.
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
        """Count over the rows of every action; ``missing`` is the unseen mass by the laws.

        ``patterns``: names of what each entry shows, such as its successor; below 0 for none.
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
        """How many new ones of ``tries`` the laws leave out."""
        return np.where(self.tries > 0, np.maximum(self.new + BEFORE - self.by_laws, 0.0), 0.0)

    def draw(self, uniform: Floats) -> Floats:
        """Return ``(n, actions)``: what is added to the unseen mass of the rows of each action."""
        beyond = np.broadcast_to(self._beyond, uniform.shape)
        found = np.zeros(uniform.shape)
        some = beyond > 0
        rest = np.broadcast_to(self.tries + 1.0, uniform.shape)
        found[some] = betaincinv(beyond[some], rest[some], uniform[some])
        return found

    def row_means(self, action: Ints) -> Floats:
        """Return ``(R,)``: the mean of what is added to each row, ``1 - (1 - drawn) ** open``."""
        beyond, rest = self._beyond[action], self.tries[action] + 1.0
        left = gammaln(rest + self.open) - gammaln(rest)
        left += gammaln(beyond + rest) - gammaln(beyond + rest + self.open)
        return np.where(beyond > 0, -np.expm1(left), 0.0)


def _lacking_by_tries(action: Ints, visits: Floats, new: Floats, by_laws: Floats) -> Floats:
    """Return ``(R,)``: what the laws lack in rows with about as many tries, over the action's mean.

    Rows tried ten thousand times have little left to show, however much rows tried once hide. So
    rows of an action are compared with those whose tries have the same power of two.
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
    """Return ``(R,)``: how many times as often as the mean of its action a row shows new things.

    What ``N`` rows have shown just once is expected, in a try of a row that has not shown it, with
    the chance ``N / (tries of all such rows, and of one more)``: the empirical Bayes estimate of
    Robbins (1956). Of several patterns that an entry belongs to, the one of most rows counts. What
    is no pattern of enough rows may come anywhere.
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
    # What is left of a difference of equal sums may lie below zero by its rounding.
    share = (np.maximum(expected, 0.0) * tries[action] + free[action]) / total[action]
    return np.asarray(share, dtype=np.float64)


def _keys(action: Ints, name: Ints) -> Ints:
    """Return a number for each action and name; those without a name share one."""
    both = action * (int(name.max(initial=0)) + 2) + name + 1
    return np.asarray(np.unique(both, return_inverse=True)[1])
