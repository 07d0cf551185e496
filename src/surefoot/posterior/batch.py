"""A batch of a posterior's draws, fixed before any of them is made."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from surefoot.posterior.protocol import Posterior, stream_key, stream_range

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """Some draws of a posterior; asking again gives the same draws.

    Attributes
    ----------
    posterior
        The posterior that is drawn from.
    source
        A generator: the draws belong to the next key it would give. It is never advanced.
    first, last
        Draws ``first`` to ``last - 1`` of that key. Batches of a posterior with finitely many draws
        share one source and do not overlap.

    Examples
    --------
    >>> from surefoot import DirichletPosterior, riverswim
    >>> posterior = DirichletPosterior(riverswim().simulate(20, np.random.default_rng(0)))
    >>> batch = Batch(posterior=posterior, source=np.random.default_rng(1), first=0, last=100)
    >>> some = batch.part(30, 40)
    >>> np.array_equal(next(batch.blocks())[30:40], next(some.blocks()))
    True
    """

    posterior: Posterior
    source: np.random.Generator
    first: int
    last: int

    @classmethod
    def take(cls, posterior: Posterior, n: int, rng: np.random.Generator) -> "Batch":
        """Return a batch of ``n`` draws with the generator's next key; advance the generator."""
        batch = cls(posterior=posterior, source=deepcopy(rng), first=0, last=n)
        stream_key(rng)
        return batch

    @property
    def draws(self) -> int:
        """The number of draws."""
        return self.last - self.first

    @property
    def key(self) -> tuple[np.uint64, np.uint64]:
        """The 128-bit key of the stream, for engines that make the draws themselves."""
        return stream_key(deepcopy(self.source))

    def part(self, first: int, last: int) -> "Batch":
        """Return draws ``first`` to ``last - 1`` of this batch."""
        return replace(self, first=self.first + first, last=self.first + last)

    def blocks(self, rows: Ints | None = None) -> Iterator[Floats]:
        """Yield the entries of some rows (None means all) in blocks of draws."""
        return stream_range(self.posterior, self.first, self.last, deepcopy(self.source), rows)
