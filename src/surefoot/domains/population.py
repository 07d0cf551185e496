"""Population growth: keep a pest in check without spending more than it eats."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from surefoot.domains.domain import Domain
from surefoot.model.mdp import MDP

CAPACITY = 50
GROWTH_SD = (0.6, 0.6, 0.5, 0.4, 0.3)
TREATMENT_COST = (0.0, 1.0, 1.10, 1.15, 1.20)
ARRIVALS_MEAN, ARRIVALS_SD = 3.0, 1.5
NEVER_SEEN = 5e-5
"""Successors rarer than this would not be seen in 10000 samples; they are left out."""


def population_growth(*, discount: float = 0.95, drop_below: float = NEVER_SEEN) -> Domain:
    """Return the pest-control problem with 51 population sizes and 5 treatments.

    The population grows by a random factor around the carrying capacity of 50 and new arrivals
    join it. Treatments 1 to 4 cost more and more and are more and more reliable. The reward is
    ``1000 - s^2 - 800 cost``.

    Parameters
    ----------
    discount
        In [0, 1).
    drop_below
        Successors with a smaller probability are not reachable; the rest of the row is rescaled.
        0 keeps the whole law.

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
    """Return the exact law ``(51, 5, 51)`` of the next population size.

    ``x = round(s + (g-1) s (50-s)/50)`` with growth ``g = max(0, Normal)``, clamped to 0..50, plus
    arrivals ``round(max(0, Normal(3, 1.5)))``, clamped again. Where the Normal is cut off at 0 its
    mass lies on the ``x`` of ``g = 0``.

    Examples
    --------
    >>> law = transition_law()
    >>> law.shape, round(float(law[25, 2].sum()), 12)
    ((51, 5, 51), 1.0)
    """
    arrivals = _arrivals_law()
    law = np.zeros((CAPACITY + 1, len(GROWTH_SD), CAPACITY + 1))
    for size in range(CAPACITY + 1):
        for action in range(len(GROWTH_SD)):
            grown = _grown_law(size, action)
            full = np.convolve(grown, arrivals)
            law[size, action] = full[: CAPACITY + 1]
            law[size, action, CAPACITY] += full[CAPACITY + 1 :].sum()
    return law


def growth_mean(size: int, action: int) -> float:
    """Return the mean growth factor: 2 untreated; treatments work best at middling sizes.

    Examples
    --------
    >>> growth_mean(10, 0), growth_mean(25, 3)
    (2.0, 0.2)
    """
    return 2.0 if action == 0 else 0.2 + (size - 25) ** 2 / 625


def _arrivals_law() -> NDArray[np.float64]:
    upper = np.arange(CAPACITY) + 0.5
    return _masses(ndtr((upper - ARRIVALS_MEAN) / ARRIVALS_SD))


def _grown_law(size: int, action: int) -> NDArray[np.float64]:
    """Return the law of x, the population after growth and before arrivals.

    Whole numbers of 1/50 keep the comparison with g = 0 exact: there x = size^2/50, which for
    sizes 5, 15, ..., 45 lies half way between two integers and is rounded to the even one.
    """
    spread = size * (CAPACITY - size)
    if spread == 0:
        stays = np.zeros(CAPACITY + 1)
        stays[size] = 1.0
        return stays
    # x <= k when g <= growth: half an integer is reached with positive probability only at g = 0.
    growth = (CAPACITY * np.arange(CAPACITY) + CAPACITY // 2 - size**2) / spread
    below = ndtr((growth - growth_mean(size, action)) / GROWTH_SD[action])
    even = np.arange(CAPACITY) % 2 == 0
    return _masses(np.where((growth > 0) | ((growth == 0) & even), below, 0.0))


def _masses(cumulative: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.diff(cumulative, prepend=0.0, append=1.0)
