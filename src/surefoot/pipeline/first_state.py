"""The doubt about the first state: its law comes from some episodes only."""

import math

from scipy.stats import norm

from surefoot.model.policies import AnyPolicy
from surefoot.pipeline.model import Model
from surefoot.solvers.solver import evaluate


def first_state_doubt(model: Model, policy: AnyPolicy, *, reach: float, delta: float) -> float:
    """Return what not knowing the first state takes off a promise about a policy; 0 where given.

    The doubt of transitions and that of the first state are independent: their deviations add as
    squares. ``reach`` is what the promise already lies below the mean.
    """
    starts = model.placed.starts
    if starts is None or not starts.any() or model.settings.initial not in (None, "episodes"):
        return 0.0
    value = evaluate(model.mdp, policy).value
    share = starts / starts.sum()
    mean = float(share @ value)
    deviation = math.sqrt(max(float(share @ (value - mean) ** 2), 0.0) / float(starts.sum()))
    own = max(reach, 0.0)
    return max(math.hypot(own, float(norm.isf(delta)) * deviation) - own, 0.0)
