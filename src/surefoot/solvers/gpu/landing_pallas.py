"""Where unseen successors land as one kernel: each row of each draw counts until its last one.

Written in Pallas, so that the tests can run the very kernel on a CPU (``interpret``).
"""

from functools import partial
from typing import Any

import numpy as np

from surefoot.solvers.gpu.arrays import Array
from surefoot.solvers.gpu.kernel_options import kernel_options
from surefoot.solvers.gpu.philox import philox, uniforms

LANES = 32
"""Draws of a block at most: a power of two that divides those of the batch."""
LONGEST = 32
"""Longest row whose entries a thread holds."""


def landings(
    key: Array, row: Array, draw: Array, running: Array, wanted: Array, stream: int, *,
    interpret: bool,
) -> Array:  # fmt: skip
    """Return ``[entry, row, state, draw]``: how many unseen successors landed on each entry.

    ``running`` are cumulative chances of the entries, ``wanted`` ``[row, state, draw]`` how many
    land, ``row`` ``[row, state, 1]`` the number of the row. Each takes the first entry whose chance
    reaches a uniform share of all.
    """
    import jax
    import jax.experimental.pallas as pl

    length, draws = running.shape[0], running.shape[-1]
    rows = row.size
    lanes = min(LANES, draws & -draws)
    entries = pl.BlockSpec((length, 1, lanes), lambda i, j: (0, i, j))
    call = pl.pallas_call(
        partial(_kernel, stream),
        out_shape=jax.ShapeDtypeStruct((length, rows, draws), np.int32),  # type: ignore[no-untyped-call]
        grid=(rows, draws // lanes),
        in_specs=[
            pl.BlockSpec((2,), lambda _i, _j: (0,)),
            pl.BlockSpec((1,), lambda i, _j: (i,)),
            pl.BlockSpec((lanes,), lambda _i, j: (j,)),
            entries,
            pl.BlockSpec((1, lanes), lambda i, j: (i, j)),
        ],
        out_specs=entries,
        **kernel_options(interpret=interpret),
    )
    given = running.reshape(length, rows, draws), wanted.reshape(rows, draws)
    return call(key, row.reshape(rows), draw, *given).reshape(running.shape)


def _kernel(
    stream: int, key_ref: Any, row_ref: Any, draw_ref: Any, running_ref: Any, wanted_ref: Any,
    out: Any,
) -> None:  # fmt: skip
    import jax
    import jax.numpy as jnp

    key, row, draw = (key_ref[0], key_ref[1]), row_ref[0], draw_ref[:]
    wanted = wanted_ref[0, :]
    running = [running_ref[k, 0, :] for k in range(running_ref.shape[0])]

    def two(state: Any) -> Any:
        number, times = state
        words = philox(jnp, key, (row, draw, number.astype(jnp.uint32), np.uint32(stream)))
        for turn, share in enumerate(uniforms(jnp, words)):
            goal = share * running[-1]
            below = (2 * number + turn < wanted) & (goal > 0.0)
            counted = []
            for time, reached in zip(times, running, strict=True):
                inside = goal <= reached
                counted.append(time + jnp.where(below & inside, 1, 0))
                below = below & ~inside
            times = counted
        return number + 1, times

    none = [jnp.zeros(draw.shape, dtype=jnp.int32)] * len(running)
    most = wanted.max()
    _, found = jax.lax.while_loop(lambda state: 2 * state[0] < most, two, (jnp.int32(0), none))
    for k, times in enumerate(found):
        out[k, 0, :] = times
