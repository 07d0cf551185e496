"""Upper bounds on what any policy could be promised.

The percentile optimum ``y*`` is the largest delta-quantile of the return over policies. Computing
it is NP-hard, but it has upper bounds. For all policies: the delta-quantile of the *best* return of
each drawn model. For deterministic policies: the same quantile over draws in which the actions of a
state are coupled, so that they are lucky together (docs/limit.md). Where there are few
deterministic policies: the largest of their own quantiles.
"""

from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from surefoot._cores import available_cores, on_threads
from surefoot._order_statistics import upper_rank
from surefoot._workers import all_parts, current, ranges
from surefoot.certificates.models import restricted
from surefoot.model.mdp import MDP
from surefoot.model.policies import deterministic
from surefoot.posterior.coupled import CoupledRows, can_couple
from surefoot.posterior.of_counts import Key
from surefoot.posterior.protocol import Posterior, stream_key
from surefoot.posterior.rows import RowLayout
from surefoot.solvers.evaluation.engines import CORES, Engine
from surefoot.solvers.evaluation.return_kernels import all_policy_returns
from surefoot.solvers.evaluation.returns import (
    ReturnDraws,
    best_returns,
    policy_returns,
    usual_tolerance,
)
from surefoot.solvers.evaluation.rewards import Rewards
from surefoot.solvers.solver import evaluate

Floats = NDArray[np.float64]

MAX_POLICIES, LISTED_STATES = 4096, 220
ENUMERATION_WORK = 4e10
"""The most operations that an enumeration may cost (about half a minute on two cores)."""
SHARED_WORK = 4e9
"""From this many operations on, an enumeration is shared among the workers of a cluster."""
ANY_POLICY = "no policy"
DETERMINISTIC = "no deterministic policy"


@dataclass(frozen=True, kw_only=True)
class UpperBound:
    """A number that no policy in the scope can be promised to exceed.

    Attributes
    ----------
    value
        The bound.
    scope
        ``"no policy"`` or ``"no deterministic policy"``: which policies the bound covers.
    draws
        How many posterior draws it rests on.
    policies
        How many policies were enumerated; 0 if none were.
    """

    value: float
    scope: str
    draws: int
    policies: int


def upper_bound(
    posterior: Posterior,
    mdp: MDP,
    rewards: Rewards,
    *,
    delta: float,
    eta: float,
    draws: int,
    rng: np.random.Generator,
    start: NDArray[np.int64] | None = None,
    tolerance: float | None = None,
    randomised: bool = False,
    engine: Engine | None = None,
) -> UpperBound:
    """Bound the percentile optimum from above, at certainty ``1 - eta`` over the draws.

    On a CPU, if there are few deterministic policies, all of them are enumerated. Otherwise the
    actions of a state are coupled in the draws (on a CPU), by what they are worth to the policy
    that plays the rows ``start``, unless the bound must cover ``randomised`` policies too.
    ``tolerance`` is how wide the numerical brackets of best returns may be.
    """
    rewards = rewards.of_one_policy
    policies = count_policies(mdp)
    first = mdp.state_start[:-1] if start is None else start
    plain_rng, listing_rng = rng.spawn(2)
    cost = policies * draws * (mdp.num_states**3 / 3 + 2 * mdp.num_entries)
    listed = policies <= MAX_POLICIES and mdp.num_states <= LISTED_STATES and not randomised
    # Policies by step are too many to list; without discount, brackets are made differently.
    listed = listed and mdp.horizon is None and mdp.discount < 1.0
    on_cores = engine is None or engine.stream == CORES.stream
    if listed and cost <= ENUMERATION_WORK and on_cores:
        value = _enumerated(
            posterior, mdp, rewards, policies, delta, eta, draws, listing_rng, first
        )
        return UpperBound(value=value, scope=DETERMINISTIC, draws=draws, policies=policies)
    alike = coupled(posterior, mdp, rewards, first) if on_cores and not randomised else None
    best = best_returns(
        alike or posterior, mdp, draws, plain_rng, rewards=rewards, start=first,
        tolerance=tolerance, engine=engine,
    )  # fmt: skip
    rank = upper_rank(draws, delta, eta)
    value = float(np.sort(best.upper)[rank - 1]) if rank <= draws else np.inf
    scope = ANY_POLICY if alike is None else DETERMINISTIC
    return UpperBound(value=value, scope=scope, draws=draws, policies=0)


def coupled(
    posterior: Posterior, mdp: MDP, rewards: Rewards, rows: NDArray[np.int64]
) -> CoupledRows | None:
    """Return the posterior with the rows of each state coupled; None where that is not possible.

    Rows are coupled by their worth to the policy that plays ``rows``, one row per state: the reward
    plus the discounted value of the successor under that policy in ``mdp``. Any worth that is fixed
    before the draws gives a valid bound; this one makes the actions of a state alike in what
    matters to a good policy. A policy by step may play several rows of one state, so there is no
    coupling over a horizon.
    """
    if mdp.horizon is not None or not can_couple(posterior):
        return None
    own = restricted(mdp, np.arange(mdp.num_rows), mdp.probability, rewards)
    policy = mdp.row_action[rows].astype(np.int64)
    value = evaluate(own, policy, tolerance=usual_tolerance(own)).value
    worth = rewards.fixed + mdp.discount * value[mdp.successor]
    return CoupledRows(posterior, RowLayout.of(mdp), worth)


def bound_of_one(returns: ReturnDraws, *, delta: float, eta: float) -> UpperBound:
    """Bound what a single policy can be promised, from its returns in fresh draws.

    The draws of the promise can be used: each of the two bounds holds with certainty ``1 - eta``.
    """
    draws = len(returns.upper)
    rank = upper_rank(draws, delta, eta)
    value = float(np.sort(returns.upper)[rank - 1]) if rank <= draws else np.inf
    return UpperBound(value=value, scope=ANY_POLICY, draws=draws, policies=1)


def count_policies(mdp: MDP) -> int:
    """Return the number of deterministic policies; MAX_POLICIES + 1 if there are more than that.

    Examples
    --------
    >>> from surefoot.domains import machine_replacement, riverswim
    >>> count_policies(riverswim().mdp), count_policies(machine_replacement().mdp)
    (64, 1024)
    """
    total = 1
    for offered in np.diff(mdp.state_start):
        total *= int(offered)
        if total > MAX_POLICIES:
            return MAX_POLICIES + 1
    return total


def _enumerated(
    posterior: Posterior, mdp: MDP, rewards: Rewards, policies: int, delta: float, eta: float,
    draws: int, rng: np.random.Generator, first: NDArray[np.int64],
) -> float:  # fmt: skip
    """Return the largest upper order statistic over all policies, each at ``eta``.

    Eta need not be shared over the policies: the bound fails only if it lies below the quantile of
    *the* policy with the largest quantile, which is fixed by the posterior, not by the draws; and
    the largest order statistic is at least that policy's own. The policy ``first`` sets a threshold
    on the same draws: most other policies can be discarded after a few draws.
    """
    rank = upper_rank(draws, delta, eta)
    if rank > draws:
        return float(np.inf)
    again = deepcopy(rng)
    known = policy_returns(
        posterior, mdp, deterministic(first.astype(np.uint64)), draws, again, rewards=rewards
    )
    threshold = float(np.sort(known.upper)[rank - 1])
    key = stream_key(rng.spawn(1)[0])
    shared = (posterior, mdp, rewards, (draws, rng, key, rank, threshold))
    workers = current()
    cost = policies * draws * mdp.num_states**3 / 3
    parts = 1 if workers is None or cost < SHARED_WORK else 4 * workers.count
    cut = ranges(policies, -(-policies // parts))
    if len(cut) == 1:
        return max(threshold, _largest(*shared, 0, policies))
    found: list[float] = all_parts(_largest, shared, cut)
    return max(threshold, *found)


def _largest(
    posterior: Posterior, mdp: MDP, rewards: Rewards,
    more: tuple[int, np.random.Generator, Key, int, float], first: int, last: int,
) -> float:  # fmt: skip
    """Return the largest order statistic of policies ``first:last``; -inf if below threshold."""
    draws, source, key, rank, threshold = more
    smallest = np.full((last, rank), np.inf)
    below = np.zeros(last, dtype=np.int64)
    model = (
        mdp.state_start, mdp.row_start, mdp.successor.astype(np.int64), mdp.discount,
        mdp.initial / mdp.initial.sum(), int(np.diff(mdp.row_start).max()),
    )  # fmt: skip
    size = mdp.num_states
    number = min(last - first, 8 * available_cores())
    cuts = np.linspace(first, last, number + 1).astype(np.int64)

    def work(draw: Floats, reward: Floats, part: tuple[int, int]) -> None:
        all_policy_returns(
            draw, reward, *model, *part, np.empty((size, size)), np.empty(size),
            np.empty(size, dtype=np.int64), np.empty(2), threshold, below, smallest,
        )  # fmt: skip

    done = 0
    for block in posterior.stream(draws, deepcopy(source)):
        reward = rewards.block(key, done, done + len(block), np.arange(mdp.num_entries))
        done += len(block)
        on_threads(partial(work, block, reward), pairwise(cuts.tolist()), available_cores())
    open_ones = smallest[first:][below[first:] < rank]
    return float(open_ones[:, 0].max(initial=-np.inf))
