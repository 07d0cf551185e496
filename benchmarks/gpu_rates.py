"""How fast a device draws, sweeps batches of models, and solves robust rows."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.gpu_counts import make_counts
from surefoot.data.conversions import ABSORBING
from surefoot.posterior.learned import LearnedPosterior
from surefoot.solvers.evaluation.draws import Draws
from surefoot.solvers.evaluation.rewards import rewards_of
from surefoot.solvers.gpu import robust_pallas as pallas
from surefoot.solvers.gpu.arrays import jax_arrays
from surefoot.solvers.gpu.batches import DrawnTile
from surefoot.solvers.gpu.device import doubles, the_gpu
from surefoot.solvers.gpu.engine import of_all
from surefoot.solvers.gpu.sweeps import sweep
from surefoot.solvers.gpu.variates import log_gammas, shares

REPEATS = 5
SWEEPS = 50
"""Sweeps of a program: an evaluation makes about as many."""
LEARNED = 10_000
"""States of a model whose prior is learned."""
SWEPT = ((3000, 256), (30_000, 128), (300_000, 32))
"""States and draws of the batches that are swept; nine successors."""
ROBUST = ((16, 10_000_000), (128, 1_000_000), (1024, 100_000))
"""Successors of a row, and rows."""


def fastest(run: Callable[..., Any], *given: Any) -> float:
    """Return the seconds of the fastest of some runs, after one that compiles."""
    import jax

    jax.block_until_ready(run(*given))  # type: ignore[no-untyped-call]
    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        jax.block_until_ready(run(*given))  # type: ignore[no-untyped-call]
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def print_rates() -> None:
    """Measure everything on the GPU."""
    with doubles():
        print(the_gpu().name)
        _copies()
        _draws()
        _learned_draws()
        _sweeps()
        _robust()


def _copies() -> None:
    import jax
    import jax.numpy as jnp

    big = jnp.ones(2**28)
    seconds = fastest(jax.jit(lambda x: x * 1.0000001), big)
    print(f"read and write {2 * big.nbytes / seconds / 1e12:.2f} TB/s", flush=True)


def _draws() -> None:
    import jax
    import jax.numpy as jnp

    arrays = jax_arrays()._replace(kernels=True)
    size = (8, 5, 30_000)
    shape = jnp.asarray(np.random.default_rng(0).poisson(2.5, size)[..., None] + 1.0)
    place = jnp.arange(shape.size, dtype=jnp.uint32).reshape(shape.shape)
    key = jnp.array([1, 2], dtype=jnp.uint32)
    for draws in (16, 64):
        draw = jnp.arange(draws, dtype=jnp.uint32)

        def rows(shape: Any, draw: Any = draw) -> Any:
            logs = log_gammas(arrays, key, place, draw, 0, shape, small=False)
            return shares(jnp, logs)

        seconds = fastest(jax.jit(rows), shape)
        print(
            f"draw {shape.size * draws / seconds / 1e9:.2f} G entries/s ({draws} draws)", flush=True
        )


def _learned_draws() -> None:
    """Draw all rows of a model with a learned prior, rewards and unseen successors included."""
    import jax

    posterior = LearnedPosterior(make_counts(LEARNED))
    mdp = posterior.to_mdp(discount=0.95, unseen=ABSORBING)
    rewards = rewards_of(mdp, posterior, objective="max")
    batches = of_all(Draws.take(posterior, mdp, rewards, 128, np.random.default_rng(0)))
    handle = the_gpu().handle
    numbers = jax.device_put(batches.numbers, handle)
    seconds = fastest(batches.make, handle, numbers, 0, 128)
    print(
        f"draw learned rows {128 * mdp.num_entries / seconds / 1e9:.2f} G entries/s, filling "
        f"included {128 * batches.tiling.padded / seconds / 1e9:.2f}", flush=True,
    )  # fmt: skip


def _sweeps() -> None:
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(0)
    arrays = jax_arrays()._replace(kernels=True)
    for rows, best in ((1, False), (5, True)):
        for states, draws in SWEPT:
            size = (9, rows, states, draws // (2 if best else 1))
            chance = jax.random.uniform(jax.random.key(0), size, dtype=jnp.float64)
            target = jnp.asarray(rng.integers(0, states, size[:3]).astype(np.int32))
            links = [(target, jnp.ones(size[1:3]))]
            tile = DrawnTile(chance, jnp.ones(size[1:]), jnp.ones(size[3]))

            def many(tile: Any, links: Any, v: Any, best: bool = best) -> Any:
                over = partial(sweep, arrays, (tile,), links, 0.9, best=best)
                return arrays.repeat(SWEEPS, over, v)

            seconds = fastest(jax.jit(many), tile, links, jnp.ones((states, size[3]))) / SWEEPS
            what = "best policy" if best else "one policy"
            print(
                f"sweep, {what}, {states:,} states, {size[3]} draws: "
                f"{chance.nbytes / seconds / 1e12:.2f} TB/s of probabilities", flush=True,
            )  # fmt: skip
            del chance, tile


def _robust() -> None:
    import jax
    import jax.numpy as jnp

    for length, rows in ROBUST:
        long = length > pallas.SHORT
        rows -= rows % 1024
        size = (rows, length) if long else (length, rows)
        p = jax.random.uniform(jax.random.key(0), size, dtype=jnp.float64)
        p = p / p.sum(axis=1 if long else 0, keepdims=True)
        w = jax.random.uniform(jax.random.key(1), size, dtype=jnp.float64) + 0.5
        target = jax.random.randint(jax.random.key(2), size, 0, rows // 5, dtype=jnp.int32)
        v = jax.random.normal(jax.random.key(3), (rows // 5,), dtype=jnp.float64)
        none = jnp.zeros(rows)
        for name, kind, a, b in (
            ("nominal", pallas.POINT, p, w),
            ("weighted L1", pallas.L1, p, w),
            ("box", pallas.BOX, 0.5 * p, jnp.minimum(1.5 * p, 1.0)),
        ):
            model = pallas.RowArrays(target, a, b, none, none + 0.3, jnp.array([1.0, 0.9]))
            run = jax.jit(partial(pallas.worst_rows, kind, long=long, interpret=False))
            exact, rough = ({"accuracy": jnp.array([one])} for one in (1e-7, 1e-2))
            found = run(v, model, (none, none), **exact)
            cold = fastest(partial(run, **exact), v, model, (none, none))
            first = fastest(partial(run, **rough), v, model, (none, none))
            warm = fastest(partial(run, **exact), v, model, (found.left, found.right))
            read = length * rows * (12 if kind == pallas.POINT else 20)
            print(
                f"{name}, {length * rows / 1e6:.0f}M entries, {length} a row: {1e3 * cold:.2f} ms, "
                f"as a first sweep {1e3 * first:.2f} ms, again {1e3 * warm:.2f} ms "
                f"({read / warm / 1e12:.2f} TB/s that must be read)",
                flush=True,
            )
