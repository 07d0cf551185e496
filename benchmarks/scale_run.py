"""One large random model solved in a process of its own; prints its figures as JSON.

``python -m benchmarks.scale_run STATES THREADS DISCOUNT REPEATS``
"""

import json
import resource
import statistics
import sys
import time
from dataclasses import asdict, dataclass

import numpy as np

from benchmarks.cases import BUDGET, SEED, random_weights
from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.domains.garnet import garnet
from surefoot.model.mdp import MDP
from surefoot.solvers.solver import solve

ACTIONS, SUCCESSORS = 5, 10
RELATIVE = 1e-4
ARRAYS = (
    "state_start", "row_action", "row_start", "successor", "probability", "reward", "initial",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ScaleRun:
    """Figures of one model.

    ``seconds`` is the wall-clock time of the first solve; ``work_seconds`` the processor time of a
    repeated one (of all threads together). Bytes: of the arrays of the model and its set, and the
    most the process held beyond what it held before there was a model.
    """

    states: int
    entries: int
    threads: int
    discount: float
    build_seconds: float
    seconds: float
    work_seconds: float
    sweeps: int
    relative_error: float
    array_bytes: int
    peak_bytes: int

    @property
    def nanoseconds(self) -> float:
        """Processor time per entry and sweep."""
        return 1e9 * self.work_seconds / (self.entries * self.sweeps)


def build(states: int, discount: float) -> tuple[MDP, AmbiguitySet]:
    """Return a random model with a weighted L1 ball around every row."""
    rng = np.random.default_rng(SEED)
    mdp = garnet(states, ACTIONS, SUCCESSORS, discount=discount, rng=rng).mdp
    budget = np.full(mdp.num_rows, BUDGET)
    budget.setflags(write=False)
    weights = random_weights(mdp.num_entries, rng)
    return mdp, AmbiguitySet(mdp=mdp, norm="l1", budget=budget, weights=weights)


def run(states: int, threads: int, discount: float, repeats: int) -> ScaleRun:
    """Build, solve and repeat."""
    # The value of the mean reward for ever: optimal values are larger, which is checked below.
    tolerance = RELATIVE * 0.5 / (1 - discount)
    solve(*build(SUCCESSORS**2, discount), threads=threads)  # compiles
    before = _most_memory()
    started = time.perf_counter()
    mdp, ambiguity = build(states, discount)
    built = time.perf_counter()
    found = solve(mdp, ambiguity, threads=threads, tolerance=tolerance)
    solved = time.perf_counter()
    work = []
    for _ in range(repeats):
        began = time.process_time()
        solve(mdp, ambiguity, threads=threads, tolerance=tolerance)
        work.append(time.process_time() - began)
    relative = found.error_bound / float(found.lower.min())
    if not relative <= RELATIVE:
        raise RuntimeError(f"solved to {relative:.1e} relative, not {RELATIVE:.0e}.")
    arrays = [getattr(mdp, name) for name in ARRAYS] + [ambiguity.budget, ambiguity.weights]
    return ScaleRun(
        states=states,
        entries=mdp.num_entries,
        threads=threads,
        discount=discount,
        build_seconds=built - started,
        seconds=solved - built,
        work_seconds=statistics.median(work),
        sweeps=found.iterations,
        relative_error=relative,
        array_bytes=sum(array.nbytes for array in arrays),
        peak_bytes=_most_memory() - before,
    )


def _most_memory() -> int:
    """Return the most memory this process ever held, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    figures = run(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
    print(json.dumps(asdict(figures)))
