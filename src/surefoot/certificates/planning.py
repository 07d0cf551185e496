"""How many draws a promise is worth: decided before any certification draw is seen."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from surefoot.ambiguity.order_statistics import draws_needed
from surefoot.certificates.returns import DIRECT_STATES
from surefoot.model.mdp import MDP
from surefoot.posterior.protocol import Posterior

Floats = NDArray[np.float64]

PILOT = 1000
LEAST, MOST = 2000, 400_000
WANTED_LOSS = 0.01
"""How far, as a share of it, the Monte Carlo may push the promise below the quantile."""
WORK = 2e10
"""Most operations that one side may cost (some ten seconds)."""
SWEEPS = 60
"""Passes over a draw's entries that sampling and sweeping are taken to cost."""


def plan_draws(pilot: Floats, delta: float, eta: float, work: float) -> int:
    """Choose the number of draws from a pilot of returns that is not used otherwise.

    The strict order statistic lies about ``z sqrt(delta (1-delta)/n)`` in probability below the
    quantile; the pilot tells what that is worth in return.
    """
    low, middle, high = np.quantile(pilot, [delta / 2, delta, min(2 * delta, 0.5 * (1 + delta))])
    slope = (high - low) / (min(2 * delta, 0.5 * (1 + delta)) - delta / 2)
    spread = float(np.quantile(pilot, 0.95) - np.quantile(pilot, 0.05))
    scale = max(abs(float(middle)), 0.1 * spread)
    least = max(LEAST, 4 * draws_needed(delta, eta))
    if scale <= 0 or slope <= 0:
        return least
    reach = float(norm.isf(eta)) * math.sqrt(delta * (1 - delta)) * float(slope)
    wanted = (reach / (WANTED_LOSS * scale)) ** 2
    return int(min(max(wanted, least), max(least, min(MOST, WORK / work))))


def policy_work(mdp: MDP, entries: int) -> float:
    """Return about how many operations one draw of a policy costs."""
    if mdp.num_states <= DIRECT_STATES:
        return mdp.num_states**3 / 3 + 20.0 * entries + 50
    return float(SWEEPS) * entries


def best_work(mdp: MDP) -> float:
    """Return about how many operations the best return of one draw costs."""
    if mdp.num_states <= DIRECT_STATES:
        return mdp.num_states**3 + 30.0 * mdp.num_entries + 100
    return float(SWEEPS) * mdp.num_entries


def check_draws(posterior: Posterior, draws: int, delta: float, eta: float) -> int:
    """Return the number of draws, or refuse with the number needed."""
    needed = draws_needed(delta, eta)
    if not draws >= needed:
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
