"""Which models an engine is to draw and evaluate; nothing is drawn until then."""

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
    """Identifies draws of a posterior with their rewards; nothing is drawn yet.

    The drawn models are the same on every machine and for any division into blocks.

    Attributes
    ----------
    mdp
        Rows, discount and initial distribution.
    batch
        Which draws of which posterior.
    rewards, reward_key
        The rewards, and the key of the random stream that draws the uncertain ones.
    """

    mdp: MDP
    batch: Batch
    rewards: Rewards
    reward_key: Key

    @classmethod
    def take(
        cls, posterior: Posterior, mdp: MDP, rewards: Rewards, n: int, rng: np.random.Generator
    ) -> "Draws":
        """Return the next ``n`` draws of a generator, which advances."""
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
        """Yield blocks of draws: probabilities ``(b, E')`` and rewards ``(b or 1, E')`` of rows."""
        done = self.batch.first
        for block in self.batch.blocks(rows):
            last = done + len(block)
            yield block, self.rewards.block(self.reward_key, done, last, entries)
            done = last
