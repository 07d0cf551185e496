"""Population growth: control a pest without spending more than the damage it does."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr as numpy_ndtr

from surefoot.domains.domain import Domain
from surefoot.model.mdp import MDP

CAPACITY = 50
GROWTH_SD = (0.6, 0.6, 0.5, 0.4, 0.3)
TREATMENT_COST = (0.0, 1.0, 1.10, 1.15, 1.20)
ARRIVALS_MEAN, ARRIVALS_SD = 3.0, 1.5
NEVER_SEEN = 5e-5
"""Successors rarer than this would probably not be seen in 10000 samples; they are omitted."""


def population_growth(*, discount: float = 0.95, drop_below: float = NEVER_SEEN) -> Domain:
    """Return the pest-control problem with 51 population sizes and 5 treatments.

    The population grows by a random factor, limited by the carrying capacity of 50, and new
    arrivals join it. Treatments 1 to 4 are increasingly expensive and increasingly reliable. The
    reward is ``1000 - s^2 - 800 cost``.

    Parameters
    ----------
    discount
        In [0, 1).
    drop_below
        Successors with a smaller probability are removed, and the rest of the row is rescaled.
        0 keeps all of them.

    Examples
    --------
    >>> population_growth().mdp
    MDP(51 states, 5 actions, 255 rows, 5,678 entries, discount 0.95)
    >>> population_growth(drop_below=0).mdp.num_rows
    255
    """
    if not 0 <= drop_below < 1 / (CAPACITY + 1):
        raise ValueError(
            f"drop_below={drop_below!r}; it must lie in [0, {1 / (CAPACITY + 1):.3g}), so that "
            "every row keeps a successor."
        )
    p = transition_law()
    p[p < drop_below] = 0.0
    p /= p.sum(axis=2, keepdims=True)
    size = np.arange(CAPACITY + 1)
    rewards = 1000.0 - size[:, None] ** 2 - 800.0 * np.array(TREATMENT_COST)
    return Domain(name="population", mdp=MDP.from_arrays(p, rewards, discount=discount))


def transition_law() -> NDArray[np.float64]:
    """Return the exact distribution ``(51, 5, 51)`` of the next population size.

    ``x = round(s + (g-1) s (50-s)/50)`` with growth ``g = max(0, Normal)``, clamped to 0..50, plus
    arrivals ``round(max(0, Normal(3, 1.5)))``, clamped again. The mass of the Normal below 0 lies
    on the ``x`` of ``g = 0``.

    Examples
    --------
    >>> law = transition_law()
    >>> law.shape, round(float(law[25, 2].sum()), 12)
    ((51, 5, 51), 1.0)
    """
    size = np.repeat(np.arange(CAPACITY + 1), len(GROWTH_SD))
    action = np.tile(np.arange(len(GROWTH_SD)), CAPACITY + 1)
    mean = np.array([growth_mean(int(s), int(a)) for s, a in zip(size, action, strict=True)])
    grown = grown_law(CAPACITY, size, mean, np.array(GROWTH_SD)[action])
    arrivals = arrivals_law(CAPACITY, ARRIVALS_MEAN, ARRIVALS_SD)
    full = np.array([np.convolve(row, arrivals) for row in grown])
    law = full[:, : CAPACITY + 1]
    law[:, CAPACITY] += full[:, CAPACITY + 1 :].sum(axis=1)
    return law.reshape(CAPACITY + 1, len(GROWTH_SD), CAPACITY + 1)


def growth_mean(size: int, action: int) -> float:
    """Return the mean growth factor: 2 without treatment; treatments work best at medium sizes.

    Examples
    --------
    >>> growth_mean(10, 0), growth_mean(25, 3)
    (2.0, 0.2)
    """
    return 2.0 if action == 0 else 0.2 + (size - 25) ** 2 / 625


def arrivals_law(capacity: int, mean: float, deviation: float) -> NDArray[np.float64]:
    """Return the distribution ``(capacity+1,)`` of arrivals, ``round(max(0, Normal))`` clamped."""
    upper = np.arange(capacity) + 0.5
    below = numpy_ndtr((upper - mean) / deviation)
    return np.diff(below, prepend=0.0, append=1.0)


def grown_law(
    capacity: int,
    size: NDArray[np.int64],
    mean: Any,
    deviation: Any,
    xp: Any = np,
    ndtr: Any = numpy_ndtr,
) -> Any:
    """Return ``(..., R, capacity+1)``: distributions after growth and before arrivals.

    ``size`` is ``(R,)``; the mean and deviation of growth are ``(..., R)``, arrays of NumPy or of
    the module ``xp``. Integer arithmetic makes the comparison with growth 0 exact: there the
    population is ``size^2/capacity``, and a value half way between two integers is rounded to the
    even one.
    """
    steps, sizes = np.arange(capacity), size[:, None]
    spread = sizes * (capacity - sizes)
    doubled = 2 * capacity * steps + capacity - 2 * sizes**2
    reached = (doubled > 0) | ((doubled == 0) & (steps % 2 == 0))
    growth = doubled / np.where(spread == 0, 1, 2 * spread)
    below = xp.where(reached, ndtr((growth - mean[..., None]) / deviation[..., None]), 0.0)
    edge = xp.zeros_like(below[..., :1])
    mass = xp.diff(xp.concatenate((edge, below, edge + 1.0), axis=-1))
    stays = np.arange(capacity + 1) == sizes
    return xp.where(spread == 0, stays, xp.maximum(mass, 0.0))
