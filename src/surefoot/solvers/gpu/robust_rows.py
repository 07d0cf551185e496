"""Worst-case expectations of many rows side by side, by their one-multiplier duals.

The duals are those of `surefoot.solvers.dual_kernels`. Here all rows search together: each keeps
two tangents that meet above its maximum, evaluates where they meet, and replaces the one on that
side. Any multiplier gives a sound lower bound; what the tangents leave above it is the gap.

A row's numbers come as a list of arrays, one for each successor, or as a list of a few with an axis
for them (`Fold`); so the same lines serve whole arrays and the registers of a kernel.
"""

from collections.abc import Callable
from functools import partial
from operator import add
from typing import Any, NamedTuple

from surefoot.solvers.gpu.arrays import Array, Arrays

ABOVE = 1.2
"""How far above the lowest value donors may end, in distances of the mean."""
MOST_STEPS = 60
"""Evaluations before rows are returned with the gaps that are left."""
ROUNDING = 2.0**-49
"""Gaps below this share of a row's values, times its length, are rounding: nothing closes them."""
NOTHING = 1e300
"""The value of a successor that a row does not have: nature will not go there."""


class Worst(NamedTuple):
    """What nature makes of rows: the value, the gap above it, and where the last tangents touch.

    The next search of nearly the same rows looks there first.
    """

    value: Array
    gap: Array
    left: Array
    right: Array


class Tangents(NamedTuple):
    """Two points of a concave function with values and slopes, and the best value so far.

    ``gap`` is what may lie above that value, ``meeting`` where the tangents meet.
    """

    left: Array
    left_value: Array
    left_slope: Array
    right: Array
    right_value: Array
    right_slope: Array
    best: Array
    gap: Array
    steps: Array
    meeting: Array


class Fold(NamedTuple):
    """Where the successors of a row lie: in a list of arrays, and with an ``axis`` along that."""

    axis: int | None

    def sum(self, parts: list[Array]) -> Array:
        """Return sums over the successors."""
        whole = _by_pairs(add, parts)
        return whole if self.axis is None else whole.sum(axis=self.axis)

    def least(self, xp: Any, parts: list[Array]) -> Array:
        """Return the smallest over the successors."""
        whole = _by_pairs(xp.minimum, parts)
        return whole if self.axis is None else whole.min(axis=self.axis)

    def lowest(self, xp: Any, parts: list[Array], others: list[Array]) -> tuple[Array, Array]:
        """Return the smallest over the successors, and another number of one that has it."""
        pairs = list(zip(parts, others, strict=True))
        whole, other = _by_pairs(partial(_lower, xp), pairs)
        if self.axis is None:
            return whole, other
        least = whole.min(axis=self.axis)
        own = xp.where(whole <= self.wide(xp, least), other, xp.inf)
        return least, own.min(axis=self.axis)

    def length(self, parts: list[Array]) -> int:
        """Return how many successors a row has, filling included."""
        return len(parts) * (1 if self.axis is None else int(parts[0].shape[self.axis]))

    def wide(self, xp: Any, row: Array) -> Array:
        """Return a number for every row as one for every successor."""
        return row if self.axis is None else xp.expand_dims(row, self.axis)


LIST = Fold(None)


def _lower(xp: Any, one: tuple[Array, Array], two: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return the pair with the lower first number."""
    first = one[0] <= two[0]
    return xp.where(first, one[0], two[0]), xp.where(first, one[1], two[1])


def _by_pairs(join: Callable[[Array, Array], Array], parts: list[Array]) -> Array:
    """Join all parts, neighbours first: a thread waits for four results in turn, not for sixteen.

    Examples
    --------
    >>> _by_pairs(lambda a, b: f"({a}{b})", list("abcde"))
    '(((ab)(cd))e)'
    """
    while len(parts) > 1:
        pairs = [join(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[2 * len(pairs) :]
    return parts[0]


def l1_dual(
    xp: Any, fold: Fold, z: list[Array], p: list[Array], w: list[Array], budget: Array,
    nominal: Array, mu: Array,
) -> tuple[Array, Array]:  # fmt: skip
    """Evaluate the dual of ``min q.z  s.t.  sum_i w_i |q_i - p_i| <= budget``: value and slope.

    With ``L = min_j z_j + mu w_j`` and donors ``{i : z_i - mu w_i > L}``::

        g(mu) = p.z - mu budget - sum_donors p_i (z_i - mu w_i - L)
        g'(mu) = sum_donors p_i (w_i + w_receiver) - budget
    """
    step = fold.wide(xp, mu)
    above = [z_i + step * w_i for z_i, w_i in zip(z, w, strict=True)]
    least, receiver = fold.lowest(xp, above, w)
    lowest = fold.wide(xp, least)
    over = [z_i - step * w_i - lowest for z_i, w_i in zip(z, w, strict=True)]
    moved = [xp.where(o > 0.0, p_i, 0.0) for o, p_i in zip(over, p, strict=True)]
    taken = fold.sum([m * o for m, o in zip(moved, over, strict=True)])
    # Two sums that do not wait for the receiver.
    share = fold.sum(moved)
    spent = fold.sum([m * w_i for m, w_i in zip(moved, w, strict=True)]) + receiver * share
    return nominal - mu * budget - taken, spent - budget


def worst_l1(
    arrays: Arrays, fold: Fold, z: list[Array], p: list[Array], w: list[Array], budget: Array,
    guess: tuple[Array, Array], accuracy: Array,
) -> Worst:  # fmt: skip
    """Return ``min q.z`` over weighted L1 balls around ``p``; ``guess``: where to look first.

    Two guesses of 0 are none: there the search begins at an estimate.
    """
    xp = arrays.xp
    nominal = fold.sum([p_i * z_i for p_i, z_i in zip(p, z, strict=True)])
    zero = nominal * 0.0
    bottom = fold.least(xp, z)
    cold = (guess[0] <= 0.0) & (guess[1] <= 0.0)
    weight = fold.sum([p_i * w_i for p_i, w_i in zip(p, w, strict=True)])
    first = _likely_multiplier(xp, nominal, bottom, weight, budget)
    guess = xp.where(cold, first, guess[0]), guess[1]

    def evaluate(mu: Array) -> tuple[Array, Array, Array]:
        value, slope = l1_dual(xp, fold, z, p, w, budget, nominal, mu)
        return value, xp.where(mu > 0.0, slope, 1.0), slope  # a multiplier is never below 0

    # Nothing lies above the line nominal - mu*budget, nor above its height at 0.
    start = Tangents(
        left=zero, left_value=nominal, left_slope=zero,
        right=zero, right_value=nominal, right_slope=-budget,
        best=zero - xp.inf, gap=zero + xp.inf, steps=xp.zeros((), dtype=xp.int32), meeting=zero,
    )  # fmt: skip
    small = ROUNDING * fold.length(z) * (xp.abs(nominal) + xp.abs(bottom))
    accuracy = xp.maximum(accuracy, small)
    return _closed_in(arrays, evaluate, start, guess, accuracy, once=True, cold=cold)


def _likely_multiplier(
    xp: Any, nominal: Array, bottom: Array, weight: Array, budget: Array
) -> Array:
    """Return about where the dual of an L1 ball is largest.

    With ``2 weight`` as the price of moving a probability to the lowest value, the budget pays for
    a share ``f = budget / (2 weight)``. Donors then end somewhat above the mean, lower the more is
    moved, and there ``z - 2 mu weight`` meets the lowest value. 0 where numbers are too large. Any
    multiplier is sound.
    """
    price = 2.0 * xp.where(weight > 0.0, weight, 1.0)
    likely = ABOVE * (nominal - bottom) / price * xp.maximum(1.0 - budget / price, 0.1)
    return xp.where((weight > 0.0) & (likely < NOTHING), likely, 0.0)


def box_dual(
    xp: Any, fold: Fold, z: list[Array], low: list[Array], high: list[Array], t: Array
) -> tuple[Array, Array, Array]:
    """Evaluate the dual of ``min q.z  s.t.  low <= q <= high, sum q = 1``: value, both slopes.

    ``g(t) = t + sum_i low_i (z_i - t)^+ - high_i (t - z_i)^+``.
    """
    level = fold.wide(xp, t)
    rows = list(zip([z_i - level for z_i in z], low, high, strict=True))
    held = [xp.where(over > 0.0, l_i, h_i) for over, l_i, h_i in rows]
    value = t + fold.sum([h * over for h, (over, _, _) in zip(held, rows, strict=True)])
    on_left = 1.0 - fold.sum([xp.where(over >= 0.0, l_i, h_i) for over, l_i, h_i in rows])
    return value, on_left, 1.0 - fold.sum(held)


def worst_box(
    arrays: Arrays, fold: Fold, z: list[Array], low: list[Array], high: list[Array],
    guess: tuple[Array, Array], accuracy: Array,
) -> Worst:  # fmt: skip
    """Return ``min q.z`` over boxes."""
    xp = arrays.xp
    bottom = fold.least(xp, z)
    top = -fold.least(xp, [xp.where(z_i < NOTHING, -z_i, NOTHING) for z_i in z])

    def evaluate(t: Array) -> tuple[Array, Array, Array]:
        level = xp.clip(t, bottom, top)
        return box_dual(xp, fold, z, low, high, level)

    zero = bottom * 0.0
    start = Tangents(
        left=bottom, left_value=top, left_slope=zero, right=top, right_value=top, right_slope=zero,
        best=zero - xp.inf, gap=zero + xp.inf, steps=xp.zeros((), dtype=xp.int32), meeting=zero,
    )  # fmt: skip
    small = ROUNDING * fold.length(z) * (xp.abs(bottom) + xp.abs(top))
    inside = tuple(xp.clip(x, bottom, top) for x in guess)
    accuracy = xp.maximum(accuracy, small)
    return _closed_in(arrays, evaluate, start, inside, accuracy, top, once=fold.axis is None)


def _meeting(xp: Any, now: Tangents) -> tuple[Array, Array]:
    """Return where the tangents meet, and how high; the left end where they are parallel."""
    fall = now.left_slope - now.right_slope
    rise = now.right_value - now.left_value + now.right_slope * (now.left - now.right)
    way = xp.where(fall > 0.0, rise / xp.where(fall > 0.0, fall, 1.0), 0.0)
    way = xp.maximum(way, 0.0)
    return now.left + way, now.left_value + now.left_slope * way


def _closed_in(
    arrays: Arrays, evaluate: Any, start: Tangents, guess: Any, accuracy: Array,
    end: Array | None = None, *, once: bool, cold: Array | None = None,
) -> Worst:  # fmt: skip
    """Maximise a concave function, up to an end where it has one.

    ``once``: one copy of the evaluation serves the guesses too. Lists then compile in a third of
    the time. ``cold`` rows have one guess.
    """
    xp = arrays.xp

    def step(now: Tangents, x: Array) -> Tangents:
        value, on_left, on_right = evaluate(x)
        rising, falling = on_right > 0.0, on_left < 0.0
        known = now.right > now.left
        left = rising & (x >= now.left)
        right = falling & ~rising & (x >= now.left) & ((x <= now.right) | ~known)
        top = ~rising & ~falling  # the maximum itself: both tangents are level
        after = Tangents(
            left=xp.where(left | top, x, now.left),
            left_value=xp.where(left | top, value, now.left_value),
            left_slope=xp.where(left, on_right, xp.where(top, 0.0, now.left_slope)),
            right=xp.where(right | top, x, now.right),
            right_value=xp.where(right | top, value, now.right_value),
            right_slope=xp.where(right, on_left, xp.where(top, 0.0, now.right_slope)),
            best=xp.maximum(now.best, value),
            gap=now.gap,
            steps=now.steps + 1,
            meeting=now.meeting,
        )
        meeting, height = _meeting(xp, after)
        return after._replace(gap=xp.maximum(height - after.best, 0.0), meeting=meeting)

    def body(now: Tangents) -> Tangents:
        x = now.meeting if end is None else xp.minimum(now.meeting, end)
        if once:
            x = xp.where(now.steps == 0, guess[0], xp.where(now.steps == 1, second(x), x))
        return step(now, x)

    def second(meeting: Array) -> Array:
        return guess[1] if cold is None else xp.where(cold, meeting, guess[1])

    def proceed(now: Tangents) -> Any:
        open_still = ((now.gap - accuracy).max() > 0.0) & (now.steps < MOST_STEPS)
        return open_still | (now.steps < 2)

    if not once:
        start = step(start, guess[0])
        start = step(start, second(start.meeting))
    found = arrays.loop(proceed, body, start)
    return Worst(found.best, found.gap, found.left, found.right)
