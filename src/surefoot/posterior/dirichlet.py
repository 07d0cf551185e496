"""The conjugate posterior: independent Dirichlet rows, exact."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.data.counts import Counts
from surefoot.data.prior import spread_prior
from surefoot.data.support import UNSEEN_PRIOR
from surefoot.posterior import dirichlet_kernels as kernels
from surefoot.posterior.of_counts import Key, OfCounts
from surefoot.posterior.rows import Floats, Ints
from surefoot.posterior.threads import fill_rows


@dataclass(frozen=True, eq=False, repr=False)
class DirichletPosterior(OfCounts):
    """Independent Dirichlet rows: ``shape = count + prior`` on the successors of each row.

    Attributes
    ----------
    counts
        Counts of transitions. Where they list only what was observed, they are placed on the
        default support (``counts.on_support()``); choose another with
        ``DirichletPosterior(counts.on_support("action"))``.
    prior
        Dirichlet parameter of every successor: one number, one per row ``(R,)`` or one per entry
        ``(E,)``; positive. ``prior=1.0`` is the uniform distribution over each row's simplex.
    unseen
        The parameter of the successor that stands for all those never observed, where the support
        has one; the default was chosen in the coverage study on logs. Not used with a prior per
        entry.

    Notes
    -----
    A row with one successor is deterministic: that follows from the support, not from the data.

    Draw ``i`` of row ``r`` comes from a random stream keyed by (one key taken from ``rng``, ``r``,
    block of 16 draws), so that the bits do not depend on the choice of rows, blocks or threads.

    Examples
    --------
    >>> counts = Counts.from_arrays([[[3, 0]], [[0, 2]]], support=[[[1, 1]], [[0, 1]]])
    >>> posterior = DirichletPosterior(counts, prior=1.0)
    >>> posterior.mean().tolist()
    [0.8, 0.2, 1.0]
    >>> posterior.sample(1000, np.random.default_rng(0)).shape
    (1000, 3)
    """

    counts: Counts
    prior: ArrayLike = 1.0
    unseen: float = UNSEEN_PRIOR

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "counts", self.counts.on_support())
        self.shape.setflags(write=False)

    @property
    def independent_rows(self) -> bool:
        """True: rows are independent."""
        return True

    @cached_property
    def shape(self) -> Floats:
        """``(E,)``: the Dirichlet parameters of the posterior."""
        return self.counts.count + prior_entries(self.counts, self.prior, self.unseen)

    @property
    def identity(self) -> Floats:
        """The Dirichlet parameters."""
        return self.shape

    def mean(self) -> Floats:
        """Return the exact posterior mean, ``(E,)``."""
        return self.shape / self.layout.sum_rows(self.shape)[self.layout.entry_row]

    def given(self, count: ArrayLike) -> DirichletPosterior:
        """Return the posterior with other counts on the same entries and the same prior."""
        other = replace(self, counts=replace(self.counts, count=np.asarray(count)))
        # The prior of an entry may depend on which entries were seen: it stays as it was.
        other.__dict__["shape"] = self.shape - self.counts.count + np.asarray(count)
        return other

    def variance(self) -> Floats:
        """Return the exact posterior variance of each entry, ``(E,)``."""
        total = self.layout.sum_rows(self.shape)[self.layout.entry_row]
        share = self.shape / total
        return share * (1.0 - share) / (total + 1.0)

    def draws(
        self,
        key: Key,
        first: int,
        last: int,
        rows: ArrayLike | None = None,
        *,
        threads: int | None = None,
    ) -> Floats:
        """Return draws ``first`` to ``last - 1`` of the streams of one key.

        Several threads or machines can share the work: they use the same key, and each makes its
        own range of draws or rows.

        Examples
        --------
        >>> counts = Counts.from_arrays([[[3, 1]], [[0, 2]]], support=np.ones((2, 1, 2)))
        >>> posterior = DirichletPosterior(counts)
        >>> key = (np.uint64(1), np.uint64(2))
        >>> whole = posterior.draws(key, 0, 100)
        >>> np.array_equal(whole[40:50], posterior.draws(key, 40, 50))
        True
        """
        chosen = self.layout.check_rows(rows)
        ends = np.cumsum(np.diff(self.row_start)[chosen])
        columns = ends - np.diff(self.row_start)[chosen]
        # Streams are opened at the start of a block of draws; those before ``first`` are cut off.
        begin = first - first % kernels.BLOCK_DRAWS
        out = np.empty((last - begin, ends[-1] if len(ends) else 0))

        def fill(part: NDArray[np.intp]) -> None:
            kernels.dirichlet_rows(
                self.shape, *self._constants, chosen[part], columns[part], *key, begin, last, out
            )  # fmt: skip

        fill_rows(fill, ends, out.size, threads)
        return out[first - begin :]

    @cached_property
    def _constants(self) -> tuple[Floats, Floats, Ints, NDArray[np.bool_]]:
        d, c = np.empty_like(self.shape), np.empty_like(self.shape)
        kernels.prepare(self.shape, d, c, len(self.shape))
        largest = np.maximum.reduceat(self.shape, self.row_start[:-1])
        return d, c, self.row_start, largest < kernels.LOGARITHMIC_BELOW

    def _facts(self) -> list[tuple[str, str]]:
        visits = self.counts.visits
        least, most = f"{visits.min():,.6g}", f"{visits.max():,.6g}"
        return [
            ("prior", self.prior_words),
            ("data per row", least if least == most else f"{least} to {most} transitions"),
            ("uncertain rows", f"{np.count_nonzero(np.diff(self.row_start) > 1):,}"),
        ]

    @property
    def prior_words(self) -> str:
        """The Dirichlet parameters of the prior, in words."""
        given = np.asarray(self.prior, dtype=np.float64)
        low, high = f"{given.min():g}", f"{given.max():g}"
        words = f"{low if low == high else f'{low} to {high}'} per successor"
        unseen = self.counts.unseen is not None and given.shape != (self.num_entries,)
        return f"{words}, {self.unseen:g} for the unseen state" if unseen else words


def prior_entries(counts: Counts, prior: ArrayLike, unseen: float) -> Floats:
    """Return the prior parameter of every entry of declared counts, all positive."""
    entries = spread_prior(counts, prior, unseen)
    for name, given in (("prior", np.asarray(prior)), ("unseen", np.asarray(unseen))):
        bad = np.flatnonzero(~((given > 0) & np.isfinite(given)))
        if len(bad):
            place = f"[{bad[0]}]" if given.ndim else ""
            raise ValueError(
                f"{name}{place} is {given.flat[bad[0]]}; a Dirichlet prior is positive and finite. "
                "A successor that cannot happen is left out of the support instead."
            )
    return entries
