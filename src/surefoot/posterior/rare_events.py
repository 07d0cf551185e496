"""How often a try shows what its row has never shown, counted over all rows of an action.

The learned laws say how many successors rows have and how even these are. Rare ones beside usual
ones fit no such law: where a thousand tries of two successors each end in one accident, rows look
as if they had two. What such a law misses can be counted. Of ``N`` tries of an action, those that
ended where their row went just once estimate how many of the next ``N`` would end somewhere new
(Good 1953); corrected for what these tries have shown themselves (Chao and Jost 2012). Their rate
has a Beta posterior with a flat prior. What the laws lack of it is added to every row of the
action: a number of new ones that is drawn, since numbers of new ones drawn from the laws and from
the rest add up to those of the whole (as gamma variates of one scale do).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BEFORE = 1.0
"""New ones before any was counted: a flat prior of their rate."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RareEvents:
    """By action: tries, how many of as many more are expected to be new, and by the laws alone."""

    tries: Floats
    new: Floats
    by_laws: Floats

    @classmethod
    def count(
        cls, *, count: Floats, row_start: Ints, action: Ints, num_actions: int, missing: Floats
    ) -> "RareEvents":
        """Count over the rows of every action; ``missing`` is the unseen mass by the laws."""
        visits = np.add.reduceat(count, row_start[:-1])

        def total(of_row: NDArray[np.floating]) -> Floats:
            return np.asarray(np.bincount(action, of_row, num_actions), dtype=np.float64)

        once = total(np.add.reduceat(count == 1, row_start[:-1]).astype(np.float64))
        twice = total(np.add.reduceat(count == 2, row_start[:-1]).astype(np.float64))
        tries, rows = total(visits), total((visits > 0).astype(np.float64))
        again = np.maximum(tries / np.maximum(rows, 1.0) - 1.0, 0.0) * once
        kept = np.divide(again, again + 2 * twice, out=np.ones_like(once), where=again > 0)
        return cls(tries=tries, new=once * kept, by_laws=total(visits * missing))

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

    def mean(self) -> Floats:
        """Return the mean of :meth:`draw`."""
        return np.asarray(self._beyond / (self._beyond + self.tries + 1.0))
