"""What a draw costs by the size of the model: ``python -m benchmarks.draw_cost [STATES ...]``.

Logs are those of `benchmarks.whole_run`. Processor nanoseconds, all threads together, for each
entry and draw, and for each row and draw (rows of small models list more successors, most of which
are not drawn): of the nominal policy as a promise draws and evaluates it, then of the best policy
of all rows as a limit does, brackets as wide as in a run.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.table import render
from benchmarks.timing import describe_machine
from benchmarks.whole_run import write_log
from surefoot.certificates import draw_plan
from surefoot.certificates.limit import coupled
from surefoot.model.policies import check_policy
from surefoot.pipeline.model import build_model, read_log
from surefoot.pipeline.settings import Settings
from surefoot.solvers.evaluation.returns import best_returns, policy_returns
from surefoot.solvers.evaluation.rewards import rewards_of
from surefoot.solvers.solver import solve

SIZES = 300, 1_000, 3_000, 10_000, 30_000, 100_000
HEADINGS = (
    "states", "entries", "a row", "draws", "ns an entry", "ns a row", "draws of all",
    "ns an entry", "ns a row",
)  # fmt: skip
ENTRIES, ROUNDS = 5e7, 3
"""Entries that a measurement draws, and how often it is repeated: the least time counts."""


def line(states: int, folder: Path) -> tuple[str, ...]:
    """Measure one size."""
    log = folder / f"{states}.parquet"
    write_log(states, log)
    settings = Settings(log=(str(log),), discount=0.95)
    model = build_model(settings, read_log(settings))
    mdp, posterior = model.mdp, model.posterior
    rewards = rewards_of(mdp, posterior, objective="max")
    rows = check_policy(mdp, solve(mdp).policy)
    first = rows.rows.astype(np.int64)
    played = int(np.diff(mdp.row_start)[first].sum())
    drawn: dict[str, Any] = {"rewards": rewards}
    pilot = policy_returns(posterior, mdp, rows, 64, np.random.default_rng(0), **drawn).lower
    drawn["tolerance"] = draw_plan.precision(pilot)
    alike = coupled(posterior, mdp, rewards, first) or posterior

    def promise(n: int) -> None:
        policy_returns(posterior, mdp, rows, n, np.random.default_rng(1), **drawn)

    def limit(n: int) -> None:
        best_returns(alike, mdp, n, np.random.default_rng(1), start=first, **drawn)

    some, more = (max(32, round(ENTRIES / size)) for size in (played, mdp.num_entries))
    one, best = 1e9 * least(promise, some), 1e9 * least(limit, more)
    sizes = f"{states:,}", f"{mdp.num_entries:,}", f"{mdp.num_entries / mdp.num_rows:.0f}"
    own = f"{some:,}", f"{one / played:.0f}", f"{one / states:.0f}"
    return *sizes, *own, f"{more:,}", f"{best / mdp.num_entries:.0f}", f"{best / mdp.num_rows:.0f}"


def least(job: Callable[[int], None], draws: int) -> float:
    """Return the least processor seconds of a draw; the first call may compile."""
    job(32)
    seconds = []
    for _ in range(ROUNDS):
        began = time.process_time()
        job(draws)
        seconds.append(time.process_time() - began)
    return min(seconds) / draws


def main() -> None:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.draw_cost", description=__doc__)
    parser.add_argument("states", nargs="*", type=int, default=SIZES)
    with tempfile.TemporaryDirectory() as folder:
        lines = [line(states, Path(folder)) for states in parser.parse_args().states]
    print(render(HEADINGS, lines))
    print(describe_machine())


if __name__ == "__main__":
    main()
