"""How the policies of a model are evaluated: the cheapest of three ways."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from surefoot.model.mdp import MDP
from surefoot.solvers.evaluation.dense import dense_work
from surefoot.solvers.evaluation.krylov_kernels import VECTORS
from surefoot.solvers.evaluation.orders import Order, band_order, minimum_degree_order
from surefoot.solvers.evaluation.system_kernels import System
from surefoot.solvers.steps import counted_steps, until_the_end

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FULL_STATES = 3000
"""Above this no full matrix is held (72 MB)."""
FEW_STATES, FACTORED_STATES = 16, 4000
"""Outside these no order of minimum degree is looked for: a full matrix of few states is as quick,
and an order of many takes a table of all pairs of states."""
SWEEPS_PER_STEP = 15.0
"""Sweeps until a model that ends has settled, for every expected step."""
PRODUCTS = 40
"""Products that an evaluation is taken to need, where nothing is eliminated."""
NARROW = 4.0
"""A band whose elimination costs no more than this, in the rest of an evaluation, will do."""
SPARSE_COST = 3.0
"""What a multiplication costs that has to look up its places, in plain ones."""


REMEMBERED_STATES, REMEMBERED = 500, 16
"""How many choices are remembered, for models with at least this many states: a run asks about
the same policy a dozen times, and an order of thousands of states takes a tenth of a second to look
for."""


class Links(NamedTuple):
    """Which state may lead to which, by the policies in question.

    ``source`` and ``target`` are ``(E',)`` states; ``entries`` is how many of these links one
    policy has, about.
    """

    size: int
    source: Ints
    target: Ints
    entries: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluator:
    """How the policies of a model are evaluated.

    Attributes
    ----------
    kind
        ``"full"``: elimination of a full matrix; ``"factored"``: elimination in an order that fills
        in little; ``"products"``: sweeps, and products with the matrix where these are slow;
        ``"steps"``: backward induction, where there is a horizon.
    work
        About how many operations one evaluation takes.
    order
        ``(S,)``: the states in the order of elimination.
    fill
        Most entries of a factor.
    """

    kind: str
    work: float
    order: Ints
    fill: int

    @property
    def full(self) -> bool:
        """Whether a full matrix is eliminated."""
        return self.kind == "full"

    @cached_property
    def _place(self) -> Ints:
        place = np.empty_like(self.order)
        place[self.order] = np.arange(len(self.order))
        return place

    def system(self, entries: int) -> System:
        """Allocate the equations of a policy with the given number of entries."""
        size, fill = len(self.order), self.fill

        def ints(length: int) -> Ints:
            return np.empty(length, dtype=np.int64)

        return System(
            factored=self.kind == "factored",
            order=self.order, place=self._place,
            start=ints(size + 1), column=ints(entries), chance=np.empty(entries),
            gain=np.empty(size),
            lower_start=ints(size + 1), lower_column=ints(fill), lower=np.empty(fill),
            upper_start=ints(size + 1), upper_column=ints(fill), upper=np.empty(fill),
            pivot=np.empty(size), link=ints(size + 1),
            value=np.empty(size), image=np.empty(size), work=np.empty((VECTORS, size)),
        )  # fmt: skip


_CHOSEN: WeakKeyDictionary[MDP, dict[bytes, Evaluator]] = WeakKeyDictionary()
"""How the policies of a model are evaluated, by the rows that they use."""


def choose_evaluator(mdp: MDP, rows: Ints | None = None) -> Evaluator:
    """Return the cheapest way to evaluate the policies that use some rows; None: any.

    Examples
    --------
    >>> from surefoot.domains import garnet, river_chain, riverswim
    >>> rng = np.random.default_rng(0)
    >>> choose_evaluator(riverswim().mdp).kind
    'full'
    >>> choose_evaluator(river_chain(500, discount=0.9).mdp).kind
    'factored'
    >>> choose_evaluator(garnet(300, 3, 8, discount=0.9, rng=rng).mdp).kind
    'products'
    """
    if mdp.num_states < REMEMBERED_STATES:
        return _chosen(mdp, rows)
    known = _CHOSEN.setdefault(mdp, {})
    key = b"" if rows is None else np.asarray(rows).tobytes()
    if key not in known:
        if len(known) == REMEMBERED:
            known.pop(next(iter(known)))
        known[key] = _chosen(mdp, rows)
    return known[key]


def _chosen(mdp: MDP, rows: Ints | None) -> Evaluator:
    links = _links(mdp, rows)
    if mdp.horizon is not None:
        return by_steps(links, mdp.horizon)
    if until_the_end(mdp):
        return until_ends(links, counted_steps(mdp))
    return cheapest([products(links), *direct_ways(links, products(links).work)])


def by_steps(links: Links, horizon: int) -> Evaluator:
    """Return the way that walks back from the last step."""
    work = horizon * (2.0 * links.entries + 4.0 * links.size)
    return Evaluator(kind="steps", work=work, order=np.arange(links.size), fill=0)


def until_ends(links: Links, steps: float) -> Evaluator:
    """Return the way for models that end: elimination, or sweeps over some times their steps."""
    ways = [way for way in direct_ways(links) if way.work < np.inf]
    work = SWEEPS_PER_STEP * steps * (4.0 * links.entries + 8.0 * links.size)
    swept = Evaluator(kind="products", work=work, order=np.arange(links.size), fill=0)
    return cheapest(ways) if ways else swept


def cheapest(ways: list[Evaluator]) -> Evaluator:
    """Return the way with the least work: the first of equals."""
    return min(ways, key=lambda way: way.work)


def products(links: Links) -> Evaluator:
    """Return the way that eliminates nothing."""
    work = PRODUCTS * (links.entries + 10.0 * links.size)  # and ten vectors are combined
    return Evaluator(kind="products", work=work, order=np.arange(links.size), fill=0)


def direct_ways(links: Links, limit: float = np.inf, patience: float = 1.0) -> list[Evaluator]:
    """Return the eliminations that cost less than a limit; perhaps none.

    The search for an order of minimum degree ends at the share ``patience`` of the cheapest way
    known by then: one that serves a single evaluation must not take as long as that.
    """
    ways = []
    size = links.size
    if size <= FULL_STATES and dense_work(size) < limit:
        full = Evaluator(kind="full", work=dense_work(size), order=np.arange(size), fill=0)
        ways.append(full)
        limit = full.work
    rest = 6.0 * size + 4.0 * links.entries
    if size < FEW_STATES or not limit > rest:
        return ways
    widest = ((limit - rest) / (SPARSE_COST * size)) ** 0.5
    ways += _factored(band_order(size, links.source, links.target, widest), rest, limit)
    limit = min([limit, *(way.work for way in ways)])
    if size <= FACTORED_STATES and limit > NARROW * rest:
        most = min(patience * (limit - rest) / SPARSE_COST, 2.0**62)
        found = minimum_degree_order(size, links.source, links.target, int(most))
        ways += _factored(found, rest, limit)
    return ways


def _factored(found: Order | None, rest: float, limit: float) -> list[Evaluator]:
    if found is None:
        return []
    order, fill, multiplications = found
    work = rest + SPARSE_COST * multiplications
    if not work < limit:
        return []
    return [Evaluator(kind="factored", work=work, order=order, fill=fill)]


def _links(mdp: MDP, rows: Ints | None) -> Links:
    source = mdp.row_state[mdp.entry_row]
    if rows is None:
        entries = mdp.num_entries * mdp.num_states / mdp.num_rows
        return Links(mdp.num_states, source, mdp.successor.astype(np.int64), entries)
    chosen = np.zeros(mdp.num_rows, dtype=np.bool_)
    chosen[rows] = True
    used = chosen[mdp.entry_row]
    target = mdp.successor[used].astype(np.int64)
    return Links(mdp.num_states, source[used], target, float(len(target)))
