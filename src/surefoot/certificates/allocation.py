"""Where more samples shorten the distance between the expected return and the promise most.

After m more tries a row that is known as well as A tries keeps ``A / (A + m)`` of its variance on
average (exactly so for a Dirichlet row: the posterior mean takes the rest), and of what is charged
for successors that no pattern names. So the distance becomes

``k sqrt(sum_r d_r^2 V_r A_r / (A_r + m_r)) + sum_r b_r A_r / (A_r + m_r)``,

k deviations of the return that the promise lies below its mean. Samples go one by one to where they
take most off. Without the second part that is the best allocation there is: the sum under the root
is a sum of convex functions, one of each m_r.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from surefoot.certificates.row_doubt import RowDoubt

TURNS = 2000
"""Most turns of the allocation; with more samples than that, each turn gives out several."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Distance:
    """The distance from the expected return to the promise as a function of further tries.

    Attributes
    ----------
    spread, size, unlisted
        ``(K,)``: of the rows of a policy, as in `RowDoubt`.
    reach
        What the spread takes off now.

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
        """How many deviations the promise lies below the mean."""
        total = float(self.spread.sum())
        return self.reach / total**0.5 if total > 0 else 0.0

    def after(self, tries: Floats) -> float:
        """Return the distance after some tries of each row, ``(K,)``."""
        return float(self._after(tries[None])[0])

    def _after(self, tries: Floats) -> Floats:
        left = 1.0 / (1.0 + tries / self.size)  # of each row, 1 where it is known for certain
        root = np.sqrt(np.maximum(left @ self.spread, 0.0))
        return np.asarray(self.deviations * root + left @ self.unlisted)

    def allocate(self, samples: int) -> Ints:
        """Return ``(K,)`` how often to try each row, given the number of samples in all.

        Fewer than that are given out where more would not help.
        """
        return self._give_out(np.ones((1, len(self.spread))), np.ones(len(self.spread)), samples)

    def allocate_bundles(self, bundles: Floats, cost: Floats, samples: int) -> Ints:
        """Return how many of each bundle to take, ``(J,)``, at a cost of about ``samples`` in all.

        ``bundles`` are ``(J, K)`` tries that only come together (an episode has many), ``cost``
        what one of each costs in samples.
        """
        return self._give_out(bundles, cost, samples)

    def _give_out(self, bundles: Floats, cost: Floats, samples: int) -> Ints:
        singles = len(bundles) == 1  # then each row is a bundle of its own
        taken = np.zeros(len(cost), dtype=np.int64)
        tries, left = np.zeros(len(self.spread)), float(samples)
        turn = max(1, int(samples / (TURNS * max(float(cost.min(initial=1.0)), 1.0))))
        while left > 0:
            gain = self._gains(tries, bundles, singles=singles) / cost
            if taken.any():  # an episode is not cut in two, and there is one at least
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
        """Return ``(J,)`` what one of each bundle takes off."""
        now = 1.0 / (1.0 + tries / self.size)
        less = now - 1.0 / (1.0 + (tries + bundles) / self.size)
        spread = float(now @ self.spread)
        if singles:
            less_spread, less_unlisted = less[0] * self.spread, less[0] * self.unlisted
        else:
            less_spread, less_unlisted = less @ self.spread, less @ self.unlisted
        root = np.sqrt(max(spread, 0.0)) - np.sqrt(np.maximum(spread - less_spread, 0.0))
        return np.asarray(self.deviations * root + less_unlisted)
