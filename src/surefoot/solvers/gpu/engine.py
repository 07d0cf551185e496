"""Returns in drawn models on a GPU: an engine beside the cores, checked by them."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from threading import Event
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.model.mdp import MDP
from surefoot.model.policies import RowPolicy
from surefoot.posterior.rows import RowLayout
from surefoot.solvers.evaluation.draws import Draws
from surefoot.solvers.gpu.batches import Batches, DrawnTile
from surefoot.solvers.gpu.device import Device, check_memory, doubles
from surefoot.solvers.gpu.philox import NAME
from surefoot.solvers.gpu.recheck import check_draw
from surefoot.solvers.gpu.sweeps import SPREADING, SWEEPING, Swept, bracket
from surefoot.solvers.gpu.tiles import lay_out

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_DRAWS, ROUND_DRAWS = 256, 16
"""Draws of a batch at most, and what their number is a multiple of."""
CACHE = 2**25
"""Bytes of values that stay in the device's cache, where they are looked up."""
ROOM = 2.0
"""Policies share a layout if it takes at most this many times their own entries."""
COPIES = 6
"""Arrays of the size of a batch that drawing takes at the same time."""
CHECKED = 4
"""Draws of every call that are made and evaluated again on the CPU; half of them for best returns,
which take all rows."""
MOST_SWEEPS, FADED = 20_000, 1e-13
"""Sweeps at most; after fewer, where discounting has left nothing of an error, no more are made."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DeviceEngine:
    """Makes draws on a device and evaluates there.

    Attributes
    ----------
    device
        Where.
    checked
        Draws of every call that are checked on the CPU; 0 where nothing is promised.
    stream
        The name of its random stream, for certificates.
    """

    device: Device
    checked: int = CHECKED
    stream: str = NAME

    def policy_ends(self, draws: Draws, policy: RowPolicy, tolerance: float) -> Floats:
        """Return brackets of a policy's return."""
        return self.some_ends(of_policy(draws, policy), tolerance, best=False).ends

    def best_ends(self, draws: Draws, start: Ints, tolerance: float) -> Floats:  # noqa: ARG002
        """Return brackets of the best return of any policy, by value iteration."""
        return self.some_ends(of_all(draws), tolerance, best=True).ends

    def holds_twice(self, mdp: MDP) -> bool:
        """Tell whether two of the largest batches of a model fit at the same time."""
        return 2 * 8 * COPIES * mdp.num_entries * MOST_DRAWS <= self.device.memory

    def spreads(self, draws: Draws, value: Floats) -> tuple[Floats, Floats]:
        """Return how far drawn rows lie from the mean, and how much their values scatter.

        ``(R,)`` each: the mean L1 distance, and the standard deviation of ``r + discount P v``.
        """
        with doubles():
            return _Call(self.device, of_all(draws), best=True).spreads(value)

    def prepare(
        self, draws: Draws, policy: RowPolicy, learned: Event
    ) -> Iterator[Callable[[], Any]]:
        """Yield what compiles each program for such draws, of policies like this one and of all.

        They may be compiled side by side, and before the draws are known: shapes are enough. Those
        that draw wait until ``learned`` is set: how much a posterior learns is part of their shape.
        """
        yield from _Call(self.device, of_policy(draws, policy), best=False).prepare(learned)
        yield from _Call(self.device, of_all(draws), best=True).prepare(learned)

    def some_ends(
        self, batches: Batches, tolerance: float, part: "DrawRange | None" = None, *, best: bool
    ) -> "SomeEnds":
        """Return brackets of a policy's return, or of the best one, in some draws; None: in all."""
        with doubles():
            job = _Call(self.device, batches, best=best)
            checked = -(-self.checked // 2) if best else self.checked
            return job.run(tolerance, checked, part or DrawRange(0, batches.draws.count, None))


class DrawRange(NamedTuple):
    """Draws of a call, from the first of a batch on: ``last`` 0 stands for that batch alone.

    ``start`` are the values that batches start from. Without them the first one starts from 0, and
    all others from its mean values: so it does not matter who evaluates which.
    """

    first: int
    last: int
    start: Floats | None


class SomeEnds(NamedTuple):
    """Brackets of some draws, what further batches start from, and how many draws these have."""

    ends: Floats
    start: Floats
    size: int


class _Call:
    """One call of the engine: what stays on the device from batch to batch."""

    def __init__(self, device: Device, batches: Batches, *, best: bool) -> None:
        import jax

        self.device, self.batches, self.best = device, batches, best
        self.mdp, self.tiling = batches.draws.mdp, batches.tiling
        self.discount = self.mdp.discount
        self.initial = (self.mdp.initial / self.mdp.initial.sum())[self.tiling.order]
        self.links = [(tile.target, tile.share) for tile in self.tiling.tiles]
        self.size = self._batch_size()

        self.handle = device.handle
        self.how = best, self.handle.platform != "cpu"
        self.put = partial(jax.device_put, device=self.handle)

    @cached_property
    def numbers(self) -> Any:
        """What drawing needs, on the device."""
        return self.put(self.batches.numbers)

    @cached_property
    def there(self) -> Any:
        """What sweeping needs, on the device."""
        return self.put(self._here)

    @property
    def _here(self) -> tuple[Any, np.float64, Floats]:
        return self.links, np.float64(self.discount), self.initial

    def prepare(self, learned: Event) -> Iterator[Callable[[], Any]]:
        """Yield what compiles each of the programs that a call runs."""
        import jax

        def there(*shape: int) -> Any:
            return jax.ShapeDtypeStruct(shape, np.dtype(np.float64))  # type: ignore[no-untyped-call]

        tiles, n = self.tiling.tiles, self.size
        drawn = tuple(
            DrawnTile(there(*t.entry.shape, n), there(*t.row.shape, n), there(n)) for t in tiles
        )
        means = [there(*t.entry.shape) for t in tiles]
        yield lambda: learned.wait() and self.batches.prepare(self.handle, n)
        until = np.float64(0.0), _most_sweeps(self.discount)
        here = self._here
        yield partial(SWEEPING.prepare, self.handle, *self.how, drawn, *here, self.initial, *until)
        if self.best:
            yield partial(SPREADING.prepare, self.handle, drawn, *here[:2], means, self.initial)

    def _batch_size(self) -> int:
        """Return how many draws are made together: what fits, and what the cache holds."""
        each = 8 * COPIES * self.tiling.padded
        check_memory(self.device, each * ROUND_DRAWS, f"a batch of {ROUND_DRAWS} draws")
        fits = self.device.memory // each
        cached = max(2 * ROUND_DRAWS, CACHE // (8 * self.mdp.num_states))
        most = min(fits, cached, MOST_DRAWS, self.batches.draws.count + ROUND_DRAWS - 1)
        return int(max(ROUND_DRAWS, most - most % ROUND_DRAWS))

    def run(self, tolerance: float, checked: int, part: DrawRange) -> SomeEnds:
        """Return the brackets of some draws, a few of them checked."""
        count = self.batches.draws.count
        part = part._replace(last=min(count, part.last or part.first + self.size))
        ends: list[Floats] = []
        start: Any = part.start
        every = -(-count // checked) if checked else count + 1
        check = partial(check_draw, self.batches, self.links, best=self.best)
        with ThreadPoolExecutor(max(1, checked)) as pool:  # while the device goes on
            checks = []
            for first, made, drawn, begun in self._made(part, tolerance):
                start = begun
                last = min(first + self.size, part.last)
                largest = np.max([np.asarray(tile.largest) for tile in drawn], axis=0)
                found = bracket(made, self.discount, self.tiling.longest, largest)
                ends.append(found[: last - first])
                for which in range(-(-first // every) * every, last if checked else first, every):
                    values = np.asarray(made.values[:, which - first : which - first + 1])
                    checks.append(pool.submit(check, which, values, found[which - first]))
            for one in checks:
                one.result()
        return SomeEnds(np.concatenate(ends), np.asarray(start), self.size)

    def spreads(self, value: Floats) -> tuple[Floats, Floats]:
        """Return what `DeviceEngine.spreads` does, from one batch."""
        drawn = self.batches.make(self.handle, self.numbers, 0, self.size)
        mean = self.batches.draws.batch.posterior.mean()
        means = [np.where(t.entry < 0, 0.0, mean[t.entry]) for t in self.tiling.tiles]
        found = SPREADING(
            self.handle, drawn, *self.there[:2], self.put(means),
            self.put(value[self.tiling.order]),
        )  # fmt: skip
        distance, scatter = np.zeros((2, self.mdp.num_rows))
        for tile, (near, far) in zip(self.tiling.tiles, found, strict=True):
            there = tile.row >= 0
            distance[tile.row[there]] = np.asarray(near)[there]
            scatter[tile.row[there]] = np.asarray(far)[there]
        return distance, scatter

    def _made(self, part: DrawRange, tolerance: float) -> Iterator[tuple[int, Swept, Any, Any]]:
        """Yield batches, evaluated, and what further ones start from."""
        width = np.float64(tolerance * (1.0 - self.discount))
        most = _most_sweeps(self.discount)
        known = part.start is not None
        start: Any = self.put(part.start if known else np.zeros(len(self.initial)))
        for first in range(part.first, part.last, self.size):
            drawn = self.batches.make(self.handle, self.numbers, first, first + self.size)
            made, mean = SWEEPING(self.handle, *self.how, drawn, *self.there, start, width, most)
            start, known = (start if known else mean), True
            yield first, made, drawn, start


def of_policy(draws: Draws, policy: RowPolicy) -> Batches:
    """Lay out the rows that a policy plays."""
    mdp, rows = draws.mdp, policy.rows.astype(np.int64)
    entries = RowLayout.of(mdp).entries_of(rows)
    row_start = np.concatenate(([0], np.cumsum(np.diff(mdp.row_start)[rows])))
    tiling = lay_out(
        policy.start.astype(np.int64), row_start, mdp.successor[entries], policy.share,
        _common_widths(mdp, rows, policy.start),
    )  # fmt: skip
    return Batches.of(draws, tiling, rows, entries)


def of_all(draws: Draws) -> Batches:
    """Lay out all rows."""
    mdp = draws.mdp
    tiling = lay_out(mdp.state_start, mdp.row_start, mdp.successor, None)
    return Batches.of(draws, tiling, np.arange(mdp.num_rows), np.arange(mdp.num_entries))


def _common_widths(mdp: MDP, rows: Ints, start: NDArray[np.integer[Any]]) -> Ints | None:
    """Return the widest row of every state, so that all policies lie alike and compile once.

    None where that takes much more room than the rows that are played.
    """
    lengths = np.diff(mdp.row_start)
    widest = np.maximum.reduceat(lengths, mdp.state_start[:-1])
    roomy = (widest * np.diff(start)).sum() > ROOM * lengths[rows].sum()
    return None if roomy else widest


def _most_sweeps(discount: float) -> np.int64:
    if discount <= 0.0:
        return np.int64(2)
    return np.int64(min(MOST_SWEEPS, 50 + np.log(FADED) / np.log(discount)))
