"""Worst case of one row over a Kullback-Leibler ball, by its one-multiplier dual.

The set is ``{q in the simplex : KL(p || q) = sum_i p_i log(p_i / q_i) <= budget}``. In this
direction of the divergence a successor with ``p_i = 0`` ("unseen") may still receive mass. With
``nu <= min z`` the dual is::

    g(nu) = nu + exp(-budget) * prod_i (z_i - nu)^p_i

a concave function, and every ``nu`` gives a lower bound. The kernels write ``nu = min z - t`` and
``scale = p.z - nu = reach + t`` (``reach = p.z - min z``), for then::

    g(t) = p.z + scale * expm1(A - budget),  A = sum_i p_i log1p((z_i - p.z) / scale)

has no cancellation however small the budget is: its rounding error is a few epsilons of the range
of ``z`` per entry. The maximum is where ``excess(t) = A + log(H) - budget`` is zero, where
``H = sum_i p_i scale / (z_i - nu)``: that is ``KL(p || q) - budget`` of the distribution
``q_i = p_i scale / ((z_i - nu) H)``, which falls as ``t`` grows.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot._compile import kernel

Vector = NDArray[np.float64]
RowMemory = NDArray[np.int32]

EPSILON = float(np.finfo(np.float64).eps)
ONE, ZERO = np.uint64(1), np.uint64(0)
MAX_STEPS = 200
"""Evaluations before a row is returned with its remaining gap (at most two dozen were seen)."""
TICKS = float(2**20)
"""A row's memory holds integers: ``log(t / reach)`` in units of ``1 / TICKS``."""
FURTHEST = 1e300
"""The largest multiplier, so that sums with it stay finite."""
NEVER, INSIDE, AT_EDGE = np.int32(-1), np.int32(0), np.int32(1)
"""Second number of a row's memory: nothing yet, a multiplier ``t > 0``, or ``t = 0``."""


@kernel(lean=True)
def kl_evaluate(
    z: Vector, p: Vector, at: Any, k: Any, nominal: float, lowest: float, t: float
) -> Any:
    """Return ``A``, ``H - 1`` and ``sum_i p_i (scale/(z_i - nu) - 1)^2`` at ``t``; O(k).

    For ``x = (z_i - p.z) / scale`` near 0 the logarithm is ``log1p(x)``; otherwise ``1 + x`` is
    computed as ``((z_i - min z) + t) / scale``, which loses no digits near ``x = -1``.
    """
    scale = (nominal - lowest) + t
    logs = 0.0
    spread = 0.0
    squares = 0.0
    for i in range(k):
        if p[at + i] > 0.0:
            x = (z[i] - nominal) / scale
            if abs(x) < 0.5:
                ratio = 1.0 + x
                logs += p[at + i] * math.log1p(x)
            else:
                ratio = ((z[i] - lowest) + t) / scale
                if ratio <= 0.0:  # a seen successor with the lowest value, at t = 0
                    return -np.inf, np.inf, np.inf
                logs += p[at + i] * math.log(ratio)
            pull = x / ratio
            spread += p[at + i] * x * pull
            squares += p[at + i] * pull * pull
    return logs, spread, squares


@kernel(lean=True)
def kl_start(
    z: Vector, p: Vector, at: Any, k: Any, nominal: float, lowest: float, budget: float
) -> Any:
    """Return a first ``t``, accurate for small balls, and whether a lowest entry was seen.

    For a small ball ``excess = variance / (2 scale^2) - budget``.
    """
    variance = 0.0
    seen = False
    for i in range(k):
        variance += p[at + i] * (z[i] - nominal) * (z[i] - nominal)
        if z[i] == lowest and p[at + i] > 0.0:
            seen = True
    reach = nominal - lowest
    far = math.sqrt(variance) / math.sqrt(2.0 * budget)  # variance / budget might overflow
    return max(far - reach, 0.01 * reach), seen


@kernel(lean=True)
def kl_search(
    z: Vector, p: Vector, at: Any, k: Any, budget: float, nominal: float, lowest: float,
    guess: float, seen: bool, accuracy: float,
) -> Any:  # fmt: skip
    """Maximise the dual by safeguarded Newton steps; return the value, the gap and ``t``.

    Every ``t`` gives a lower bound and, through its distribution (mixed with ``p`` if that lies
    outside the ball), an upper bound: their difference is the gap. If the lowest entry was seen and
    ``t`` is small, the excess is nearly linear in ``log t``; otherwise the logarithm of the
    divergence is nearly linear in ``log(scale)``. Each Newton step uses the matching form.
    """
    reach = nominal - lowest
    left, right = 0.0, np.inf
    left_known = seen  # a seen lowest entry makes the excess infinite at t = 0
    best, above, nearest, where = -np.inf, nominal, np.inf, guess
    small = max(accuracy, (k + 4) * EPSILON * (abs(nominal) + reach))
    t = guess
    for _ in range(MAX_STEPS):
        logs, spread, squares = kl_evaluate(z, p, at, k, nominal, lowest, t)
        scale = reach + t
        value = nominal + scale * math.expm1(logs - budget)
        best = max(best, value)
        divergence = logs + math.log1p(spread) if spread < np.inf else np.inf
        excess = divergence - budget
        if abs(excess) < nearest:
            nearest, where = abs(excess), t
        if t == 0.0 and excess <= 0.0:  # the remaining mass goes to the unseen lowest entry
            return value, 0.0, t
        if spread < np.inf:
            gain = scale * (spread / (1.0 + spread))  # divide first: the product may overflow
            above = min(above, nominal - (gain if excess <= 0.0 else gain * budget / divergence))
        if above - best <= small:
            break
        if excess > 0.0:
            left, left_known = t, True
        else:
            right = t
            if not left_known:
                t = 0.0
                continue
        slope = -(squares - spread * spread) / (1.0 + spread)  # d excess / d log(scale)
        step = np.nan
        if slope < 0.0 and spread < np.inf:
            if seen and t < reach:
                step = t * math.exp(min(max(-excess * scale / (slope * t), -700.0), 700.0))
            elif divergence > 0.0:
                move = -math.log(divergence / budget) * divergence / slope
                step = scale * math.exp(min(max(move, -700.0), 700.0)) - reach
        if not left < step < right:
            if right == np.inf:
                step = 4.0 * scale
            elif left > 0.0:
                step = math.sqrt(left) * math.sqrt(right)
            else:
                step = right * (1e-3 if seen else 0.5)
            if not left < step < right:
                break
        t = step
    return best, max(above - best, 0.0), where


@kernel(lean=True)
def smallest(z: Vector, k: Any) -> Any:
    """Return the smallest of ``k`` numbers."""
    lowest = z[0]
    for i in range(ONE, k):
        lowest = min(lowest, z[i])
    return lowest


@kernel(lean=True)
def kl_value(
    z: Vector, p: Vector, at: Any, k: Any, budget: float, nominal: float, accuracy: float,
    row: Any, memory: RowMemory,
) -> Any:  # fmt: skip
    """Return the worst case of a KL row and its gap, starting at the remembered multiplier."""
    lowest = smallest(z, k)
    reach = nominal - lowest
    if budget == np.inf or not reach > 0.0:
        return lowest, 0.0
    guess, seen = kl_start(z, p, at, k, nominal, lowest, budget)
    if memory[row, 1] == AT_EDGE and not seen:
        guess = 0.0
    elif memory[row, 1] == INSIDE:
        guess = min(reach * math.exp(memory[row, 0] / TICKS), FURTHEST)
    value, gap, t = kl_search(z, p, at, k, budget, nominal, lowest, guess, seen, accuracy)
    if t > 0.0:
        memory[row, 0] = np.int32(TICKS * min(max(math.log(t / reach), -700.0), 700.0))
        memory[row, 1] = INSIDE
    else:
        memory[row, 1] = AT_EDGE
    return value, gap


@kernel(lean=True)
def kl_distribution(
    z: Vector, p: Vector, at: Any, k: Any, budget: float, nominal: float, out: Vector
) -> Any:
    """Write the minimising distribution of a KL ball; return its value."""
    lowest = smallest(z, k)
    receiver: Any = ZERO
    for i in range(k):
        out[i] = p[at + i]
        if z[i] == lowest:
            receiver = i
    if not nominal - lowest > 0.0:
        return lowest
    value, t, scale, spread = lowest, 0.0, nominal - lowest, np.inf
    if budget < np.inf:
        guess, seen = kl_start(z, p, at, k, nominal, lowest, budget)
        value, _, t = kl_search(z, p, at, k, budget, nominal, lowest, guess, seen, 0.0)
        scale += t
        logs, spread, _ = kl_evaluate(z, p, at, k, nominal, lowest, t)
    if spread == np.inf:  # the ball is so large that all mass goes to the lowest entry
        for i in range(k):
            out[i] = 0.0
        out[receiver] = 1.0
        return value
    # At t = 0 the unseen lowest entry takes the mass that remains; for t > 0 none remains.
    kept = math.exp(logs - budget) if t == 0.0 else 1.0 / (1.0 + spread)
    total = 0.0
    for i in range(k):
        if p[at + i] > 0.0:
            out[i] = kept * p[at + i] * scale / ((z[i] - lowest) + t)
            total += out[i]
    if t == 0.0 and total < 1.0:
        out[receiver] += 1.0 - total
        total = 1.0
    for i in range(k):  # if all values are nearly equal, the sum may be off by rounding
        out[i] /= total
    return value
