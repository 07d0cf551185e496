"""Counting logs against the bare DuckDB aggregate: ``python -m benchmarks.logs``.

Writes a Parquet log of 100 million rows and a CSV of 10 million (2000 states, 10 actions) to a
temporary folder, counts each with ``read_transitions`` and with the one SQL query it cannot do
without, and removes them. Every run is a process of its own, so that peak memory means something;
the two take turns, and the best of each counts. On a busy machine look at the processor's own time
("work"), which others disturb less.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

STATES, ACTIONS, SUCCESSORS = 2000, 10, 10
ALLOWED_TIME, ALLOWED_MEMORY = 1.5, 1.0

GENERATE = f"""
    SELECT (i // 100)::INTEGER AS episode, (i % 100)::INTEGER AS step,
           (hash(i) % {STATES})::INTEGER AS state, (hash(i, 1) % {ACTIONS})::INTEGER AS action,
           {{reward}} AS reward,
           ((hash(i) % {STATES} + hash(i, 2) % {SUCCESSORS}) % {STATES})::INTEGER AS next_state
    FROM range({{rows}}) AS t(i)
"""
REWARDS = {
    "fixed rewards": f"((hash(i) % {STATES}) % 7 / 10.0)::DOUBLE",
    "noisy rewards": "(hash(i, 3) % 1000 / 100.0)::DOUBLE",
}

CHILD = """
import json, resource, sys, time
what, path = sys.argv[1:]
def spent():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
if what == "bare":
    import duckdb
    started, before = time.perf_counter(), spent()
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")  # it would write to standard output
    found = connection.execute(
        "SELECT state, action, next_state, count(*) AS n, avg(reward) FROM "
        f"'{path}' GROUP BY ALL").fetchnumpy()
    rows = int(found["n"].sum())
else:
    from surefoot.data.transitions import read_transitions
    started, before = time.perf_counter(), spent()
    rows = int(read_transitions(path).count.sum())
taken, work = time.perf_counter() - started, spent() - before
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
print(json.dumps([taken, work, peak, rows]))
"""


def write(path: Path, rows: int, reward: str) -> None:
    """Write a log with DuckDB."""
    import duckdb

    kind = "FORMAT parquet" if path.suffix == ".parquet" else "FORMAT csv, HEADER"
    query = GENERATE.format(rows=rows, reward=REWARDS[reward])
    duckdb.connect().execute(f"COPY ({query}) TO '{path}' ({kind})")


class Run(NamedTuple):
    """What one process measured."""

    seconds: float
    work: float
    peak: float
    rows: int


def measure(what: str, path: Path) -> Run:
    """Return seconds, processor seconds, peak memory in GB and rows, from a fresh process."""
    command = [sys.executable, "-c", CHILD, what, str(path)]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    return Run(*json.loads(found.stdout))


def compare(path: Path, rows: int, rounds: int) -> tuple[list[Run], list[Run]]:
    """Return our runs and the bare ones, taken in turns."""
    measure("bare", path)  # the file is in memory from now on, for both alike
    ours, bare = [], []
    for _ in range(rounds):
        bare.append(measure("bare", path))
        ours.append(measure("ours", path))
        if ours[-1].rows != rows:
            raise RuntimeError(f"counted {ours[-1].rows} of {rows} rows.")
    return ours, bare


def main() -> None:
    """Generate, count, print one line per log."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.logs", description=__doc__)
    parser.add_argument("--parquet-rows", type=float, default=1e8)
    parser.add_argument("--csv-rows", type=float, default=1e7)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    print("log                                    ours s  bare s  ratio  work ratio  peak GB")
    kept = True
    for kind, rows in (("parquet", int(given.parquet_rows)), ("csv", int(given.csv_rows))):
        for reward in REWARDS:
            with tempfile.TemporaryDirectory(prefix="surefoot-logs-") as folder:
                path = Path(folder) / f"log.{kind}"
                write(path, rows, reward)
                ours, bare = compare(path, rows, given.rounds)
            seconds = [min(run.seconds for run in runs) for runs in (ours, bare)]
            work = [min(run.work for run in runs) for runs in (ours, bare)]
            peak = max(run.peak for run in ours)
            kept &= seconds[0] <= ALLOWED_TIME * seconds[1] and peak <= ALLOWED_MEMORY
            name = f"{kind}, {rows / 1e6:g} M rows, {reward}"
            print(
                f"{name:38s} {seconds[0]:6.2f} {seconds[1]:7.2f} {seconds[0] / seconds[1]:6.2f} "
                f"{work[0] / work[1]:11.2f} {peak:8.2f}",
                flush=True,
            )
    print(f"allowed: ratio {ALLOWED_TIME}, {ALLOWED_MEMORY} GB: {'kept' if kept else 'MISSED'}")


if __name__ == "__main__":
    main()
