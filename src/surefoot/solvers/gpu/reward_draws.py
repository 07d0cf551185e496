"""Expected rewards of drawn rows: certain rewards as given, uncertain means drawn with the models.

The laws are those of `surefoot.posterior.mean_rewards`, on streams of their own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.posterior.dirichlet_kernels import BLOCK_DRAWS
from surefoot.posterior.of_counts import Key
from surefoot.posterior.pooled_rewards import pool_rewards
from surefoot.solvers.evaluation.rewards import Rewards
from surefoot.solvers.gpu.arrays import Array, Arrays
from surefoot.solvers.gpu.tiles import Tile
from surefoot.solvers.gpu.variates import log_gammas, normals

Ints = NDArray[np.int64]
Numbers = dict[str, Array]
Formula = Callable[[Arrays, Array, Numbers, Numbers, Array], Array]
"""(arrays, key, fixed, drawn, draw numbers) to rewards ``[successor, row, state, draw]``."""

SUCCESSES, FAILURES, ENTRIES, ROWS = 16, 17, 18, 19
"""Streams of uncertain mean rewards: two gamma variates, and normal ones of entries and rows."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RewardSource:
    """How a device draws rewards; the parts are those of `surefoot.solvers.gpu.sources.Source`."""

    formula: Formula
    fixed: Callable[[Tile], Numbers]
    drawn: Callable[[Key, int, int], Numbers]


def reward_source(rewards: Rewards, entries: Ints) -> RewardSource:
    """Return how the rewards of some entries are drawn."""
    uncertain = rewards.uncertain[entries]
    fixed = rewards.fixed[entries]
    places = entries if rewards.places is None else rewards.places[entries]
    if not uncertain.any():
        return RewardSource(
            formula=certain_rewards,
            fixed=lambda tile: {"reward": _of(tile, fixed)},
            drawn=lambda _key, _first, _last: {},
        )
    if rewards.counts.reward_model == "normal":
        return _normal(rewards, uncertain, fixed, places)
    return _bounded(rewards, uncertain, fixed, places)


def _of(tile: Tile, values: NDArray[Any]) -> NDArray[Any]:
    """Return the values of a tile's entries, 0 where there is none."""
    return np.where(tile.entry < 0, 0, values[tile.entry])[..., None].astype(values.dtype)


def certain_rewards(
    _arrays: Arrays, _key: Array, fixed: Numbers, _drawn: Numbers, _draw: Array
) -> Array:
    """Return the rewards as they are."""
    return fixed["reward"]


def _bounded(
    rewards: Rewards, uncertain: NDArray[np.bool_], fixed: NDArray[np.float64], places: Ints
) -> RewardSource:
    law = rewards.means.law
    uncertain = uncertain & rewards.means.drawn[places]

    def numbers(tile: Tile) -> Numbers:
        return {
            "reward": _of(tile, fixed),
            "uncertain": _of(tile, uncertain),
            "place": _of(tile, places.astype(np.uint32)),
            "width": _of(tile, law.width[places]),
            "successes": np.where(_of(tile, uncertain), _of(tile, law.successes[places]), 1.0),
            "failures": np.where(_of(tile, uncertain), _of(tile, law.failures[places]), 1.0),
            "lowest": np.float64(law.lowest),
        }

    return RewardSource(
        formula=bounded_rewards, fixed=numbers, drawn=lambda _key, _first, _last: {}
    )


def bounded_rewards(
    arrays: Arrays, key: Array, fixed: Numbers, _drawn: Numbers, draw: Array
) -> Array:
    """Draw ``lowest + width Beta(successes, failures)``; no success means the lowest."""
    xp, place = arrays.xp, fixed["place"]
    good = log_gammas(arrays, key, place, draw, SUCCESSES, fixed["successes"], small=True)
    bad = log_gammas(arrays, key, place, draw, FAILURES, fixed["failures"], small=True)
    share = 1.0 / (1.0 + xp.exp(bad - good))
    drawn = fixed["lowest"] + fixed["width"] * share
    return xp.where(fixed["uncertain"], drawn, fixed["reward"])


def _normal(
    rewards: Rewards, uncertain: NDArray[np.bool_], fixed: NDArray[np.float64], places: Ints
) -> RewardSource:
    counts = rewards.counts
    pooled = pool_rewards(counts)
    mean = rewards.means.mean

    def numbers(tile: Tile) -> Numbers:
        first = np.where(tile.row < 0, 0, counts.entry_row[places[tile.entry[0]]])
        return {
            "reward": _of(tile, fixed),
            "uncertain": _of(tile, uncertain),
            "place": _of(tile, places.astype(np.uint32)),
            "seen": _of(tile, mean[places]),
            "size": _of(tile, counts.count[places].astype(np.float64)),
            "row": first[..., None].astype(np.uint32),
            "action": counts.row_action[first].astype(np.int32),
            "row_mean": pooled.row_mean[:, first],
            "row_precision": pooled.row_precision[:, first],
        }

    def drawn(key: Key, first: int, last: int) -> Numbers:
        begin = first - first % BLOCK_DRAWS
        common = pooled.common(key, begin, last)
        found = {name: np.ascontiguousarray(part[first - begin :].T) for name, part in
                 common._asdict().items()}  # fmt: skip
        return {**found, "place": found["place"].astype(np.int32)}

    return RewardSource(formula=normal_rewards, fixed=numbers, drawn=drawn)


def normal_rewards(
    arrays: Arrays, key: Array, fixed: Numbers, drawn: Numbers, draw: Array
) -> Array:
    """Pull each mean towards the drawn mean of its row, and add what is left of doubt."""
    xp, action = arrays.xp, fixed["action"]
    within, between, sigma, level = (
        drawn[name][action] for name in ("within", "between", "sigma", "level")
    )
    rows, states = np.ogrid[: action.shape[0], : action.shape[1]]
    place = drawn["place"][action]
    row_mean = fixed["row_mean"][place, rows[..., None], states[..., None]]
    precision = fixed["row_precision"][place, rows[..., None], states[..., None]]
    pull = 1.0 / (1.0 + between * precision)
    noise = normals(arrays, key, fixed["row"], draw, ROWS)
    of_row = row_mean + pull * (level - row_mean) + sigma * xp.sqrt(between * pull) * noise
    of_row = arrays.settled(of_row)
    pull = 1.0 / (1.0 + fixed["size"] * within)
    spread = sigma * xp.sqrt(within * pull)
    own = normals(arrays, key, fixed["place"], draw, ENTRIES)
    mean = fixed["seen"] + pull * (of_row - fixed["seen"]) + spread * own
    return xp.where(fixed["uncertain"], mean, fixed["reward"])
