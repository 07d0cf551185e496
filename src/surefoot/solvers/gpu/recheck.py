"""Draws of a device, made and evaluated again on the CPU: no promise rests on the device alone."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.solvers.gpu.batches import Batches, DrawnTile
from surefoot.solvers.gpu.sweeps import bracket, looked_at

Floats = NDArray[np.float64]

AGREEMENT = 1e-9
"""How far the device's ends may lie from the CPU's, as a share of the largest value."""
DENSE_STATES = 1000
"""Up to here the return of a checked draw is also solved for, by LAPACK."""


def check_draw(
    batches: Batches, links: Any, which: int, values: Floats, ends: Floats, *, best: bool
) -> None:
    """Compare the device's bracket of one draw with NumPy's, or raise an error.

    The draw is made again from its counters, and the residuals of the device's values are taken in
    it: a bracket rests on nothing else.
    """
    mdp, tiling = batches.draws.mdp, batches.tiling
    initial = (mdp.initial / mdp.initial.sum())[tiling.order]
    tiles = batches.again(which)
    seen = looked_at(tiles, links, mdp.discount, initial, values, best=best)
    largest = np.max([tile.largest for tile in tiles], axis=0)
    mine = bracket(seen, mdp.discount, tiling.longest, largest)[0]
    reach = AGREEMENT * max(float(np.abs(values).max()), float(np.abs(mine).max()), 1e-300)
    if not np.all(np.abs(mine - ends) <= reach):
        _refuse(which, ends, mine)
    if not best and mdp.num_states <= DENSE_STATES:
        exact = _solved(tiles, links, mdp.discount, initial)
        if not ends[0] - reach <= exact <= ends[1] + reach:
            _refuse(which, ends, np.array([exact, exact]))


def _refuse(which: int, device: Floats, cpu: Floats) -> None:
    raise RuntimeError(
        f"the device and the CPU disagree about draw {which}: its return lies between "
        f"{device[0]!r} and {device[1]!r} by the device, between {cpu[0]!r} and {cpu[1]!r} by the "
        "CPU. No promise is made on such a device: use device='cpu', and please report this."
    )


def _solved(tiles: tuple[DrawnTile, ...], links: Any, discount: float, initial: Floats) -> float:
    """Return the return of one draw of a policy from its linear equations."""
    size = len(initial)
    matrix, gain = np.eye(size), np.zeros(size)
    begin = 0
    for tile, (target, share) in zip(tiles, links, strict=True):
        states = begin + np.arange(target.shape[2])
        weight = share * tile.chance[..., 0]
        where = np.broadcast_to(states, target.shape)
        np.subtract.at(matrix, (where, target), discount * weight)
        gain[states] = (share * np.where(share > 0, tile.gain[..., 0], 0.0)).sum(axis=0)
        begin += len(states)
    return float(initial @ np.linalg.solve(matrix, gain))
