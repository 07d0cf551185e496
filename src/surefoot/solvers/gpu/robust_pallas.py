"""The rows of a robust sweep as one kernel: each is read once and searched in registers.

Short rows lie ``[successor, row]``, one thread a row; long ones ``[row, successor]``, some threads
a row. Written in Pallas, so that the tests can run the very kernel on a CPU (``interpret``).
"""

from functools import partial
from typing import Any

from surefoot.solvers.gpu.arrays import Array, jax_arrays
from surefoot.solvers.gpu.robust_rows import LIST, NOTHING, Fold, Worst, worst_box, worst_l1

SHORT = 24
"""Longest row that one thread holds."""
SHORT_ROWS, TILE = 128, 2048
"""Rows of a block of short ones; entries of a block of long ones."""
POINT, L1, BOX = 0, 1, 2
"""What nature may choose from."""


def rows_per_block(length: int) -> int:
    """Return how many rows of a length a block has: a power of two, as kernels want."""
    return SHORT_ROWS if length <= SHORT else max(1, TILE // length)


def worst_rows(
    kind: int, v: Array, model: dict[str, Array], guess: Array, accuracy: Array, *,
    interpret: bool,
) -> Worst:  # fmt: skip
    """Return the worst case of rows ``sign*(reward + discount*v)``; rows fill whole blocks.

    ``model`` has ``target``, ``a`` and ``b`` (``[successor, row]`` for short rows,
    ``[row, successor]`` for long ones), ``budget`` and ``reward`` of every row, and ``scale``, the
    sign times the discount. ``a`` are probabilities or lower bounds, ``b`` weights or upper bounds;
    a target of -1 is none.
    """
    import jax
    import jax.experimental.pallas as pl

    length = model["target"].shape[1 if model["long"] else 0]
    rows = guess.shape[0]
    block = rows_per_block(length)
    if model["long"]:
        entries = pl.BlockSpec((block, length), lambda i: (i, 0))
    else:
        entries = pl.BlockSpec((length, block), lambda i: (0, i))
    each = pl.BlockSpec((block,), lambda i: (i,))
    whole = pl.BlockSpec(v.shape, lambda _: (0,))
    one = pl.BlockSpec((1,), lambda _: (0,))
    reward = entries if model["reward"].ndim == 2 else each
    shape = jax.ShapeDtypeStruct((rows,), v.dtype)
    call = pl.pallas_call(
        partial(_kernel, kind, long=model["long"]),
        out_shape=(shape, shape, shape),
        grid=(rows // block,),
        in_specs=[whole, entries, entries, entries, reward, each, each, one, one],
        out_specs=(each, each, each),
        interpret=interpret,
        **({} if interpret else _triton()),
    )
    return Worst(*call(
        v, model["target"], model["a"], model["b"], model["reward"], model["budget"], guess,
        model["scale"], accuracy,
    ))  # fmt: skip


def _triton() -> dict[str, Any]:
    from jax.experimental.pallas import triton

    return {"compiler_params": triton.CompilerParams(num_warps=4, num_stages=1)}


def _kernel(
    kind: int, v_ref: Any, target_ref: Any, a_ref: Any, b_ref: Any, reward_ref: Any,
    budget_ref: Any, guess_ref: Any, scale_ref: Any, accuracy_ref: Any, value_ref: Any,
    gap_ref: Any, at_ref: Any, *, long: bool,
) -> None:  # fmt: skip
    arrays = jax_arrays()
    xp = arrays.xp
    fold = Fold(1) if long else LIST
    scale = scale_ref[0]

    def parts(ref: Any) -> list[Array]:
        return [ref[:, :]] if long else [ref[k, :] for k in range(ref.shape[0])]

    sign = xp.sign(scale_ref[0])
    per_entry = len(reward_ref.shape) == 2
    rewards = parts(reward_ref) if per_entry else [fold.wide(xp, reward_ref[:])]
    z = []
    for k, target in enumerate(parts(target_ref)):
        found = scale * v_ref[xp.maximum(target, 0)] + sign * rewards[k if per_entry else 0]
        z.append(xp.where(target < 0, NOTHING, found))
    a = parts(a_ref)
    if kind == POINT:
        value = fold.sum([a_i * z_i for a_i, z_i in zip(a, z, strict=True)])
        value_ref[:], gap_ref[:], at_ref[:] = value, value * 0.0, value * 0.0
        return
    b, guess, accuracy = parts(b_ref), guess_ref[:], accuracy_ref[0]
    if kind == L1:
        found = worst_l1(arrays, fold, z, a, b, budget_ref[:], guess, accuracy)
    else:
        found = worst_box(arrays, fold, z, a, b, guess, accuracy)
    value_ref[:], gap_ref[:], at_ref[:] = found
