"""How often a certificate fails: the truth from the prior, a log from the truth, all the rest ours.

Each replication draws a true model from Dirichlet(1) on the true successors, data from it, runs
``optimize`` on the data, and compares the promise with what the policy earns in the truth. The
upper bound is compared with the percentile optimum itself: of all policies enumerated, does one
exceed it on a million draws? ``support="log"`` runs the default pipeline from a log that shows only
what happened. At the default eta of .001 no upper bound should be too low; ``--eta 0.2`` gives that
check teeth.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from surefoot.certificates.optimize import optimize
from surefoot.certificates.upper import count_policies
from surefoot.data.counts import Counts
from surefoot.domains.catalogue import make_domain
from surefoot.domains.domain import Domain
from surefoot.model.mdp import MDP
from surefoot.model.policies import RowPolicy, check_policy
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.solvers.evaluation.returns import policy_returns
from surefoot.solvers.evaluation.rewards import rewards_of
from surefoot.solvers.solver import evaluate
from surefoot.studies.support import as_logged

SURE = 0.001
"""A study fails when so many broken promises would come about this rarely at the level delta."""
SUPPORTS = ("true", "log")


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """What one study counted.

    Attributes
    ----------
    domain, support, samples, delta, eta
        The setting.
    replications, failures
        How many promises, how many of them broken.
    checked, upper_failures
        How many upper bounds were compared with the percentile optimum, how many lay below it.
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
    def holds(self) -> bool:
        """Whether chance allows as many failures at the claimed level."""
        return bool(binom.sf(self.failures - 1, self.replications, self.delta) >= SURE) and bool(
            binom.sf(self.upper_failures - 1, max(self.checked, 1), self.eta) >= SURE
        )


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
    if support not in SUPPORTS:
        raise ValueError(f"support={support!r}; choose one of {', '.join(map(repr, SUPPORTS))}.")
    numbers = np.empty((replications, 3))
    failures = upper_failures = 0
    for turn in range(replications):
        truth = truth_from_prior(domain.mdp, rng)
        counts, mdp = data_of(truth, samples, support, rng)
        posterior = DirichletPosterior(counts)
        result = optimize(posterior, mdp, delta=delta, eta=eta, draws=draws, rng=rng)
        played = result.policy[: truth.num_states]  # a log's model has an unseen state besides
        earned = evaluate(truth, played).return_upper
        promise = result.certificate.lower_bound
        numbers[turn] = promise, earned, result.certificate.upper_bound
        failures += earned < promise
        if turn < check_upper:
            upper_failures += some_policy_exceeds(
                result.certificate.upper_bound, posterior, mdp, delta, optimum_draws, rng
            )
    means = numbers.mean(axis=0)
    return Coverage(
        domain=domain.name, support=support, samples=samples, delta=delta, eta=eta,
        replications=replications, failures=int(failures), checked=min(check_upper, replications),
        upper_failures=int(upper_failures), mean_promise=float(means[0]),
        mean_earned=float(means[1]), mean_upper=float(means[2]),
    )  # fmt: skip


def truth_from_prior(mdp: MDP, rng: np.random.Generator) -> MDP:
    """Return the model with its rows drawn from Dirichlet(1) on their successors."""
    nothing = Counts.on_rows_of(mdp, np.zeros(mdp.num_entries, dtype=np.int64))
    drawn = DirichletPosterior(nothing, prior=1.0).sample(1, rng)[0]
    return nothing.to_mdp(discount=mdp.discount, initial=mdp.initial, prior=drawn)


def data_of(truth: MDP, samples: int, support: str, rng: np.random.Generator) -> tuple[Counts, MDP]:
    """Return counts (with the true support, or as a log shows them) and the model made of them."""
    counts = Domain(name="truth", mdp=truth).simulate(samples, rng)
    if support == "log":
        counts = as_logged(counts).on_support()
        initial = np.zeros(counts.num_states)
        initial[: truth.num_states] = truth.initial
    else:
        initial = np.array(truth.initial)
    return counts, counts.to_mdp(discount=truth.discount, initial=initial, prior=1.0)


def some_policy_exceeds(
    bound: float, posterior: DirichletPosterior, mdp: MDP, delta: float, draws: int,
    rng: np.random.Generator,
) -> bool:  # fmt: skip
    """Return whether some deterministic policy's delta-quantile, on many draws, exceeds ``bound``.

    That is whether an upper bound lies below the percentile optimum. Policies that fewer draws show
    to be far below the bound (by five standard errors) are left out of the count on all of them.
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
    """Return deterministic policy ``number``, its digits the actions in the states."""
    actions = np.empty(mdp.num_states, dtype=np.int64)
    for s, offered in enumerate(np.diff(mdp.state_start).tolist()):
        actions[s] = mdp.row_action[mdp.state_start[s] + number % offered]
        number //= offered
    return check_policy(mdp, actions)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the studies and print one table."""
    parser = argparse.ArgumentParser(
        prog="python -m surefoot.studies.certificate_coverage", description=__doc__
    )
    parser.add_argument("--domains", nargs="+", default=["riverswim", "machine"])
    parser.add_argument("--deltas", nargs="+", type=float, default=[0.05, 0.2])
    parser.add_argument("--supports", nargs="+", choices=SUPPORTS, default=list(SUPPORTS))
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--replications", type=int, default=400)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--eta", type=float, default=0.001)
    parser.add_argument(
        "--check-upper", type=int, default=400, help="replications whose upper bound is checked"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    out = sys.stdout
    out.write(
        "| domain | support | delta | broken promises | allowed | upper bounds too low | "
        "promise | earned | upper | holds | seconds |\n|---|---|---:|---:|---:|---:|---:|---:|"
        "---:|---|---:|\n"
    )
    held = True
    for name in options.domains:
        for support in options.supports:
            for delta in options.deltas:
                began = time.perf_counter()
                result = study(
                    make_domain(name), samples=options.samples, delta=delta, support=support,
                    replications=options.replications, draws=options.draws, eta=options.eta,
                    check_upper=options.check_upper if support == "true" else 0,
                    rng=np.random.default_rng(options.seed),
                )  # fmt: skip
                held &= result.holds
                allowed = int(binom.isf(SURE, options.replications, delta))
                out.write(
                    f"| {name} | {support} | {delta:g} | {result.failures} of "
                    f"{result.replications} | {allowed} | {result.upper_failures} of "
                    f"{result.checked} | {result.mean_promise:.5g} | {result.mean_earned:.5g} | "
                    f"{result.mean_upper:.5g} | {'yes' if result.holds else 'NO'} | "
                    f"{time.perf_counter() - began:.0f} |\n"
                )
                out.flush()
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
