"""The values of one policy in one drawn model, using products with its matrix only.

Solves ``v = gain + chance v``. A system is four arrays: state ``s`` moves to ``column[e]`` with
discounted probability ``chance[e]`` for ``e`` in ``start[s]:start[s+1]``, and earns ``gain[s]``.
Sweeps are fast if the model mixes well. A model with an absorbing state, or one that moves slowly,
has a few error components that sweeps hardly reduce: there BiCGSTAB (van der Vorst 1992) takes
over, which removes them in a few steps. Results are approximate: a caller that needs a guarantee
bounds the residual afterwards.
"""

import numpy as np

from surefoot._compile import kernel

PATIENCE = 8
"""Sweeps between two estimates of their convergence rate."""
WORTH_SWITCHING = 32
"""BiCGSTAB pays if at least this many sweeps remain: it needs some twenty products and combines ten
vectors with each."""
MAX_PRODUCTS = 2000
VECTORS = 7
"""Scratch vectors that BiCGSTAB needs."""
ATTEMPTS = 4
LOST = 1e-12
"""Two vectors with a cosine below this are treated as orthogonal: a breakdown."""


@kernel(lean=True)
def dot(a, b):
    """Return the inner product, accumulated in four partial sums."""
    size = len(a)
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    for k in range(size // 4):
        first += a[4 * k] * b[4 * k]
        second += a[4 * k + 1] * b[4 * k + 1]
        third += a[4 * k + 2] * b[4 * k + 2]
        fourth += a[4 * k + 3] * b[4 * k + 3]
    for k in range(4 * (size // 4), size):
        first += a[k] * b[k]
    return (first + second) + (third + fourth)


@kernel(lean=True)
def largest_size(a):
    """Return the largest absolute value."""
    most = 0.0
    for k in range(len(a)):
        most = max(most, abs(a[k]))
    return most


@kernel(lean=True)
def image_of(start, column, chance, gain, v, image):
    """Write ``gain + chance v``; return its smallest and largest difference from ``v``."""
    least, most = np.inf, -np.inf
    for s in range(len(v)):
        total = gain[s]
        for e in range(start[s], start[s + 1]):
            total += chance[e] * v[column[e]]
        image[s] = total
        least = min(least, total - v[s])
        most = max(most, total - v[s])
    return least, most


@kernel(lean=True)
def multiply(start, column, chance, transposed, x, out):
    """Write ``x - chance x``, or the same with the transposed matrix."""
    if transposed:
        for s in range(len(x)):
            out[s] = x[s]
        for s in range(len(x)):
            for e in range(start[s], start[s + 1]):
                out[column[e]] -= chance[e] * x[s]
    else:
        for s in range(len(x)):
            total = 0.0
            for e in range(start[s], start[s + 1]):
                total += chance[e] * x[column[e]]
            out[s] = x[s] - total


@kernel(lean=True)
def solve_sparse(start, column, chance, transposed, right, goal, x, work):
    """Improve ``x`` until no state's residual ``right - (x - chance x)`` exceeds ``goal``.

    BiCGSTAB, restarted where it breaks down; ``x`` is unchanged if the residual did not shrink.
    Returns the number of products, each O(entries); ``work`` is ``(VECTORS, S)``.
    """
    residual, shadow, step, pushed = work[0], work[1], work[2], work[3]
    half, turned, first = work[4], work[5], work[6]
    size = len(x)
    multiply(start, column, chance, transposed, x, residual)
    for s in range(size):
        residual[s] = right[s] - residual[s]
        first[s] = x[s]
    products, rho, alpha, omega = 1, 0.0, 0.0, 0.0
    before = most = largest_size(residual)
    fresh = True
    while most > goal and products < MAX_PRODUCTS:
        if fresh:
            for s in range(size):
                shadow[s] = residual[s]
                step[s] = residual[s]
            rho = dot(shadow, shadow)
        multiply(start, column, chance, transposed, step, pushed)
        along = dot(shadow, pushed)
        lost = LOST * np.sqrt(dot(shadow, shadow) * dot(pushed, pushed))
        if not abs(along) > lost:
            if fresh:
                break
            fresh = True
            continue
        alpha = rho / along
        for s in range(size):
            half[s] = residual[s] - alpha * pushed[s]
        multiply(start, column, chance, transposed, half, turned)
        products += 2
        length = dot(turned, turned)
        omega = dot(turned, half) / length if length > 0.0 else 0.0
        for s in range(size):
            x[s] += alpha * step[s] + omega * half[s]
            residual[s] = half[s] - omega * turned[s]
        most = largest_size(residual)
        ahead = dot(shadow, residual)
        fresh = not abs(ahead * omega) > LOST * abs(rho * alpha)
        if not fresh:
            turn = ahead / rho * (alpha / omega)
            for s in range(size):
                step[s] = residual[s] + turn * (step[s] - omega * pushed[s])
            rho = ahead
    if not most < before:
        for s in range(size):
            x[s] = first[s]
    return products


NEAR_END = 1e4
"""At discount 1 changes must be smaller than the tolerance by this factor."""


@kernel(lean=True)
def settle(start, column, chance, gain, discount, tolerance, max_sweeps, v, image, work):
    """Move ``v`` to the value of the system, within ``tolerance`` by the span bounds.

    Runs sweeps; if these are slow, BiCGSTAB, then sweeps again. O(entries) a sweep or product.
    """
    endless = discount < 1.0  # at discount 1 the value of an end stays 0: nothing is shifted
    reach = discount / (1.0 - discount) if endless else NEAR_END
    earlier, attempts = np.inf, 0
    for sweep in range(max_sweeps):
        least, most = image_of(start, column, chance, gain, v, image)
        span = most - least
        near = span * reach <= tolerance
        shift = 0.0
        if endless and (near or sweep == max_sweeps - 1):
            shift = 0.5 * reach * (least + most)
        for s in range(len(v)):
            v[s] = image[s] + shift
        if near:
            break
        place = sweep % PATIENCE
        if place == PATIENCE // 2 - 1:
            earlier = span
        elif place == PATIENCE - 1 and attempts < ATTEMPTS:
            rate = (span / earlier) ** (2.0 / PATIENCE)
            if not np.log(tolerance / (span * reach)) > WORTH_SWITCHING * np.log(rate):
                goal = 0.25 * tolerance / reach
                solve_sparse(start, column, chance, False, gain, goal, v, work)
                attempts += 1


@kernel(lean=True)
def settle_visits(start, column, chance, right, goal, max_sweeps, x, work):
    """Solve ``x = right + chance' x`` until no state's residual exceeds ``goal``.

    Runs sweeps; if these are slow, BiCGSTAB, then sweeps again. O(entries) a sweep or product.
    """
    earlier, attempts = np.inf, 0
    for sweep in range(max_sweeps):
        image, most = work[0], 0.0
        multiply(start, column, chance, True, x, image)
        for s in range(len(x)):
            residual = right[s] - image[s]
            most = max(most, abs(residual))
            x[s] += residual
        if most <= goal:
            break
        place = sweep % PATIENCE
        if place == PATIENCE // 2 - 1:
            earlier = most
        elif place == PATIENCE - 1 and attempts < ATTEMPTS:
            rate = (most / earlier) ** (2.0 / PATIENCE)
            if not np.log(goal / most) > WORTH_SWITCHING * np.log(rate):
                solve_sparse(start, column, chance, True, right, goal, x, work)
                attempts += 1


@kernel(lean=True)
def relax(start, column, chance, gain, count, v):
    """Run ``count`` Gauss-Seidel sweeps on ``v`` in alternating directions; O(entries) each.

    Each equation is solved for the state's own value, self-loops included.
    """
    size = len(v)
    for sweep in range(count):
        for position in range(size):
            s = position if sweep % 2 == 0 else size - 1 - position
            total, own = gain[s], 0.0
            for e in range(start[s], start[s + 1]):
                if column[e] == s:
                    own += chance[e]
                else:
                    total += chance[e] * v[column[e]]
            v[s] = total / (1.0 - own)
