"""Random numbers of whole arrays as one kernel: blocks of draws try again until each is taken.

A loop over a whole array goes on for all of it until the last entry has found its number; a block
of a few draws ends after two or three turns. Written in Pallas, so that the tests can run the very
kernel on a CPU (``interpret``).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from surefoot.solvers.gpu.arrays import Array
from surefoot.solvers.gpu.kernel_options import kernel_options

LANES = 32
"""Draws of a block at most: a power of two that divides those of the batch."""


def in_blocks(
    formula: Callable[[Array, Array, Array, Array], Array], key: Array, place: Array, draw: Array,
    number: Array, *, interpret: bool,
) -> Array:  # fmt: skip
    """Return ``formula(key, place, draw, number)`` for every place and draw.

    ``place`` is ``[..., 1]``, ``draw`` ``[draw]`` and ``number`` ``[..., draw]`` or ``[..., 1]``.
    The formula gets the two words of the key as a pair.
    """
    import jax
    import jax.experimental.pallas as pl

    size, draws = place.shape[:-1], draw.shape[0]
    lanes = min(LANES, draws & -draws)
    each = number.shape[-1] > 1
    places = place.size
    beside = pl.BlockSpec((1, lanes), lambda i, j: (i, j))
    call = pl.pallas_call(
        partial(_kernel, formula, each=each),
        out_shape=jax.ShapeDtypeStruct((places, draws), number.dtype),  # type: ignore[no-untyped-call]
        grid=(places, draws // lanes),
        in_specs=[
            pl.BlockSpec((2,), lambda _i, _j: (0,)),
            pl.BlockSpec((1,), lambda i, _j: (i,)),
            pl.BlockSpec((lanes,), lambda _i, j: (j,)),
            beside if each else pl.BlockSpec((1, 1), lambda i, _j: (i, 0)),
        ],
        out_specs=beside,
        **kernel_options(interpret=interpret),
    )
    number = number.reshape(places, -1)
    return call(key, place.reshape(places), draw, number).reshape(*size, draws)


def _kernel(
    formula: Any, key_ref: Any, place_ref: Any, draw_ref: Any, number_ref: Any, out: Any, *,
    each: bool,
) -> None:  # fmt: skip
    import jax.numpy as jnp

    draw = draw_ref[:]
    number = number_ref[0, :] if each else number_ref[0, 0] + jnp.zeros(draw.shape, out.dtype)
    out[0, :] = formula((key_ref[0], key_ref[1]), place_ref[0], draw, number)
