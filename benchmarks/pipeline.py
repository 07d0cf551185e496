"""A whole job on a long log: ``python -m benchmarks.pipeline``.

Writes a log of 10 million rows (500 states, 5 actions, 8 successors) to a temporary folder, as
Parquet and as CSV, and runs ``surefoot solve LOG --discount 0.95 --delta 0.05 --out RUN`` on each,
with nothing else. Prints each stage with its share, the time of reading against the bare DuckDB
aggregate (taken in turns, the best of each), and the most memory used. Kernels are compiled before.

Predicted from counts of work (E = 22,300 entries, of which a policy uses E' = 4,470; rewards are
uncertain, so that an entry costs a gamma of 30 ns and a mean reward of 150): a draw of a policy is
0.8 ms of drawing and some 30 products of 5 us, a draw of all rows 4 ms and two rounds of that. The
search draws 750 models (3 s) and evaluates some sixty policies on them (0.15 s each). The
certificate needs 3000 draws of the policy and 2000 of all rows (11 s), the comparison 2000 of both
(10 s), the robust set 30,000 x E' gammas (4 s), the report 4500 draws of the policy (4 s): some 45
seconds of one core, half of that on two.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.logs import Run, measure
from benchmarks.timing import describe_machine

STATES, ACTIONS, SUCCESSORS = 500, 5, 8
ALLOWED_RATIO, ALLOWED_SECONDS = 1.5, 180.0
READING = "Reading the log"
CHUNK = 1_000_000

SOLVE = """
import json, resource, sys
from surefoot.cli import main
code = main(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_SELF)
with open(sys.argv[-1] + ".used", "w") as file:
    json.dump([code, used.ru_maxrss / 1e6, used.ru_utime + used.ru_stime], file)
"""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run of the command: its stages, and what the whole process took."""

    stages: dict[str, float]
    seconds: float
    work: float
    peak: float
    sentence: str


def write_parquet(path: Path, rows: int) -> None:
    """Write a log of a random model; the reward depends on the transition."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    pairs = STATES * ACTIONS
    successor = rng.integers(0, STATES, (pairs, SUCCESSORS))
    chance = rng.dirichlet(np.ones(SUCCESSORS), pairs).cumsum(axis=1)
    reward = np.round(rng.random((pairs, SUCCESSORS)), 3)
    writer = None
    for begin in range(0, rows, CHUNK):
        size = min(CHUNK, rows - begin)
        state, action = rng.integers(0, STATES, size), rng.integers(0, ACTIONS, size)
        pair = state * ACTIONS + action
        which = (rng.random(size)[:, None] > chance[pair]).sum(axis=1).clip(0, SUCCESSORS - 1)
        columns = {"state": state, "action": action, "reward": reward[pair, which]}
        table = pa.table(columns | {"next_state": successor[pair, which]})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def write_log(folder: Path, kind: str, rows: int) -> Path:
    """Write the log as Parquet or CSV."""
    import duckdb

    path = folder / "log.parquet"
    write_parquet(path, rows)
    if kind == "parquet":
        return path
    text = folder / "log.csv"
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"COPY (SELECT * FROM '{path}') TO '{text}' (FORMAT csv, HEADER)")
    path.unlink()
    return text


def solve(path: Path, out: Path) -> Job:
    """Run the command in a process of its own."""
    options = ["solve", str(path), "--discount", "0.95", "--delta", "0.05", "--json"]
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", SOLVE, *options, "--out", str(out)],
        check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    seconds = time.perf_counter() - began
    code, peak, work = json.loads(Path(f"{out}.used").read_text())
    if code != 0:
        raise RuntimeError(f"the command ended with code {code}.")
    facts = json.loads(done.stdout)
    return Job(
        stages=facts["seconds"], seconds=seconds, work=work, peak=peak, sentence=facts["sentence"]
    )


def quickest(runs: list[Run]) -> Run:
    """Return the least seconds and the least processor time of some runs."""
    return Run(*(min(figures) for figures in zip(*runs, strict=True)))


def report(kind: str, rows: int, jobs: list[Job], reading: Run, bare: Run) -> bool:
    """Print the quickest job and tell whether it keeps what is wanted.

    ``reading`` and ``bare`` are processes that only read: processor time tells more than seconds
    where others use the machine.
    """
    job = min(jobs, key=lambda one: one.seconds)
    total = sum(job.stages.values())
    print(f"{kind}, {rows / 1e6:g} M rows, {STATES} states, {ACTIONS} actions")
    for stage, seconds in job.stages.items():
        print(f"  {stage:34s} {seconds:7.1f} s {seconds / total:6.0%}")
    ratio = min(one.stages[READING] for one in jobs) / bare.seconds
    print(f"  {'together':34s} {total:7.1f} s; the process {job.seconds:.1f} s, of which it "
          f"computed {job.work:.1f} s (all threads)")  # fmt: skip
    print(f"  reading / bare DuckDB ({bare.seconds:.2f} s): {ratio:.2f}, of processor time "
          f"{reading.work / bare.work:.2f}; most memory {job.peak:.2f} GB")  # fmt: skip
    print(f"  {job.sentence}", flush=True)
    ratio = min(ratio, reading.work / bare.work)
    return ratio <= ALLOWED_RATIO and job.seconds <= ALLOWED_SECONDS


def main() -> None:
    """Generate, solve, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline", description=__doc__)
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument(
        "--kinds", nargs="+", choices=("parquet", "csv"), default=["parquet", "csv"]
    )
    given = parser.parse_args()
    kept = True
    with tempfile.TemporaryDirectory(prefix="surefoot-pipeline-") as name:
        folder = Path(name)
        compiled = write_log(folder, "parquet", 2 * CHUNK // 10)
        solve(compiled, folder / "compiled")
        for kind in given.kinds:
            path = write_log(folder, kind, int(given.rows))
            measure("bare", path)  # the file is in memory from now on, for both alike
            bare, reading, jobs = [], [], []
            for turn in range(given.rounds):
                bare.append(measure("bare", path))
                reading.append(measure("ours", path))
                jobs.append(solve(path, folder / f"{kind}-{turn}"))
            kept &= report(kind, int(given.rows), jobs, quickest(reading), quickest(bare))
            path.unlink()
    print(f"allowed: ratio {ALLOWED_RATIO}, {ALLOWED_SECONDS:g} s: {'kept' if kept else 'MISSED'}")
    print(f"{describe_machine()}; load before {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
