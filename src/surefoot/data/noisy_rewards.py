"""Predict the mean rewards of transitions never seen, where rewards scatter or may vary in a range.

No pattern can agree exactly with such rewards, but averages can tell what a successor that is new
to its row usually brings, beside the rest of the row:

* successors that a row showed once were as new to it as one never seen would be. The mean of their
  distances from the rest of the row, with one more at the lowest reward, is what new ones bring;
* a next state, or a step (an action and how far it led), may bring less than the rest of the rows
  that have shown it: a state that is costly to enter is costly for a row that has not entered it.

A prediction is the mean of the row plus the least of these, or plus nothing if all are gains. Every
average is taken at its lower end. Next states that nothing else is known about have no prediction.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from surefoot.data.additive import FEWEST_TESTS, SURE, Transitions

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

REACH = float(norm.ppf(SURE))
"""How many standard errors the lower end of an average lies below it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyRewards:
    """What rows bring, and what successors that are new to them bring less.

    Attributes
    ----------
    row
        The lower end of each row's mean.
    new, number
        For each action: the lower end of the mean distance from the row, and the number of
        successors that it is the mean of.
    state, kind
        The same of next states and of steps; NaN where nothing is known.
    """

    row: Floats
    new: Floats
    number: Floats
    state: Floats
    kind: Floats

    def predict(self, asked: Transitions, lowest: Floats) -> Floats:
        """Return the reward of each transition, NaN where there is no prediction."""
        base, number = self.row[asked.row], self.number[asked.action]
        less = (number * self.new[asked.action] + np.minimum(lowest - base, 0.0)) / (number + 1.0)
        shown = (asked.kind >= 0) & (asked.kind < len(self.kind))
        step = np.where(shown, self.kind[np.where(shown, asked.kind, 0)], np.nan)
        least = np.fmin(np.minimum(less, self.state[asked.successor]), step)
        return np.maximum(base + np.minimum(least, 0.0), lowest)


def fit_noisy(
    shown: Transitions, reward: Floats, variance: Floats, count: Ints, sizes: tuple[int, int, int]
) -> NoisyRewards | None:
    """Return what averages say about new successors; None if too few were seen.

    ``reward, variance, count``: of the transitions shown; the variance of a single try does not
    matter. ``sizes``: the numbers of rows, actions and states.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows = np.repeat(np.arange(100), 3)  # each pays 5 on average, and 1 if it leads to state 2
    >>> shown = Transitions(rows, 0 * rows, np.tile([0, 1, 2], 100), np.full(300, -1))
    >>> paid = np.tile([5.0, 5.0, 1.0], 100) + 0.1 * rng.normal(size=300)
    >>> found = fit_noisy(shown, paid, np.zeros(300), np.tile([4, 4, 1], 100), (100, 1, 3))
    >>> asked = Transitions(*np.array([[0, 0], [0, 0], [0, 2], [-1, -1]]))
    >>> found.predict(asked, np.full(2, -9.0)).round(1).tolist()
    [-0.3, -0.4]
    """
    rows, actions, states = sizes
    size = count.astype(np.float64)
    tries, total = np.bincount(shown.row, size, rows), np.bincount(shown.row, size * reward, rows)
    mean = total / np.maximum(tries, 1.0)
    spread = _spread(shown, reward - mean[shown.row], variance, size, actions)
    rest = tries[shown.row] - size
    single = (count == 1) & (rest > 0)
    if np.count_nonzero(single) < FEWEST_TESTS:
        return None
    gap = reward - (total[shown.row] - size * reward) / np.maximum(rest, 1.0)
    weight = size * rest / tries[shown.row]
    new, number = _of_new(gap[single], shown.action[single], actions)
    of_row = np.zeros(rows)
    of_row[shown.row] = spread[shown.action]
    known = shown.kind >= 0
    kinds = int(shown.kind.max(initial=0)) + 1

    def at(key: Ints, which: NDArray[np.bool_], length: int) -> Floats:
        """Return the lower end of the mean gap of each key."""
        key, part = key[which], weight[which]
        all_of = np.bincount(key, part, length)
        middle = np.bincount(key, part * gap[which], length)
        error = np.sqrt(np.bincount(key, part * spread[shown.action[which]], length))
        return np.where(all_of > 0, (middle - REACH * error) / np.maximum(all_of, 1e-300), np.nan)

    return NoisyRewards(
        row=mean - REACH * np.sqrt(of_row / np.maximum(tries, 1.0)),
        new=new, number=number,
        state=at(shown.successor, np.ones(len(gap), dtype=np.bool_), states),
        kind=at(shown.kind, known, kinds),
    )  # fmt: skip


def _spread(
    shown: Transitions, off: Floats, variance: Floats, size: Floats, actions: int
) -> Floats:
    """Return the variance of rewards around the mean of their row, for each action."""
    own = np.nan_to_num(variance) * np.maximum(size - 1.0, 0.0)
    square = np.bincount(shown.action, own + size * off**2, actions)
    ran = np.unique(np.stack((shown.action, shown.row)), axis=1)[0]
    freedom = np.bincount(shown.action, size, actions) - np.bincount(ran, minlength=actions)
    everywhere = square.sum() / max(float(freedom.sum()), 1.0)
    return np.asarray(np.where(freedom > 0, square / np.maximum(freedom, 1.0), everywhere))


def _of_new(gap: Floats, action: Ints, actions: int) -> tuple[Floats, Floats]:
    """Return the lower end of the mean gap of each action, and of how many it is the mean.

    Actions with few new successors take the mean over all actions.
    """

    def low(total: Floats, square: Floats, number: Floats) -> Floats:
        mean = total / np.maximum(number, 1.0)
        variance = np.maximum(square - number * mean**2, 0.0) / np.maximum(number - 1.0, 1.0)
        return np.asarray(mean - REACH * np.sqrt(variance / np.maximum(number, 1.0)))

    every = (gap, gap**2, np.ones(len(gap)))
    total, square, number = (np.bincount(action, one, actions).astype(np.float64) for one in every)
    enough = number >= FEWEST_TESTS
    total, square, number = (np.where(enough, one, one.sum()) for one in (total, square, number))
    return low(total, square, number), number
