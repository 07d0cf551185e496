"""Batches of drawn models on a device: probabilities and expected rewards of laid-out rows."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.posterior.of_counts import Key
from surefoot.solvers.evaluation.draws import Draws
from surefoot.solvers.gpu.arrays import NUMPY, Array, Arrays, jax_arrays
from surefoot.solvers.gpu.philox import key_words
from surefoot.solvers.gpu.programs import Program
from surefoot.solvers.gpu.reward_draws import RewardSource, reward_source
from surefoot.solvers.gpu.sources import DrawSource, source_of
from surefoot.solvers.gpu.tiles import Tiling

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Numbers = dict[str, Array]


class DrawnTile(NamedTuple):
    """Drawn rows of a tile.

    ``chance`` is ``[successor, row, state, draw]``, ``gain`` ``[row, state, draw]`` with -inf where
    there is no row, ``largest`` ``[draw]`` the size of the largest reward.
    """

    chance: Array
    gain: Array
    largest: Array


class TileNumbers(NamedTuple):
    """What the formulas know of a tile: of its rows, of its rewards, and which rows there are."""

    rows: Numbers
    rewards: Numbers
    present: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class Batches:
    """Draws of a posterior, laid out, to be made some at a time.

    Attributes
    ----------
    draws
        Which draws.
    tiling
        How rows lie.
    source, rewards
        How they are drawn.
    """

    draws: Draws
    tiling: Tiling
    source: DrawSource
    rewards: RewardSource

    @classmethod
    def of(cls, draws: Draws, tiling: Tiling, rows: Ints, entries: Ints) -> "Batches":
        """Prepare draws of some rows of the model, which have these entries."""
        return cls(
            draws=draws,
            tiling=tiling,
            source=source_of(draws.batch.posterior, rows, entries),
            rewards=reward_source(draws.rewards, entries),
        )

    @cached_property
    def numbers(self) -> tuple[TileNumbers, ...]:
        """What the formulas know of every tile, as NumPy arrays."""
        return tuple(
            TileNumbers(self.source.fixed(tile), self.rewards.fixed(tile), tile.row >= 0)
            for tile in self.tiling.tiles
        )

    @property
    def keys(self) -> tuple[Key, Key]:
        """The keys of transitions and of rewards."""
        return self.draws.batch.key, self.draws.reward_key

    def shared(self, first: int, last: int) -> tuple[Numbers, Numbers]:
        """Return what all rows of each draw share, draws counted from those of the batch."""
        begin = self.draws.batch.first
        key, reward_key = self.keys
        return (
            self.source.drawn(key, begin + first, begin + last),
            self.rewards.drawn(reward_key, begin + first, begin + last),
        )

    def make(self, device: Any, numbers: Any, first: int, last: int) -> Any:
        """Return the drawn tiles of some draws, made on a device that has the numbers of tiles."""
        begin = self.draws.batch.first
        draw = np.arange(begin + first, begin + last, dtype=np.uint32)
        keys = tuple(key_words(key) for key in self.keys)
        formulas = (self.source.formula, self.rewards.formula)
        how = device.platform != "cpu", formulas
        return DRAWING(device, *how, keys, numbers, self.shared(first, last), draw)

    def prepare(self, device: Any, size: int) -> Any:
        """Compile the drawing of a batch of models; return the shapes of the tiles."""
        draw = np.arange(size, dtype=np.uint32)
        keys = tuple(key_words(key) for key in self.keys)
        formulas = (self.source.formula, self.rewards.formula)
        how = device.platform != "cpu", formulas
        return DRAWING.prepare(device, *how, keys, self.numbers, self.shared(0, size), draw)

    def again(self, which: int) -> tuple[DrawnTile, ...]:
        """Return one draw, made again here by NumPy."""
        begin = self.draws.batch.first
        draw = np.array([begin + which], dtype=np.uint32)
        keys = tuple(key_words(key) for key in self.keys)
        formulas = (self.source.formula, self.rewards.formula)
        with np.errstate(all="ignore"):
            return _draw(NUMPY, formulas, keys, self.numbers, self.shared(which, which + 1), draw)


def _draw(
    arrays: Arrays, formulas: Any, keys: Any, numbers: Any, shared: Any, draw: Array
) -> tuple[DrawnTile, ...]:
    """Draw all tiles."""
    xp = arrays.xp
    made = []
    for tile in numbers:
        chance = formulas[0](arrays, keys[0], tile.rows, shared[0], draw)
        reward = formulas[1](arrays, keys[1], tile.rewards, shared[1], draw)
        gain = xp.where(tile.present[..., None], (chance * reward).sum(axis=0), -xp.inf)
        largest = xp.broadcast_to(xp.abs(reward).max(axis=(0, 1, 2)), draw.shape)
        made.append(DrawnTile(chance, gain, largest))
    return tuple(made)


def _draw_there(kernels: bool, *given: Any) -> tuple[DrawnTile, ...]:
    return _draw(jax_arrays()._replace(kernels=kernels), *given)


DRAWING = Program(_draw_there, fixed=2)
"""The drawing of tiles on a device: with kernels or not, by these formulas."""
