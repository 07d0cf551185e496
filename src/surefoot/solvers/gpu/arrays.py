"""One source for two machines: the same formulas on the device (JAX) and on the CPU (NumPy).

The device is never believed alone: some of its draws are made and evaluated again by NumPy, from
the same source lines and the same random bits.
"""

from collections.abc import Callable
from functools import cache
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

    quantile, settled = jax.scipy.special.ndtri, jax.lax.optimization_barrier
    return Arrays(jnp, quantile, jax.lax.while_loop, repeat, settled)
