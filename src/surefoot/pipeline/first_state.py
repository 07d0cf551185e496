"""The doubt about the first state: its law comes from some episodes only."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, norm

from surefoot.model.policies import AnyPolicy
from surefoot.pipeline.model import Model
from surefoot.pipeline.reward_ends import least_return
from surefoot.solvers.solver import evaluate

Floats = NDArray[np.float64]


def first_state_doubt(model: Model, policy: AnyPolicy, *, reach: float, delta: float) -> float:
    """Return what not knowing the first state takes off a promise about a policy; 0 where given.

    The doubt of transitions, that of the first state and that of how many first states the log
    does not know are independent: their deviations add as squares. ``reach`` is what the promise
    already lies below the mean. Episodes that begin in a state which the log does not know have no
    rule to follow: they may earn the least there is.
    """
    starts = model.placed.starts
    if starts is None or not starts.any() or model.settings.initial not in (None, "episodes"):
        return 0.0
    value = evaluate(model.mdp, policy).value
    share = starts / starts.sum()
    mean = float(share @ value)
    deviation = math.sqrt(max(float(share @ (value - mean) ** 2), 0.0) / float(starts.sum()))
    own = max(reach, 0.0)
    unknown = unknown_starts(model, delta)
    lost = mean - _least(model, value) if unknown.most > 0 else 0.0
    surprise = (unknown.most - unknown.expected) * lost
    together = math.hypot(own, float(norm.isf(delta)) * deviation, surprise)
    return max(together - own, 0.0) + unknown.expected * lost


class UnknownStarts(NamedTuple):
    """Which share of new episodes begins in a state that the log does not know."""

    expected: float
    most: float


def unknown_starts(model: Model, delta: float) -> UnknownStarts:
    """Estimate and bound which share of new episodes begins in a state that the log does not know.

    The estimate of Good and Turing counts the episodes that would have done so had they come last:
    no other began in their first state, and no step led there. ``delta`` is how often a binomial
    share would lie above the bound. A single episode says nothing about others.
    """
    placed, none = model.placed, UnknownStarts(0.0, 0.0)
    if placed.starts is None or placed.starts.sum() < 2:
        return none
    moved = placed.successor != placed.entry_state
    reached = np.bincount(placed.successor[moved], placed.count[moved], placed.num_states)
    alone = int(((placed.starts == 1) & (reached == 0)).sum())
    if alone == 0:
        return none
    episodes = float(placed.starts.sum())
    most = float(beta.isf(delta, alone + 1, max(episodes - alone, 0.5)))
    return UnknownStarts(min(alone / episodes, most), most)


def _least(model: Model, value: Floats) -> float:
    """Return the least that an episode can earn; of the states known, where there is no least."""
    least = least_return(model)
    return least if math.isfinite(least) else float(value.min())
