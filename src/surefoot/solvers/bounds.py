"""Sound brackets from one Jacobi sweep.

For any ``v``, monotonicity and ``L(v + c) = Lv + discount*c`` give, with ``least`` and ``most`` the
extreme changes ``Lv - v``::

    Lv + discount*least/(1 - discount)  <=  fixed point  <=  Lv + discount*most/(1 - discount)

The lower bound also holds for the policy that attains ``Lv``. Rounding widens both sides. The gap
that the inner problems leave widens one side: the upper one where nature minimises (the computed
values are lower bounds), the lower one where it maximises.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.solvers.row_kernels import Problem

EPSILON = float(np.finfo(np.float64).eps)
UNDERFLOW = 1e-300
"""Below this, errors are no longer relative to the size of the numbers."""


class SweepChange(NamedTuple):
    """What a Jacobi sweep reports: extreme changes, inner gap, rows evaluated."""

    least: float
    most: float
    gap: float
    evaluated: int


class Bracket(NamedTuple):
    """Bounds on the fixed point: ``Lv + below`` and ``Lv + above``, rounding included."""

    below: float
    above: float
    rounding: float

    @property
    def error_bound(self) -> float:
        """Half the width, rounded up."""
        return 0.5 * (self.above - self.below) * (1 + 1e-12)


def rounding_allowance(
    terms: int, discount: float, largest_reward: float, v: NDArray[np.float64]
) -> float:
    """Bound the rounding error of one state of ``Lv``.

    Derived in docs/rounding.md: no row of K successors is off by more than ``13 K + 56`` half
    epsilons of the largest ``|r| + discount |v|``. The allowance is ``16 (terms + 8)`` half
    epsilons; the difference covers the rounding of the sum with ``Lv``.
    """
    largest = largest_reward + discount * float(np.abs(v).max())
    if largest == 0:
        return 0.0
    return 8 * (terms + 8) * max(EPSILON * largest, UNDERFLOW)


def bracket(
    problem: Problem, change: SweepChange, allowance: float, steps: float | None = None
) -> Bracket:
    """Return the bracket around the fixed point, to be added to ``Lv``.

    ``steps`` bounds the expected number of steps to an end, for discount 1 without a horizon; it
    replaces ``1/(1 - discount)``. From ``w >= 1 + P w`` and ``Lv >= v - e`` with ``e >= 0`` follows
    ``L(v - e w) >= v - e w``, so the fixed point lies above ``Lv - e (w - 1)``. A ``least`` above 0
    or a ``most`` below 0 does not tighten the bracket, because ends keep the value 0.
    """
    discount, least, most = problem.discount, change.least, change.most
    if steps is None:
        steps, factor = 1 / (1 - discount), discount / (1 - discount)
    else:
        factor, least, most = steps - 1, min(least, 0.0), max(most, 0.0)
    # 1 - discount and the division are off by a few epsilons; so is the sum with Lv.
    rounding = allowance * steps * (1 + 8 * EPSILON) + 8 * EPSILON * factor * (
        abs(least) + abs(most)
    )
    below = factor * least - rounding
    above = factor * most + rounding
    # The gap of the inner searches: a minimum may lie higher, a maximum lower than computed.
    open_ = change.gap * steps * (1 + 8 * EPSILON)
    if problem.sign > 0:
        return Bracket(below, above + open_, rounding)
    return Bracket(below - open_, above, rounding)
