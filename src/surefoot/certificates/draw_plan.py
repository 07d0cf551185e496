"""How many draws a promise gets: decided before any certification draw is seen."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from surefoot._order_statistics import draws_needed
from surefoot._work import COUPLED, DRAWN, OPERATION
from surefoot.model.mdp import MDP
from surefoot.model.policies import RowPolicy
from surefoot.posterior.protocol import Posterior
from surefoot.posterior.rows import RowLayout
from surefoot.solvers.evaluation.evaluator import PRODUCTS, choose_evaluator
from surefoot.solvers.evaluation.rewards import Rewards

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PILOTS = ((1000, 2e9), (250, 1e9), (64, np.inf))
"""Sizes of the pilot from which the number of draws is planned, and the most operations each may
cost. A smaller pilot is used where a larger one would itself take seconds; there the least number
of draws is all that is affordable anyway."""
FEWEST, LEAST, MOST = 128, 2000, 400_000
WANTED_LOSS = 0.01
"""How far the Monte Carlo may push the promise below the quantile, as a share of the quantile."""
WORK, MOST_WORK = 1e10, 4e10
"""Operations that one bound may cost, about ten seconds on one core, and how many it may cost to
reach the least number of draws. Four times the fewest valid draws are taken whatever they cost."""
LIMIT_WORK, LIMIT_TIMES = 1.5e9, 1
"""For the limit: operations that its least number of draws may cost, and the smallest multiple of
the fewest valid draws. Returns of large models differ little, and so do limits from few and from
many draws. The fewest valid draws (135 at delta .05) take the 17th smallest best return, twice as
many take the 27th: .14 standard deviations of returns lower, about a hundredth of a bracket that is
ten standard deviations wide."""
NEAR = 1e-3
"""How wide the numerical bracket of a return may be, as a share of the spread of returns: the
promise loses at most that, and always uses the safe end of the bracket."""
DEVICE_SPEED = 100.0
"""How many cores a GPU is worth, at least (docs/gpu.md)."""
SAMPLING, SAMPLING_REWARD = 30.0, 150.0
"""Operations for drawing one probability, and one uncertain mean reward."""


def plan_draws(
    pilot: Floats, delta: float, eta: float, work: float, *, effort: float = 1.0,
    most: float = MOST_WORK, times: int = 4,
) -> int:  # fmt: skip
    """Choose the number of draws from a pilot of returns that is used for nothing else.

    The strict order statistic lies about ``z sqrt(delta (1-delta)/n)`` in probability below the
    quantile; the pilot tells how much return that is. ``effort`` multiplies the work that may be
    spent; ``most`` is what the least number of draws may cost, but at least ``times`` the fewest
    valid draws are made.
    """
    low, middle, high = np.quantile(pilot, [delta / 2, delta, min(2 * delta, 0.5 * (1 + delta))])
    slope = (high - low) / (min(2 * delta, 0.5 * (1 + delta)) - delta / 2)
    spread = float(np.quantile(pilot, 0.95) - np.quantile(pilot, 0.05))
    scale = max(abs(float(middle)), 0.1 * spread)
    least = least_draws(delta, eta, work, most, times)
    if scale <= 0 or slope <= 0:
        return least
    least = int(effort * least) if effort > 1 else least
    reach = float(norm.isf(eta)) * math.sqrt(delta * (1 - delta)) * float(slope)
    wanted = effort * (reach / (WANTED_LOSS * scale)) ** 2
    return int(min(max(wanted, least), max(least, min(MOST, effort * WORK / work))))


def pilot_draws(work: float) -> int:
    """Return the size of the pilot, given the operations that one draw costs.

    Examples
    --------
    >>> pilot_draws(1e5), pilot_draws(4e6), pilot_draws(5e6)
    (1000, 250, 64)
    """
    return next(draws for draws, most in PILOTS if draws * work <= most)


def precision(pilot: Floats) -> float | None:
    """Return the tolerance for returns: an error that is negligible beside their spread.

    None where the returns of the pilot do not differ.

    Examples
    --------
    >>> f"{precision(np.linspace(0.0, 10.0, 1001)):.1e}"
    '9.0e-03'
    """
    spread = float(np.quantile(pilot, 0.95) - np.quantile(pilot, 0.05))
    return NEAR * spread if 0 < spread < np.inf else None


def least_draws(
    delta: float, eta: float, work: float, most: float = MOST_WORK, times: int = 4
) -> int:
    """Return the least number of draws, given the operations that one draw costs.

    Examples
    --------
    >>> least_draws(0.05, 0.001, 1e5), least_draws(0.05, 0.001, 4e7), least_draws(0.05, 0.001, 1e9)
    (2000, 1000, 540)
    """
    return int(max(times * draws_needed(delta, eta), FEWEST, min(LEAST, most / work)))


def policy_work(mdp: MDP, rewards: Rewards, rows: RowPolicy) -> float:
    """Return about how many operations it takes to draw a model and evaluate a policy in it."""
    played = rows.rows.astype(np.int64)
    entries = RowLayout.of(mdp).entries_of(played)
    return choose_evaluator(mdp, played).work + _sampling_work(rewards, entries)


def device_work(entries: int) -> float:
    """Return what one draw costs on a GPU, in operations of a CPU core."""
    return (SAMPLING + PRODUCTS) * entries / DEVICE_SPEED


def best_work(mdp: MDP, rewards: Rewards) -> float:
    """Return about how many operations it takes to draw a model and find its best return."""
    rounds = 2 * choose_evaluator(mdp).work + 4.0 * mdp.num_entries
    return rounds + _sampling_work(rewards, np.arange(mdp.num_entries))


def policy_time(mdp: MDP, rows: RowPolicy) -> float:
    """Return what one draw of a policy costs, in the work that `surefoot._work` counts."""
    played = rows.rows.astype(np.int64)
    entries = int(np.diff(mdp.row_start)[played].sum())
    return DRAWN * entries + OPERATION * choose_evaluator(mdp, played).work


def best_time(mdp: MDP) -> float:
    """Return what the best return of one draw costs, in the work that `surefoot._work` counts."""
    return COUPLED * mdp.num_entries + OPERATION * 2 * choose_evaluator(mdp).work


def _sampling_work(rewards: Rewards, entries: Ints) -> float:
    uncertain = np.count_nonzero(rewards.uncertain[entries])
    return SAMPLING * len(entries) + SAMPLING_REWARD * uncertain


def affordable_draws(work: float, least: int, most: int, total: float = WORK) -> int:
    """Return how many draws ``total`` operations pay for: at most ``most``, but always ``least``.

    Examples
    --------
    >>> affordable_draws(1e6, 2000, 20_000), affordable_draws(1e3, 2000, 20_000)
    (10000, 20000)
    >>> affordable_draws(1e3, 30_000, 20_000)
    30000
    """
    return int(max(least, min(most, total / work)))


def check_draws(posterior: Posterior, draws: int, delta: float, eta: float) -> int:
    """Return the number of draws, or raise an error that names the number needed."""
    needed = draws_needed(delta, eta)
    whole = isinstance(draws, (int, np.integer)) and not isinstance(draws, bool)
    if not (whole and draws >= needed):
        raise ValueError(
            f"delta={delta:g} needs at least {needed} posterior draws (eta={eta:g}), got {draws}. "
            "Draw more or accept a larger delta."
        )
    available = posterior.num_draws
    if available is not None and draws > available:
        raise ValueError(
            f"draws={draws}, but this posterior has {available} independent draws. Ask for at most "
            "that many."
        )
    return int(draws)
