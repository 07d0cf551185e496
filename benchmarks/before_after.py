"""Another version beside this one: ``python -m benchmarks.before_after OTHER [PART ...]``.

OTHER is a checkout of the other version. Each part runs the benchmarks of both checkouts in turns,
every time in a process of its own, after one run of each that does not count (it may compile
kernels):

- ``solvers``: our solves of the cases of ``python -m benchmarks``, one thread;
- ``certificates``: the jobs of ``python -m benchmarks.certificates``;
- ``reading``: the noisy log of ``python -m benchmarks.logs``, read as Parquet and as CSV;
- ``pipeline``: ``surefoot solve`` on the log of ``python -m benchmarks.pipeline``.

Figures are processor seconds of all threads together, medians over the rounds; what takes more than
1.1 times as long is marked. A whole run may do more than it did: look at what it promises, too.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks import logs, pipeline
from benchmarks.table import figure, render
from benchmarks.timing import describe_machine

PARTS = ("solvers", "certificates", "reading", "pipeline")
ALLOWED = 1.1
HEADINGS = ("what", "before, s", "now, s", "now / before", "")
HERE = Path(__file__).resolve().parents[1]
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}

Figures = dict[str, float]

SOLVERS = """
import json, statistics, sys, time
from benchmarks.cases import CASES, KINDS
from benchmarks.contenders import our_solve
names, repeats = sys.argv[1].split(","), int(sys.argv[2])
found = {}
for name in names:
    for discount in (0.95, 0.99):
        case = CASES[name](discount)
        for kind in KINDS:
            job, seconds = our_solve(kind).prepare(case, None), []
            job()
            for _ in range(repeats):
                began = time.process_time()
                job()
                seconds.append(time.process_time() - began)
            found[f"{name}, {kind}, {discount}"] = statistics.median(seconds)
print(json.dumps(found))
"""

CERTIFICATES = """
import json, time
import numpy as np
import surefoot as sf
from benchmarks import certificates as jobs

found = {}

def timed(name, job, repeats=3):
    seconds = []
    for _ in range(repeats):
        began = time.process_time()
        job()
        seconds.append(time.process_time() - began)
    found[name] = sorted(seconds)[repeats // 2]

def returns(name, problem, draws):
    mdp, posterior = problem
    rows = jobs.check_policy(mdp, sf.solve(mdp).policy)
    rewards = jobs.rewards_of(mdp, posterior, objective="max")
    rng = np.random.default_rng(0)
    jobs.policy_returns(posterior, mdp, rows, 64, rng, rewards=rewards)
    timed(name, lambda: jobs.policy_returns(posterior, mdp, rows, draws, rng, rewards=rewards))

returns("RiverSwim, 200,000 returns", jobs.domain_problem(sf.riverswim(), 20), 200_000)
returns("machine, 100,000 returns", jobs.domain_problem(sf.machine_replacement(), 20), 100_000)
population = jobs.domain_problem(sf.population_growth(), 20)
returns("population, 4000 returns", population, 4000)
mdp, posterior = population
sf.optimize(posterior, mdp, delta=0.05, draws=200, rng=np.random.default_rng(0))
timed("population, optimize, 2000 draws each", lambda: sf.optimize(
    posterior, mdp, delta=0.05, draws=2000, rng=np.random.default_rng(1)), 1)
large = sf.garnet(2000, 10, 10, discount=0.95, rng=np.random.default_rng(2))
large = large if isinstance(large, sf.Domain) else sf.Domain(name="garnet", mdp=large)
counts = large.simulate(20, np.random.default_rng(3))
mdp = counts.to_mdp(discount=0.95, initial="uniform", prior=1.0)
policy, posterior = sf.solve(mdp).policy, sf.DirichletPosterior(counts)
timed("Garnet 2000x10x10, promise on 2000 draws", lambda: sf.certify(
    policy, posterior, mdp, draws=2000, rng=np.random.default_rng(4), upper=False), 1)
print(json.dumps(found))
"""

PIPELINE = """
import json, sys
from pathlib import Path
from benchmarks.pipeline import solve
job = solve(Path(sys.argv[1]), Path(sys.argv[2]))
print(json.dumps([job.work, job.seconds, job.sentence]))
"""


def in_tree(tree: Path, code: str, *given: str, one_thread: bool = False) -> str:
    """Run some code with the package and the benchmarks of a checkout; return what it printed."""
    found = os.pathsep.join((str(tree / "src"), str(tree)))
    environment = os.environ | {"PYTHONPATH": found} | (ONE_THREAD if one_thread else {})
    call = [sys.executable, "-c", code, *given]
    done = subprocess.run(
        call, cwd=tree, env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def solvers(tree: Path, cases: str) -> Figures:
    """Time our solves."""
    found: Figures = json.loads(in_tree(tree, SOLVERS, cases, "9", one_thread=True))
    return found


def certificates(tree: Path) -> Figures:
    """Time draws and whole certificates."""
    found: Figures = json.loads(in_tree(tree, CERTIFICATES))
    return found


def reading(tree: Path, name: str, path: Path) -> Figures:
    """Time the reading of a log."""
    run = logs.Run(*json.loads(in_tree(tree, logs.CHILD, "ours", str(path))))
    return {f"reading, {name}": run.work}


def whole_run(tree: Path, name: str, path: Path, folder: Path) -> Figures:
    """Time a whole run; its wall clock, too."""
    out = Path(tempfile.mkdtemp(dir=folder)) / "run"
    work, seconds, sentence = json.loads(in_tree(tree, PIPELINE, str(path), str(out)))
    print(f"  {tree.name}, {name}: {sentence}", flush=True)
    return {f"surefoot solve, {name}": work, f"surefoot solve, {name}, wall clock": seconds}


def turns(
    job: Callable[[Path], Figures], before: Path, rounds: int
) -> Iterator[tuple[str, float, float]]:
    """Run a job in both checkouts in turns and yield the medians."""
    job(before), job(HERE)
    pairs = [(job(before), job(HERE)) for _ in range(rounds)]
    for name in pairs[0][0]:
        yield (
            name,
            statistics.median(old[name] for old, _ in pairs),
            statistics.median(new[name] for _, new in pairs),
        )


def jobs(part: str, cases: str, rows: int, folder: Path) -> Iterator[Callable[[Path], Figures]]:
    """Yield the jobs of a part; each gets a checkout."""
    if part == "solvers":
        yield partial(solvers, cases=cases)
    if part == "certificates":
        yield certificates
    for kind in ("parquet", "csv"):
        name = f"{kind}, {rows / 1e6:g} M rows"
        if part == "reading":
            path = folder / f"noisy.{kind}"
            logs.write(path, rows, "noisy rewards")
            yield partial(reading, name=name, path=path)
        if part == "pipeline":
            path = pipeline.write_log(folder, kind, rows)
            yield partial(whole_run, name=name, path=path, folder=folder)


def line_of(name: str, before: float, now: float) -> tuple[str, ...]:
    """Return a line of the table; a time that is too long is marked."""
    mark = "slower" if now > ALLOWED * before else ""
    return (name, figure(before), figure(now), f"{now / before:.2f}", mark)


def main() -> None:
    """Measure, print one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.before_after", description=__doc__)
    parser.add_argument("other", type=Path, help="a checkout of the other version")
    parser.add_argument("parts", nargs="*", metavar="part", help=f"{', '.join(PARTS)}; else all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=float, default=2e6, help="of logs")
    parser.add_argument("--cases", default="d200,s2000,m1000,river500", help="of solvers")
    given = parser.parse_args()
    unknown = [part for part in given.parts if part not in PARTS]
    if unknown:
        parser.error(f"unknown part {unknown[0]!r}; choose from {', '.join(PARTS)}.")
    lines = []
    with tempfile.TemporaryDirectory(prefix="surefoot-before-") as name:
        for part in given.parts or PARTS:
            for job in jobs(part, given.cases, int(given.rows), Path(name)):
                found = turns(job, given.other.resolve(), given.rounds)
                lines += [line_of(*one) for one in found]
    print(render(HEADINGS, lines))
    print(f"{describe_machine()}; load before {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
