"""The best row of every state in a batch as one kernel: each probability is read once.

The compiler's own code for these sums reaches an eighth of the memory's speed where states have
several rows, four fifths of the kernel's where they have one, and takes longer to compile. Written
in Pallas, so that the tests can run the very kernel on a CPU (``interpret``).
"""

from functools import partial
from typing import Any

from surefoot.solvers.gpu.arrays import Array
from surefoot.solvers.gpu.kernel_options import kernel_options

LANES = 32
"""Draws of a block at most: a power of two that divides those of the batch."""


def best_values(
    chance: Array, gain: Array, target: Array, discount: Array, v: Array, *, interpret: bool
) -> Array:
    """Return ``max_a r + discount P v``, ``[state, draw]``, of the rows of a tile.

    ``chance`` is ``[successor, row, state, draw]``, ``gain`` ``[row, state, draw]`` and ``target``
    ``[successor, row, state]``.
    """
    import jax
    import jax.experimental.pallas as pl
    import jax.numpy as jnp

    length, rows, states, draws = chance.shape
    lanes = min(LANES, draws & -draws)
    call = pl.pallas_call(
        partial(_kernel, lanes=lanes),
        out_shape=jax.ShapeDtypeStruct((states, draws), v.dtype),  # type: ignore[no-untyped-call]
        grid=(states, draws // lanes),
        in_specs=[
            pl.BlockSpec(v.shape, lambda _i, _j: (0, 0)),
            pl.BlockSpec((length, rows, 1, lanes), lambda i, j: (0, 0, i, j)),
            pl.BlockSpec((rows, 1, lanes), lambda i, j: (0, i, j)),
            pl.BlockSpec((length, rows, 1), lambda i, _j: (0, 0, i)),
            pl.BlockSpec((1,), lambda _i, _j: (0,)),
        ],
        out_specs=pl.BlockSpec((1, lanes), lambda i, j: (i, j)),
        **kernel_options(interpret=interpret),
    )
    return call(v, chance, gain, target, jnp.asarray(discount).reshape(1))


def _kernel(
    v_ref: Any, chance_ref: Any, gain_ref: Any, target_ref: Any, discount_ref: Any, out: Any, *,
    lanes: int,
) -> None:  # fmt: skip
    import jax
    import jax.experimental.pallas as pl
    import jax.numpy as jnp

    length, rows = chance_ref.shape[:2]
    draws = pl.ds(pl.program_id(1) * lanes, lanes)
    discount = discount_ref[0]

    def of_row(a: Array, best: Array) -> Array:
        def add(k: Array, expected: Array) -> Array:
            return expected + chance_ref[k, a, 0, :] * v_ref[target_ref[k, a, 0], draws]

        expected = jax.lax.fori_loop(0, length, add, jnp.zeros(lanes, dtype=out.dtype))
        return jnp.maximum(best, gain_ref[a, 0, :] + discount * expected)

    start = jnp.full(lanes, -jnp.inf, dtype=out.dtype)
    out[0, :] = jax.lax.fori_loop(0, rows, of_row, start)
