"""Where the models of a batch come from: which posterior, and what a device must know of it.

A source has numbers of its own for every tile (``fixed``), others for a range of draws (``drawn``),
and a formula that makes probabilities ``[successor, row, state, draw]`` of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.posterior.learned import LearnedPosterior
from surefoot.posterior.of_counts import Key
from surefoot.posterior.protocol import Posterior
from surefoot.posterior.rows import SomeRows
from surefoot.solvers.gpu.arrays import Array, Arrays
from surefoot.solvers.gpu.learned_rows import learned_fixed, learned_probabilities
from surefoot.solvers.gpu.tiles import Tile
from surefoot.solvers.gpu.variates import log_gammas, shares

Ints = NDArray[np.int64]
Numbers = dict[str, Array]
Formula = Callable[[Arrays, Array, Numbers, Numbers, Array], Array]
"""(arrays, key, fixed, drawn, draw numbers) to probabilities."""

TRANSITIONS = 0
"""The stream of transition probabilities; others are in `surefoot.solvers.gpu.reward_draws`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawSource:
    """How a device draws from a posterior.

    Attributes
    ----------
    formula
        Makes probabilities.
    fixed
        From a tile to its numbers.
    drawn
        From a key and a range of draws to what all rows of a draw share.
    """

    formula: Formula
    fixed: Callable[[Tile], Numbers]
    drawn: Callable[[Key, int, int], Numbers]


def can_draw(posterior: Posterior) -> bool:
    """Tell whether a device draws from this posterior itself; others are drawn here and sent."""
    whole = posterior.whole if isinstance(posterior, SomeRows) else posterior
    return isinstance(whole, DirichletPosterior | LearnedPosterior)


def source_of(posterior: Posterior, rows: Ints, entries: Ints) -> DrawSource:
    """Return how a device draws some rows, which have these entries."""
    if isinstance(posterior, SomeRows):
        return source_of(posterior.whole, posterior.rows[rows], posterior.entries[entries])
    if isinstance(posterior, LearnedPosterior):
        return _learned(posterior, rows, entries)
    if isinstance(posterior, DirichletPosterior):
        return _dirichlet(posterior, entries)
    raise TypeError(f"{type(posterior).__name__} has no formula for a device.")


def places(tile: Tile, numbers: Ints) -> NDArray[np.uint32]:
    """Return ``[..., 1]``: the number of every entry of a tile, any where there is none."""
    return np.asarray(np.where(tile.entry < 0, 0, numbers[tile.entry])[..., None], dtype=np.uint32)


def _dirichlet(posterior: DirichletPosterior, entries: Ints) -> DrawSource:
    shape = posterior.shape[entries]
    small = bool((shape < 1.0).any())

    def fixed(tile: Tile) -> Numbers:
        own = np.where(tile.entry < 0, 0.0, shape[tile.entry])
        return {"shape": own[..., None], "place": places(tile, entries)}

    formula = _small_shapes if small else _large_shapes
    return DrawSource(formula=formula, fixed=fixed, drawn=lambda _key, _first, _last: {})


def dirichlet_probabilities(
    arrays: Arrays, key: Array, fixed: Numbers, _drawn: Numbers, draw: Array, *, small: bool
) -> Array:
    """Draw independent Dirichlet rows."""
    logs = log_gammas(arrays, key, fixed["place"], draw, TRANSITIONS, fixed["shape"], small=small)
    return shares(arrays.xp, logs)


_small_shapes: Formula = partial(dirichlet_probabilities, small=True)
_large_shapes: Formula = partial(dirichlet_probabilities, small=False)


def _learned(posterior: LearnedPosterior, rows: Ints, entries: Ints) -> DrawSource:
    def drawn(key: Key, first: int, last: int) -> Numbers:
        size_law, alpha_law, part_shares, rare = posterior._drawn_laws(key, first, last)
        return {
            "size_law": np.asarray(size_law.T, dtype=np.int32),
            "alpha_law": np.asarray(alpha_law.T, dtype=np.int32),
            "shares": np.ascontiguousarray(part_shares.T),
            "rare": np.ascontiguousarray(rare.T),
        }

    def fixed(tile: Tile) -> Numbers:
        own: dict[str, Any] = learned_fixed(posterior, tile, rows, entries)
        return {**own, "place": places(tile, entries)}

    return DrawSource(formula=learned_probabilities, fixed=fixed, drawn=drawn)
