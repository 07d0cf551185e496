"""The bracket between promise and limit: the shares of search, relaxation and Monte Carlo in it."""

import time
from dataclasses import dataclass

import numpy as np
import typer

from surefoot._order_statistics import marginal_rank, upper_rank
from surefoot.certificates.clock import SearchClock
from surefoot.certificates.limit import upper_bound
from surefoot.certificates.local_search import local_search
from surefoot.certificates.models import Ints, draw_models, percentile, policy_values
from surefoot.certificates.optimize import optimize
from surefoot.certificates.search import search
from surefoot.domains.catalogue import DOMAINS, as_domain
from surefoot.domains.domain import Domain
from surefoot.domains.garnet import garnet
from surefoot.model.mdp import MDP
from surefoot.model.policies import check_policy
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.solvers.evaluation.returns import policy_returns
from surefoot.solvers.evaluation.rewards import rewards_of
from surefoot.studies.options import Delta, Domains, Samples, Seed
from surefoot.studies.table import markdown_row, markdown_table

ETA = 0.001
GARNETS = {"garnet-100": (100, 3, 5, 0.9), "garnet-100-even": (100, 5, 20, 0.95)}
"""States, actions, successors, discount."""
OTHER_STARTS = 2
"""Random policies that the long search also starts from, besides its usual candidates."""
LONG_DRAWS = 1000
HEAD = (
    "domain", "promise", "limit", "bracket", "plain", "search", "relaxation", "Monte Carlo",
    "seconds",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class BracketShares:
    """A bracket and its parts, each as a share of the larger end in absolute value.

    Attributes
    ----------
    domain
        Its name.
    promise, limit
        The two ends.
    width, plain
        Width of the bracket, and of the one with the plain limit (actions not coupled).
    search
        How much better a policy a longer search found, from other starts and on other draws; 0 if
        it found none.
    relaxation
        How far the limit lies above the upper bound on the policy's own percentile, from as many
        draws, minus the share of the search.
    monte_carlo
        What the conservative ranks cost at both ends.
    seconds
        Time it took.
    """

    domain: str
    promise: float
    limit: float
    width: float
    plain: float
    search: float
    relaxation: float
    monte_carlo: float
    seconds: float

    @property
    def row(self) -> tuple[str, ...]:
        """The row of the table."""
        shares = (self.width, self.plain, self.search, self.relaxation, self.monte_carlo)
        ends = f"{self.promise:.5g}", f"{self.limit:.5g}"
        return (self.domain, *ends, *(f"{share:.2%}" for share in shares), f"{self.seconds:.0f}")


def made_domain(name: str, seed: int) -> Domain:
    """Return a domain of the catalogue, or a Garnet of 100 states."""
    if name not in GARNETS:
        return as_domain(name)
    states, actions, successors, discount = GARNETS[name]
    rng = np.random.default_rng([seed, 100])
    return garnet(states, actions, successors, discount=discount, rng=rng)


def bracket(
    name: str, *, delta: float, samples: int, seed: int, draws: int | None = None
) -> BracketShares:
    """Return the bracket of one data set with declared successors, and its parts.

    Examples
    --------
    >>> found = bracket("riverswim", delta=0.2, samples=20, seed=0, draws=1000)
    >>> found.promise <= found.limit, found.plain >= found.width
    (True, True)
    """
    began = time.perf_counter()
    domain = made_domain(name, seed)
    data_rng, search_rng, own_rng, long_rng, plain_rng = np.random.default_rng(seed).spawn(5)
    counts = domain.simulate(samples, data_rng)
    posterior = DirichletPosterior(counts, prior=domain.prior)
    mdp = counts.to_mdp(
        discount=domain.mdp.discount, initial=domain.mdp.initial, prior=domain.prior
    )
    made = optimize(posterior, mdp, delta=delta, draws=draws, rng=search_rng).certificate
    rewards = rewards_of(mdp, posterior, objective="max")
    policy = check_policy(mdp, made.policy)
    n = made.other_draws
    own = np.sort(policy_returns(posterior, mdp, policy, n, own_rng, rewards=rewards).upper)
    middle, high = own[max(1, marginal_rank(n, delta)) - 1], own[upper_rank(n, delta, ETA) - 1]
    plain = upper_bound(
        posterior, mdp, rewards, delta=delta, eta=ETA, draws=n, rng=plain_rng,
        start=policy.rows.astype(np.int64), randomised=True,
    )  # fmt: skip
    size = max(abs(made.lower_bound), abs(made.upper_bound), 1e-300)
    better = _found_by_long_search(posterior, mdp, np.asarray(made.policy), delta, long_rng)
    return BracketShares(
        domain=name, promise=made.lower_bound, limit=made.upper_bound, width=made.relative_gap,
        plain=max(plain.value, made.upper_bound) / size - made.lower_bound / size,
        search=better / size,
        relaxation=max(0.0, made.upper_bound - high - better) / size,
        monte_carlo=(high - middle + max(0.0, middle - made.lower_bound)) / size,
        seconds=time.perf_counter() - began,
    )  # fmt: skip


def _found_by_long_search(
    posterior: DirichletPosterior, mdp: MDP, policy: Ints, delta: float, rng: np.random.Generator
) -> float:
    """Return by how much searches on other draws beat a policy, judged on a third set of draws."""
    choosing, starting, judging = rng.spawn(3)
    rewards, every = rewards_of(mdp, posterior, objective="max"), np.arange(mdp.num_rows)
    batch = draw_models(posterior, mdp, rewards, every, LONG_DRAWS, choosing)
    own = check_policy(mdp, policy).rows.astype(np.int64)
    found = search(batch, delta, SearchClock(None, None), None, stationary=False)
    best = next(one.policy for one in found if one.selected)
    rules = [check_policy(mdp, np.asarray(best)).rows.astype(np.int64)]
    for start in (own, *_random_rows(mdp, starting)):
        rules.append(local_search(batch, start, delta)[0])
    fresh = draw_models(posterior, mdp, rewards, every, LONG_DRAWS, judging)
    reached = [percentile(policy_values(batch, rule)[1], batch.rank(delta)) for rule in rules]
    winner = rules[int(np.argmax(reached))]
    ends = [percentile(policy_values(fresh, rule)[1], fresh.rank(delta)) for rule in (own, winner)]
    return max(0.0, ends[1] - ends[0])


def _random_rows(mdp: MDP, rng: np.random.Generator) -> list[Ints]:
    return [rng.integers(mdp.state_start[:-1], mdp.state_start[1:]) for _ in range(OTHER_STARTS)]


def command(
    domain: Domains = None, delta: Delta = 0.05, samples: Samples = 20, seed: Seed = 0
) -> None:
    """Show promise and limit with declared successors, and what causes the gap between them."""
    for line in markdown_table(HEAD, [], words=1):
        typer.echo(line)
    for name in domain or (*DOMAINS, *GARNETS):
        found = bracket(name, delta=delta, samples=samples, seed=seed)
        typer.echo(markdown_row(found.row))
