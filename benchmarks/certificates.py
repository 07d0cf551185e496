"""How fast certificates are: ``python -m benchmarks.certificates``.

Predicted from counts of work: a RiverSwim draw is 16 gammas and a 6x6 elimination, about a
microsecond; a population draw 1100 gammas and a 51x51 elimination (44k multiplications), about 50;
a 2000-state Garnet draw 20k gammas and some 30 sweeps over 20k entries, about a millisecond.
"""

import resource
import time

import numpy as np

import surefoot as sf
from surefoot.model.policies import check_policy
from surefoot.solvers.evaluation.returns import policy_returns
from surefoot.solvers.evaluation.rewards import rewards_of


def rate(name: str, mdp: sf.MDP, posterior: sf.DirichletPosterior, draws: int) -> None:
    """Print how many returns of the nominal policy are drawn and bracketed a second."""
    rows = check_policy(mdp, sf.solve(mdp).policy)
    rewards = rewards_of(mdp, posterior, objective="max")
    rng = np.random.default_rng(0)
    policy_returns(posterior, mdp, rows, 64, rng, rewards=rewards)  # compiled here
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        policy_returns(posterior, mdp, rows, draws, rng, rewards=rewards)
        seconds.append(time.perf_counter() - began)
    print(f"{name}: {draws / np.median(seconds):,.0f} draws of its policy a second")


def domain_problem(domain: sf.Domain, samples: int) -> tuple[sf.MDP, sf.DirichletPosterior]:
    """Return the model and posterior of a data set of a domain."""
    counts = domain.simulate(samples, np.random.default_rng(1))
    mdp = counts.to_mdp(discount=domain.mdp.discount, initial=domain.mdp.initial, prior=1.0)
    return mdp, sf.DirichletPosterior(counts)


def main() -> None:
    """Print rates, then whole jobs."""
    rate("RiverSwim", *domain_problem(sf.riverswim(), 20), 200_000)
    rate("machine replacement", *domain_problem(sf.machine_replacement(), 20), 100_000)
    population = domain_problem(sf.population_growth(), 20)
    rate("population", *population, 4000)
    sf.optimize(population[1], population[0], delta=0.05, draws=200, rng=np.random.default_rng(0))
    began = time.perf_counter()
    result = sf.optimize(
        population[1], population[0], delta=0.05, draws=2000, rng=np.random.default_rng(1)
    )
    print(f"population, optimize, 2000 draws each: {time.perf_counter() - began:.1f} s", result)
    large = sf.garnet(2000, 10, 10, discount=0.95, rng=np.random.default_rng(2))
    counts = large.simulate(20, np.random.default_rng(3))
    mdp = counts.to_mdp(discount=0.95, initial="uniform", prior=1.0)
    policy = sf.solve(mdp).policy
    posterior = sf.DirichletPosterior(counts)
    began = time.perf_counter()
    certificate = sf.certify(
        policy, posterior, mdp, draws=2000, rng=np.random.default_rng(4), upper=False
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"Garnet 2000x10x10, lower bound on 2000 draws: {time.perf_counter() - began:.1f} s, "
        f"peak {peak:.2f} GiB", certificate,
    )  # fmt: skip


if __name__ == "__main__":
    main()
