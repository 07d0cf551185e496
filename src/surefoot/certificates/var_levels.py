"""Levels of the states: delta shared unequally, if that raises the value."""

from math import ceil, log

import numpy as np
from scipy.stats import binom

from surefoot.certificates.models import Floats, Models
from surefoot.certificates.var_operator import FixedPoint, equal_levels, fixed_point, strict_ranks
from surefoot.posterior.rows import RowLayout

UNITS = 8
"""How many units an equal share of delta is cut into."""
ROUNDS = 3


def greedy_levels(
    batch: Models, delta: float, eta: float, equal: FixedPoint, tolerance: float, max_sweeps: int,
    promise_draws: int,
) -> tuple[Floats, FixedPoint]:  # fmt: skip
    """Share delta so as to raise the value on this batch; equal shares if those are better."""
    best_levels, best = equal_levels(batch, delta), equal
    # A level must be large enough for a strict rank, on this batch and on the promise's draws.
    fewest = min(promise_draws, batch.size)
    floor = -np.expm1(log(eta / batch.num_uncertain) / fewest) * (1 + 1e-6)
    levels = best_levels
    point = equal
    for _ in range(ROUNDS):
        levels = _reallocated(batch, delta, eta, floor, point)
        point = fixed_point(batch, strict_ranks(batch, levels, eta), point.v, tolerance, max_sweeps)
        if not float(batch.initial @ point.v) > float(batch.initial @ best.v):
            break
        best_levels, best = levels, point
    return best_levels, best


def _reallocated(
    batch: Models, delta: float, eta: float, floor: float, point: FixedPoint
) -> Floats:
    """Hand out delta in small units, each to the state whose order statistic gains most.

    Gains are weighted by the visits to the state in the model that attains the value.
    """
    uncertain = np.flatnonzero(batch.uncertain_states)
    total = UNITS * len(uncertain)
    unit = delta / max(1, total)
    least = max(1, ceil(floor / unit))
    if total == 0 or least >= UNITS:
        return equal_levels(batch, delta)
    ordered = _sorted_values(batch, point)[:, uncertain]
    visits = _visits(batch, point)[uncertain]
    grid = unit * np.arange(total + 1)
    ranks = np.asarray(binom.ppf(eta / len(uncertain), batch.size, grid))
    index = np.maximum(ranks.astype(np.int64), 1) - 1
    state = np.arange(len(uncertain))
    units = np.full(len(uncertain), least)
    left = total - int(units.sum())
    while left > 0:
        # Looking several units ahead passes over flat stretches of an order statistic.
        reach = np.array([k for k in (1, 2, 4, UNITS) if k <= left])
        now = ordered[index[units], state]
        gains = visits * (ordered[index[units + reach[:, None]], state] - now) / reach[:, None]
        which, winner = np.unravel_index(int(gains.argmax()), gains.shape)
        units[winner] += reach[which]
        left -= int(reach[which])
    levels = np.zeros(batch.mdp.num_states)
    # Slightly less than delta in all: the sum of rounded shares must not exceed it.
    levels[uncertain] = units * (unit * (1 - 1e-12))
    return levels


def _sorted_values(batch: Models, point: FixedPoint) -> Floats:
    """Return ``(n, S)``: the sorted values ``P.(r + discount v)`` of the policy's rows."""
    entries = RowLayout.of(batch.mdp).entries_of(point.choice)
    lengths = np.diff(batch.mdp.row_start)[point.choice]
    starts = np.cumsum(lengths) - lengths
    z = batch.mdp.discount * point.v[batch.successor[entries]]
    values = np.add.reduceat(batch.draws[:, entries] * z, starts, axis=1)
    values += batch.gains[:, point.choice]
    return np.sort(values, axis=0).astype(np.float64)


def _visits(batch: Models, point: FixedPoint) -> Floats:
    """Return ``(S,)``: discounted visits in the model that attains the value."""
    lengths = np.diff(batch.mdp.row_start)[point.choice]
    entries = RowLayout.of(batch.mdp).entries_of(point.choice)
    state = np.repeat(np.arange(len(lengths)), lengths)
    chance = batch.draws[point.attained[state], entries]
    visits = batch.initial.copy()
    flow = batch.initial
    for _ in range(10_000):
        moved = np.bincount(batch.successor[entries], flow[state] * chance, minlength=len(lengths))
        flow = (batch.mdp.discount * moved).astype(np.float64)
        visits += flow
        if flow.sum() < 1e-6 * visits.sum():
            break
    return visits
