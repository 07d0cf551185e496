"""The rows of a posterior: the same entries, in the same order, as in its model."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot._display import Shown
from surefoot._rows import RowSparse
from surefoot.model import checks
from surefoot.model.mdp import MDP
from surefoot.posterior.protocol import Posterior, stream_range

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RowLayout(RowSparse):
    """The rows and the positions of their entries, as in :class:`~surefoot.MDP`.

    Examples
    --------
    >>> from surefoot.domains import riverswim
    >>> layout = RowLayout.of(riverswim().mdp)
    >>> layout.num_rows, layout.num_entries
    (12, 22)
    """

    state_start: Ints
    row_action: Ints
    row_start: Ints
    successor: NDArray[np.int32]
    num_actions: int
    state_labels: tuple[Hashable, ...] | None = None
    action_labels: tuple[Hashable, ...] | None = None

    @classmethod
    def of(cls, source: Any) -> RowLayout:
        """Return the layout of a model, of declared counts or of a posterior."""
        if isinstance(source, RowLayout):
            return source
        if isinstance(getattr(source, "layout", None), RowLayout):
            layout: RowLayout = source.layout
            return layout
        if not getattr(source, "declared", True):
            source = source.on_support()
        names = ("state_start", "row_action", "row_start", "successor", "num_actions")
        fields = {name: getattr(source, name) for name in names}
        return cls(**fields, state_labels=source.state_labels, action_labels=source.action_labels)

    @cached_property
    def support(self) -> NDArray[np.bool_]:
        """``(S, A, S)``: which successors are reachable (dense: for small models)."""
        return self.dense_support()

    def sum_rows(self, values: Floats) -> Floats:
        """Return the sum over each row along the last axis."""
        sums: Floats = np.add.reduceat(values, self.row_start[:-1], axis=-1)
        return sums

    def check_rows(self, rows: ArrayLike | None) -> Ints:
        """Return row numbers as an array; None means all of them."""
        if rows is None:
            return np.arange(self.num_rows)
        chosen = np.asarray(rows)
        if chosen.dtype == np.bool_ or chosen.ndim != 1:
            raise ValueError(
                f"rows must be a list of row numbers, got {chosen.dtype} of shape {chosen.shape}."
            )
        return checks.as_ids("row", chosen, self.num_rows)

    @cached_property
    def _closed(self) -> NDArray[np.bool_]:
        """``(E,)``: entries of rows whose only successor is their own state.

        Such a row is certain, so its successor is not compared with the model's: a model may let
        the unseen state lead elsewhere.
        """
        alone = (np.diff(self.row_start) == 1)[self.entry_row]
        return np.asarray(alone & (self.successor == self.entry_state))

    def mismatch(self, mdp: MDP | RowLayout) -> str | None:
        """Return how a model differs from this layout, in words, or None."""
        for name in ("num_states", "num_rows", "num_entries"):
            mine, other = getattr(self, name), getattr(mdp, name)
            if mine != other:
                return f"it has {mine} {name[4:]}, the model has {other}"
        for name in ("state_start", "row_action", "row_start", "successor"):
            mine, other = getattr(self, name), getattr(mdp, name)
            differs = np.flatnonzero(mine != other)
            if name == "successor":
                differs = differs[~self._closed[differs]]
            if len(differs):
                at = differs[0]
                return f"{name}[{at}] is {mine[at]}, the model's is {other[at]}"
        return None

    def __repr__(self) -> str:
        return f"RowLayout({self.num_rows:,} rows, {self.num_entries:,} entries)"


def check_counts(counts: Any, layout: RowLayout) -> Any:
    """Return declared counts with the rows of a posterior, or raise an error where they differ."""
    placed = counts.on_support()
    difference = RowLayout.of(placed).mismatch(layout)
    if difference is not None:
        raise ValueError(
            f"the posterior and the counts do not have the same rows: {difference}. Pass the "
            "declared counts that the posterior was fitted to: counts.on_support(...)."
        )
    return placed


class OnRows(Shown):
    """The members of a posterior that follow from its layout."""

    layout: RowLayout

    @property
    def num_entries(self) -> int:
        """The number of reachable (state, action, successor) triples."""
        return self.layout.num_entries

    @property
    def row_start(self) -> Ints:
        """``(R+1,)``: the entries of row ``r`` are ``row_start[r]:row_start[r+1]``."""
        return self.layout.row_start

    @property
    def support(self) -> NDArray[np.bool_]:
        """``(S, A, S)``: which successors are reachable (dense: for small models)."""
        return self.layout.support

    def matches(self, mdp: MDP) -> bool:
        """Tell whether a model has exactly the rows and entries of this posterior."""
        return self.layout.mismatch(mdp) is None

    def check_matches(self, mdp: MDP) -> None:
        """Raise an error that says where a model and this posterior differ."""
        difference = self.layout.mismatch(mdp)
        if difference is not None:
            raise ValueError(
                f"the posterior and the model do not have the same rows: {difference}. Build both "
                "from the same counts with the same support: placed = counts.on_support(...), then "
                "placed.to_mdp(...) and DirichletPosterior(placed)."
            )


class OfWhole(OnRows):
    """A posterior made from the draws of another, ``whole``; it has no counts."""

    whole: Posterior

    @property
    def independent_rows(self) -> bool:
        """Whether the rows of one draw are independent of each other."""
        return self.whole.independent_rows

    @property
    def num_draws(self) -> int | None:
        """The number of independent draws; None when draws are unlimited."""
        return self.whole.num_draws

    @property
    def counts(self) -> None:
        """None: the counts of ``whole`` say how uncertain rewards are."""
        return None

    @property
    def identity(self) -> Floats:
        """The posterior mean."""
        return self.mean()

    def mean(self) -> Floats:
        """Return the posterior mean, ``(E,)``."""
        return self.whole.mean()

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Return ``n`` independent draws, ``(n, E)``."""
        return np.concatenate(list(self.stream(n, rng)))

    def stream(
        self, n: int, rng: np.random.Generator, rows: ArrayLike | None = None
    ) -> Iterator[Floats]:
        """Yield the draws of :meth:`sample` block by block, for all rows or for some."""
        return self.whole.stream(n, rng, rows)


@dataclass(frozen=True, eq=False, repr=False)
class SomeRows(OfWhole):
    """Some rows of another posterior, in ascending order, with exactly the same draws of them.

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
        """The entries of ``whole`` that are kept."""
        return self.source.entries_of(self.rows)

    def mean(self) -> Floats:
        """Return the posterior mean, ``(E,)``."""
        return self.whole.mean()[self.entries]

    def stream(
        self, n: int, rng: np.random.Generator, rows: ArrayLike | None = None
    ) -> Iterator[Floats]:
        """Yield the draws of :meth:`sample` block by block, for all rows or for some."""
        return self.whole.stream(n, rng, self.rows[self.layout.check_rows(rows)])

    def stream_range(
        self, first: int, last: int, rng: np.random.Generator, rows: ArrayLike | None = None
    ) -> Iterator[Floats]:
        """Yield draws ``first`` to ``last - 1`` of :meth:`stream`, block by block."""
        chosen = self.rows[self.layout.check_rows(rows)]
        return stream_range(self.whole, first, last, rng, chosen)

    def __repr__(self) -> str:
        return f"SomeRows({self.layout.num_rows:,} of {self.source.num_rows:,} rows)"
