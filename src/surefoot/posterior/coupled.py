"""Draws in which the rows of each state are coupled, for upper bounds.

A deterministic policy plays one row in each state. So the law of its return does not depend on how
the rows of *different* actions of a state depend on each other, and an upper bound on what such
policies can be promised may choose that dependence. Here it is the strongest possible: where one
action of a state came out well, so did the others, and knowing the drawn model gains little.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from surefoot._work import COUPLED, count
from surefoot.posterior import coupling_kernels as kernels
from surefoot.posterior.dirichlet_kernels import BLOCK_DRAWS
from surefoot.posterior.learned import LearnedPosterior
from surefoot.posterior.protocol import (
    BLOCK_VALUES,
    Posterior,
    check_draws_wanted,
    stream_key,
    stream_range,
)
from surefoot.posterior.rows import Floats, Ints, OfWhole, RowLayout, SomeRows

RANKS = 0xC0FFEE
"""Part of the seed that separates the generator of ranks from the draws of the same key."""
GROUP_VALUES = 8 * BLOCK_VALUES
"""The most probabilities that are sorted together (64 MB)."""
LARGEST_GROUP = 1024
"""The most draws that are sorted together: larger groups couple better but need more memory."""


def can_couple(posterior: Posterior) -> bool:
    """Tell whether the rows of a posterior can be coupled.

    They must be independent, at least given learned laws; draws must be unlimited, and a group of
    them must fit into memory.

    Examples
    --------
    >>> from surefoot import DirichletPosterior, riverswim
    >>> can_couple(DirichletPosterior(riverswim().simulate(20, np.random.default_rng(0))))
    True
    """
    known = posterior.independent_rows or isinstance(_whole(posterior), LearnedPosterior)
    return known and posterior.num_draws is None and group_size(posterior) > 0


def group_size(posterior: Posterior) -> int:
    """Return how many draws are sorted together, a multiple of ``BLOCK_DRAWS``; 0 if none fits.

    For a learned posterior it is at least one block: its rows are drawn and reassigned in one
    call, so that a block fits wherever the draws themselves fit.
    """
    fits = min(LARGEST_GROUP, GROUP_VALUES // max(1, posterior.num_entries))
    least = BLOCK_DRAWS if isinstance(_whole(posterior), LearnedPosterior) else 0
    return max(fits - fits % BLOCK_DRAWS, least)


def _whole(posterior: Posterior) -> Posterior:
    return posterior.whole if isinstance(posterior, SomeRows) else posterior


@dataclass(frozen=True, eq=False, repr=False)
class CoupledRows(OfWhole):
    """The draws of a posterior, with the rows of each state coupled by their worth ``p.values``.

    For any choice of one row per state, these rows are independent draws of the posterior; the rows
    of two actions of one state are not independent of each other.

    The draws of a group are sorted by worth, row by row, and reassigned to the models in an order
    that is drawn for each state and shared by its rows. Where rows share learned laws, only draws
    with the same laws of the action are exchanged (docs/limit.md has the proof).

    Attributes
    ----------
    whole
        The posterior that is drawn from; `can_couple` tells whether it is suitable.
    layout
        Its rows.
    values
        ``(E,)``: the value of each entry, reward plus discounted future.

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
        """False: the rows of one state are coupled."""
        return False

    @property
    def identity(self) -> Floats:
        """The identity of ``whole``."""
        return self.whole.identity

    def stream(
        self, n: int, rng: np.random.Generator, rows: ArrayLike | None = None
    ) -> Iterator[Floats]:
        """Yield the draws block by block; draw ``i`` is the same whatever ``n`` is."""
        return self.stream_range(0, check_draws_wanted(n), rng, rows)

    def stream_range(
        self, first: int, last: int, rng: np.random.Generator, rows: ArrayLike | None = None
    ) -> Iterator[Floats]:
        """Yield draws ``first`` to ``last - 1`` of :meth:`stream`; complete groups are drawn."""
        source = deepcopy(rng)
        ranks = np.random.default_rng([RANKS, *map(int, stream_key(rng))])
        blocks = self._dealt(first, last, source, ranks)
        if rows is None:
            return blocks
        entries = self.layout.entries_of(self.layout.check_rows(rows))
        return (np.ascontiguousarray(block[:, entries]) for block in blocks)

    def _dealt(
        self, first: int, last: int, source: np.random.Generator, ranks: np.random.Generator
    ) -> Iterator[Floats]:
        """Yield reassigned draws group by group, cut to the range; complete groups are drawn."""
        size = group_size(self.whole)
        begins = range(first - first % size, last, size)
        ranks.bit_generator.advance(begins.start * self.layout.num_states)  # type: ignore[attr-defined]
        made = self._plain if self.whole.independent_rows else self._learned
        for begin, models in zip(begins, made(begins, source, ranks), strict=True):
            yield models[max(first - begin, 0) : last - begin]

    def _plain(
        self, begins: range, source: np.random.Generator, ranks: np.random.Generator
    ) -> Iterator[Floats]:
        size = begins.step
        stream = stream_range(self.whole, begins.start, begins[-1] + size, source)
        for draws in _regrouped(stream, size):
            places = self._places(draws, ranks.random((size, self.layout.num_states)))
            out = np.empty_like(draws)
            kernels.deal_rows(draws, places, self.layout.row_start, out)
            yield out

    def _learned(
        self, begins: range, source: np.random.Generator, ranks: np.random.Generator
    ) -> Iterator[Floats]:
        """Yield groups whose rows share the laws of their action, shares and rare events.

        Every model has its own shares (which say where unseen successors lead) and its own rare
        events. A row's worth is computed with the usual shares and without rare events; the model
        that receives the row then applies its own.
        """
        learned = _whole(self.whole)
        if not isinstance(learned, LearnedPosterior):
            raise ValueError(f"rows of {type(learned).__name__} cannot be coupled.")
        every = np.arange(learned.layout.num_rows)
        rows = self.whole.rows if isinstance(self.whole, SomeRows) else every
        key = stream_key(source)
        for begin in begins:
            numbers = ranks.random((begins.step, self.layout.num_states))
            made = learned.coupled_rows(
                key, begin, begin + begins.step, rows, self.layout.row_state, self.values, numbers
            )
            count(COUPLED * made.size)
            yield made

    def _places(self, draws: Floats, numbers: Floats) -> Ints:
        """Return ``(G, R)``: the model that receives each row of each draw.

        In every row, the draw with the k-th smallest worth goes to the model with the k-th smallest
        number of the row's state.
        """
        worth = np.empty((len(numbers), self.layout.num_rows))
        kernels.score_rows(draws, self.values, self.layout.row_start, worth)
        by_worth = np.argsort(worth, axis=0, kind="stable")
        by_number = np.argsort(numbers, axis=0, kind="stable")
        places = np.empty_like(by_worth)
        np.put_along_axis(places, by_worth, by_number[:, self.layout.row_state], axis=0)
        return places

    def __repr__(self) -> str:
        return f"CoupledRows({self.whole!r})"


def _regrouped(blocks: Iterator[Floats], size: int) -> Iterator[Floats]:
    """Yield groups of ``size`` draws; the blocks must hold a multiple of ``size``."""
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
