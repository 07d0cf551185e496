"""Which draws of a posterior are meant, before any is made."""

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
    """Some draws of a posterior, the same ones each time they are asked for.

    Attributes
    ----------
    posterior
        Where they come from.
    source
        The generator whose next key they belong to. It is never advanced.
    first, last
        Which draws of that key: batches of finitely many draws share one source and overlap
        nowhere.

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
        """Return the next ``n`` draws of a generator, which moves on to its next key."""
        batch = cls(posterior=posterior, source=deepcopy(rng), first=0, last=n)
        stream_key(rng)
        return batch

    @property
    def draws(self) -> int:
        """The number of draws."""
        return self.last - self.first

    @property
    def key(self) -> tuple[np.uint64, np.uint64]:
        """The 128 bits that name the stream: for engines that draw by themselves."""
        return stream_key(deepcopy(self.source))

    def part(self, first: int, last: int) -> "Batch":
        """Return draws ``first`` to ``last - 1`` of these."""
        return replace(self, first=self.first + first, last=self.first + last)

    def blocks(self, rows: Ints | None = None) -> Iterator[Floats]:
        """Yield the entries of some rows (None: of all), some draws at a time."""
        return stream_range(self.posterior, self.first, self.last, deepcopy(self.source), rows)
