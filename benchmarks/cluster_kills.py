"""Kill parts of a cluster at random moments and compare the run folder with an undisturbed one.

``python -m benchmarks.cluster_kills [--times N] [--seed N] [node | head | driver]``: N times
(twenty by default) a run on several Ray nodes on this machine loses a node, the head or its driver
(in turn, or the one that is named) while it goes on. Without a node it must end by itself with the
same files; without head or driver the same command without a cluster must go on from the folder
that is left, to the same files. Exit code 1: something was wrong.
"""

import argparse
import faulthandler
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.kills import reached

ROOT = Path(__file__).parents[1]
VICTIMS = ("node", "head", "driver")
COMPARED = ("certificate.json", "policy.csv", "candidates.csv", "counts.npz")
NODES, STORE = 2, 100 * 2**20
DRAWS = 600
LIMIT = 900.0
"""Seconds after which a run hangs: beside other work it may take minutes."""
STARTS = 5
"""How often starting a node is tried."""
JOIN_SECONDS = 300.0
"""How long nodes may take to join a cluster that is started."""
LAST_LINES = 30
"""How much of what a driver said is shown where something is wrong."""


@dataclass(frozen=True, kw_only=True)
class Fate:
    """What happened to one run.

    Attributes
    ----------
    victim
        What was killed.
    moment
        How many seconds after the start.
    phase
        How far the run was.
    seconds, again
        How long the run took, and how long it took to repeat it where that was necessary.
    met
        Whether the run was still going on.
    code
        How the run ended.
    wrong
        What is wrong, or "".
    """

    victim: str
    moment: float
    phase: str
    seconds: float
    again: float
    met: bool
    code: int | None
    wrong: str


def drive(out: Path, address: str | None) -> None:
    """Make a run folder; a cluster gets even the smallest jobs."""
    from surefoot.certificates import curse, limit, shared_batches
    from surefoot.demo import demo_settings
    from surefoot.pipeline.runs import run
    from surefoot.solvers.evaluation import engines

    engines.FIRST_DRAWS, engines.PART_SECONDS, engines.WORTH_SECONDS = 16, 0.0, 0.0
    shared_batches.SHARED_WORK = limit.SHARED_WORK = 0.0
    curse.SHARED_ROWS = 0
    run(replace(demo_settings(), draws=DRAWS, cluster=address), out)


def start_cluster(nodes: int = NODES) -> Any:
    """Start a head without CPUs and some nodes of one CPU."""
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "object_store_memory": STORE, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    for _ in range(nodes):
        add_node(cluster)
    cluster.wait_for_nodes(JOIN_SECONDS)
    return cluster


def add_node(cluster: Any, cpus: int = 1, gpus: int = 0) -> Any:
    """Start a node, which joins when it can; Ray gives it 30 s, which busy cores exceed."""
    node = {"wait": False, "num_cpus": cpus, "num_gpus": gpus, "object_store_memory": STORE}
    for _ in range(STARTS - 1):
        try:
            return cluster.add_node(**node)
        except Exception as problem:  # Ray raises nothing narrower
            if "timed out during startup" not in str(problem):
                raise
    return cluster.add_node(**node)


@dataclass(frozen=True)
class Driver:
    """A run in a process of its own; what it says is kept beside its folder."""

    process: subprocess.Popen[bytes]
    said: Path
    began: float

    @classmethod
    def start(cls, out: Path, address: str | None) -> "Driver":
        """Begin a run, or go on with one."""
        command = [sys.executable, "-m", "benchmarks.cluster_kills", "--drive", str(out)]
        if address is not None:
            command += ["--address", address]
        said = out.with_suffix(".txt")
        with said.open("wb") as file:
            process = subprocess.Popen(command, cwd=ROOT, stdout=file, stderr=file)
        return cls(process, said, time.monotonic())

    @property
    def seconds(self) -> float:
        """How long ago it began."""
        return time.monotonic() - self.began

    def ended(self) -> int | None:
        """Return how it ended; None if it hung, and it has then said where."""
        try:
            return self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGUSR1)
            time.sleep(5.0)
            self.process.kill()
            self.process.wait()
            return None

    def last_words(self) -> str:
        """Return the last lines that it said."""
        text = self.said.read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-LAST_LINES:])


def kill(cluster: Any, victim: str, driver: Driver, which: int) -> None:
    """Kill a node (another one takes its place), the head, or the driver."""
    if victim == "driver":
        driver.process.send_signal(signal.SIGKILL)
    elif victim == "head":
        cluster.remove_node(cluster.head_node, allow_graceful=False)
    else:
        nodes = sorted(cluster.worker_nodes, key=lambda node: node.unique_id)
        cluster.remove_node(nodes[which % len(nodes)], allow_graceful=False)
        add_node(cluster)


def once(cluster: Any, victim: str, moment: float, place: Path, whole: Path, which: int) -> Fate:
    """Disturb one run and compare what comes of it with a whole one."""
    out = place / "run"
    driver = Driver.start(out, cluster.address)
    try:
        driver.process.wait(moment)
    except subprocess.TimeoutExpired:
        met, phase = True, reached(out)
        kill(cluster, victim, driver, which)
    else:
        met, phase = False, "over"
    code, seconds, again = driver.ended(), driver.seconds, 0.0
    wrong = ""
    if code is None:
        wrong = f"hung for {LIMIT:.0f} s"
    elif code != 0 and (victim == "node" or not met):
        wrong = f"ended with code {code}"
    elif code != 0:
        driver = Driver.start(out, None)
        ending, again = driver.ended(), driver.seconds
        wrong = "" if ending == 0 else f"resuming ended with code {ending}"
    if wrong:
        print(driver.last_words(), flush=True)
    wrong = wrong or differences(whole, out)
    return Fate(
        victim=victim, moment=round(moment, 1), phase=phase, seconds=round(seconds, 1),
        again=round(again, 1), met=met, code=code, wrong=wrong,
    )  # fmt: skip


def differences(whole: Path, out: Path) -> str:
    """Return which files differ, or ""."""
    names = [name for name in COMPARED if (out / name).read_bytes() != (whole / name).read_bytes()]
    return f"{', '.join(names)} differ" if names else ""


def disturb(times: int, seed: int, victims: tuple[str, ...]) -> list[Fate]:
    """Disturb runs at random moments; every cluster that lost its head is started anew."""
    chance = random.Random(seed)
    fates: list[Fate] = []
    cluster = start_cluster()
    try:
        with tempfile.TemporaryDirectory() as scratch:
            whole = Path(scratch, "whole")
            if Driver.start(whole, None).ended() != 0:
                raise RuntimeError("the undisturbed run failed.")
            usual = 0.0
            for name in ("first", "calm"):  # workers compile once, in the first
                calm = Driver.start(Path(scratch, name), cluster.address)
                if calm.ended() != 0 or differences(whole, Path(scratch, name)):
                    raise RuntimeError(f"an undisturbed cluster failed: {calm.last_words()}")
                usual = calm.seconds
                print(f"undisturbed: {usual:.1f} s", flush=True)
            while sum(fate.met for fate in fates) < times:
                victim = victims[sum(fate.met for fate in fates) % len(victims)]
                place = Path(scratch, str(len(fates)))
                place.mkdir()
                moment = usual * chance.uniform(0.2, 1.0)
                fates.append(once(cluster, victim, moment, place, whole, chance.randrange(NODES)))
                if fates[-1].code == 0:  # it came to its end: how long that takes changes
                    usual = fates[-1].seconds
                if fates[-1].met and victim == "head":
                    cluster.shutdown()
                    cluster = start_cluster()
                print(fates[-1], flush=True)
    finally:
        cluster.shutdown()
    return fates


def main() -> int:
    """Do it, or be the driver of one run."""
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster_kills")
    parser.add_argument("victims", nargs="*", default=VICTIMS, help="node, head, driver")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--drive", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.drive is not None:
        faulthandler.register(signal.SIGUSR1, all_threads=True)
        drive(given.drive, given.address)
        return 0
    fates = disturb(given.times, given.seed, tuple(given.victims))
    met, wrong = sum(fate.met for fate in fates), [fate for fate in fates if fate.wrong]
    print(f"{len(fates)} runs, {met} met while they ran, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
