"""What the kernels must compute, written from the definitions.

Two kinds of oracle: exact ones in fractions, which prove their own answer (a feasible distribution
whose value a dual bound equals), and linear programs that only restate the definition.

The model meant by an array of floats is each row divided by its exact sum.
"""

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog

Numbers = Sequence[Any] | NDArray[Any]


class ExactRow(NamedTuple):
    """The exact minimum over a set and a distribution that attains it."""

    value: Fraction
    distribution: list[Fraction]


class Piece(NamedTuple):
    """The dual at a multiplier ``n/d`` in whole numbers: ``d`` times its value, its slopes, and
    who gives to whom on either side."""

    value: int
    slope_left: int
    slope_right: int
    receiver_left: int
    receiver_right: int
    donors_left: list[int]
    donors_right: list[int]


def exact(values: Numbers) -> list[Fraction]:
    """Return the exact values of floats (or fractions)."""
    return [Fraction(x) if isinstance(x, Fraction) else Fraction(float(x)) for x in values]


def exact_distribution(p: Numbers) -> list[Fraction]:
    """Return the distribution meant by floats: divided by their exact sum."""
    parts = exact(p)
    total = sum(parts)
    return [part / total for part in parts]


def dot(x: Sequence[Fraction], y: Sequence[Fraction]) -> Fraction:
    """Return the inner product."""
    return sum((a * b for a, b in zip(x, y, strict=True)), Fraction(0))


class Whole(NamedTuple):
    """A weighted L1 row in whole numbers: ``z`` times ``scale_z``, and so on (fast and exact)."""

    z: list[int]
    p: list[int]
    w: list[int]
    psi: int
    scale_z: int
    scale_p: int
    scale_w: int

    def piece(self, mu: Fraction) -> Piece:
        """Evaluate the dual at a multiplier (in units of ``scale_z / scale_w``)."""
        z, p, w = self.z, self.p, self.w
        n, d = mu.numerator, mu.denominator
        raised = [d * zi + n * wi for zi, wi in zip(z, w, strict=True)]
        lowest = min(raised)
        level = [j for j, r in enumerate(raised) if r == lowest]
        left = max(level, key=w.__getitem__)  # falls fastest when mu falls
        right = min(level, key=w.__getitem__)
        excess = [d * zi - n * wi - lowest for zi, wi in zip(z, w, strict=True)]
        strict = [i for i, e in enumerate(excess) if e > 0]
        touching = [i for i, e in enumerate(excess) if e >= 0]
        nominal = sum(a * b for a, b in zip(z, p, strict=True))
        return Piece(
            value=d * nominal - n * self.psi - sum(p[i] * excess[i] for i in strict),
            slope_left=sum(p[i] * (w[i] + w[left]) for i in touching) - self.psi,
            slope_right=sum(p[i] * (w[i] + w[right]) for i in strict) - self.psi,
            receiver_left=left,
            receiver_right=right,
            donors_left=touching,
            donors_right=strict,
        )


def whole(values: list[Fraction]) -> tuple[list[int], int]:
    """Return whole numbers and what they were multiplied by."""
    scale = math.lcm(*(x.denominator for x in values))
    return [x.numerator * (scale // x.denominator) for x in values], scale


def whole_row(z: list[Fraction], p: list[Fraction], w: list[Fraction], psi: Fraction) -> Whole:
    zs, scale_z = whole(z)
    ps, scale_p = whole(p)
    (*ws, budget), scale_w = whole([*w, psi])
    return Whole(zs, ps, ws, budget * scale_p, scale_z, scale_p, scale_w)


def l1_dual_value(z: Numbers, p: Numbers, w: Numbers, budget: Any, mu: Any) -> Fraction:
    """Return the dual of a weighted L1 ball (finite weights) at one multiplier, exactly."""
    row = whole_row(exact(z), exact_distribution(p), exact(w), Fraction(budget))
    scaled = Fraction(mu) * row.scale_z / row.scale_w
    value = Fraction(row.piece(scaled).value, scaled.denominator)
    return value / (row.scale_z * row.scale_p)


def exact_l1(z: Numbers, p: Numbers, w: Numbers, budget: Any) -> ExactRow:
    """Minimise ``q.z  s.t.  sum w|q - p| <= budget, q in the simplex``, exactly.

    Climbs the concave dual from breakpoint to breakpoint until 0 is a supergradient, then builds
    the distribution and proves it: feasible, and its value is that of the dual.
    """
    values, nominal = exact(z), exact_distribution(p)
    free = [i for i in range(len(values)) if not math.isinf(w[i])]
    if len(free) < 2:
        return ExactRow(dot(values, nominal), nominal)
    weights = exact([w[i] for i in free])
    psi = 2 * max(weights) if math.isinf(budget) else Fraction(budget)
    row = whole_row([values[i] for i in free], [nominal[i] for i in free], weights, psi)
    mu, best = _maximise(row)
    moved, parts = _mixture(row, mu, best)
    used = sum(wi * abs(a - parts * b) for wi, a, b in zip(row.w, moved, row.p, strict=True))
    assert min(moved) >= 0, "the oracle itself is wrong"
    assert sum(moved) == parts * sum(row.p)
    assert used <= parts * row.psi
    primal = sum(a * b for a, b in zip(row.z, moved, strict=True))
    assert primal * mu.denominator == best.value * parts
    q = list(nominal)
    for i, mass in zip(free, moved, strict=True):
        q[i] = Fraction(mass, parts * row.scale_p)
    pinned = sum((values[i] * q[i] for i in set(range(len(q))) - set(free)), Fraction(0))
    return ExactRow(pinned + Fraction(primal, parts * row.scale_p * row.scale_z), q)


def _maximise(row: Whole) -> tuple[Fraction, Piece]:
    low = Fraction(0)
    at_low = row.piece(low)
    if at_low.slope_right <= 0:
        return low, at_low
    high = 1 + Fraction(max(row.z) - min(row.z), min(x for x in row.w if x > 0))
    at_high = row.piece(high)
    while at_high.slope_right > 0:
        high *= 2
        at_high = row.piece(high)
    if at_high.slope_left >= 0:
        return high, at_high
    while True:
        steep, flat = at_low.slope_right, at_high.slope_left
        rise = Fraction(at_high.value, high.denominator) - Fraction(at_low.value, low.denominator)
        mu = (rise + steep * low - flat * high) / (steep - flat)
        here = row.piece(mu)
        if here.slope_left >= 0 >= here.slope_right:
            return mu, here
        if here.slope_right > 0:
            low, at_low = mu, here
        else:
            high, at_high = mu, here


def _mixture(row: Whole, mu: Fraction, best: Piece) -> tuple[list[int], int]:
    """Mix the moves left and right of the best multiplier so that the budget is met.

    Returns the masses times ``parts``, and ``parts``.
    """
    parts = best.slope_left - best.slope_right
    shares = [(best.donors_left, best.receiver_left, -best.slope_right)]
    shares.append((best.donors_right, best.receiver_right, best.slope_left))
    if mu == 0 or parts == 0:
        parts, shares = 1, [(best.donors_right, best.receiver_right, 1)]
    moved = [parts * x for x in row.p]
    for donors, receiver, share in shares:
        for i in donors:
            moved[i] -= share * row.p[i]
            moved[receiver] += share * row.p[i]
    return moved, parts


def exact_box(z: Numbers, lower: Numbers, upper: Numbers) -> ExactRow:
    """Minimise ``q.z  s.t.  lower <= q <= upper, sum q = 1``: pour into the cheapest first."""
    values = exact(z)
    bounds, scale = whole([*exact(lower), *exact(upper)])
    q, top = bounds[: len(values)], bounds[len(values) :]
    rest = scale - sum(q)
    assert rest >= 0, "no distribution fits"
    for i in sorted(range(len(q)), key=values.__getitem__):
        poured = min(rest, top[i] - q[i])
        q[i] += poured
        rest -= poured
    assert rest == 0, "no distribution fits"
    zs, scale_z = whole(values)
    value = Fraction(sum(a * b for a, b in zip(zs, q, strict=True)), scale_z * scale)
    return ExactRow(value, [Fraction(x, scale) for x in q])


def box_meant(lower: Numbers, upper: Numbers) -> tuple[list[Fraction], list[Fraction]]:
    """Return the box meant by floats: bounds that miss 1 by rounding are divided by their sum."""
    low, high = exact(lower), exact(upper)
    least, most = sum(low), sum(high)
    return (
        [x / least for x in low] if least > 1 else low,
        [x / most for x in high] if most < 1 else high,
    )


def linf_bounds(p: Numbers, w: Numbers, budget: Any) -> tuple[list[Fraction], list[Fraction]]:
    """Return the box that a weighted L-infinity ball is."""
    nominal = exact_distribution(p)
    lower, upper = list(nominal), list(nominal)
    for i, weight in enumerate(w):
        if math.isinf(weight):
            continue
        if weight == 0 or math.isinf(budget):
            lower[i], upper[i] = Fraction(0), Fraction(1)
            continue
        half = Fraction(budget) / Fraction(weight)
        lower[i] = max(Fraction(0), nominal[i] - half)
        upper[i] = min(Fraction(1), nominal[i] + half)
    return lower, upper


def exact_linf(z: Numbers, p: Numbers, w: Numbers, budget: Any) -> ExactRow:
    """Minimise ``q.z  s.t.  max w|q - p| <= budget, q in the simplex``, exactly."""
    return exact_box(z, *linf_bounds(p, w, budget))


def exact_ball(z: Numbers, p: Numbers, w: Numbers, budget: Any, norm: str) -> ExactRow:
    """Minimise over a ball of either norm, exactly."""
    return {"l1": exact_l1, "linf": exact_linf}[norm](z, p, w, budget)


def precise_kl(z: Numbers, p: Numbers, budget: Any) -> Decimal:
    """Minimise ``q.z  s.t.  KL(p || q) <= budget, q in the simplex``, to 40 digits.

    Bisection for the multiplier ``t = min z - nu`` at which the dual
    ``nu + exp(-budget) prod (z_i - nu)^p_i`` is highest; its slope falls in ``t``.
    """
    with localcontext() as context:
        context.prec = 45
        values, chances = [Decimal(float(x)) for x in z], [Decimal(float(x)) for x in p]
        lowest, total, radius = min(values), sum(chances), Decimal(float(budget))
        seen = [(x / total, y - lowest) for x, y in zip(chances, values, strict=True) if x > 0]
        reach = sum(x * y for x, y in seen)
        if reach == 0:
            return lowest

        def logs(t: Decimal) -> Decimal:
            return sum((x * (y + t).ln() for x, y in seen), Decimal(0))

        def excess(t: Decimal) -> Decimal:
            return logs(t) + sum((x / (y + t) for x, y in seen), Decimal(0)).ln() - radius

        def dual(t: Decimal) -> Decimal:
            return lowest - t + (logs(t) - radius).exp()

        if all(y > 0 for _, y in seen) and excess(Decimal(0)) <= 0:
            return dual(Decimal(0))
        low, high = reach, reach
        while excess(low) <= 0 and low > reach * Decimal(10) ** -300:
            low *= low / reach / 4 if low < reach else Decimal("0.25")
        while excess(high) > 0:
            high *= high / reach * 4 if high > reach else 4
        while high > low * (1 + Decimal(10) ** -20):
            middle = (low * high).sqrt()
            low, high = (middle, high) if excess(middle) > 0 else (low, middle)
        return max(dual(low), dual(high))


def lp_ball(z: ArrayLike, p: ArrayLike, w: ArrayLike, budget: float, norm: str) -> float:
    """Minimise over a ball by a linear program that restates the definition."""
    values, nominal, weights = (np.asarray(x, dtype=float) for x in (z, p, w))
    k = len(values)
    pinned = np.isinf(weights)
    finite = np.where(pinned, 0.0, weights)
    eye, none = np.eye(k), np.zeros((k, k))
    if norm == "l1":  # variables q and the distances d >= |q - p|
        rows = np.block([[eye, -eye], [-eye, -eye], [np.zeros(k), finite]])
        cap = np.concatenate((nominal, -nominal, [budget]))
        cost = np.concatenate((values, np.zeros(k)))
    else:
        rows = np.block([[finite[:, None] * eye, none], [-finite[:, None] * eye, none]])
        cap = np.concatenate((finite * nominal + budget, budget - finite * nominal))
        cost = np.concatenate((values, np.zeros(k)))
    keep = np.isfinite(cap)
    fixed = [(x, x) if pin else (0, 1) for x, pin in zip(nominal, pinned, strict=True)]
    return _minimum(cost, rows[keep], cap[keep], [*fixed, *[(0, None)] * k], k)


def lp_box(z: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> float:
    """Minimise over a box by a linear program."""
    values = np.asarray(z, dtype=float)
    k = len(values)
    limits = list(zip(np.asarray(lower), np.asarray(upper), strict=True))
    return _minimum(values, np.zeros((0, k)), np.zeros(0), limits, k)


def _minimum(
    cost: NDArray[np.float64],
    rows: NDArray[np.float64],
    cap: NDArray[np.float64],
    limits: list[tuple[Any, Any]],
    k: int,
) -> float:
    total = np.zeros((1, len(cost)))
    total[0, :k] = 1.0
    found = linprog(cost, rows, cap, total, [1.0], limits, method="highs")
    assert found.status == 0, found.message
    return float(found.fun or 0.0)
