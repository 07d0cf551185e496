"""The rows of a robust sweep as one kernel: each is read once and searched in registers.

Short rows lie ``[successor, row]``, one thread a row; long ones ``[row, successor]``, some threads
a row. Written in Pallas, so that the tests can run the very kernel on a CPU (``interpret``).
"""

from functools import partial
from typing import Any, NamedTuple

from surefoot.solvers.gpu.arrays import Array, jax_arrays
from surefoot.solvers.gpu.kernel_options import kernel_options
from surefoot.solvers.gpu.robust_rows import LIST, NOTHING, Fold, Worst, worst_box, worst_l1

SHORT = 24
"""Longest row that one thread holds."""
SHORT_ROWS, TILE = 32, 512
"""Rows of a block of short ones; entries of a block of long ones."""
PARTS, WIDEST = 4, 128
"""Long rows are read in this many parts, of 16 entries at least and so many at most: each thread
joins them entry by entry for itself before threads ask each other."""
PER_WARP = 1024
"""Entries of a block for each group of 32 threads. Rows of a block search until the last of them
has found its place: small blocks wait less. Groups that share a row wait for each other in every
step: even where a row of 1024 takes more registers than a thread has, one group is faster."""
POINT, L1, BOX = 0, 1, 2
"""What nature may choose from."""


def rows_per_block(length: int) -> int:
    """Return how many rows of a length a block has: a power of two, as kernels want."""
    return SHORT_ROWS if length <= SHORT else max(1, TILE // length)


class RowArrays(NamedTuple):
    """Rows as the kernel reads them; they fill whole blocks.

    ``target``, ``a`` and ``b`` are ``[successor, row]``, or ``[row, successor]`` for long rows;
    ``reward`` is the same or one number a row. ``a`` are probabilities or lower bounds, ``b``
    weights or upper bounds; a target of -1 is none. ``scale`` is ``[sign, sign * discount]``.
    """

    target: Array
    a: Array
    b: Array
    reward: Array
    budget: Array
    scale: Array


def worst_rows(
    kind: int, v: Array, model: RowArrays, guess: tuple[Array, Array], accuracy: Array, *,
    long: bool, interpret: bool,
) -> Worst:  # fmt: skip
    """Return the worst case of ``sign * (reward + discount * v)`` in every row."""
    if kind == POINT:
        return _points(v, model, long=long)
    import jax
    import jax.experimental.pallas as pl

    length = model.target.shape[1 if long else 0]
    rows = guess[0].shape[0]
    block = rows_per_block(length)
    if long:
        entries = pl.BlockSpec((block, length), lambda i: (i, 0))
    else:
        entries = pl.BlockSpec((length, block), lambda i: (0, i))
    each = pl.BlockSpec((block,), lambda i: (i,))
    whole = pl.BlockSpec(v.shape, lambda _: (0,))
    two, one = pl.BlockSpec((2,), lambda _: (0,)), pl.BlockSpec((1,), lambda _: (0,))
    reward = entries if model.reward.ndim == 2 else each
    shape = jax.ShapeDtypeStruct((rows,), v.dtype)  # type: ignore[no-untyped-call]
    call = pl.pallas_call(
        partial(_kernel, kind, long=long),
        out_shape=(shape,) * 4,
        grid=(rows // block,),
        in_specs=[whole, entries, entries, entries, reward, each, two, each, each, one],
        out_specs=(each,) * 4,
        **kernel_options(
            interpret=interpret, warps=max(1, block * length // PER_WARP) if long else 1
        ),
    )
    return Worst(*call(v, *model, *guess, accuracy))


def _points(v: Array, model: RowArrays, *, long: bool) -> Worst:
    """Return plain expectations: nothing is searched, and the compiler's own kernel is as fast."""
    axis = 1 if long else 0
    reward = model.reward
    if reward.ndim == 1:
        reward = reward[:, None] if long else reward[None]
    z = model.scale[1] * v[model.target] + model.scale[0] * reward
    value = (model.a * z).sum(axis=axis)
    return Worst(value, value * 0.0, value * 0.0, value * 0.0)


def _kernel(
    kind: int, v_ref: Any, target_ref: Any, a_ref: Any, b_ref: Any, reward_ref: Any,
    budget_ref: Any, scale_ref: Any, first_ref: Any, second_ref: Any, accuracy_ref: Any,
    *out: Any, long: bool,
) -> None:  # fmt: skip
    arrays = jax_arrays()
    xp = arrays.xp
    fold = Fold(1) if long else LIST
    sign, scale = scale_ref[0], scale_ref[1]

    def parts(ref: Any) -> list[Array]:
        if not long:
            return [ref[k, :] for k in range(ref.shape[0])]
        length = ref.shape[1]
        width = min(length, WIDEST, max(16, length // PARTS))
        return [ref[:, k : k + width] for k in range(0, length, width)]

    per_entry = len(reward_ref.shape) == 2
    rewards = parts(reward_ref) if per_entry else [fold.wide(xp, reward_ref[:])]
    z = []
    for k, target in enumerate(parts(target_ref)):
        found = scale * v_ref[xp.maximum(target, 0)] + sign * rewards[k if per_entry else 0]
        z.append(xp.where(target < 0, NOTHING, found))
    a = parts(a_ref)
    if kind == L1:
        guess = (first_ref[:], second_ref[:])
        made = worst_l1(arrays, fold, z, a, parts(b_ref), budget_ref[:], guess, accuracy_ref[0])
    else:
        guess = (first_ref[:], second_ref[:])
        made = worst_box(arrays, fold, z, a, parts(b_ref), guess, accuracy_ref[0])
    for ref, part in zip(out, made, strict=True):
        ref[:] = part
