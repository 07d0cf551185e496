"""Dirichlet draws against NumPy's own gamma variates: ``python benchmarks/sampling.py``.

Our time includes the keyed streams and the normalisation of every row; NumPy's is the bare
``Generator.standard_gamma`` into the same array. One thread each, the best of several runs.
"""

import time
from collections.abc import Callable

import numpy as np

from surefoot.data.counts import Counts
from surefoot.posterior.dirichlet import DirichletPosterior

DRAWS, ENTRIES, RUNS = 2000, 1200, 15
ALLOWED = 1.3


def posterior(size: int, samples: float, prior: float) -> DirichletPosterior:
    """Return rows of ``size`` successors with about ``samples`` transitions each."""
    rng = np.random.default_rng(size)
    rows = ENTRIES // size
    states = max(rows, size)
    support = np.zeros((states, 1, states), dtype=bool)
    support[:, 0, :1] = True
    support[:rows, 0, :size] = True
    counts = np.where(support, rng.poisson(samples / size, size=support.shape), 0)
    return DirichletPosterior(Counts.from_arrays(counts, support=support), prior=prior)


def best(*actions: Callable[[], object]) -> list[float]:
    """Return the shortest time of each; taken in turns, so that other work hits them alike."""
    times: list[list[float]] = [[] for _ in actions]
    for _ in range(RUNS):
        for action, taken in zip(actions, times, strict=True):
            started = time.perf_counter()
            action()
            taken.append(time.perf_counter() - started)
    return [min(taken) for taken in times]


def main() -> None:
    """Time every case and print one line each."""
    print("successors  samples  prior   ours M/s  NumPy M/s  ours/NumPy time")
    slowest = 0.0
    for size in (2, 3, 20, 200):
        for samples, prior in ((20.0, 1.0), (20.0, 1.0 / size), (500.0, 1.0)):
            case = posterior(size, samples, prior)
            rows = np.flatnonzero(np.diff(case.row_start) > 1)
            shape = case.shape[case.layout.entries_of(rows)]
            key = (np.uint64(1), np.uint64(2))
            out = np.empty((DRAWS, len(shape)))
            rng = np.random.default_rng(0)
            variates = DRAWS * len(shape)

            def ours(case=case, key=key, rows=rows) -> None:  # type: ignore[no-untyped-def]
                case.draws(key, 0, DRAWS, rows, threads=1)

            def numpy(rng=rng, shape=shape, out=out) -> None:  # type: ignore[no-untyped-def]
                rng.standard_gamma(shape, size=out.shape, out=out)

            ours()
            mine, theirs = best(ours, numpy)
            slowest = max(slowest, mine / theirs)
            print(
                f"{size:10d} {samples:8.0f} {prior:6.3f} {variates / mine / 1e6:10.1f} "
                f"{variates / theirs / 1e6:10.1f} {mine / theirs:12.2f}"
            )
    print(f"slowest case: {slowest:.2f} times NumPy's own gammas (allowed {ALLOWED})")


if __name__ == "__main__":
    main()
