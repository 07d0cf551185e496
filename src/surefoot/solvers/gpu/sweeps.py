"""Sweeps over batches of drawn models, until their brackets are narrow.

With ``least`` and ``most`` the extreme residuals ``Lv - v`` of a draw, its value lies between
``v + least/(1 - discount)`` and ``v + most/(1 - discount)``: for one policy, and for the best one.
The device reports residuals; rounding is charged where the bracket is made, on the CPU.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.solvers.gpu.arrays import NUMPY, Array, Arrays, jax_arrays
from surefoot.solvers.gpu.batches import DrawnTile
from surefoot.solvers.gpu.programs import Program
from surefoot.solvers.gpu.sweep_pallas import best_values

Floats = NDArray[np.float64]

EPSILON = float(np.finfo(np.float64).eps)
UNDERFLOW = 1e-300
UNROLLED = 96
"""States with up to this many entries are summed term by term, in one pass over the batch."""
BETWEEN = 4
"""Sweeps from one look at the residuals to the next."""


class Swept(NamedTuple):
    """What a device says of every draw: residuals, mean over first states, largest value.

    ``values`` are ``[state, draw]``, in the order of the tiles.
    """

    least: Array
    most: Array
    mean: Array
    largest: Array
    values: Array


def sweep(
    arrays: Arrays, tiles: tuple[DrawnTile, ...], links: Any, discount: Array, v: Array, *,
    best: bool,
) -> Array:  # fmt: skip
    """Return ``Lv`` of every draw; ``links`` are the targets and the shares of every tile."""
    xp = arrays.xp
    parts = []
    for tile, (target, share) in zip(tiles, links, strict=True):
        if arrays.kernels and (best or target.shape[1] == 1):
            chance, gain = tile.chance, tile.gain
            parts.append(best_values(chance, gain, target, discount, v, interpret=False))
            continue
        rows = row_values(tile, target, discount, v)
        whole = rows[0]
        if best:
            for value in rows[1:]:
                whole = xp.maximum(whole, value)
        elif len(rows) > 1:
            whole = xp.zeros(rows[0].shape)
            for part, value in zip(share, rows, strict=True):
                whole = whole + part[:, None] * xp.where(part[:, None] > 0.0, value, 0.0)
        parts.append(whole)
    return parts[0] if len(parts) == 1 else xp.concatenate(parts)


def row_values(tile: DrawnTile, target: Array, discount: Array, v: Array) -> list[Array]:
    """Return ``r + discount P v`` of the rows of every state, one array ``[state, draw]`` each."""
    length, rows = target.shape[:2]
    values = []
    for a in range(rows):
        if length * rows > UNROLLED:
            expected = (tile.chance[:, a] * v[target[:, a]]).sum(axis=0)
        else:
            expected = tile.chance[0, a] * v[target[0, a]]
            for k in range(1, length):
                expected = expected + tile.chance[k, a] * v[target[k, a]]
        values.append(tile.gain[a] + discount * expected)
    return values


def swept(
    arrays: Arrays, tiles: tuple[DrawnTile, ...], links: Any, discount: Array, initial: Array,
    start: Array, width: Array, most_sweeps: Array, *, best: bool,
) -> Swept:  # fmt: skip
    """Sweep until residuals differ by no more than ``width`` in any draw, or sweeps run out."""
    xp = arrays.xp
    over = partial(sweep, arrays, tiles, links, discount, best=best)

    def proceed(state: Any) -> Any:
        done, _, _, least, most = state
        return (done < most_sweeps) & ~((most - least) <= width).all()

    def body(state: Any) -> Any:
        done, _, v, _, _ = state
        # One copy of the sweep serves all of them: code compiles slowly.
        v, image = arrays.repeat(BETWEEN + 1, lambda pair: (pair[1], over(pair[1])), (v, v))
        change = image - v
        return done + BETWEEN + 1, v, image, change.min(axis=0), change.max(axis=0)

    v = xp.zeros((len(initial), tiles[0].gain.shape[-1])) + start[:, None]
    endless = xp.full(v.shape[1], xp.inf)
    _, v, _, least, most = arrays.loop(proceed, body, (0, v, v, -endless, endless))
    mean = (initial[:, None] * v).sum(axis=0)
    return Swept(least, most, mean, xp.abs(v).max(axis=0), v)


def bracket(
    swept_draws: Swept, discount: float, longest: int, largest_reward: Floats
) -> NDArray[np.float64]:
    """Return ``(n, 2)`` ends of the return, rounding charged (docs/rounding.md).

    The same charges as `surefoot.solvers.evaluation.return_kernels.bracket_return`.
    """
    least, most, mean, largest = (np.asarray(part) for part in swept_draws[:4])
    size = largest_reward + discount * largest
    slip = np.where(size > 0, 8 * (longest + 8) * np.maximum(EPSILON * size, UNDERFLOW), 0.0)
    allowance = slip / (1.0 - discount) + 4 * (len(swept_draws.values) + 4) * EPSILON * largest
    below = least / (1.0 - discount) * (1.0 + 8 * EPSILON * np.sign(-least))
    above = most / (1.0 - discount) * (1.0 + 8 * EPSILON * np.sign(most))
    return np.column_stack((mean + below - allowance, mean + above + allowance))


def looked_at(
    tiles: tuple[DrawnTile, ...], links: Any, discount: float, initial: Floats, values: Floats, *,
    best: bool,
) -> Swept:  # fmt: skip
    """Return the residuals of given values ``[state, draw]``, by NumPy."""
    change = sweep(NUMPY, tiles, links, discount, values, best=best) - values
    return Swept(
        change.min(axis=0), change.max(axis=0), initial @ values, np.abs(values).max(axis=0), values
    )


def spread(
    arrays: Arrays, tiles: tuple[DrawnTile, ...], links: Any, discount: Array, means: Any, v: Array
) -> list[tuple[Array, Array]]:
    """Return mean L1 distances, and standard deviations of values, ``[row, state]`` each."""
    xp = arrays.xp
    found = []
    for tile, (target, _), mean in zip(tiles, links, means, strict=True):
        distance = xp.abs(tile.chance - mean[..., None]).sum(axis=0).mean(axis=-1)
        values = xp.stack(row_values(tile, target, discount, v[:, None]))
        found.append((distance, values.std(axis=-1)))
    return found


def _spread_there(*given: Any) -> list[tuple[Array, Array]]:
    return spread(jax_arrays(), *given)


def _swept_there(best: bool, kernels: bool, *given: Any) -> tuple[Swept, Array]:
    found = swept(jax_arrays()._replace(kernels=kernels), *given, best=best)
    return found, found.values.mean(axis=1)


SPREADING = Program(_spread_there)
"""`spread` on a device."""
SWEEPING = Program(_swept_there, fixed=2)
"""`swept` on a device: for the best policy or not, with kernels or not. Adds the mean values."""
