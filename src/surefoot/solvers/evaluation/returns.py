"""Returns of a policy, and best returns, over posterior draws: bracketed, by some engine."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from surefoot.model.mdp import MDP
from surefoot.model.policies import RowPolicy
from surefoot.posterior.protocol import Posterior
from surefoot.solvers.evaluation.cores import best_on_cores, returns_on_cores
from surefoot.solvers.evaluation.draws import Draws
from surefoot.solvers.evaluation.rewards import Rewards
from surefoot.solvers.steps import counted_steps

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class ReturnDraws:
    """Lower and upper ends of the return in each drawn model, ``(n,)`` each."""

    lower: Floats
    upper: Floats

    @property
    def numerical_error(self) -> float:
        """The widest bracket."""
        return float((self.upper - self.lower).max())


class Engine(Protocol):
    """Makes draws and evaluates in them: the cores of this machine, or something larger.

    It is told which draws to make, not given them, and returns ``(n, 2)`` lower and upper ends that
    rest on the residuals of every drawn model, rounding charged. ``stream`` names its random
    numbers.
    """

    @property
    def stream(self) -> str:
        """What certificates call its random stream."""

    def policy_ends(self, draws: Draws, policy: RowPolicy, tolerance: float) -> Floats:
        """Return brackets of a policy's return."""

    def best_ends(self, draws: Draws, start: Ints, tolerance: float) -> Floats:
        """Return brackets of the best return; ``start`` is a row per state to begin with."""


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


def policy_returns(
    posterior: Posterior,
    mdp: MDP,
    policy: RowPolicy,
    n: int,
    rng: np.random.Generator,
    *,
    rewards: Rewards,
    tolerance: float | None = None,
    engine: Engine = CORES,
) -> ReturnDraws:
    """Return brackets of the policy's return in ``n`` fresh draws.

    Only the rows that the policy plays are drawn, where rows are independent.
    """
    draws = Draws.take(posterior, mdp, rewards, n, rng)
    return _bracketed(engine.policy_ends(draws, policy, _near(mdp, rewards, tolerance)))


def best_returns(
    posterior: Posterior,
    mdp: MDP,
    n: int,
    rng: np.random.Generator,
    *,
    rewards: Rewards,
    start: Ints | None = None,
    tolerance: float | None = None,
    engine: Engine = CORES,
) -> ReturnDraws:
    """Return brackets of the best return of any policy in each of ``n`` fresh draws.

    ``start`` is the row per state to begin with.
    """
    draws = Draws.take(posterior, mdp, rewards, n, rng)
    first = mdp.state_start[:-1] if start is None else start
    return _bracketed(engine.best_ends(draws, first, _near(mdp, rewards, tolerance)))


def _bracketed(ends: Floats) -> ReturnDraws:
    """Return brackets without NaN, which sorting would take for a high return.

    Numbers too large for arithmetic leave NaN behind.
    """
    lower, upper = (
        np.where(np.isnan(end), none, end)
        for end, none in zip(ends.T, (-np.inf, np.inf), strict=True)
    )
    return ReturnDraws(lower=lower, upper=upper)


def usual_tolerance(mdp: MDP) -> float:
    """Return the solvers' usual tolerance for rewards of about 1, in the unit of these rewards."""
    return max(1e-6 * float(np.abs(mdp.reward).max()), 1e-300)


def _near(mdp: MDP, rewards: Rewards, tolerance: float | None) -> float:
    """Return the tolerance of a policy evaluation: no tighter than rounding allows."""
    least = max(1e-9 * float(np.abs(rewards.fixed).max()) * counted_steps(mdp), 1e-300)
    return least if tolerance is None else max(tolerance, least)
