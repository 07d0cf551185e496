"""What a mismatch of scales does: the published optimised RiverSwim columns, and their coverage.

Budgets are computed with weights of 2-norm 1, taken from the value function over *all* states. The
*mismatched* sets are then solved with weights of 1: on RiverSwim this gives the published optimised
columns, Bayesian and frequentist, as far as the numbers tell (the code behind the tables is not
public), and sets that hold the model far less often than claimed. The *consistent* sets keep the
weights their budgets were computed with. The mismatched variant lives here only; in the package
weights and budgets travel together.

    python -m surefoot.studies.scale_mismatch
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.calibration.concentration import norm_budget
from surefoot.calibration.weights import POWER
from surefoot.domains.riverswim import riverswim
from surefoot.model.mdp import MDP
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.solvers.solver import solve
from surefoot.studies.paper_setting import distances, nominal_of_draws, paper_credible_budget
from surefoot.studies.published import DELTAS, Method, published_guarantee

Floats = NDArray[np.float64]

VARIANTS = ("uniform", "mismatched", "consistent")
SAMPLES, DRAWS, FRESH_DRAWS = 500, 1000, 4000
FREQUENTIST_SAMPLES = 590

Key = tuple[str, str, str, float]
"""Basis, variant, norm and delta."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One variant over all data sets.

    Attributes
    ----------
    basis
        ``"bayesian"`` or ``"frequentist"``.
    variant
        ``"uniform"``, ``"mismatched"`` or ``"consistent"``.
    norm, delta
        Of the sets.
    published
        What the paper prints for the column.
    mean, sd
        Guaranteed return over the data sets.
    coverage
        How often fresh posterior draws lie in all sets at once (Bayesian), or in how many of the
        data sets the true model does (frequentist); 1 - delta is claimed.
    data_sets
        How many.
    """

    basis: str
    variant: str
    norm: str
    delta: float
    published: float
    mean: float
    sd: float
    coverage: float
    data_sets: int


def scale_mismatch(
    seeds: int,
    *,
    samples: int = SAMPLES,
    draws: int = DRAWS,
    fresh: int = FRESH_DRAWS,
    frequentist_samples: int = FREQUENTIST_SAMPLES,
) -> list[Finding]:
    """Return every basis, variant, norm and delta over ``seeds`` RiverSwim data sets.

    Examples
    --------
    >>> found = scale_mismatch(2, fresh=500)
    >>> {f.variant: f.coverage > 0.9 for f in found
    ...  if (f.basis, f.delta, f.norm) == ("bayesian", 0.05, "l1")}
    {'uniform': True, 'mismatched': False, 'consistent': True}
    """
    if not seeds >= 2:
        raise ValueError(f"seeds={seeds}; two data sets at least, for a standard deviation.")
    results: dict[Key, list[tuple[float, float]]] = {}
    for seed in range(seeds):
        bayesian = _bayesian(seed, samples, draws, fresh)
        for key, result in {**bayesian, **_frequentist(seed, frequentist_samples)}.items():
            results.setdefault(key, []).append(result)
    return [_summary(*key, np.array(found)) for key, found in results.items()]


def _bayesian(seed: int, samples: int, draws: int, fresh: int) -> dict[Key, tuple[float, float]]:
    """Return guarantee and coverage of every credible set on one data set."""
    domain = riverswim()
    # The data and draws of the reproduction's cells of the same seed.
    data_rng, draw_rng = (np.random.default_rng([seed, samples, 0, i]) for i in (0, 1))
    posterior = DirichletPosterior(domain.simulate(samples, data_rng), prior=domain.prior)
    drawn = posterior.sample(draws, draw_rng)
    mdp = nominal_of_draws(drawn, domain.mdp)
    test = posterior.sample(fresh, draw_rng)

    def budget(norm: str, weights: Floats | None, delta: float) -> Floats:
        sizing = None if weights is None else weights[mdp.successor]
        return paper_credible_budget(drawn, mdp, norm, sizing, delta)

    return _variants("bayesian", mdp, test, budget)


def _frequentist(seed: int, samples: int) -> dict[Key, tuple[float, float]]:
    """Return guarantee and coverage (0 or 1) of every Hoeffding set on one data set."""
    truth = riverswim().mdp
    counts = riverswim().simulate(samples, np.random.default_rng([seed, samples, 0, 0]))
    mdp = replace(truth, probability=counts.count / samples)
    level = 1.0 / (truth.num_states * truth.num_actions)

    def budget(norm: str, weights: Floats | None, delta: float) -> Floats:
        sizing = np.ones(truth.num_states) if weights is None else weights
        size = norm_budget(f"hoeffding_{norm}", sizing, samples=samples, level=delta * level)
        return np.full(truth.num_rows, size)

    return _variants("frequentist", mdp, truth.probability[None], budget)


def _variants(
    basis: str, mdp: MDP, test: Floats, budget: Callable[[str, Floats | None, float], Floats]
) -> dict[Key, tuple[float, float]]:
    over_states = solve(mdp).value
    found = {}
    for norm in ("l1", "linf"):
        weights = weights_over_states(over_states, norm)
        for delta in DELTAS:
            for variant in VARIANTS:
                size = budget(norm, None if variant == "uniform" else weights, delta)
                solving = weights[mdp.successor] if variant == "consistent" else None
                inside = (distances(test, mdp, norm, solving) <= size).all(axis=1)
                built = AmbiguitySet(mdp=mdp, norm=norm, budget=size, weights=solving)
                guarantee = solve(mdp, built, tolerance=1e-3).return_lower
                found[basis, variant, norm, delta] = (guarantee, float(inside.mean()))
    return found


def weights_over_states(value: Floats, norm: str) -> Floats:
    """Return weights of 2-norm 1 over all states, reachable or not, from a value function.

    Examples
    --------
    >>> weights_over_states(np.array([0.0, 1.0, 4.0]), "l1").round(3).tolist()
    [0.667, 0.333, 0.667]
    """
    center = (value.max() + value.min()) / 2 if norm == "l1" else np.median(value)
    weights = np.abs(value - center) ** POWER[norm]
    return np.asarray(weights / np.linalg.norm(weights))


def _summary(basis: str, variant: str, norm: str, delta: float, results: Floats) -> Finding:
    weights = "uniform" if variant == "uniform" else "analytic"
    published = published_guarantee("riverswim", Method(basis, norm, weights), delta)
    if published is None:
        raise ValueError(f"the paper has no number for delta={delta}.")
    return Finding(
        basis=basis,
        variant=variant,
        norm=norm,
        delta=delta,
        published=published,
        mean=float(results[:, 0].mean()),
        sd=float(results[:, 0].std(ddof=1)),
        coverage=float(results[:, 1].mean()),
        data_sets=len(results),
    )


def table_lines(findings: Sequence[Finding]) -> list[str]:
    """Return a Markdown table."""
    lines = ["| sets | norm | delta | published | ours (mean) | sd | claimed | model inside |"]
    lines.append("|---|---|---:|---:|---:|---:|---:|---:|")
    for f in findings:
        norm = "L1" if f.norm == "l1" else "L-infinity"
        place = f"{norm} {'B' if f.basis == 'bayesian' else 'H'} | {f.delta:g}"
        # For the consistent sets the published number is what they are compared with, not theirs.
        numbers = f"{f.published:.0f} | {f.mean:.0f} | {f.sd:.0f}"
        lines.append(f"| {f.variant} | {place} | {numbers} | {1 - f.delta:g} | {f.coverage:.3f} |")
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study and print its table."""
    parser = argparse.ArgumentParser(prog="python -m surefoot.studies.scale_mismatch")
    parser.add_argument("--seeds", type=int, default=12, help="data sets")
    parser.add_argument("--samples", type=int, default=SAMPLES, help="per state-action pair")
    parser.add_argument("--draws", type=int, default=DRAWS)
    options = parser.parse_args(arguments)
    findings = scale_mismatch(options.seeds, samples=options.samples, draws=options.draws)
    sys.stdout.write("\n".join(table_lines(findings)) + "\n")


if __name__ == "__main__":
    main()
