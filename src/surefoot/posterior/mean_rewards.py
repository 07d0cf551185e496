"""Draws of uncertain mean rewards, given a log.

The laws are those of `surefoot.data.reward_uncertainty`. Draw ``i`` of entry ``e`` comes from a
stream keyed by (key, ``e``, block of 16 draws), as for transitions: the numbers do not depend on
the choice of entries, blocks or threads, and two policies are compared on the same rewards.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from surefoot._cores import available_cores, on_threads
from surefoot.data.counts import Counts
from surefoot.data.reward_uncertainty import (
    BoundedLaw,
    above_lowest,
    bounded_law,
    mean_rewards,
    reward_bounds,
    scattering_law,
    uncertain_rewards,
    uncertain_tries,
)
from surefoot.posterior.dirichlet_kernels import BLOCK_DRAWS, dirichlet_rows, prepare
from surefoot.posterior.normal_kernels import normal_columns
from surefoot.posterior.of_counts import Key
from surefoot.posterior.pooled_rewards import PooledRewards, pool_rewards
from surefoot.posterior.protocol import check_draws_wanted, stream_key
from surefoot.posterior.rows import Floats, Ints
from surefoot.posterior.threads import WORTH_A_THREAD


@dataclass(frozen=True, eq=False)
class MeanRewards:
    """The posterior of the mean rewards of declared counts.

    ``each_row``: whether rewards in a range have one more reward in each row at the low end
    (`bounded_law`), or none (`scattering_law`).

    Examples
    --------
    >>> from surefoot.data.transitions import read_transitions
    >>> log = {"state": [0, 0, 1], "action": [0, 0, 1], "next_state": [1, 1, 0],
    ...        "reward": [1.0, 2.0, 5.0]}
    >>> rewards = MeanRewards(read_transitions(log))
    >>> key = (np.uint64(1), np.uint64(2))
    >>> whole = rewards.draws(key, 0, 100)
    >>> bool(whole[:, 0].std() > 0), whole[:, 1].min(), whole[:, 1].max()
    (True, np.float64(5.0), np.float64(5.0))
    >>> np.array_equal(whole[40:50, :1], rewards.draws(key, 40, 50, np.array([0])))
    True
    """

    counts: Counts
    each_row: bool = True

    @cached_property
    def mean(self) -> Floats:
        """``(E,)``: the observed mean rewards."""
        return mean_rewards(self.counts)

    @cached_property
    def uncertain(self) -> NDArray[np.bool_]:
        """``(E,)``: which of them are uncertain."""
        return uncertain_rewards(self.counts)

    def draws(self, key: Key, first: int, last: int, entries: Ints | None = None) -> Floats:
        """Return draws ``first`` to ``last - 1`` of some entries; None means all entries."""
        chosen = np.arange(len(self.mean)) if entries is None else entries
        begin = first - first % BLOCK_DRAWS
        out = np.empty((last - begin, len(chosen)))
        out[:] = self.mean[chosen]
        columns = np.flatnonzero(self.drawn[chosen])
        if len(columns):
            fill = self._normal if self.counts.reward_model == "normal" else self._bounded
            fill(key, begin, last, chosen[columns], columns, out)
        return out[first - begin :]

    def _bounded(
        self, key: Key, begin: int, last: int, entries: Ints, columns: Ints, out: Floats
    ) -> None:
        """Write ``lowest + width Beta(successes, failures)``; 0 successes give the lowest."""
        law = self.law
        shape, d, c, start, logarithmic = self._gammas

        def fill(part: Ints) -> None:
            pair = np.empty((last - begin, 2 * len(part)))
            dirichlet_rows(
                shape, d, c, start, logarithmic, entries[part], 2 * np.arange(len(part)), *key,
                begin, last, pair,
            )  # fmt: skip
            share = pair[:, ::2]
            share[:, shape[2 * entries[part]] == 0.0] = 0.0
            out[:, columns[part]] = law.lowest + law.width[entries[part]] * share

        _on_threads(fill, len(columns), 2 * (last - begin) * len(columns))

    @cached_property
    def law(self) -> BoundedLaw:
        """The law of mean rewards in a range."""
        if self.each_row:
            return bounded_law(self.counts)
        return scattering_law(self.counts)

    @cached_property
    def above(self) -> Floats:
        """``(E,)``: how far uncertain means lie above the low end of the range."""
        return above_lowest(self.counts)

    @cached_property
    def below(self) -> Floats:
        """``(E,)``: how far uncertain means lie below the high end of the range."""
        low, high = reward_bounds(self.counts)
        return np.where(self.uncertain, high - low - self.above, 0.0)

    @cached_property
    def tries(self) -> Floats:
        """``(E,)``: how often each entry whose mean is uncertain was seen."""
        return uncertain_tries(self.counts)

    @cached_property
    def drawn(self) -> NDArray[np.bool_]:
        """``(E,)``: which mean rewards differ from draw to draw."""
        if self.counts.reward_model == "normal":
            return self.uncertain
        return np.asarray(self.uncertain & (self.law.failures > 0.0))

    @cached_property
    def _gammas(self) -> tuple[Floats, Floats, Floats, Ints, NDArray[np.bool_]]:
        """Successes and failures of every entry, as rows of two for the Dirichlet kernel."""
        shape = np.column_stack((self.law.successes, self.law.failures)).ravel()
        d, c = np.empty_like(shape), np.empty_like(shape)
        prepare(shape, d, c, len(shape))
        size = len(self.mean)
        return shape, d, c, 2 * np.arange(size + 1), np.zeros(size, dtype=np.bool_)

    def _normal(
        self, key: Key, begin: int, last: int, entries: Ints, columns: Ints, out: Floats
    ) -> None:
        """Shrink each mean towards the drawn mean of its row and add the remaining uncertainty."""
        rows, row = np.unique(self.counts.entry_row[entries], return_inverse=True)
        action = self.counts.entry_action[entries]
        size = self.counts.count[entries].astype(np.float64)
        common = self._pooled.common(key, begin, last)
        row_mean = self._pooled.rows(key, begin, last, common, rows)

        def fill(part: Ints) -> None:
            normal = np.empty((last - begin, len(part)))
            normal_columns(entries[part], np.arange(len(part)), *key, begin, last, normal)
            seen, within = self.mean[entries[part]], common.within[:, action[part]]
            pull = 1.0 / (1.0 + size[part] * within)
            spread = common.sigma[:, action[part]] * np.sqrt(within * pull)
            out[:, columns[part]] = seen + pull * (row_mean[:, row[part]] - seen) + spread * normal

        _on_threads(fill, len(columns), (last - begin) * len(columns))

    @cached_property
    def _pooled(self) -> PooledRewards:
        return pool_rewards(self.counts)


def draw_mean_rewards(counts: Counts, n: int, rng: np.random.Generator) -> Floats:
    """Return ``(n, E)`` draws of the mean rewards; certain ones are the same in every draw.

    Examples
    --------
    >>> from surefoot.data.transitions import read_transitions
    >>> log = {"state": [0, 0, 1], "action": [0, 0, 1], "next_state": [1, 1, 0],
    ...        "reward": [1.0, 2.0, 5.0]}
    >>> draw_mean_rewards(read_transitions(log), 1000, np.random.default_rng(0)).shape
    (1000, 2)
    """
    return MeanRewards(counts).draws(stream_key(rng), 0, check_draws_wanted(n))


def _on_threads(fill: Callable[[Ints], None], columns: int, variates: int) -> None:
    """Share columns among threads if there are enough variates to pay for them."""
    threads = max(1, min(available_cores(), variates // WORTH_A_THREAD))
    on_threads(fill, np.array_split(np.arange(columns), threads), threads)
