"""Who is timed: our solves, and what a user would pick instead.

Each contender turns a case into a job (which is not timed) that solves it (which is).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import Case
from benchmarks.truth import Truth
from surefoot.solvers.solver import solve

TOLERANCE = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class Answer:
    """What a job brings back.

    Attributes
    ----------
    value
        ``(S,)``; None where the job is only a part of a solve.
    certified
        A proved bound on the error; None where the contender gives none.
    lower, upper
        The proved bounds, where there are any.
    true_error
        Measured by the job itself where there is no value to compare.
    share
        The part of the whole work that was done; the time is divided by it.
    """

    value: NDArray[np.float64] | None = None
    certified: float | None = None
    lower: NDArray[np.float64] | None = None
    upper: NDArray[np.float64] | None = None
    true_error: float = math.nan
    share: float = 1.0


Job = Callable[[], Answer]


@dataclass(frozen=True, kw_only=True, eq=False)
class Contender:
    """One line of the table.

    Attributes
    ----------
    name, kind
        What it is called, and which of the sets it solves.
    prepare
        Builds its own form of the model and returns the job; the truth is for partial jobs.
    package
        What must be installed; None for what always is.
    compiles
        Whether its first run compiles code.
    remembers
        Whether a second solve would start from the first one's result; then each run gets a model
        of its own.
    suits
        Cases it is meant for.
    wanted
        The ratio to the yardstick we aim at, by case; empty for peers.
    """

    name: str
    kind: str
    prepare: Callable[[Case, Truth], Job]
    package: str | None = None
    compiles: bool = False
    remembers: bool = False
    suits: Callable[[Case], bool] = lambda _: True
    wanted: Callable[[Case], float | None] = lambda _: None

    @property
    def installed(self) -> bool:
        """Whether it can run here."""
        return self.package is None or find_spec(self.package) is not None


def our_solve(kind: str) -> Contender:
    """Return our own solve of one kind of set."""

    def prepare(case: Case, _: Truth) -> Job:
        def job() -> Answer:
            found = solve(case.mdp, case.sets[kind], threads=1, tolerance=TOLERANCE)
            return Answer(
                value=found.value,
                certified=found.error_bound,
                lower=found.lower,
                upper=found.upper,
            )

        return job

    names = {"nominal": "nominal", "uniform": "uniform L1", "weighted": "weighted L1", "box": "box"}

    def wanted(case: Case) -> float:
        if kind == "nominal":
            return 1.0
        return 3.0 if case.name.startswith("river") else 5.0

    return Contender(
        name=f"surefoot {names[kind]}", kind=kind, prepare=prepare, compiles=True, wanted=wanted
    )
