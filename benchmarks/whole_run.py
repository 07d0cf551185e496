"""A whole run by stage: ``python -m benchmarks.whole_run [--states N]``.

Writes a log of a random model (5 actions, 8 successors and 20 tries a pair), goes from it to a
finished run folder, twice, in processes of their own, and prints wall-clock and processor seconds
of every stage of the second (the first one may compile kernels), how true its estimates of the time
left were, and the most memory it held.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks.table import figure, render
from benchmarks.timing import describe_machine
from surefoot.pipeline.journal import Nobody, Stage, peak_memory
from surefoot.pipeline.runs import run
from surefoot.pipeline.settings import Settings

ACTIONS, SUCCESSORS, TRIES = 5, 8, 20
HEADINGS = ("stage", "wall s", "processor s")
LAST_SECONDS = 3.0
"""Estimates of the time left are looked at up to here."""


def write_log(states: int, file: Path) -> None:
    """Write a log in which every action of every state was tried 20 times."""
    import pandas as pd

    rng = np.random.default_rng(0)
    rows = states * ACTIONS
    places = np.stack([rng.choice(states, SUCCESSORS, replace=False) for _ in range(rows)])
    chance = rng.dirichlet(np.ones(SUCCESSORS), rows)
    reward = rng.random(rows).round(3)
    row = np.repeat(np.arange(rows), TRIES)
    past = rng.random(len(row))[:, None] > chance.cumsum(axis=1)[row]
    went = places[row, past.sum(axis=1).clip(0, SUCCESSORS - 1)]
    columns = {"state": row // ACTIONS, "action": row % ACTIONS, "reward": reward[row]}
    pd.DataFrame({**columns, "next_state": went}).to_parquet(file)


class Hearer(Stage):
    """Takes down when it was told what is left."""

    def __init__(self) -> None:
        self.told: list[tuple[float, float]] = []

    def update(self, done: int, remark: str = "", left: float | None = None) -> None:
        """Hear how far it is."""
        del done, remark
        if left is not None:
            self.told.append((time.perf_counter(), left))


class Clock(Nobody):
    """Tells nothing, and takes down what each stage of a run took and what was told of the rest."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, float, float]] = []
        self.told: list[tuple[float, float]] = []

    @contextmanager
    def stage(self, title: str, total: int | None = None) -> Iterator[Stage]:
        """Time a stage."""
        del total
        wall, work, hearer = time.perf_counter(), time.process_time(), Hearer()
        yield hearer
        self.told += hearer.told
        self.stages.append((title, time.perf_counter() - wall, time.process_time() - work))


def run_once(log: Path, out: Path) -> None:
    """Make one run and print its stages."""
    clock = Clock()
    with clock.stage("all"):
        run(Settings(log=(str(log),), discount=0.95), out, teller=clock)
    lines = [(name, figure(wall), figure(work)) for name, wall, work in clock.stages]
    print(render(HEADINGS, lines))
    end = time.perf_counter()
    ratios = [left / (end - when) for when, left in clock.told if end - when > LAST_SECONDS]
    true = [ratio for ratio in ratios if 0.5 <= ratio <= 2.0]
    if ratios:
        print(
            f"time left: {len(true)} of {len(ratios)} estimates within a factor of two, the first "
            f"{ratios[0]:.2f} times what was left, then {min(ratios):.2f} to {max(ratios):.2f}"
        )
    print(f"most memory: {(peak_memory() or 0) / 2**30:.1f} GB")


def main() -> None:
    """Measure a run in fresh processes; with ``--log`` and ``--out``, be such a process."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.whole_run", description=__doc__)
    parser.add_argument("--states", type=int, default=3000)
    parser.add_argument("--log", type=Path, help="a log that was written already")
    parser.add_argument("--out", type=Path, help="the run folder to make from it")
    given = parser.parse_args()
    if given.log is not None and given.out is not None:
        run_once(given.log, given.out)
        return
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log.parquet")
        write_log(given.states, log)
        call = [sys.executable, "-m", "benchmarks.whole_run", "--log", str(log), "--out"]
        subprocess.run([*call, str(Path(folder, "first"))], stdout=subprocess.DEVNULL, check=True)
        subprocess.run([*call, str(Path(folder, "second"))], check=True)
    print(describe_machine())


if __name__ == "__main__":
    main()
