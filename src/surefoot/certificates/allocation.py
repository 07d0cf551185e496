"""Where more samples most reduce the distance between the expected return and the promise.

A row known as well as after A tries keeps, after m more tries, on average ``A / (A + m)`` of its
variance (exactly so for a Dirichlet row: the rest moves into the posterior mean). The same share
remains of the charge b_r for successors that follow no pattern of the log. So the distance becomes

``k sqrt(sum_r d_r^2 V_r A_r / (A_r + m_r)) + sum_r b_r A_r / (A_r + m_r)``,

where k is how many standard deviations of the return the promise lies below its mean. Samples are
given out one by one, each to the row where it reduces the distance most. Without the second sum
this greedy allocation is optimal: the sum under the root is a sum of convex functions, one of each
m_r.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from surefoot.certificates.row_doubt import RowDoubt

TURNS = 2000
"""The most turns of the allocation; with more samples, each turn gives out several."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Distance:
    """The distance from the expected return to the promise as a function of further tries.

    Attributes
    ----------
    spread, size, unlisted
        ``(K,)``: as in `RowDoubt`, for the rows of a policy.
    reach
        How far the spread puts the promise below the expected return now.

    Examples
    --------
    >>> far = Distance(
    ...     spread=np.array([4.0, 1.0]), size=np.array([10.0, 10.0]), unlisted=np.zeros(2),
    ...     reach=1.0,
    ... )
    >>> far.allocate(9).tolist()
    [9, 0]
    >>> round(far.after(np.array([9.0, 0.0])), 3) < far.after(np.zeros(2)) == 1.0
    True
    """

    spread: Floats
    size: Floats
    unlisted: Floats
    reach: float

    @classmethod
    def of(cls, doubt: RowDoubt) -> "Distance":
        """Return the distance of a policy's promise."""
        return cls(spread=doubt.spread, size=doubt.size, unlisted=doubt.unlisted, reach=doubt.reach)

    @cached_property
    def deviations(self) -> float:
        """How many standard deviations the promise lies below the mean."""
        total = float(self.spread.sum())
        return self.reach / total**0.5 if total > 0 else 0.0

    def after(self, tries: Floats) -> float:
        """Return the distance after ``tries`` more tries of each row, ``(K,)``."""
        return float(self._after(tries[None])[0])

    def _after(self, tries: Floats) -> Floats:
        left = 1.0 / (1.0 + tries / self.size)  # share left of each row; 1 if known for certain
        root = np.sqrt(np.maximum(left @ self.spread, 0.0))
        return np.asarray(self.deviations * root + left @ self.unlisted)

    def allocate(self, samples: int) -> Ints:
        """Return ``(K,)``: how often to try each row, given the number of samples in all.

        Fewer samples are given out where more would not help.
        """
        return self._give_out(np.ones((1, len(self.spread))), np.ones(len(self.spread)), samples)

    def allocate_bundles(self, bundles: Floats, cost: Floats, samples: int) -> Ints:
        """Return how many of each bundle to take, ``(J,)``, at a cost of about ``samples`` in all.

        ``bundles`` ``(J, K)``: the tries of each row that come with one bundle, such as an episode.
        ``cost`` ``(J,)``: what one bundle costs in samples.
        """
        return self._give_out(bundles, cost, samples)

    def _give_out(self, bundles: Floats, cost: Floats, samples: int) -> Ints:
        singles = len(bundles) == 1  # then each row is a bundle of its own
        taken = np.zeros(len(cost), dtype=np.int64)
        tries, left = np.zeros(len(self.spread)), float(samples)
        turn = max(1, int(samples / (TURNS * max(float(cost.min(initial=1.0)), 1.0))))
        while left > 0:
            gain = self._gains(tries, bundles, singles=singles) / cost
            if taken.any():  # an episode is not cut in two, and at least one is taken
                gain = np.where(cost <= 1.5 * left, gain, 0.0)
            best = int(np.argmax(gain)) if len(gain) else 0
            if len(gain) == 0 or not gain[best] > 0:
                break
            number = max(1, min(turn, int(left // cost[best])))
            taken[best] += number
            left -= number * float(cost[best])
            if singles:
                tries[best] += number
            else:
                tries = tries + number * bundles[best]
        return taken

    def _gains(self, tries: Floats, bundles: Floats, *, singles: bool) -> Floats:
        """Return ``(J,)``: by how much one more of each bundle reduces the distance."""
        now = 1.0 / (1.0 + tries / self.size)
        less = now - 1.0 / (1.0 + (tries + bundles) / self.size)
        spread = float(now @ self.spread)
        if singles:
            less_spread, less_unlisted = less[0] * self.spread, less[0] * self.unlisted
        else:
            less_spread, less_unlisted = less @ self.spread, less @ self.unlisted
        root = np.sqrt(max(spread, 0.0)) - np.sqrt(np.maximum(spread - less_spread, 0.0))
        return np.asarray(self.deviations * root + less_unlisted)
