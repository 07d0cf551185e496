"""Worst-case expectations of one row, by their one-multiplier duals.

Every set here has a dual ``g(x)`` in one real variable that is concave and piecewise linear, and
each evaluation (value and slopes) is one pass over the row, so one search serves all of them. Any
``x`` gives a sound lower bound; the search tightens it and returns a bound on the remaining gap.

A row is ``z[0:k]`` (the successor values) and two vectors read from offsets: ``a[aat:aat+k]`` and
``b[bat:bat+k]`` are the nominal probabilities and the weights of an L1 ball, or the lower and upper
bounds of a box. Sums start from the integer 0, so that exact fractions stay exact when the tests
run these functions as plain Python.
"""

import numpy as np

from surefoot._compile import kernel

EPSILON = float(np.finfo(np.float64).eps)
HUGE = float(np.finfo(np.float64).max)
ONE, ZERO, FOUR = np.uint64(1), np.uint64(0), np.uint64(4)
MAX_STEPS = 200
"""Evaluations before a row is returned with its remaining gap (at most two dozen were seen)."""

NOMINAL, L1, L1_PINNED, BOX = 0, 1, 2, 3
"""The kinds of sets: a point, a weighted L1 ball, one with infinite weights, a box."""

FAST = {"reassoc", "nsz", "nnan"}
"""Without ``contract``: ``z + mu*w`` and its minimum must be computed alike to be compared."""

LONG_ROW = 32
"""Rows with at least this many entries use vector code; shorter rows run faster as scalar code.

So each evaluation is compiled twice from one source. Indices are unsigned throughout: Numba then
omits the test for negative indices, which halves the time of a short row.
"""


@kernel(lean=True, forceinline=True)
def l1_receiver(z, w, wat, k, mu):
    """Return the index of the smallest ``z + mu*w``; O(k), four entries at a time."""
    best0 = best1 = best2 = best3 = z[0] + mu * w[wat]
    at0 = at1 = at2 = at3 = ZERO
    whole = k - k % FOUR
    for i in range(ZERO, whole, FOUR):
        t0 = z[i] + mu * w[wat + i]
        t1 = z[i + ONE] + mu * w[wat + i + ONE]
        t2 = z[i + np.uint64(2)] + mu * w[wat + i + np.uint64(2)]
        t3 = z[i + np.uint64(3)] + mu * w[wat + i + np.uint64(3)]
        if t0 < best0:
            best0, at0 = t0, i
        if t1 < best1:
            best1, at1 = t1, i + ONE
        if t2 < best2:
            best2, at2 = t2, i + np.uint64(2)
        if t3 < best3:
            best3, at3 = t3, i + np.uint64(3)
    for i in range(whole, k):
        t0 = z[i] + mu * w[wat + i]
        if t0 < best0:
            best0, at0 = t0, i
    if best1 < best0:
        best0, at0 = best1, at1
    if best3 < best2:
        best2, at2 = best3, at3
    return at2 if best2 < best0 else at0


def _l1_donors(z, p, at, w, wat, k, mu, lowest):
    """Sum over the donors ``{i : over_i = z_i - mu w_i > lowest}``; O(k).

    Returns ``sum p_i (over_i - lowest)``, ``sum p_i`` and ``sum p_i w_i``.
    """
    taken = 0
    mass = 0
    weighted = 0
    for i in range(k):
        over = z[i] - mu * w[wat + i]  # compared directly: reordering must not change the donors
        here = p[at + i]  # read unconditionally: a branch would prevent vectorisation
        moved = here if over > lowest else 0
        taken += moved * (over - lowest)
        mass += moved
        weighted += moved * w[wat + i]
    return taken, mass, weighted


_l1_donors_short = kernel(lean=True, forceinline=True)(_l1_donors)
_l1_donors_long = kernel(lean=True, fastmath=FAST, twin="long")(_l1_donors)


@kernel(lean=True, forceinline=True)
def l1_donors(z, p, at, w, wat, k, mu, lowest):
    """Sum over the donors (see ``_l1_donors``)."""
    if k < LONG_ROW:
        return _l1_donors_short(z, p, at, w, wat, k, mu, lowest)
    return _l1_donors_long(z, p, at, w, wat, k, mu, lowest)


@kernel(lean=True, forceinline=True)
def l1_dual(z, p, at, w, wat, k, budget, nominal, mu):
    """Evaluate the dual of ``min q.z  s.t.  sum_i w_i |q_i - p_i| <= budget``; O(k).

    With ``L = min_j z_j + mu w_j`` and donors ``{i : z_i - mu w_i > L}``::

        g(mu) = p.z - mu budget - sum_donors p_i (z_i - mu w_i - L)
        g'(mu) = sum_donors p_i (w_i + w_receiver) - budget

    Returns the value and the slope.
    """
    receiver = l1_receiver(z, w, wat, k, mu)
    lowest = z[receiver] + mu * w[wat + receiver]
    taken, mass, weighted = l1_donors(z, p, at, w, wat, k, mu, lowest)
    return nominal - mu * budget - taken, weighted + w[wat + receiver] * mass - budget


def _box_dual(z, lower, at, upper, uat, k, level):
    """Evaluate the dual of ``min q.z  s.t.  lower <= q <= upper, sum q = 1``; O(k).

    ``g(t) = t + sum_i lower_i (z_i - t)^+ - upper_i (t - z_i)^+``. Returns the value and the slopes
    left and right of ``t``.
    """
    value = level
    before = 0
    upto = 0
    for i in range(k):
        # Both bounds are read at every entry: reading only one would be a branch, which not every
        # processor can vectorise.
        low = lower[at + i]
        high = upper[uat + i]
        distance = z[i] - level
        bound = high if distance < 0 else low
        value += bound * distance
        before += bound
        upto += high if distance <= 0 else low
    return value, 1 - before, 1 - upto


_box_dual_short = kernel(lean=True, forceinline=True)(_box_dual)
_box_dual_long = kernel(lean=True, fastmath=FAST, twin="long")(_box_dual)


@kernel(lean=True, forceinline=True)
def box_dual(z, lower, at, upper, uat, k, level):
    """Evaluate the dual of a box (see ``_box_dual``)."""
    if k < LONG_ROW:
        return _box_dual_short(z, lower, at, upper, uat, k, level)
    return _box_dual_long(z, lower, at, upper, uat, k, level)


@kernel(lean=True)
def dual(kind, z, a, aat, b, bat, k, budget, nominal, x):
    """Evaluate the dual of a set of any kind: value, left slope, right slope."""
    if kind == BOX:
        return box_dual(z, a, aat, b, bat, k, x)
    value, slope = l1_dual(z, a, aat, b, bat, k, budget, nominal, x)
    return value, slope, slope


@kernel(lean=True)
def search(kind, z, a, aat, b, bat, k, budget, nominal, guess, step, accuracy):
    """Maximise the dual: bracket the maximum from a guess, then narrow the bracket.

    The tangents at the two ends of the bracket meet at or above the maximum, and the height of that
    point bounds the gap. If only one breakpoint lies between the ends, the tangents meet on the
    graph and the search ends. With many breakpoints, as in long rows, the graph is nearly a
    parabola, for which the zero of the interpolated slope is the better next point; there the two
    rules alternate. Stops once the gap is at most ``accuracy`` (or rounding).

    Returns the value, the gap, ``x`` and the two ends of the last bracket around it.
    """
    bottom, top = _domain(kind, z, k, budget, guess)
    if kind == BOX:  # a guess may be off by the whole range, even if the given step is small
        step = max(step, (top - bottom) / 1024)
    x = min(max(guess, bottom), top)
    value, on_left, on_right = dual(kind, z, a, aat, b, bat, k, budget, nominal, x)
    small = max(accuracy, (k + 4) * EPSILON * (abs(nominal) + abs(nominal - value)))
    left = right = x
    left_value = right_value = value
    left_slope, right_slope = on_right, on_left
    has_left, has_right = on_right > 0, on_left < 0
    best, at = value, x
    steps = 1
    while not has_left and has_right and right > bottom and steps < MAX_STEPS:
        left = max(bottom, right - step)
        step *= 4
        left_value, on_left, left_slope = dual(kind, z, a, aat, b, bat, k, budget, nominal, left)
        if left_value > best:
            best, at = left_value, left
        if left_slope > 0:
            has_left = True
        elif on_left >= 0 or left <= bottom:
            return left_value, x * 0, left, left, left
        else:
            right, right_value, right_slope = left, left_value, on_left
        steps += 1
    while has_left and not has_right and left < top and steps < MAX_STEPS:
        if kind != BOX:  # the line nominal - mu*budget bounds the graph: stop where it meets it
            to_line = (nominal - left * budget - left_value) / (left_slope + budget)
            if left_slope * to_line <= small:
                return best, max(left_slope * to_line, x * 0), at, left, left
            step = min(step, to_line)
        right = min(top, left + step)
        step *= 4
        right_value, right_slope, on_right = dual(
            kind, z, a, aat, b, bat, k, budget, nominal, right
        )
        if right_value > best:
            best, at = right_value, right
        if right_slope < 0:
            has_right = True
        elif on_right <= 0 or right >= top:
            return right_value, x * 0, right, right, right
        else:
            left, left_value, left_slope = right, right_value, on_right
        steps += 1
    if not (has_left and has_right):
        unknown = (top if kind == BOX else nominal) - best
        return best, unknown if steps >= MAX_STEPS else x * 0, at, at, at
    gap = x * 0
    by_tangents = True
    while True:
        meet = (right_value - left_value + right_slope * (left - right)) / (
            left_slope - right_slope
        )
        gap = left_value + left_slope * meet - best
        if gap <= small or steps >= MAX_STEPS:
            break
        if not by_tangents:
            meet = (right - left) * (left_slope / (left_slope - right_slope))
        by_tangents = k < LONG_ROW or not by_tangents
        x = left + meet
        if not left < x < right:
            break
        value, on_left, on_right = dual(kind, z, a, aat, b, bat, k, budget, nominal, x)
        steps += 1
        if value > best:
            best, at = value, x
        if on_left >= 0 and on_right <= 0:
            return value, gap * 0, x, x, x
        if on_right > 0:
            left, left_value, left_slope = x, value, on_right
        else:
            right, right_value, right_slope = x, value, on_left
    return best, max(gap, gap * 0), at, left, right


@kernel(lean=True, forceinline=True)
def _domain(kind, z, k, budget, guess):
    """Return an interval that holds a maximum: multipliers from 0 up, or levels between the z.

    A multiplier beyond ``range / budget`` cannot be optimal, and the dual there would be so large
    in size that the computed gap would be all rounding error. So a guess is clipped there; the
    search itself never goes that far.
    """
    zero = z[0] * 0
    if kind != BOX and guess <= 0:
        return zero, zero + HUGE
    bottom = top = z[0]
    for i in range(ONE, k):
        bottom = min(bottom, z[i])
        top = max(top, z[i])
    if kind == BOX:
        return bottom, top
    if (top - bottom) < HUGE * budget:
        return zero, (top - bottom) / budget
    return zero, zero + HUGE
