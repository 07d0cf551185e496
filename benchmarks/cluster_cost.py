"""What a cluster costs beside one process: ``python -m benchmarks.cluster_cost``.

Workers on this machine (``--cluster local``), so that every figure is a lower bound on what a
network adds. Least of several rounds; the figures stand in docs/scale.md.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from surefoot import DirichletPosterior, certify, garnet
from surefoot._cluster_argument import working_on
from surefoot._workers import all_parts
from surefoot.solvers.dual_kernels import L1
from surefoot.solvers.problem import locked, ones
from surefoot.solvers.row_kernels import Problem
from surefoot.solvers.sharded import solve_sharded

DISCOUNT = 0.95


@dataclass(frozen=True, kw_only=True)
class RandomRows:
    """Rows of a random model, made wherever they are to lie: nobody holds all of them."""

    states: int
    actions: int
    successors: int
    budget: float = 0.1

    def __call__(self, first: int, last: int) -> Problem:
        """Return the rows of some states."""
        rng = np.random.default_rng([first, last])
        count = last - first
        rows, width = count * self.actions, self.successors
        share = rng.random((rows, width)) + 0.1
        share /= share.sum(axis=1, keepdims=True)
        edge = np.arange(count + 1, dtype=np.uint64) * np.uint64(self.actions)
        none = np.empty(0)
        return Problem(
            first=edge[:-1], last=edge[1:],
            row_start=np.arange(rows + 1, dtype=np.uint64) * np.uint64(width),
            successor=rng.integers(0, self.states, rows * width).astype(np.uint32),
            probability=locked(share.ravel()), reward=locked(rng.random(rows)),
            reward_per_entry=False, discount=DISCOUNT, sign=1.0, family=L1,
            uncertain=np.full(rows, width > 1), budget=np.full(rows, self.budget),
            weights=ones(width), shared=True, lower=none, upper=none, longest=width,
            nominal_caps=True,
        )  # fmt: skip


def least(call: Callable[[], object], rounds: int) -> float:
    """Return the seconds of the fastest of some rounds."""
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        call()
        found.append(time.perf_counter() - began)
    return min(found)


def seconds_per_sweep(rows: RandomRows, blocks: int, sweeps: int) -> float:
    """Return the seconds of the fastest sweep of a sharded solve, the first left out."""
    at: list[float] = []
    edges = np.linspace(0, rows.states, blocks + 1).astype(int).tolist()
    solve_sharded(
        rows, edges, discount=DISCOUNT, max_iterations=sweeps,
        told=lambda _, __: at.append(time.perf_counter()),
    )  # fmt: skip
    return float(np.diff(at).min())


def certified(states: int, draws: int) -> Callable[[], object]:
    """Return a job: a certificate of one policy, the promise alone."""
    rng = np.random.default_rng(0)
    posterior = DirichletPosterior(
        garnet(states, 3, 8, discount=DISCOUNT, rng=rng).simulate(5, rng)
    )
    mdp = posterior.counts.to_mdp(discount=DISCOUNT, prior=1.0)
    policy = mdp.row_action[mdp.state_start[:-1]]
    return lambda: certify(
        policy, posterior, mdp, draws=draws, upper=False, rng=np.random.default_rng(1)
    )


def measure(states: int, draws: int, rounds: int) -> list[tuple[str, float, float | None]]:
    """Return (what, seconds in one process, seconds on a local cluster)."""
    large = RandomRows(states=states, actions=5, successors=8)
    thin = RandomRows(states=10 * states, actions=1, successors=1)
    job = certified(1000, draws)
    job()  # compiled here
    payload = (np.ones(12_500_000),)  # 100 MB
    parts = [(k,) for k in range(300)]

    def empty() -> object:
        return all_parts(pow, (2,), parts)

    def shared() -> object:
        return all_parts(len, payload, [()])

    def figures() -> list[float]:
        return [
            least(empty, rounds) / len(parts),
            least(shared, rounds),
            seconds_per_sweep(large, 1, 8),
            seconds_per_sweep(large, 2, 8),
            seconds_per_sweep(thin, 2, 8),
            least(job, rounds),
        ]

    alone = figures()
    began = time.perf_counter()
    with working_on("local"):
        joined = time.perf_counter() - began
        empty()  # workers have started
        job()
        shared_figures = figures()
    names = [
        "an empty part",
        "handing over 100 MB",
        f"a robust sweep of {40 * states:,} entries, 1 block",
        f"a robust sweep of {40 * states:,} entries, 2 blocks",
        f"a sweep of {10 * states:,} states with 1 entry each, 2 blocks",
        f"a promise on {draws:,} draws of 1,000 states",
    ]
    lines: list[tuple[str, float, float | None]] = [("starting Ray and its workers", joined, None)]
    return lines + list(zip(names, alone, shared_figures, strict=True))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster_cost")
    parser.add_argument("--states", type=int, default=100_000)
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    print("| | one process | local cluster |\n|---|---:|---:|")
    for name, alone, other in measure(given.states, given.draws, given.rounds):
        shown = ["" if x is None else f"{1e3 * x:,.1f} ms" for x in (alone, other)]
        print(f"| {name} | {' | '.join(shown)} |")


if __name__ == "__main__":
    main()
