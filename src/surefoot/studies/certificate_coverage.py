"""How often a certificate fails where the truth is known.

Each replication draws a true model from the domain's prior on the true successors, draws data from
it, runs ``optimize`` on the data, and compares the promise with the policy's return in the true
model. The upper bound is compared with the percentile optimum itself: all policies are enumerated,
and none should exceed it on a million draws. ``support="log"`` uses counts as a log shows them,
with observed successors and an unseen state. At the default eta of .001 no upper bound should be
too low; ``--eta 0.2`` makes that check more sensitive.
"""

import time
from copy import deepcopy
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import typer

from surefoot._arguments import check_choice
from surefoot._workers import all_parts
from surefoot.certificates.limit import count_policies
from surefoot.certificates.optimize import optimize
from surefoot.data.counts import Counts
from surefoot.domains.catalogue import make_domain
from surefoot.domains.domain import Domain
from surefoot.model.mdp import MDP
from surefoot.model.policies import RowPolicy, check_policy
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.solvers.evaluation.returns import policy_returns
from surefoot.solvers.evaluation.rewards import rewards_of
from surefoot.solvers.solver import evaluate
from surefoot.studies.chance import most_failures, refutes
from surefoot.studies.options import Domains, Draws, Replications, Samples, Seed
from surefoot.studies.table import markdown_row, markdown_table
from surefoot.studies.true_models import as_logged, from_prior

SUPPORTS = ("true", "log")


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """What one study counted.

    Attributes
    ----------
    domain, support, samples, delta, eta
        The setting.
    replications, failures
        How many promises were made, and how many of them were broken.
    checked, upper_failures
        How many upper bounds were compared with the percentile optimum, and how many were below it.
    mean_promise, mean_earned, mean_upper
        Averages over the replications.
    """

    domain: str
    support: str
    samples: int
    delta: float
    eta: float
    replications: int
    failures: int
    checked: int
    upper_failures: int
    mean_promise: float
    mean_earned: float
    mean_upper: float

    @property
    def allowed(self) -> int:
        """The largest number of broken promises that chance explains."""
        return most_failures(self.replications, self.delta)

    @property
    def holds(self) -> bool:
        """Whether chance explains the failures at the claimed level."""
        broken = refutes(self.failures, self.replications, self.delta)
        return not broken and not refutes(self.upper_failures, max(self.checked, 1), self.eta)


def study(
    domain: Domain,
    *,
    samples: int,
    replications: int,
    delta: float,
    rng: np.random.Generator,
    support: str = "true",
    eta: float = 0.001,
    draws: int = 2000,
    check_upper: int = 0,
    optimum_draws: int = 1_000_000,
) -> Coverage:
    """Run one study; ``check_upper`` replications also check the upper bound.

    Examples
    --------
    >>> from surefoot.domains import riverswim
    >>> result = study(
    ...     riverswim(), samples=20, replications=3, delta=0.2, draws=500,
    ...     rng=np.random.default_rng(0),
    ... )
    >>> result.replications, result.holds
    (3, True)
    """
    check_choice("support", support, SUPPORTS)
    parts = []
    for turn in range(replications):
        world = from_prior(domain, rng)
        counts, mdp = data_of(world, samples, support, rng)
        posterior = DirichletPosterior(counts, prior=domain.prior)
        checked = optimum_draws if turn < check_upper else 0
        parts.append((world.mdp, posterior, mdp, deepcopy(rng), checked))
        rng.spawn(4 if checked else 3)  # as many generators as the replication spawns
    found = np.array(all_parts(_replicate, (delta, eta, draws), parts))
    numbers, upper_failures = found[:, :3], found[:, 3].sum()
    failures = np.count_nonzero(numbers[:, 1] < numbers[:, 0])
    means = numbers.mean(axis=0)
    return Coverage(
        domain=domain.name, support=support, samples=samples, delta=delta, eta=eta,
        replications=replications, failures=int(failures), checked=min(check_upper, replications),
        upper_failures=int(upper_failures), mean_promise=float(means[0]),
        mean_earned=float(means[1]), mean_upper=float(means[2]),
    )  # fmt: skip


def _replicate(
    delta: float, eta: float, draws: int, truth: MDP, posterior: DirichletPosterior, mdp: MDP,
    rng: np.random.Generator, checked: int,
) -> tuple[float, float, float, float]:  # fmt: skip
    """Return the promise, the true return, the upper bound, and 1 if that was checked and wrong."""
    result = optimize(posterior, mdp, delta=delta, eta=eta, draws=draws, rng=rng)
    played = result.policy[: truth.num_states]  # the model of a log also has an unseen state
    earned = evaluate(truth, played).return_upper
    upper = result.certificate.upper_bound
    wrong = bool(checked) and some_policy_exceeds(upper, posterior, mdp, delta, checked, rng)
    return result.certificate.lower_bound, earned, upper, float(wrong)


def data_of(
    domain: Domain, samples: int, support: str, rng: np.random.Generator
) -> tuple[Counts, MDP]:
    """Return counts (on the true support, or as a log shows them) and the model made from them."""
    truth = domain.mdp
    counts = domain.simulate(samples, rng)
    if support == "log":
        counts = as_logged(counts).on_support()
        initial = np.zeros(counts.num_states)
        initial[: truth.num_states] = truth.initial
    else:
        initial = np.array(truth.initial)
    return counts, counts.to_mdp(discount=truth.discount, initial=initial, prior=domain.prior)


def some_policy_exceeds(
    bound: float, posterior: DirichletPosterior, mdp: MDP, delta: float, draws: int,
    rng: np.random.Generator,
) -> bool:  # fmt: skip
    """Return whether some deterministic policy's delta-quantile, on many draws, exceeds ``bound``.

    If so, the upper bound lies below the percentile optimum. Policies that fewer draws show to be
    far below the bound (by five standard errors) are not evaluated on all draws.
    """
    rewards = rewards_of(mdp, posterior, objective="max")
    key = rng.spawn(1)[0].bit_generator.random_raw()
    open_ones = [rows_of_policy(mdp, k) for k in range(count_policies(mdp))]
    for number in (min(n, draws) for n in (300, 3000, 50_000, draws)):
        level = delta + (5 * np.sqrt(delta * (1 - delta) / number) if number < draws else 0.0)
        still_open = []
        for rows in open_ones:
            returns = policy_returns(
                posterior, mdp, rows, number, np.random.default_rng(key), rewards=rewards
            )
            if np.quantile(returns.lower, min(level, 1.0)) > bound:
                still_open.append(rows)
        open_ones = still_open
    return bool(open_ones)


def rows_of_policy(mdp: MDP, number: int) -> RowPolicy:
    """Return deterministic policy ``number``: its mixed-radix digits are the actions."""
    actions = np.empty(mdp.num_states, dtype=np.int64)
    for s, offered in enumerate(np.diff(mdp.state_start).tolist()):
        actions[s] = mdp.row_action[mdp.state_start[s] + number % offered]
        number //= offered
    return check_policy(mdp, actions)


HEAD = (
    "domain", "support", "delta", "broken promises", "allowed", "upper bounds too low", "promise",
    "earned", "upper", "holds", "seconds",
)  # fmt: skip


def command(
    domain: Domains = None,
    delta: Annotated[
        list[float] | None, typer.Option(metavar="NUMBER", help="Levels. [0.05 and 0.2]")
    ] = None,
    support: Annotated[
        list[str] | None, typer.Option(metavar="WORD", help="true, log. [both]")
    ] = None,
    samples: Samples = 20,
    replications: Replications = 400,
    draws: Draws = 2000,
    eta: Annotated[float, typer.Option(metavar="NUMBER", help="Monte-Carlo failure.")] = 0.001,
    check_upper: Annotated[
        int, typer.Option(metavar="N", help="Replications whose upper bound is checked.")
    ] = 400,
    seed: Seed = 0,
) -> None:
    """Count how often certificates fail where the truth is known; exits with 1 if too often."""
    for line in markdown_table(HEAD, [], words=2):
        typer.echo(line)
    held = True
    for name in domain or ["riverswim", "machine"]:
        for known in support or SUPPORTS:
            for level in delta or [0.05, 0.2]:
                began = time.perf_counter()
                result = study(
                    make_domain(name), samples=samples, delta=level, support=known,
                    replications=replications, draws=draws, eta=eta,
                    check_upper=check_upper if known == "true" else 0,
                    rng=np.random.default_rng(seed),
                )  # fmt: skip
                held &= result.holds
                typer.echo(markdown_row(_row(result, time.perf_counter() - began)))
    raise typer.Exit(int(not held))


def _row(result: Coverage, seconds: float) -> tuple[str, ...]:
    means = (result.mean_promise, result.mean_earned, result.mean_upper)
    return (
        result.domain, result.support, f"{result.delta:g}",
        f"{result.failures} of {result.replications}", f"{result.allowed}",
        f"{result.upper_failures} of {result.checked}", *(f"{mean:.5g}" for mean in means),
        "yes" if result.holds else "NO", f"{seconds:.0f}",
    )  # fmt: skip
