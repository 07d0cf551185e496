"""How many draws a promise is worth: decided before any certification draw is seen."""

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
"""Draws that say how many more there should be, and what they may cost at most: fewer where these
would take seconds themselves, and the least number of draws is all that is affordable anyway."""
FEWEST, LEAST, MOST = 128, 2000, 400_000
WANTED_LOSS = 0.01
"""How far, as a share of it, the Monte Carlo may push the promise below the quantile."""
WORK, MOST_WORK = 1e10, 4e10
"""Operations that one side may cost, about ten seconds on one core; more only for the least number
of draws, and four times as many draws as there must be are taken whatever they cost."""
LIMIT_WORK, LIMIT_TIMES = 1.5e9, 1
"""The same for the least number of draws of a limit, and how many times the fewest possible these
are at least: returns of large models differ little, and so do limits of few draws and of many. The
fewest possible (135 at delta .05) take the 17th smallest best return, twice as many the 27th: .14
standard deviations of returns lower, a hundredth of a bracket that is ten wide."""
NEAR = 1e-3
"""How wide a bracket of a return may be, as a share of the spread of returns: the promise gives up
at most that, and a bracket is never looked at without its width."""
DEVICE_SPEED = 100.0
"""How many cores a GPU is worth, at the least (docs/gpu.md)."""
SAMPLING, SAMPLING_REWARD = 30.0, 150.0
"""Operations that drawing a probability and an uncertain mean reward cost."""


def plan_draws(
    pilot: Floats, delta: float, eta: float, work: float, *, effort: float = 1.0,
    most: float = MOST_WORK, times: int = 4,
) -> int:  # fmt: skip
    """Choose the number of draws from a pilot of returns that is not used otherwise.

    The strict order statistic lies about ``z sqrt(delta (1-delta)/n)`` in probability below the
    quantile; the pilot tells what that is worth in return. ``effort`` multiplies what may be spent;
    ``most`` is what the least number of draws may cost, but ``times`` the fewest possible are made.
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
    """Return on how many draws to plan, given the cost of one.

    Examples
    --------
    >>> pilot_draws(1e5), pilot_draws(4e6), pilot_draws(5e6)
    (1000, 250, 64)
    """
    return next(draws for draws, most in PILOTS if draws * work <= most)


def precision(pilot: Floats) -> float | None:
    """Return how precisely returns must be known: an error that is negligible beside their spread.

    None where they do not differ.

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
    """Return the least number of draws, given the cost of one.

    Examples
    --------
    >>> least_draws(0.05, 0.001, 1e5), least_draws(0.05, 0.001, 4e7), least_draws(0.05, 0.001, 1e9)
    (2000, 1000, 540)
    """
    return int(max(times * draws_needed(delta, eta), FEWEST, min(LEAST, most / work)))


def policy_work(mdp: MDP, rewards: Rewards, rows: RowPolicy) -> float:
    """Return about how many operations one draw of a policy costs."""
    played = rows.rows.astype(np.int64)
    entries = RowLayout.of(mdp).entries_of(played)
    return choose_evaluator(mdp, played).work + _sampling_work(rewards, entries)


def device_work(entries: int) -> float:
    """Return what one draw costs on a GPU, in operations of a core."""
    return (SAMPLING + PRODUCTS) * entries / DEVICE_SPEED


def best_work(mdp: MDP, rewards: Rewards) -> float:
    """Return about how many operations the best return of one draw costs."""
    rounds = 2 * choose_evaluator(mdp).work + 4.0 * mdp.num_entries
    return rounds + _sampling_work(rewards, np.arange(mdp.num_entries))


def policy_time(mdp: MDP, rows: RowPolicy) -> float:
    """Return what one draw of a policy costs, in the work that `surefoot._work` counts."""
    played = rows.rows.astype(np.int64)
    entries = int(np.diff(mdp.row_start)[played].sum())
    return DRAWN * entries + OPERATION * choose_evaluator(mdp, played).work


def best_time(mdp: MDP) -> float:
    """Return what the best return of one draw costs, in the same."""
    return COUPLED * mdp.num_entries + OPERATION * 2 * choose_evaluator(mdp).work


def _sampling_work(rewards: Rewards, entries: Ints) -> float:
    uncertain = np.count_nonzero(rewards.uncertain[entries])
    return SAMPLING * len(entries) + SAMPLING_REWARD * uncertain


def affordable_draws(work: float, least: int, most: int, total: float = WORK) -> int:
    """Return as many draws as ``total`` operations pay for: at most ``most``, but ``least`` always.

    Examples
    --------
    >>> affordable_draws(1e6, 2000, 20_000), affordable_draws(1e3, 2000, 20_000)
    (10000, 20000)
    >>> affordable_draws(1e3, 30_000, 20_000)
    30000
    """
    return int(max(least, min(most, total / work)))


def check_draws(posterior: Posterior, draws: int, delta: float, eta: float) -> int:
    """Return the number of draws, or refuse with the number needed."""
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
