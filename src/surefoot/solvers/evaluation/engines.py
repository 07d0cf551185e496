"""Engines draw models and evaluate policies in them: on this machine's cores, or on a cluster."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from surefoot._compile import working_clock
from surefoot._cores import available_cores
from surefoot._workers import all_parts, current, ranges
from surefoot.model.mdp import MDP
from surefoot.model.policies import RowPolicy
from surefoot.posterior.batch import Batch
from surefoot.posterior.of_counts import Key
from surefoot.posterior.protocol import Posterior
from surefoot.solvers.evaluation.cores import best_on_cores, returns_on_cores
from surefoot.solvers.evaluation.draws import Draws
from surefoot.solvers.evaluation.rewards import Rewards

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FIRST_DRAWS = 64
"""Draws that this process evaluates first: their time decides how the others are divided."""
PART_SECONDS = 2.0
"""How long a worker should take for a part: sending it takes some milliseconds."""
WORTH_SECONDS = 2.0
"""Work that takes one core less than this is done in this process."""
DRAWS_TOGETHER = 16
"""Parts begin at multiples of this: a random stream is opened for that many draws."""


class Engine(Protocol):
    """Draws models and evaluates policies in them.

    An engine receives the identity of the draws, not the draws themselves. It returns ``(n, 2)``
    lower and upper bounds computed from the residuals of every drawn model, rounding included.
    ``stream`` names its random numbers.
    """

    @property
    def stream(self) -> str:
        """The name of its random stream in certificates."""

    def policy_ends(self, draws: Draws, policy: RowPolicy, tolerance: float) -> Floats:
        """Return brackets of a policy's return."""

    def best_ends(self, draws: Draws, start: Ints, tolerance: float) -> Floats:
        """Return brackets of the best return; ``start`` has the rows to start from, one a state."""


class Cores:
    """The cores of this machine: Philox counters, ziggurat normals, our gamma sampler."""

    stream = "philox 1"

    def policy_ends(self, draws: Draws, policy: RowPolicy, tolerance: float) -> Floats:
        """Return brackets of a policy's return."""
        return returns_on_cores(draws, policy, tolerance)

    def best_ends(self, draws: Draws, start: Ints, tolerance: float) -> Floats:
        """Return brackets of the best return."""
        return best_on_cores(draws, start, tolerance)


CORES: Engine = Cores()


@dataclass(frozen=True)
class SharedEngine:
    """The workers of a cluster, each with its own engine; small jobs run in this process.

    Draws are evaluated independently, so the results are bitwise the same however the draws are
    divided and whichever worker evaluates a part.
    """

    own: Engine

    @property
    def stream(self) -> str:
        """The workers' random stream: the same as that of this process."""
        return self.own.stream

    def policy_ends(self, draws: Draws, policy: RowPolicy, tolerance: float) -> Floats:
        """Return brackets of a policy's return."""
        return _ends("policy_ends", self.own, draws, policy, tolerance)

    def best_ends(self, draws: Draws, start: Ints, tolerance: float) -> Floats:
        """Return brackets of the best return."""
        return _ends("best_ends", self.own, draws, start, tolerance)


def usual_engine() -> Engine:
    """Return the cores of this machine, or the workers of the cluster in use."""
    return CORES if current() is None else SharedEngine(CORES)


def _ends(what: str, own: Engine, draws: Draws, other: Any, tolerance: float) -> Floats:
    began = working_clock()
    first = min(FIRST_DRAWS, draws.count)
    ends: list[Floats] = [getattr(own, what)(draws.part(0, first), other, tolerance)]
    each = (working_clock() - began) * available_cores() / first  # seconds of one core
    rest = draws.part(first, draws.count)
    if rest.count == 0:
        return ends[0]
    if each * rest.count < WORTH_SECONDS:
        ends.append(getattr(own, what)(rest, other, tolerance))
    else:
        size = max(1, int(PART_SECONDS / each) // DRAWS_TOGETHER) * DRAWS_TOGETHER
        batch = draws.batch
        shared = (
            draws.mdp, batch.posterior, draws.rewards,
            (what, own, batch.source, draws.reward_key, other, tolerance),
        )  # fmt: skip
        cut = [(rest.batch.first + a, rest.batch.first + b) for a, b in ranges(rest.count, size)]
        ends += all_parts(_part_of, shared, cut)
    return np.concatenate(ends)


def _part_of(
    mdp: MDP, posterior: Posterior, rewards: Rewards,
    more: tuple[str, Engine, np.random.Generator, Key, Any, float], first: int, last: int,
) -> Floats:  # fmt: skip
    """Evaluate some draws; called on a worker."""
    what, own, source, key, other, tolerance = more
    batch = Batch(posterior=posterior, source=source, first=first, last=last)
    draws = Draws(mdp=mdp, batch=batch, rewards=rewards, reward_key=key)
    found: Floats = getattr(own, what)(draws, other, tolerance)
    return found
