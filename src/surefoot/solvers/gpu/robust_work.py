"""Robust value iteration on a device: sweeps there, brackets here."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.model.policies import RowPolicy
from surefoot.solvers import dual_kernels as kinds
from surefoot.solvers.bounds import Bracket, SweepChange, bracket, rounding_allowance
from surefoot.solvers.gpu.arrays import NUMPY, Array
from surefoot.solvers.gpu.device import Device, check_memory, doubles
from surefoot.solvers.gpu.programs import Program
from surefoot.solvers.gpu.robust_pallas import (
    BOX,
    L1,
    POINT,
    SHORT,
    RowArrays,
    rows_per_block,
    worst_rows,
)
from surefoot.solvers.gpu.robust_rows import NOTHING, Fold, worst_box, worst_l1
from surefoot.solvers.gpu.tiles import Tile, Tiling, lay_out
from surefoot.solvers.row_kernels import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FAMILIES = {kinds.NOMINAL: POINT, kinds.L1: L1, kinds.BOX: BOX}
"""Sets that a device knows."""
INNER_SHARE = 0.01
"""How exactly rows are solved, as a share of the spread of changes in the last sweep."""
CHECKED = 64
"""Rows whose worst case is computed again on the CPU."""
AHEAD = 9
"""Sweeps of nominal rows from one look at the changes to the next: a look takes longer."""
AGREEMENT = 1e-9
ENTRY_BYTES = 40
"""Memory of an entry on the device, with what sweeps take."""


class Laid(NamedTuple):
    """A tile of rows on the device.

    ``share`` is ``[row, state]``, ``rows`` which rows of the model they are, in the same order.
    """

    model: RowArrays
    share: Array
    shape: tuple[int, int]
    long: bool


class DeviceWork:
    """What changes during a solve on a device: the part of a `Workspace` that sweeps need."""

    def __init__(
        self, device: Device, problem: Problem, policy: RowPolicy | None, limit: int = 1
    ) -> None:
        self.problem, self.device, self.policy, self.limit = problem, device, policy, limit
        self.fixed = policy is not None
        self.kind = FAMILIES[problem.family]
        check_memory(device, ENTRY_BYTES * len(problem.successor), "this model")
        if policy is None:
            offered = np.concatenate((problem.first, problem.last[-1:])).astype(np.int64)
            self.rows, share = np.arange(offered[-1]), None
        else:
            offered, self.rows = policy.start.astype(np.int64), policy.rows.astype(np.int64)
            share = policy.share
        begin = problem.row_start.astype(np.int64)
        lengths = np.diff(begin)[self.rows]
        start = np.concatenate(([0], np.cumsum(lengths)))
        self.entries = np.repeat(begin[self.rows] - start[:-1], lengths) + np.arange(start[-1])
        self.tiling = lay_out(
            offered, start, problem.successor[self.entries].astype(np.int64), share
        )
        self.largest_reward = float(np.abs(problem.reward).max())
        mixed = int(np.diff(policy.start).max()) if policy is not None else 1
        self.terms = problem.longest + mixed
        self.accuracy = INNER_SHARE * self.largest_reward
        self.sweeps = 0
        self.gap = 0.0  # what the searches of the last sweep left open, at most
        with doubles():
            self._send()

    def _send(self) -> None:
        import jax

        self.laid = [_laid(self, tile) for tile in self.tiling.tiles]
        put = partial(jax.device_put, device=self.device.handle)
        self.models = put([laid.model for laid in self.laid])
        self.shares = put([laid.share for laid in self.laid])
        sizes = [laid.model.budget.shape[0] for laid in self.laid]
        self.put = put
        self.unguessed = put([(np.zeros(size), np.zeros(size)) for size in sizes])
        self.guess = self.unguessed
        self.v = put(np.zeros(len(self.tiling.order)))
        self.lifted = self.v
        self.picked: list[Any] = []
        self.shapes = tuple((laid.shape, laid.long) for laid in self.laid)

    def _arguments(self) -> tuple[Any, ...]:
        """Return what the program of a sweep is given."""
        handle = self.device.handle
        how = handle, self.kind, self.shapes, self.problem.sign, not self.fixed
        interpret = handle.platform == "cpu"
        accuracy = np.array([self.accuracy])
        ahead = np.int64(max(0, min(AHEAD if self.sweeps else 0, self.limit - self.sweeps - 1)))
        return *how, interpret, self.v, self.models, self.shares, self.guess, accuracy, ahead

    def sweep(self) -> tuple[SweepChange, Bracket]:
        """Compute ``Lv`` and the bracket it gives; ``v`` moves on where nothing is searched."""
        given = self._arguments()
        self.v, self.lifted, self.picked, self.guess, told = SWEEP(*given)
        least, most, gap, size = np.asarray(told).tolist()
        self.gap = gap
        change = SweepChange(least, most, gap, len(self.rows))
        allowance = rounding_allowance(
            self.terms, self.problem.discount, self.largest_reward, np.array([size])
        )
        self.accuracy = INNER_SHARE * (most - least)
        self.sweeps += 1 + (int(given[-1]) if self.kind == POINT else 0)
        return change, bracket(self.problem, change, allowance)

    def start_again(self, models: Any, shares: Any, v: Any) -> None:
        """Take other numbers for the same rows, and begin from other values."""
        self.models, self.shares, self.v, self.guess = models, shares, v, self.unguessed
        self.accuracy = INNER_SHARE * self.largest_reward

    def accept_image(self, _largest_rise: float) -> None:
        """Let the image be the next ``v``."""
        self.v = self.lifted

    def in_order(self, values: Any) -> Floats:
        """Return numbers of states in the order of the model."""
        found = np.empty(len(self.tiling.order))
        found[self.tiling.order] = np.asarray(values)
        return found

    @property
    def image(self) -> Floats:
        """``Lv``, in the order of the states."""
        return self.in_order(self.lifted)

    @property
    def choice(self) -> Ints:
        """The row that every state plays."""
        chosen = np.empty(len(self.tiling.order), dtype=np.int64)
        for tile, picked in zip(self.tiling.tiles, self.picked, strict=True):
            which = np.asarray(picked)
            chosen[tile.states] = self.rows[tile.row[which, np.arange(len(which))]]
        return chosen

    def recheck(self) -> None:
        """Compute some states of the last image again by NumPy, or raise an error."""
        v, image = np.asarray(self.v), np.asarray(self.lifted)
        begin = 0
        for tile, laid in zip(self.tiling.tiles, self.laid, strict=True):
            size = len(tile.states)
            some = np.unique(np.linspace(0, size - 1, min(size, CHECKED)).astype(np.int64))
            mine = _again(self.kind, laid, v, some, self.problem.sign, best=not self.fixed)
            theirs = image[begin + some]
            reach = AGREEMENT * max(1e-300, self.largest_reward + float(np.abs(image).max()))
            reach += self.gap  # rows were solved that far
            bad = np.flatnonzero(~(np.abs(mine - theirs) <= reach))
            if len(bad):
                raise RuntimeError(
                    f"the device and the CPU disagree about state {tile.states[some[bad[0]]]}: "
                    f"{theirs[bad[0]]!r} by the device, {mine[bad[0]]!r} by the CPU. Use "
                    "device='cpu', and please report this."
                )
            begin += size


def prepare(device: Device, tiling: Tiling, family: int, *, per_entry: bool) -> None:
    """Compile the sweep of a worst case over all rows of a model, from their shapes."""
    import jax

    def there(*shape: int, kind: Any = np.float64) -> Any:
        return jax.ShapeDtypeStruct(shape, np.dtype(kind))  # type: ignore[no-untyped-call]

    models, shares, guess, shapes = [], [], [], []
    for tile in tiling.tiles:
        width, total, long = _filled(tile)
        size = (total, width) if long else (width, total)
        reward = there(*size) if per_entry else there(total)
        entries = there(*size)
        models.append(
            RowArrays(there(*size, kind=np.int32), entries, entries, reward, there(total), there(2))
        )
        shares.append(there(*tile.row.shape))
        guess.append((there(total), there(total)))
        shapes.append((tile.row.shape, long))
    SWEEP.prepare(
        device.handle, FAMILIES[family], tuple(shapes), 1.0, True,
        device.handle.platform == "cpu", there(len(tiling.order)), models, shares, guess,
        there(1), np.int64(0),
    )  # fmt: skip


def _filled(tile: Tile) -> tuple[int, int, bool]:
    """Return how wide the rows of a tile are, how many, filled up to whole blocks; if long ones."""
    width, rows, states = tile.entry.shape
    long = width > SHORT
    if long:
        width = 1 << (width - 1).bit_length()
    block = rows_per_block(width)
    return width, -(-rows * states // block) * block, long


def _laid(work: DeviceWork, tile: Tile) -> Laid:
    """Lay out the rows of a tile, filled up to whole blocks."""
    problem = work.problem
    _, rows, states = tile.entry.shape
    width, total, long = _filled(tile)
    none = tile.entry.reshape(len(tile.entry), -1) < 0
    entry = np.where(none, 0, work.entries[tile.entry.reshape(none.shape)])
    row = np.where(tile.row.ravel() < 0, 0, work.rows[tile.row.ravel()])

    def entries(values: Any, filling: Any) -> Any:
        out = np.full((width, total), filling, dtype=values.dtype)
        out[: len(none), : none.shape[1]] = np.where(none, filling, values)
        return np.ascontiguousarray(out.T) if long else out

    def each(values: Any) -> Any:
        return np.concatenate((values, np.zeros(total - len(values))))

    a, b, budget = problem.probability[entry], np.ones(entry.shape), np.zeros(len(row))
    if work.kind == L1:
        weights = problem.weights
        b = b if problem.shared else weights[entry]
        budget = np.where(problem.uncertain[row], problem.budget[row], 0.0)
    elif work.kind == BOX:
        a, b = problem.lower[entry], problem.upper[entry]
    per_entry = problem.reward_per_entry
    reward = entries(problem.reward[entry], 0.0) if per_entry else each(problem.reward[row])
    target = entries(tile.target.reshape(none.shape), np.int32(-1))
    if work.kind != POINT:
        # Filled-up rows have one successor: theirs is a search like any other.
        lone = np.arange(total) >= none.shape[1]
        lone[: none.shape[1]] = none.all(axis=0)
        at = (lone, 0) if long else (0, lone)
        target[at] = 0
    scale = np.array([problem.sign, problem.sign * problem.discount])
    model = RowArrays(
        target, entries(a, 0.0), entries(b, 0.0 if work.kind == BOX else 1.0), reward,
        each(budget), scale,
    )  # fmt: skip
    if work.kind != POINT:
        model.a[at] = 1.0
        model.b[at] = 1.0
    share = np.where(tile.row < 0, np.nan, tile.share)
    return Laid(model, share, (rows, states), long)


def _sweep(
    kind: int, shapes: Any, sign: float, best: bool, interpret: bool, v: Array, models: Any,
    shares: Any, guess: Any, accuracy: Array, ahead: Array,
) -> Any:  # fmt: skip
    """Return ``v``, ``Lv``, the rows chosen, where searches ended, and what the bracket needs.

    Nominal rows are swept ``ahead`` times before.
    """
    import jax
    import jax.numpy as jnp

    def over(v: Array) -> Any:
        return _image(kind, shapes, sign, best, interpret, v, models, shares, guess, accuracy)

    if kind == POINT:
        v = jax.lax.fori_loop(0, ahead, lambda _, now: over(now)[0], v)
    image, picked, ended, gap = over(v)
    change = image - v
    told = jnp.stack((change.min(), change.max(), gap, jnp.abs(v).max()))
    return v, image, picked, ended, told


def _image(
    kind: int, shapes: Any, sign: float, best: bool, interpret: bool, v: Array, models: Any,
    shares: Any, guess: Any, accuracy: Array,
) -> Any:  # fmt: skip
    """Return ``Lv``, the rows chosen, where searches ended, and the largest gap they left."""
    import jax.numpy as jnp

    parts, picked, ended, gaps = [], [], [], []
    for (shape, long), model, share, first in zip(shapes, models, shares, guess, strict=True):
        found = worst_rows(kind, v, model, first, accuracy, long=long, interpret=interpret)
        size = shape[0] * shape[1]
        value, gap = ((sign * found.value)[:size].reshape(shape), found.gap[:size].reshape(shape))
        there = ~jnp.isnan(share)
        if best:
            value = jnp.where(there, value, -jnp.inf)
            parts.append(value.max(axis=0))
            picked.append(value.argmax(axis=0))
        else:
            part = jnp.where(there, share, 0.0)
            parts.append((part * jnp.where(part > 0.0, value, 0.0)).sum(axis=0))
            picked.append(jnp.zeros(shape[1], dtype=jnp.int32))
        gaps.append(jnp.where(there, gap, 0.0).max())
        ended.append((found.left, found.right))
    return jnp.concatenate(parts), picked, ended, jnp.stack(gaps).max()


SWEEP = Program(_sweep, fixed=5)
"""A sweep on a device."""


def _again(kind: int, laid: Laid, v: Floats, some: Ints, sign: float, *, best: bool) -> Floats:
    """Return ``Lv`` of some states of a tile, by NumPy."""
    rows, states = laid.shape
    which = (np.arange(rows)[:, None] * states + some).ravel()

    def pick(array: Any) -> Any:
        return array[which].T if laid.long else array[:, which]

    model = laid.model
    target = pick(model.target)
    reward = pick(model.reward) if model.reward.ndim == 2 else model.reward[which]
    z = np.where(target < 0, NOTHING, model.scale[1] * v[target] + model.scale[0] * reward)
    a, b, fold = [pick(model.a)], [pick(model.b)], Fold(0)
    start, exact = (np.zeros(len(which)),) * 2, np.zeros(len(which))
    with np.errstate(all="ignore"):
        if kind == POINT:
            value = (a[0] * z).sum(axis=0)
        elif kind == L1:
            value = worst_l1(NUMPY, fold, [z], a, b, model.budget[which], start, exact).value
        else:
            value = worst_box(NUMPY, fold, [z], a, b, start, exact).value
    value = (sign * value).reshape(rows, len(some))
    share = laid.share[:, some]
    if best:
        return np.asarray(np.where(np.isnan(share), -np.inf, value).max(axis=0))
    part = np.nan_to_num(share)
    return np.asarray((part * np.where(part > 0, value, 0.0)).sum(axis=0))
