"""Draws of rows whose concentration, number of successors and unseen successors are learned.

The law is that of `surefoot.posterior.learned_kernels.learned_rows`, rearranged for whole arrays:
unseen successors that land on one entry are counted, and one gamma variate has their shapes
together, since independent gamma variates of one scale add up to one. In heavy-tailed rows the
unseen successors share a gamma variate of their own.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from surefoot.posterior.row_laws import ALPHA, LAWS, STRENGTH
from surefoot.solvers.gpu.arrays import Array, Arrays
from surefoot.solvers.gpu.landing_pallas import LONGEST, landings
from surefoot.solvers.gpu.philox import philox, uniforms
from surefoot.solvers.gpu.tiles import Tile
from surefoot.solvers.gpu.variates import log_gammas, shares

if TYPE_CHECKING:
    from surefoot.posterior.learned import LearnedPosterior

Ints = NDArray[np.int64]
GAMMAS, KINDS, LANDINGS, TOTALS = 0, 1, 2, 3
"""Streams: gamma variates of entries; concentration and size of rows; where the unseen land; what
the unseen of heavy-tailed rows share."""
NEVER = -1e300
"""The logarithm of no chance at all."""


def learned_fixed(
    posterior: "LearnedPosterior", tile: Tile, rows: Ints, entries: Ints
) -> dict[str, Any]:
    """Return what the formula must know of the rows of a tile."""
    laws = posterior.laws
    none = tile.row < 0
    row = np.where(none, 0, rows[tile.row])
    entry = np.where(tile.entry < 0, 0, entries[tile.entry])
    weight = _landing(posterior)
    listed = np.where(tile.entry < 0, weight.shape[1] - 1, entry)
    count = np.where(tile.entry < 0, 0.0, posterior._count[entry])
    likelihood = laws.marginal[laws.fine[row]] + laws.shape[row][..., None, :]
    heavy = {"strength": STRENGTH[laws.usual]} if laws.heavy else {}
    return {
        **heavy,
        "count": count[..., None],
        "row": row[..., None].astype(np.uint32),
        "action": laws.action[row].astype(np.int32),
        "distinct": laws.distinct[row][..., None].astype(np.int32),
        "group": laws.group[row][..., None].astype(np.int32),
        # [size law, alpha, row, state]: neighbouring states lie side by side
        "likelihood": np.ascontiguousarray(np.moveaxis(likelihood, (2, 3), (0, 1))),
        "sizes": laws.sizes.reshape(-1, laws.sizes.shape[-1]),
        "size_laws": np.int32(laws.sizes.shape[1]),
        "landing": np.stack([part.take(listed) for part in weight]),
        "rare_open": np.where(none, 0.0, posterior.rare.open[row])[..., None],
        "rare_landing": np.where(tile.entry < 0, 0.0, posterior._landing[entry])[..., None],
        "alone": ((tile.entry >= 0).sum(axis=0) == 1)[..., None] & ~none[..., None],
    }


def _landing(posterior: "LearnedPosterior") -> NDArray[np.float64]:
    """Return ``(parts, E + 1)``: how likely an unseen successor of each part lands on each entry.

    The last one is none: nothing lands there.
    """
    if "_landing_by_part" not in posterior.__dict__:
        start, entry, _ = posterior._places
        parts = len(posterior.destinations.shares)
        owner = np.repeat(np.arange(len(start) - 1), np.diff(start))
        weight = np.zeros((parts, posterior.num_entries + 1))
        np.add.at(weight, (owner % parts, entry), posterior.destinations.weight)
        posterior.__dict__["_landing_by_part"] = weight
    found: NDArray[np.float64] = posterior.__dict__["_landing_by_part"]
    return found


def learned_probabilities(
    arrays: Arrays, key: Array, fixed: dict[str, Array], drawn: dict[str, Array], draw: Array
) -> Array:
    """Draw rows, given the laws of every draw."""
    xp = arrays.xp
    action = fixed["action"]
    size_law, alpha_law = drawn["size_law"][action], drawn["alpha_law"][action]
    words = philox(xp, key, (fixed["row"], draw, np.uint32(0), np.uint32(KINDS)))
    for_alpha, for_size = uniforms(xp, words)
    kind = _alphas(xp, fixed["likelihood"], size_law, alpha_law, for_alpha)
    line = (fixed["group"] * fixed["size_laws"] + size_law) * len(ALPHA) + kind
    size = _first_above(xp, fixed["sizes"], line, for_size)
    unseen = arrays.settled(xp.maximum(size - fixed["distinct"], 0))
    alpha = arrays.settled(xp.asarray(ALPHA)[kind])
    times = _landed(arrays, key, fixed, drawn["shares"], draw, unseen)
    seen = fixed["count"] > 0.0
    each = xp.where(alpha > 0.0, alpha, 1.0)
    shape = xp.where(seen, fixed["count"] + alpha, 0.0) + each * times
    shape = xp.where(fixed["alone"], xp.where(seen, shape, 0.0), shape)
    logs = log_gammas(arrays, key, fixed["place"], draw, GAMMAS, shape, small=True)
    if "strength" in fixed:
        rest = fixed["strength"][size_law] - fixed["distinct"] * alpha
        logs = _heavy_tailed(arrays, key, fixed, draw, xp.where(alpha < 0.0, rest, 0.0), logs)
    first = xp.arange(len(logs))[:, None, None, None] == 0
    landing = fixed["rare_landing"]
    share = 1.0 - (1.0 - drawn["rare"][action]) ** fixed["rare_open"]
    rare = xp.where(landing.sum(axis=0) > 0.0, share, 0.0)
    mixed = (1.0 - rare) * shares(xp, logs) + rare * landing
    return xp.where(fixed["alone"], first * 1.0, mixed)


def _heavy_tailed(
    arrays: Arrays, key: Array, fixed: dict[str, Array], draw: Array, rest: Array, logs: Array
) -> Array:
    """Return the logarithms with unseen successors that together have the shape ``rest``, if any.

    ``rest`` is 0 in rows that are not heavy-tailed; nothing changes there.
    """
    xp = arrays.xp
    unseen = (fixed["count"] == 0.0) & (logs > -xp.inf)
    largest = xp.where(unseen, logs, -xp.inf).max(axis=0)
    some = (rest > 0.0) & (largest > -xp.inf)
    largest = xp.where(some, largest, 0.0)
    parts = xp.where(unseen, xp.exp(logs - largest), 0.0).sum(axis=0)
    row = fixed["row"][None]
    total = log_gammas(arrays, key, row, draw, TOTALS, rest[None], small=True)[0]
    shift = xp.where(some, total - largest - xp.log(xp.where(some, parts, 1.0)), 0.0)
    return xp.where(unseen, logs + shift, logs)


def _alphas(xp: Any, likelihood: Array, size_law: Array, alpha_law: Array, u: Array) -> Array:
    """Return which concentration each row has, given the laws and the row's own data."""
    rows, states = np.ogrid[: size_law.shape[0], : size_law.shape[1]]
    logs = []
    prior = xp.asarray(np.log(np.maximum(LAWS, 1e-300)) + np.where(LAWS > 0, 0.0, NEVER))
    for a in range(len(ALPHA)):
        own = likelihood[:, a][size_law, rows[..., None], states[..., None]]
        logs.append(prior[:, a][alpha_law] + own)
    largest = logs[0]
    for log in logs[1:]:
        largest = xp.maximum(largest, log)
    running = [xp.exp(logs[0] - largest)]
    for log in logs[1:]:
        running.append(running[-1] + xp.exp(log - largest))
    goal = u * running[-1]
    kind = xp.zeros(goal.shape, dtype=xp.int32)
    for total in running[:-1]:
        kind = kind + (total < goal)
    return kind


def _first_above(xp: Any, table: Array, line: Array, goal: Array) -> Array:
    """Return the first place of a line whose cumulative weight reaches a goal, by halving."""
    low = xp.zeros(line.shape, dtype=xp.int32)
    high = xp.full(line.shape, table.shape[1], dtype=xp.int32)
    for _ in range(int(table.shape[1]).bit_length()):
        middle = (low + high) // 2
        below = table[line, xp.minimum(middle, table.shape[1] - 1)] < goal
        inside = low < high
        low = xp.where(inside & below, middle + 1, low)
        high = xp.where(inside & ~below, middle, high)
    return low


def _landed(
    arrays: Arrays, key: Array, fixed: dict[str, Array], part_shares: Array, draw: Array,
    unseen: Array,
) -> Array:  # fmt: skip
    """Return ``[entry, row, state, draw]``: how many unseen successors landed on each entry.

    A part is picked among those that the row has, then an entry; what the listed ones of a part
    leave goes to the rest, the last part.
    """
    xp = arrays.xp
    landing = fixed["landing"]
    listed = landing.sum(axis=1)
    present = listed > 0.0
    usual = part_shares[:, None, None] * present[..., None]
    total = usual.sum(axis=0)
    usual = usual / xp.where(total > 0.0, total, 1.0)
    rest = usual[-1] + (usual[:-1] * (1.0 - listed[:-1, ..., None])).sum(axis=0)
    chance = (usual[:-1, None] * landing[:-1, ..., None]).sum(axis=0) + rest * landing[-1][
        ..., None
    ]
    running = arrays.settled(xp.cumsum(chance, axis=0))
    wanted = xp.where(total > 0.0, unseen, 0)
    if xp is np:
        return _few_landed(key, fixed["row"], draw, running, wanted)
    if arrays.kernels and len(running) <= LONGEST:
        return landings(key, fixed["row"], draw, running, wanted, LANDINGS, interpret=False)
    most = running[-1:]
    before = xp.concatenate((xp.zeros_like(most), running[:-1]))

    def one(state: tuple[Array, Array]) -> tuple[Array, Array]:
        number, times = state
        stream = np.uint32(LANDINGS)
        u, other = uniforms(xp, philox(xp, key, (fixed["row"], draw, number, stream)))
        for goal, turn in ((u, 0), (other, 1)):
            goal = arrays.settled(goal) * most
            here = (before < goal) & (goal <= running)
            step = (2 * number + np.uint32(turn)).astype(xp.int32)
            times = times + (here & (step < wanted))
        return number + np.uint32(1), times

    start = (xp.zeros(1, dtype=xp.uint32), xp.zeros(running.shape, dtype=xp.int32))
    needed = wanted.max()
    _, times = arrays.loop(lambda state: (2 * state[0][0]).astype(xp.int32) < needed, one, start)
    return times


def _few_landed(key: Array, row: Array, draw: Array, running: Array, wanted: Array) -> Array:
    """Do the same for the rows alone that still have some to land: most have one or two."""
    times = np.zeros(running.shape, dtype=np.int32)
    chance, counted, due = (array.reshape(-1, wanted.size) for array in (running, times, wanted))
    row, draw = (np.broadcast_to(array, wanted.shape).ravel() for array in (row, draw))
    left, number = np.flatnonzero(due), 0
    while len(left):
        counter = (row[left], draw[left], np.uint32(number), np.uint32(LANDINGS))
        for turn, share in enumerate(uniforms(np, philox(np, key, counter))):
            goal = share * chance[-1, left]
            lands = (goal > 0.0) & (2 * number + turn < due[0, left])
            some = left[lands]
            first = (chance[:, some] < goal[lands]).sum(axis=0)
            counted[first, some] += 1
        number += 1
        left = left[2 * number < due[0, left]]
    return times
