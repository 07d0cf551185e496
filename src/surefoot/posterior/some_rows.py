"""Some rows of a posterior: what it says about the part of a model that policies may use."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from surefoot.posterior.protocol import Posterior
from surefoot.posterior.rows import Floats, Ints, OnRows, RowLayout


@dataclass(frozen=True, eq=False, repr=False)
class SomeRows(OnRows):
    """Some rows of another posterior, in ascending order; its draws of them are the same bits.

    Examples
    --------
    >>> from surefoot import DirichletPosterior, riverswim
    >>> counts = riverswim().simulate(20, np.random.default_rng(0))
    >>> whole = DirichletPosterior(counts)
    >>> part = SomeRows(whole, RowLayout.of(counts), np.array([1, 2, 3, 5, 7, 9, 11]))
    >>> part.layout.num_rows, part.sample(10, np.random.default_rng(1)).shape
    (7, (10, 17))
    """

    whole: Posterior
    source: RowLayout
    rows: Ints

    @cached_property
    def layout(self) -> RowLayout:  # type: ignore[override]
        """The rows and entries that are left."""
        source, rows = self.source, self.rows
        states = np.arange(source.num_states + 1)
        return RowLayout(
            state_start=np.searchsorted(source.row_state[rows], states),
            row_action=source.row_action[rows],
            row_start=np.concatenate(([0], np.cumsum(np.diff(source.row_start)[rows]))),
            successor=source.successor[self.entries],
            num_actions=source.num_actions,
            state_labels=source.state_labels,
            action_labels=source.action_labels,
        )

    @cached_property
    def entries(self) -> Ints:
        """Which entries of the whole these are."""
        return self.source.entries_of(self.rows)

    @property
    def independent_rows(self) -> bool:
        """Whether the rows of one draw are independent of each other."""
        return self.whole.independent_rows

    @property
    def num_draws(self) -> int | None:
        """How many independent draws there are; None when there is no end to them."""
        return self.whole.num_draws

    def mean(self) -> Floats:
        """Return the posterior mean, ``(E,)``."""
        return self.whole.mean()[self.entries]

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Return ``n`` independent draws, ``(n, E)``."""
        return np.concatenate(list(self.stream(n, rng)))

    def stream(
        self, n: int, rng: np.random.Generator, rows: ArrayLike | None = None
    ) -> Iterator[Floats]:
        """Yield the draws of :meth:`sample` block by block, for all rows or for some."""
        return self.whole.stream(n, rng, self.rows[self.layout.check_rows(rows)])

    def __repr__(self) -> str:
        return f"SomeRows({self.layout.num_rows:,} of {self.source.num_rows:,} rows)"
