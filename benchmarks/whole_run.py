"""A whole run by stage: ``python -m benchmarks.whole_run [--states N]``.

Writes a log of a random model (5 actions, 8 successors and 20 tries a pair), goes from it to a
finished run folder, twice, in processes of their own, and prints wall-clock and processor seconds
of every stage of the second: the first one may compile kernels.
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
from surefoot.pipeline.journal import Nobody, Stage
from surefoot.pipeline.runs import run
from surefoot.pipeline.settings import Settings

ACTIONS, SUCCESSORS, TRIES = 5, 8, 20
HEADINGS = ("stage", "wall s", "processor s")


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


class Clock(Nobody):
    """Tells nothing, and takes down what each stage of a run took."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, float, float]] = []

    @contextmanager
    def stage(self, title: str, total: int | None = None) -> Iterator[Stage]:
        """Time a stage."""
        del total
        wall, work = time.perf_counter(), time.process_time()
        yield Stage()
        self.stages.append((title, time.perf_counter() - wall, time.process_time() - work))


def run_once(log: Path, out: Path) -> None:
    """Make one run and print its stages."""
    clock = Clock()
    with clock.stage("all"):
        run(Settings(log=(str(log),), discount=0.95), out, teller=clock)
    lines = [(name, figure(wall), figure(work)) for name, wall, work in clock.stages]
    print(render(HEADINGS, lines))


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
