"""Brackets of a policy's return, and of the best return, in models drawn from a posterior."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from surefoot.model.mdp import MDP
from surefoot.model.policies import RowPolicy
from surefoot.posterior.protocol import Posterior
from surefoot.solvers.evaluation.draws import Draws
from surefoot.solvers.evaluation.engines import Engine, usual_engine
from surefoot.solvers.evaluation.missed_losses import missed_by_luck, missed_losses
from surefoot.solvers.evaluation.rewards import Rewards
from surefoot.solvers.evaluation.visits import plays_of_rows
from surefoot.solvers.steps import counted_steps

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class ReturnDraws:
    """Lower and upper bounds on the return in each drawn model.

    Attributes
    ----------
    lower, upper
        ``(n,)`` each.
    numerical_error
        The width of the widest numerical bracket.
    """

    lower: Floats
    upper: Floats
    numerical_error: float


def policy_returns(
    posterior: Posterior,
    mdp: MDP,
    policy: RowPolicy,
    n: int,
    rng: np.random.Generator,
    *,
    rewards: Rewards,
    tolerance: float | None = None,
    engine: Engine | None = None,
    missed: bool = True,
) -> ReturnDraws:
    """Return brackets of the policy's return in ``n`` fresh draws.

    If the rows are independent, only those that the policy plays are drawn. Where rewards are
    uncertain in a range, the lower ends pay for losses that the log may have ``missed``
    (`missed_losses`); without that they are no lower bounds. The upper ends never do.
    """
    draws = Draws.take(posterior, mdp, rewards.of_one_policy, n, rng)
    engine = engine or usual_engine()
    ends = engine.policy_ends(draws, policy, _near(mdp, rewards, tolerance))
    found = _bracketed(ends)
    if not (missed and rewards.may_have_missed):
        return found
    plays = plays_of_rows(mdp, policy)
    less = missed_losses(mdp, plays, draws.rewards).total(missed_by_luck(draws.reward_key, n))
    lowest = np.minimum(found.lower, _lowest_return(draws.rewards))
    lower = np.maximum(np.nextafter(found.lower - less, -np.inf), lowest)
    return replace(found, lower=lower)


def best_returns(
    posterior: Posterior,
    mdp: MDP,
    n: int,
    rng: np.random.Generator,
    *,
    rewards: Rewards,
    start: Ints | None = None,
    tolerance: float | None = None,
    engine: Engine | None = None,
) -> ReturnDraws:
    """Return brackets of the best return of any policy in each of ``n`` fresh draws.

    ``start`` is ``(S,)``: the rows of the policy that policy iteration starts from. Uncertain
    rewards in a range scatter around the means that were seen: this is no lower bound.
    """
    draws = Draws.take(posterior, mdp, rewards.of_one_policy, n, rng)
    first = mdp.state_start[:-1] if start is None else start
    engine = engine or usual_engine()
    return _bracketed(engine.best_ends(draws, first, _near(mdp, rewards, tolerance)))


def _bracketed(ends: Floats) -> ReturnDraws:
    """Return brackets with NaN replaced by -inf and inf: sorting would put NaN last, as if high.

    NaN arises where numbers overflow.
    """
    lower, upper = (
        np.where(np.isnan(end), none, end)
        for end, none in zip(ends.T, (-np.inf, np.inf), strict=True)
    )
    return ReturnDraws(lower=lower, upper=upper, numerical_error=float((upper - lower).max()))


def _lowest_return(rewards: Rewards) -> float:
    """Return 0 if no reward of any draw is below 0, and -inf otherwise."""
    least = [float(rewards.fixed.min())]
    if rewards.uncertain.any():
        least.append(float(np.min(rewards.means.law.lowest)))
    if rewards.final is not None:
        least.append(float(rewards.final.min()))
    return 0.0 if min(least) >= 0.0 else -np.inf


def usual_tolerance(mdp: MDP) -> float:
    """Return the default tolerance of the solvers, scaled by the largest reward of the model."""
    return max(1e-6 * float(np.abs(mdp.reward).max()), 1e-300)


def _near(mdp: MDP, rewards: Rewards, tolerance: float | None) -> float:
    """Return the tolerance of a policy evaluation, no smaller than rounding allows."""
    least = max(1e-9 * float(np.abs(rewards.fixed).max()) * counted_steps(mdp), 1e-300)
    return least if tolerance is None else max(tolerance, least)
