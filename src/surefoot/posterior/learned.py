"""A posterior that learns from all rows what rows are like, and what a row has not shown yet."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.data.counting import Counts
from surefoot.posterior import learned_kernels as kernels
from surefoot.posterior.destinations import Destinations, learn_destinations, numbers_of
from surefoot.posterior.protocol import BLOCK_VALUES, check_draws_wanted, stream_key
from surefoot.posterior.row_laws import RowLaws
from surefoot.posterior.rows import Floats, Ints, OnRows, RowLayout

Key = tuple[np.uint64, np.uint64]
SMALL_MODEL = 100_000


@dataclass(frozen=True, eq=False, repr=False)
class LearnedPosterior(OnRows):
    """Rows whose concentration, number of successors and unseen successors are learned."""

    counts: Counts
    destinations: Destinations | None

    @classmethod
    def of(cls, counts: Counts) -> "LearnedPosterior":
        if counts.declared:
            return cls(counts, None)
        most = 64 if counts.num_entries <= SMALL_MODEL else 8
        found = learn_destinations(
            counts.row_state, counts.row_action, counts.row_start, counts.successor, counts.count,
            counts.num_states, counts.num_actions, numbers_of(counts.state_labels, counts.num_states),
            most,
        )
        return cls(_placed(counts, found), _renumbered(counts, found))

    @cached_property
    def layout(self) -> RowLayout:  # type: ignore[override]
        return RowLayout.of(self.counts)

    @property
    def independent_rows(self) -> bool:
        return False

    @property
    def num_draws(self) -> None:
        return None

    @cached_property
    def laws(self) -> RowLaws:
        size = np.diff(self.row_start)
        unknown = np.zeros(self.layout.num_rows, dtype=bool)
        if self.counts.unseen is not None:
            unknown[self.layout.entry_row[self.counts.successor == self.counts.unseen]] = True
            unknown[self.counts.row_state == self.counts.unseen] = False
        declared = np.where(unknown & (size > 1), -1, size)
        count = self.counts.count.astype(np.float64)
        k = np.add.reduceat((count > 0).astype(np.int64), self.row_start[:-1])
        most = min(self.counts.num_states, 2 * int(k.max(initial=1)) + 20)
        return RowLaws.learn(
            count=count, row_start=self.row_start, action=self.layout.row_action.astype(np.int64),
            num_actions=self.layout.num_actions, declared=declared, most=most,
        )

    @cached_property
    def _fixed(self) -> Ints:
        laws = self.laws
        size = np.diff(self.row_start)
        if self.counts.unseen is None:
            return size.astype(np.int64)
        unknown = np.full(self.layout.num_rows, False)
        unknown[self.layout.entry_row[self.counts.successor == self.counts.unseen]] = True
        unknown[self.counts.row_state == self.counts.unseen] = False
        return np.where(unknown & (size > 1), -1, size).astype(np.int64)

    @cached_property
    def _parts(self) -> tuple[Ints, Ints, Floats, Ints]:
        """start, entry, cumulative weight of the candidates; and the entry of the rest."""
        rows = self.layout.num_rows
        rest = self.row_start[1:] - 1
        if self.counts.unseen is not None:
            at = np.flatnonzero(self.counts.successor == self.counts.unseen)
            rest = rest.copy()
            rest[self.layout.entry_row[at]] = at
        if self.destinations is None:
            return np.zeros(3 * rows + 1, np.int64), np.zeros(0, np.int64), np.zeros(0), rest
        d = self.destinations
        owner = np.repeat(np.arange(3 * rows), np.diff(d.start)) // 3
        key = self.layout.entry_row.astype(np.int64) * self.counts.num_states + self.counts.successor
        entry = np.searchsorted(key, owner * self.counts.num_states + d.state)
        cumulative = np.cumsum(d.weight)
        before = np.concatenate(([0.0], cumulative))[d.start[:-1]]
        cumulative = cumulative - np.repeat(before, np.diff(d.start))
        return d.start, entry, cumulative, rest

    def mean(self) -> Floats:
        return self._mean

    @cached_property
    def _mean(self) -> Floats:
        laws = self.laws
        weight = laws.row_alpha()  # (R, sizes, alphas)
        inverse = laws.inverse[laws.group]
        from surefoot.posterior.row_laws import ALPHA
        one = (weight * inverse).sum(axis=(1, 2))
        shaped = (weight * inverse * ALPHA).sum(axis=(1, 2))
        row = self.layout.entry_row
        count = self.counts.count.astype(np.float64)
        fixed = self._fixed >= 0
        listed = (count > 0) | fixed[row]
        mean = np.where(listed, count * one[row] + shaped[row], 0.0)
        missing = np.clip(1.0 - np.add.reduceat(mean, self.row_start[:-1]), 0.0, 1.0)
        missing[fixed] = 0.0
        start, entry, cumulative, rest = self._parts
        share = self._prior_shares / self._prior_shares.sum()
        left = np.ones(self.layout.num_rows) * missing
        if self.destinations is not None:
            filled = (np.diff(start) > 0).reshape(-1, 3) * share[:3]
            total = filled.sum(axis=1) + share[3]
            part = (filled / total[:, None]).ravel()
            owner = np.repeat(np.arange(len(part)), np.diff(start))
            np.add.at(mean, entry, self.destinations.weight * part[owner] * missing[owner // 3])
            left = missing * share[3] / total
        np.add.at(mean, rest[~fixed], left[~fixed])
        return mean / np.add.reduceat(mean, self.row_start[:-1])[row]

    @property
    def _prior_shares(self) -> Floats:
        return np.array([0.5, 0.5, 0.5, 1.0]) if self.destinations is None else self.destinations.prior

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        return np.concatenate(list(self.stream(n, rng)))

    def stream(self, n: int, rng: np.random.Generator, rows: ArrayLike | None = None) -> Iterator[Floats]:
        total = check_draws_wanted(n)
        chosen = self.layout.check_rows(rows)
        key = stream_key(rng)
        width = max(1, int(np.diff(self.row_start)[chosen].sum()))
        whole = max(16, BLOCK_VALUES // width // 16 * 16)
        return (
            self.draws(key, first, min(first + whole, total), chosen)
            for first in range(0, total, whole)
        )

    def draws(self, key: Key, first: int, last: int, rows: ArrayLike | None = None) -> Floats:
        chosen = self.layout.check_rows(rows)
        sizes = np.diff(self.row_start)[chosen]
        columns = np.cumsum(sizes) - sizes
        begin = first - first % 16
        n = last - begin
        size_law = np.empty((n, self.layout.num_actions), dtype=np.int64)
        alpha_law = np.empty_like(size_law)
        shares = np.empty((n, 4))
        for start in range(begin, last, 16):
            rng = np.random.default_rng([*map(int, key), start // 16])
            s, a = self.laws.draw(16, rng)
            w = rng.dirichlet(self._prior_shares, size=16)
            part = slice(start - begin, min(start - begin + 16, n))
            m = part.stop - part.start
            size_law[part], alpha_law[part], shares[part] = s[:m], a[:m], w[:m]
        laws = self.laws
        starts, entry, cumulative, rest = self._parts
        out = np.empty((n, int(sizes.sum())))
        from surefoot.posterior.row_laws import ALPHA
        kernels.learned_rows(
            self.counts.count.astype(np.float64), self.row_start, chosen, columns, laws.action,
            laws.group, laws.distinct, laws.shape, laws.marginal, laws.laws, ALPHA,
            laws.size_cumulative, self._fixed, size_law, alpha_law, shares,
            starts, entry, cumulative, rest, *key, begin, out,
        )
        return out[first - begin:]

    @property
    def shape(self) -> Floats:
        raise AttributeError("no shape")

    @property
    def prior_words(self) -> str:
        return "learned"


def _placed(counts: Counts, found: Destinations) -> Counts:
    """Return declared counts on seen successors, candidates and the unseen state."""
    owner = np.repeat(np.arange(counts.num_rows * 3), np.diff(found.start)) // 3
    state = np.concatenate((counts.entry_state, counts.row_state[owner], ))
    action = np.concatenate((counts.entry_action, counts.row_action[owner]))
    successor = np.concatenate((counts.successor.astype(np.int64), found.state))
    key = np.unique((state.astype(np.int64) * counts.num_actions + action) * counts.num_states + successor)
    from surefoot.data import support as sup
    rows = sup._offered(counts, None, "drop", 0)
    s, rest = np.divmod(key, counts.num_actions * counts.num_states)
    a, t = np.divmod(rest, counts.num_states)
    unseen = counts.num_states
    entries = sup.Entries(
        np.concatenate((s, rows.state)), np.concatenate((a, rows.action)),
        np.concatenate((t, np.full(len(rows.state), unseen))),
    )
    return sup._assemble(counts, entries, rows, "unseen", "drop", 0)


def _renumbered(counts: Counts, found: Destinations) -> Destinations:
    """Move candidates to the rows of the placed counts (which have loops of rowless states)."""
    placed_rows = counts.num_rows
    present = np.zeros(counts.num_states + 1, dtype=bool)
    present[counts.row_state] = True
    # position of each observed row among placed rows
    extra = np.cumsum(~present[:-1])  # loops of states up to and including s
    at = np.arange(placed_rows) + extra[counts.row_state] 
    total = placed_rows + int((~present).sum())
    sizes = np.zeros((total, 3), dtype=np.int64)
    sizes[at] = np.diff(found.start).reshape(-1, 3)
    return replace(found, start=np.concatenate(([0], np.cumsum(sizes.ravel()))))
