"""Draws in which the actions of a state are lucky together: for bounds from above.

A deterministic policy plays one row in each state. So its return has the same law whatever the
rows of *different* actions of a state have to do with each other, and whoever bounds what such
policies can be promised may choose that. Here they are as alike as can be: where one action came
out well, so did the others, and somebody who knows the drawn model gains little by it.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from surefoot.posterior import coupling_kernels as kernels
from surefoot.posterior.dirichlet_kernels import BLOCK_DRAWS
from surefoot.posterior.learned import DrawnLaws, LearnedPosterior
from surefoot.posterior.protocol import BLOCK_VALUES, Posterior, check_draws_wanted, stream_key
from surefoot.posterior.rows import Floats, Ints, OfWhole, RowLayout, SomeRows

RANKS = 0xC0FFEE
"""What sets the generator of ranks apart from the draws of the same key."""
GROUP_VALUES = 8 * BLOCK_VALUES
"""How many probabilities are sorted together at most (64 MB)."""
LARGEST_GROUP = 1024
"""Draws that are sorted together: more couple better, and more of them must wait in memory."""


def can_couple(posterior: Posterior) -> bool:
    """Tell whether the rows of a posterior can be coupled: independent ones, or given their laws.

    Examples
    --------
    >>> from surefoot import DirichletPosterior, riverswim
    >>> can_couple(DirichletPosterior(riverswim().simulate(20, np.random.default_rng(0))))
    True
    """
    known = posterior.independent_rows or isinstance(_whole(posterior), LearnedPosterior)
    return known and posterior.num_draws is None and group_size(posterior) > 0


def group_size(posterior: Posterior) -> int:
    """Return how many draws are sorted together, whole blocks of them; 0 where none fits."""
    fits = min(LARGEST_GROUP, GROUP_VALUES // max(1, posterior.num_entries))
    return fits - fits % BLOCK_DRAWS


def _whole(posterior: Posterior) -> Posterior:
    return posterior.whole if isinstance(posterior, SomeRows) else posterior


@dataclass(frozen=True, eq=False, repr=False)
class CoupledRows(OfWhole):
    """The draws of a posterior, with the rows of each state coupled by what they are worth.

    Whatever row is chosen in each state, the draws of these rows are independent and have the law
    of the posterior; the draws of two actions of one state are not independent.

    The draws of a group are sorted by their worth, row by row, and dealt out again in an order that
    is drawn for each state and shared by its rows. Where rows share laws, only draws with the same
    laws of the action change places (docs/limit.md has the proof).

    Attributes
    ----------
    whole
        Where the draws come from; `can_couple` tells whether it will do.
    layout
        Its rows.
    values
        ``(E,)``: what each entry is worth, reward and future.

    Examples
    --------
    >>> from surefoot import DirichletPosterior, machine_replacement
    >>> counts = machine_replacement().simulate(20, np.random.default_rng(0))
    >>> posterior, layout = DirichletPosterior(counts), RowLayout.of(counts)
    >>> values = np.arange(posterior.num_entries, dtype=float)
    >>> draws = CoupledRows(posterior, layout, values).sample(1024, np.random.default_rng(1))
    >>> worth = layout.sum_rows(draws * values)
    >>> bool(np.array_equal(np.argsort(worth[:, 4]), np.argsort(worth[:, 5])))
    True
    """

    whole: Posterior
    layout: RowLayout
    values: Floats

    @property
    def independent_rows(self) -> bool:
        """Those of one state are not."""
        return False

    @property
    def identity(self) -> Floats:
        """That of the whole."""
        return self.whole.identity

    def stream(
        self, n: int, rng: np.random.Generator, rows: ArrayLike | None = None
    ) -> Iterator[Floats]:
        """Yield the draws block by block; draw ``i`` is the same whatever ``n`` is."""
        total = check_draws_wanted(n)
        source = deepcopy(rng)
        ranks = np.random.default_rng([RANKS, *map(int, stream_key(rng))])
        blocks = self._dealt(total, source, ranks)
        if rows is None:
            return blocks
        entries = self.layout.entries_of(self.layout.check_rows(rows))
        return (np.ascontiguousarray(block[:, entries]) for block in blocks)

    def _dealt(
        self, total: int, source: np.random.Generator, ranks: np.random.Generator
    ) -> Iterator[Floats]:
        """Yield groups of draws, dealt out anew; there are always whole groups behind them."""
        size = group_size(self.whole)
        learned = _whole(self.whole)
        made = self._plain if self.whole.independent_rows else self._learned
        done = 0
        for group in made(-(-total // size) * size, source, learned):
            uniform = ranks.random((size, self.layout.num_states))
            yield group.dealt(self._places(group, uniform))[: total - done]
            done += size

    def _plain(self, total: int, source: np.random.Generator, _: Posterior) -> Iterator[_Group]:
        stream = self.whole.stream(total, source)
        for draws in _regrouped(stream, group_size(self.whole)):
            yield _Group(self.layout, draws, np.zeros((len(draws), 1)))

    def _learned(
        self, total: int, source: np.random.Generator, learned: Posterior
    ) -> Iterator[_Group]:
        if not isinstance(learned, LearnedPosterior):
            raise ValueError(f"rows of {type(learned).__name__} cannot be coupled.")
        size = group_size(self.whole)
        every = np.arange(learned.layout.num_rows)
        rows = self.whole.rows if isinstance(self.whole, SomeRows) else every
        key = stream_key(source)
        for first in range(0, total, size):
            yield _LearnedGroup.draw(learned, self.layout, rows, key, first, first + size)

    def _places(self, group: _Group, uniform: Floats) -> Ints:
        """Return ``(G, R)``: which model gets the row of each draw.

        The k-th row by worth of a class goes to the model with the k-th number of that class.
        """
        worth = np.empty((len(uniform), self.layout.num_rows))
        kernels.score_rows(group.draws, self.values, self.layout.row_start, worth)
        low, high = worth.min(axis=0), worth.max(axis=0)
        # Classes are whole numbers: within one of them, worth and numbers stay below 1.
        worth = (worth - low) / np.where(high > low, 2.0 * (high - low), 1.0)
        by_worth = np.argsort(group.classes + worth, axis=0, kind="stable")
        numbers = group.classes + uniform[:, self.layout.row_state]
        places = np.empty_like(by_worth)
        np.put_along_axis(places, by_worth, np.argsort(numbers, axis=0, kind="stable"), axis=0)
        return places

    def __repr__(self) -> str:
        return f"CoupledRows({self.whole!r})"


@dataclass(frozen=True, eq=False)
class _Group:
    """Draws ``(G, E)``, and classes ``(G, R or 1)`` within which their rows have one law."""

    layout: RowLayout
    draws: Floats
    classes: Floats

    def dealt(self, places: Ints) -> Floats:
        """Return the models when row ``r`` of draw ``j`` goes to model ``places[j, r]``."""
        out = np.empty_like(self.draws)
        kernels.deal_rows(self.draws, places, self.layout.row_start, out)
        return out


@dataclass(frozen=True, eq=False)
class _LearnedGroup(_Group):
    """Draws whose rows share laws of their action, shares of where the unseen leads, rare events.

    Shares and rare events are numbers of a model that no other has: a row is drawn with the usual
    shares and without rare events to see what it is worth, and again, from the same random numbers
    (so that every draw has a stream of its own), with those of the model that gets it.
    """

    posterior: LearnedPosterior
    rows: Ints
    key: tuple[np.uint64, np.uint64]
    first: int
    laws: DrawnLaws

    @classmethod
    def draw(
        cls, posterior: LearnedPosterior, layout: RowLayout, rows: Ints,
        key: tuple[np.uint64, np.uint64], first: int, last: int,
    ) -> _LearnedGroup:  # fmt: skip
        """Draw the laws of some draws, and their rows with the usual shares."""
        sizes, alphas, shares, rare = laws = posterior._drawn_laws(key, first, last)
        usual = np.broadcast_to(posterior.destinations.shares, shares.shape)
        usual = np.ascontiguousarray(usual / usual.sum(axis=1, keepdims=True))
        none = np.zeros_like(rare)
        draws = posterior.rows_given((sizes, alphas, usual, none), key, first, rows, block=1)
        law = sizes * (int(alphas.max()) + 1) + alphas
        return cls(
            layout=layout, draws=draws, posterior=posterior, rows=rows, key=key, first=first,
            classes=law[:, posterior.layout.row_action[rows]].astype(np.float64), laws=laws,
        )  # fmt: skip

    def dealt(self, places: Ints) -> Floats:
        """Return the models; rows to which the shares matter are drawn again with theirs."""
        out = super().dealt(places)
        sharing = np.flatnonzero(self.posterior._has_new[self.rows])
        models = np.ascontiguousarray(places[:, sharing].T)
        self.posterior.deal_rows(
            self.laws, self.key, self.first, self.rows[sharing], self.layout.row_start[sharing],
            models, out, block=1,
        )  # fmt: skip
        return out


def _regrouped(blocks: Iterator[Floats], size: int) -> Iterator[Floats]:
    """Yield groups of ``size`` draws; there are whole numbers of them."""
    waiting: list[Floats] = []
    held = 0
    for block in blocks:
        waiting.append(block)
        held += len(block)
        if held >= size:
            joined = np.concatenate(waiting)
            whole = held - held % size
            yield from (joined[first : first + size] for first in range(0, whole, size))
            waiting, held = [joined[whole:]], held - whole
