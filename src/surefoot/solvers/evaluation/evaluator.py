"""How the policies of a model are evaluated: by the cheapest of three methods."""

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
"""Models with more states than this never use a full matrix (72 MB)."""
FEW_STATES, FACTORED_STATES = 16, 4000
"""A minimum degree order is looked for only between these numbers of states: with fewer, a full
matrix is as fast; with more, the table of all pairs of states is too large."""
SWEEPS_PER_STEP = 15.0
"""Sweeps until a model that ends has settled, per expected step."""
PRODUCTS = 40
"""Assumed number of matrix products of an evaluation without elimination."""
NARROW = 4.0
"""A minimum degree order is looked for only if every other elimination found costs more than this
many times the rest of an evaluation."""
SPARSE_COST = 3.0
"""Cost of a multiplication that has to look up its indices, in plain multiplications."""


REMEMBERED_STATES, REMEMBERED = 500, 16
"""For models with at least 500 states, the last 16 choices are cached: a run asks about the same
policy a dozen times, and finding an order of thousands of states takes a tenth of a second."""


class Links(NamedTuple):
    """Which state may lead to which, under the policies to be evaluated.

    ``source`` and ``target`` are ``(E',)`` states; ``entries`` is roughly the number of these links
    that one policy has.
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
        ``"full"``: elimination of a full matrix; ``"factored"``: sparse elimination in an order
        with little fill-in; ``"products"``: sweeps, or BiCGSTAB where sweeps are slow; ``"steps"``:
        backward induction, for models with a horizon.
    work
        About how many operations one evaluation takes.
    order
        ``(S,)``: the states in the order of elimination.
    fill
        An upper bound on the entries of a factor.
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
        """Allocate arrays for the equations of a policy with at most this many entries."""
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
"""The evaluators of a model, by the rows that the policies use."""


def choose_evaluator(mdp: MDP, rows: Ints | None = None) -> Evaluator:
    """Return the cheapest evaluator for policies that use the given rows (None: any rows).

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
    """Return the evaluator for models with a horizon: backward induction."""
    work = horizon * (2.0 * links.entries + 4.0 * links.size)
    return Evaluator(kind="steps", work=work, order=np.arange(links.size), fill=0)


def until_ends(links: Links, steps: float) -> Evaluator:
    """Return the evaluator for models that end: elimination if possible, otherwise sweeps.

    The number of sweeps is estimated from the expected number of steps to an end.
    """
    ways = [way for way in direct_ways(links) if way.work < np.inf]
    work = SWEEPS_PER_STEP * steps * (4.0 * links.entries + 8.0 * links.size)
    swept = Evaluator(kind="products", work=work, order=np.arange(links.size), fill=0)
    return cheapest(ways) if ways else swept


def cheapest(ways: list[Evaluator]) -> Evaluator:
    """Return the evaluator with the least work; the first one in a tie."""
    return min(ways, key=lambda way: way.work)


def products(links: Links) -> Evaluator:
    """Return the evaluator that eliminates nothing."""
    work = PRODUCTS * (links.entries + 10.0 * links.size)  # a product also combines ten vectors
    return Evaluator(kind="products", work=work, order=np.arange(links.size), fill=0)


def direct_ways(links: Links, limit: float = np.inf, patience: float = 1.0) -> list[Evaluator]:
    """Return the evaluators by elimination that cost less than a limit; there may be none.

    The search for a minimum degree order stops at the share ``patience`` of the cheapest method
    found so far: a search that serves a single evaluation must not cost as much as the evaluation.
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
