"""The common part of posteriors computed from counts: draws by key, in blocks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from surefoot._work import DRAWN, count
from surefoot.data.counts import Counts
from surefoot.posterior.dirichlet_kernels import BLOCK_DRAWS
from surefoot.posterior.protocol import BLOCK_VALUES, check_draws_wanted, stream_key
from surefoot.posterior.rows import Floats, OnRows, RowLayout

Key = tuple[np.uint64, np.uint64]


class OfCounts(OnRows):
    """A posterior with the rows of its ``counts`` and an unlimited number of draws."""

    counts: Counts

    def __post_init__(self) -> None:
        if not isinstance(self.counts, Counts):
            raise ValueError(
                f"counts must be Counts, got {type(self.counts).__name__}. Use "
                "Counts.from_arrays or read_transitions."
            )

    @cached_property
    def layout(self) -> RowLayout:  # type: ignore[override]
        """The rows and entries."""
        return RowLayout.of(self.counts)

    @property
    def num_draws(self) -> None:
        """None: draws are unlimited."""
        return None

    @abstractmethod
    def draws(
        self,
        key: Key,
        first: int,
        last: int,
        rows: ArrayLike | None = None,
        *,
        threads: int | None = None,
    ) -> Floats:
        """Return draws ``first`` to ``last - 1`` of the streams of one key."""

    def sample(self, n: int, rng: np.random.Generator, *, threads: int | None = None) -> Floats:
        """Return ``n`` independent draws, ``(n, E)``; the same bits as :meth:`stream` gives.

        Examples
        --------
        >>> from surefoot import DirichletPosterior
        >>> counts = Counts.from_arrays([[[3, 1]], [[0, 2]]], support=np.ones((2, 1, 2)))
        >>> draws = DirichletPosterior(counts).sample(5, np.random.default_rng(0))
        >>> np.allclose(draws[:, :2].sum(axis=1), 1.0)
        True
        """
        return self.draws(stream_key(rng), 0, check_draws_wanted(n), threads=threads)

    def stream(
        self,
        n: int,
        rng: np.random.Generator,
        rows: ArrayLike | None = None,
        *,
        threads: int | None = None,
    ) -> Iterator[Floats]:
        """Yield the draws block by block, ``(b, entries of the rows)``; never all at once.

        Parameters
        ----------
        n
            How many draws in all.
        rng
            The source of the key of the random streams; one key per call.
        rows
            Row numbers; None means all. The rows come in the order given.
        threads
            How many threads draw; None means as many as pay off. The bits do not depend on it.

        Examples
        --------
        >>> from surefoot import DirichletPosterior
        >>> counts = Counts.from_arrays([[[3, 1]], [[0, 2]]], support=np.ones((2, 1, 2)))
        >>> posterior = DirichletPosterior(counts)
        >>> [block.shape for block in posterior.stream(10, np.random.default_rng(0), rows=[1])]
        [(10, 2)]
        """
        return self.stream_range(0, check_draws_wanted(n), rng, rows, threads=threads)

    def stream_range(
        self,
        first: int,
        last: int,
        rng: np.random.Generator,
        rows: ArrayLike | None = None,
        *,
        threads: int | None = None,
    ) -> Iterator[Floats]:
        """Yield draws ``first`` to ``last - 1`` of :meth:`stream` without making earlier ones."""
        chosen = self.layout.check_rows(rows)
        key = stream_key(rng)  # taken at the call, not at the first block
        width = max(1, int(np.diff(self.row_start)[chosen].sum()))
        whole = max(1, BLOCK_VALUES // width // BLOCK_DRAWS) * BLOCK_DRAWS
        return (
            _counted(self.draws(key, begin, min(begin + whole, last), chosen, threads=threads))
            for begin in range(first, last, whole)
        )

    def _remarks(self) -> tuple[str, ...]:
        return self.counts.warnings

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.layout.num_rows:,} rows, {self.num_entries:,} entries, "
            f"{int(self.counts.count.sum()):,} transitions)"
        )


def _counted(block: Floats) -> Floats:
    """Return a block of drawn probabilities, and add it to the work counter."""
    count(DRAWN * block.size)
    return block
