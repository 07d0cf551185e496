"""How policies are evaluated in drawn models: the cheapest of three ways."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefoot.certificates.factor_kernels import minimum_degree
from surefoot.certificates.krylov_kernels import VECTORS
from surefoot.certificates.system_kernels import System
from surefoot.model.mdp import MDP

Ints = NDArray[np.int64]

DIRECT_STATES = 220
"""Above this no full matrix is eliminated."""
FEW_STATES, FACTORED_STATES = 16, 4000
"""Outside these no order of elimination is looked for: a full matrix of few states is as quick, and
an order of many takes a table of all pairs of states."""
PRODUCTS = 40
"""Products that an evaluation is taken to need, where nothing is eliminated."""
SPARSE_COST = 3.0
"""What a multiplication costs that has to look up its places, in plain ones."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Method:
    """How the policies of a model are evaluated.

    Attributes
    ----------
    kind
        ``"full"``: elimination of a full matrix; ``"factored"``: elimination in an order that fills
        in little; ``"products"``: sweeps, and products with the matrix where these are slow.
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

    def system(self, entries: int) -> System:
        """Return room for the equations of a policy with so many entries."""
        size, fill = len(self.order), self.fill

        def ints(length: int) -> Ints:
            return np.empty(length, dtype=np.int64)

        return System(
            factored=self.kind == "factored",
            order=self.order, place=np.argsort(self.order),
            start=ints(size + 1), column=ints(entries), chance=np.empty(entries),
            gain=np.empty(size),
            lower_start=ints(size + 1), lower_column=ints(fill), lower=np.empty(fill),
            upper_start=ints(size + 1), upper_column=ints(fill), upper=np.empty(fill),
            pivot=np.empty(size), link=ints(size + 1),
            value=np.empty(size), image=np.empty(size), work=np.empty((VECTORS, size)),
        )  # fmt: skip


def choose_method(mdp: MDP, rows: Ints | None = None) -> Method:
    """Return the cheapest way to evaluate the policies that use some rows; None: any.

    Examples
    --------
    >>> from surefoot.domains import garnet, river_chain, riverswim
    >>> rng = np.random.default_rng(0)
    >>> choose_method(riverswim().mdp).kind
    'full'
    >>> choose_method(river_chain(500, discount=0.9).mdp).kind
    'factored'
    >>> choose_method(garnet(300, 3, 8, discount=0.9, rng=rng).mdp).kind
    'products'
    """
    size = mdp.num_states
    lengths = np.diff(mdp.row_start)
    given = np.arange(mdp.num_rows) if rows is None else rows
    used = int(lengths[given].sum())
    entries = used if rows is not None else used * size / mdp.num_rows
    ways = [("products", PRODUCTS * (entries + 10.0 * size))]  # and ten vectors are combined
    if size <= DIRECT_STATES:
        ways.append(("full", size**3 / 3 + 50.0))
    order, fill = np.arange(size), 0
    rest = 6.0 * size + 4.0 * entries
    limit = min(work for _, work in ways) - rest
    if FEW_STATES <= size <= FACTORED_STATES and limit > 0:
        found = _order(mdp, given, int(limit / SPARSE_COST))
        if found is not None:
            order, fill, multiplications = found
            ways.append(("factored", rest + SPARSE_COST * multiplications))
    kind, work = min(ways, key=lambda way: way[1])
    if kind != "factored":
        order, fill = np.arange(size), 0
    return Method(kind=kind, work=work, order=order, fill=fill)


def _order(mdp: MDP, rows: Ints, limit: int) -> tuple[Ints, int, int] | None:
    """Return an order of elimination, the size of its factors and its cost, up to a limit."""
    size = mdp.num_states
    chosen = np.zeros(mdp.num_rows, dtype=np.bool_)
    chosen[rows] = True
    used = chosen[mdp.entry_row]
    links = np.zeros((size, size), dtype=np.bool_)
    links[mdp.row_state[mdp.entry_row[used]], mdp.successor[used]] = True
    links |= links.T
    np.fill_diagonal(links, False)
    order, degree, near = np.empty((3, size), dtype=np.int64)
    work, fill = minimum_degree(links, limit, order, degree, near)
    return None if work < 0 else (order, int(fill), int(work))
