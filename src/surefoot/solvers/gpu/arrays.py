"""One source for two machines: the same formulas on the device (JAX) and on the CPU (NumPy).

The device is never believed alone: some of its draws are made and evaluated again by NumPy, from
the same source lines and the same random bits.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

Array = Any
"""An array of NumPy or of JAX."""


class Arrays(NamedTuple):
    """What the formulas use of an array library.

    ``xp`` are its functions under their NumPy names, ``quantile`` the standard normal quantile,
    ``loop(proceed, body, state)`` repeats ``body`` while ``proceed`` says so,
    ``repeat(times, body, state)`` that many times, and ``settled`` keeps an array from being
    computed again for every use. ``kernels``: a GPU has kernels for what is compiled badly for it.
    """

    xp: Any
    quantile: Callable[[Array], Array]
    loop: Callable[[Callable[[Any], Any], Callable[[Any], Any], Any], Any]
    repeat: Callable[[int, Callable[[Any], Any], Any], Any]
    settled: Callable[[Array], Array]
    kernels: bool = False


def _loop(proceed: Callable[[Any], Any], body: Callable[[Any], Any], state: Any) -> Any:
    while proceed(state):
        state = body(state)
    return state


def _repeat(times: int, body: Callable[[Any], Any], state: Any) -> Any:
    for _ in range(times):
        state = body(state)
    return state


NUMPY = Arrays(np, ndtri, _loop, _repeat, lambda array: array)


@cache
def jax_arrays() -> Arrays:
    """Return JAX as an array library; call it under `surefoot.solvers.gpu.device.doubles`."""
    import jax
    import jax.numpy as jnp

    def repeat(times: int, body: Callable[[Any], Any], state: Any) -> Any:
        return jax.lax.fori_loop(0, times, lambda _, now: body(now), state)

    quantile, settled = partial(normal_quantile, jnp), jax.lax.optimization_barrier
    return Arrays(jnp, quantile, jax.lax.while_loop, repeat, settled)


def normal_quantile(xp: Any, u: Array) -> Array:
    """Return the standard normal quantile for ``2^-53 <= u <= 1 - 2^-53``, as Cephes does.

    In plain arithmetic, so that kernels can use it; SciPy's own for these arguments to 1e-14.

    Examples
    --------
    >>> normal_quantile(np, np.array([2.0**-53, 0.025, 0.5, 0.9])).round(6).tolist()
    [-8.209536, -1.959964, 0.0, 1.281552]
    """
    w = u - 0.5
    square = w * w
    middle = 2.50662827463100050242 * (w + w * square * _ratio(square, *_MIDDLE))
    least = xp.minimum(u, 1.0 - u)
    z = xp.sqrt(-2.0 * xp.log(least))
    part = 1.0 / z
    far = z - xp.log(z) * part - part * _ratio(part, *_FAR)
    return xp.where(least > _ENDS, middle, xp.where(w < 0.0, -far, far))


def _ratio(x: Array, above: tuple[float, ...], below: tuple[float, ...]) -> Array:
    """Return the quotient of two polynomials, highest powers first."""
    top, bottom = above[0], below[0]
    for a in above[1:]:
        top = top * x + a
    for b in below[1:]:
        bottom = bottom * x + b
    return top / bottom


_ENDS = 0.13533528323661269189
_MIDDLE = (
    (-5.99633501014107895267e1, 9.80010754185999661536e1, -5.66762857469070293439e1,
     1.39312609387279679503e1, -1.23916583867381258016e0),
    (1.0, 1.95448858338141759834e0, 4.67627912898881538453e0, 8.63602421390890590575e1,
     -2.25462687854119370527e2, 2.00260212380060660359e2, -8.20372256168333339912e1,
     1.59056225126211695515e1, -1.18331621121330003142e0),
)  # fmt: skip
"""Cephes' ratio between ``exp(-2)`` and ``1 - exp(-2)``, in powers of ``(u - 1/2)^2``."""
_FAR = (
    (4.05544892305962419923e0, 3.15251094599893866154e1, 5.71628192246421288162e1,
     4.40805073893200834700e1, 1.46849561928858024014e1, 2.18663306850790267539e0,
     -1.40256079171354495875e-1, -3.50424626827848203418e-2, -8.57456785154685413611e-4),
    (1.0, 1.57799883256466749731e1, 4.53907635128879210584e1, 4.13172038254672030440e1,
     1.50425385692907503408e1, 2.50464946208309415979e0, -1.42182922854787788574e-1,
     -3.80806407691578277194e-2, -9.33259480895457427372e-4),
)  # fmt: skip
"""Its ratio outside, in powers of ``1 / sqrt(-2 log u)``. Cephes has another one for ``u`` below
``exp(-32)``; down to ``2^-53`` this one is as good."""
