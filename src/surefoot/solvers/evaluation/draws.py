"""Which models an engine is to draw and evaluate in: nothing is drawn yet."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from surefoot.model.mdp import MDP
from surefoot.posterior.batch import Batch
from surefoot.posterior.of_counts import Key
from surefoot.posterior.protocol import Posterior, check_generator, stream_key
from surefoot.solvers.evaluation.rewards import Rewards

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Draws:
    """Draws of a posterior with their rewards, in a model.

    They are the same models whoever makes them, in whatever blocks.

    Attributes
    ----------
    mdp
        Rows, discount and initial distribution.
    batch
        Which draws of which posterior.
    rewards, reward_key
        The rewards, and the key that uncertain ones are drawn by.
    """

    mdp: MDP
    batch: Batch
    rewards: Rewards
    reward_key: Key

    @classmethod
    def take(
        cls, posterior: Posterior, mdp: MDP, rewards: Rewards, n: int, rng: np.random.Generator
    ) -> "Draws":
        """Return the next ``n`` draws of a generator, which moves on."""
        key = stream_key(check_generator(rng).spawn(1)[0])
        batch = Batch.take(posterior, n, rng)
        return cls(mdp=mdp, batch=batch, rewards=rewards, reward_key=key)

    @property
    def count(self) -> int:
        """The number of draws."""
        return self.batch.draws

    def part(self, first: int, last: int) -> "Draws":
        """Return draws ``first`` to ``last - 1`` of these."""
        return replace(self, batch=self.batch.part(first, last))

    def blocks(self, rows: Ints | None, entries: Ints) -> Iterator[tuple[Floats, Floats]]:
        """Yield probabilities ``(b, E')`` and rewards ``(b or 1, E')`` of some rows."""
        done = self.batch.first
        for block in self.batch.blocks(rows):
            last = done + len(block)
            yield block, self.rewards.block(self.reward_key, done, last, entries)
            done = last
