"""Sizes of sets from posterior draws: order statistics of the draws' distances."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefoot._arguments import check_choice, check_inside
from surefoot._order_statistics import covering_rank, draws_needed
from surefoot.calibration.distance_kernels import largest_ratios, row_distances
from surefoot.model.mdp import MDP
from surefoot.posterior.batch import Batch

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

UNIONS = ("all", "uncertain", "states", "joint")
RULES = ("strict", "marginal")
BLOCK_DISTANCES = 2**22
"""How many distances are held in memory at a time (32 MB)."""


@dataclass(frozen=True, kw_only=True)
class Level:
    """How delta and eta are shared, and how many draws that needs.

    Attributes
    ----------
    alpha
        The share of delta that one order statistic gets.
    eta
        The share of eta that one order statistic gets; None for the marginal rule.
    over
        In words, what delta is shared over.
    """

    delta: float
    alpha: float
    eta: float | None
    total_eta: float
    over: str
    union: str
    rows: int

    @property
    def needed(self) -> int:
        """The smallest sufficient number of draws."""
        return draws_needed(self.alpha, self.eta)

    def rank(self, draws: int) -> int:
        """Return which order statistic to take, or refuse with the number of draws needed."""
        rank = covering_rank(draws, self.alpha, self.eta)
        if rank > draws:
            raise ValueError(self._refusal(draws))
        return rank

    def _refusal(self, draws: int) -> str:
        which = "marginal rule" if self.eta is None else f"strict rule, eta={self.total_eta:g}"
        text = (
            f"delta={self.delta:g} over {self.over} needs at least {self.needed} posterior draws "
            f"({which}), got {draws}. Draw more"
        )
        if self.eta is None or self.union == "states":
            return f"{text} or accept a larger delta."
        marginal = draws_needed(self.alpha, None)
        return f'{text}, accept a larger delta, or use rule="marginal" ({marginal}).'


def share_level(mdp: MDP, *, delta: float, eta: float, union: str, rule: str) -> Level:
    """Return the level of one order statistic under a union and a rule.

    Examples
    --------
    >>> from surefoot.domains import riverswim
    >>> share_level(riverswim().mdp, delta=0.05, eta=0.001, union="uncertain", rule="strict").needed
    1040
    """
    check_inside("delta", delta)
    check_inside("eta", eta)
    for name, value, choices in (("union", union, UNIONS), ("rule", rule, RULES)):
        check_choice(name, value, choices)
    if union == "states" and rule == "marginal":
        raise ValueError(
            'union="states" needs rule="strict": a policy picks rows whose sets came out small, '
            "and a statement that holds on average over draws does not hold for picked rows."
        )
    rows = max(1, int(np.count_nonzero(mdp.uncertain_rows)))
    states = max(1, len(np.unique(mdp.row_state[mdp.uncertain_rows])))
    parts, over = {
        "all": (mdp.num_rows, f"all {mdp.num_rows} rows"),
        "uncertain": (rows, f"{rows} uncertain row{'' if rows == 1 else 's'}"),
        "states": (states, f"{states} uncertain state{'' if states == 1 else 's'}"),
        "joint": (1, "one joint region"),
    }[union]
    # eta is shared over the uncertain rows: with probability 1 - eta all sets are large enough.
    share = eta / (1 if union == "joint" else rows)
    return Level(
        delta=delta, alpha=delta / parts, eta=share if rule == "strict" else None, total_eta=eta,
        over=over, union=union, rows=rows,
    )  # fmt: skip


def order_statistics(
    batch: Batch, mdp: MDP, *, norm: str, weights: Floats, rank: int, rows: Ints
) -> Floats:
    """Return the ``rank``-th smallest distance of every given row, ``(J, R)``; others get 0.

    ``weights`` is ``(J, E)``: all alternatives are measured on the same draws. Rows are handled in
    parts, so that memory holds the distances of one part only.
    """
    out = np.zeros((len(weights), mdp.num_rows))
    for part in _parts(rows, max(1, BLOCK_DISTANCES // (batch.draws * len(weights)))):
        entries, start = _entries(mdp, part)
        distance = np.empty((len(part), len(weights), batch.draws))
        nominal, chosen = mdp.probability[entries], np.ascontiguousarray(weights[:, entries])
        done = 0
        for block in batch.blocks(part):
            row_distances(block, start, nominal, chosen, norm == "l1", distance, done)
            done += len(block)
        distance.partition(rank - 1, axis=2)
        out[:, part] = distance[:, :, rank - 1].T
    return out


def joint_factors(
    batch: Batch, mdp: MDP, *, norm: str, weights: Floats, size: Floats, rows: Ints
) -> Floats:
    """Return for every draw the factor by which all sets must be scaled to contain it."""
    factors = np.zeros(batch.draws)
    for part in _parts(rows, max(1, BLOCK_DISTANCES // batch.draws)):
        entries, start = _entries(mdp, part)
        done = 0
        for block in batch.blocks(part):
            largest_ratios(
                block, start, mdp.probability[entries], weights[entries], size[part], norm == "l1",
                factors[done : done + len(block)],
            )  # fmt: skip
            done += len(block)
    return factors


def _parts(rows: Ints, size: int) -> Iterator[Ints]:
    return (rows[first : first + size] for first in range(0, len(rows), size))


def _entries(mdp: MDP, rows: Ints) -> tuple[Ints, Ints]:
    """Return the entries of some rows, and the position among them where each row starts."""
    sizes = np.diff(mdp.row_start)[rows]
    return mdp.entries_of(rows), np.concatenate(([0], np.cumsum(sizes)))
