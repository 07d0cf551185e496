"""What a mismatch of scales does: the published optimised RiverSwim columns, and their coverage.

Budgets are computed with weights of 2-norm 1, taken from the value function over *all* states. The
*mismatched* sets are then solved with weights of 1: on RiverSwim this gives the published optimised
columns, as far as the numbers tell (the code behind the tables is not public), and sets that almost
never hold the model. The *consistent* sets keep the weights their budgets were computed with. The
mismatched variant lives here only; in the package weights and budgets travel together.

    python -m surefoot.studies.scale_mismatch
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.ambiguity.weights import POWER
from surefoot.domains.riverswim import riverswim
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.solvers.solver import solve
from surefoot.studies.paper_setting import distances, nominal_of_draws, paper_credible_budget
from surefoot.studies.published import DELTAS, Method, published_guarantee

Floats = NDArray[np.float64]

VARIANTS = ("uniform", "mismatched", "consistent")
SAMPLES, DRAWS, FRESH_DRAWS = 500, 1000, 4000


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One variant over all data sets.

    Attributes
    ----------
    variant
        ``"uniform"``, ``"mismatched"`` or ``"consistent"``.
    norm, delta
        Of the sets.
    published
        What the paper prints for the column.
    mean, sd
        Guaranteed return over the data sets.
    coverage
        How often fresh posterior draws lie in all sets at once; 1 - delta is claimed.
    data_sets
        How many.
    """

    variant: str
    norm: str
    delta: float
    published: float
    mean: float
    sd: float
    coverage: float
    data_sets: int


def scale_mismatch(
    seeds: int, *, samples: int = SAMPLES, draws: int = DRAWS, fresh: int = FRESH_DRAWS
) -> list[Finding]:
    """Return every variant, norm and delta over ``seeds`` RiverSwim data sets.

    Examples
    --------
    >>> found = scale_mismatch(2, fresh=500)
    >>> {f.variant: f.coverage > 0.9 for f in found if f.delta == 0.05 and f.norm == "l1"}
    {'uniform': True, 'mismatched': False, 'consistent': True}
    """
    if not seeds >= 2:
        raise ValueError(f"seeds={seeds}; two data sets at least, for a standard deviation.")
    results: dict[tuple[str, str, float], list[tuple[float, float]]] = {}
    for seed in range(seeds):
        for key, result in _one_data_set(seed, samples, draws, fresh).items():
            results.setdefault(key, []).append(result)
    return [_summary(*key, np.array(found)) for key, found in results.items()]


def _one_data_set(
    seed: int, samples: int, draws: int, fresh: int
) -> dict[tuple[str, str, float], tuple[float, float]]:
    domain = riverswim()
    # The data and draws of the reproduction's cells of the same seed.
    data_rng, draw_rng = (np.random.default_rng([seed, samples, 0, i]) for i in (0, 1))
    posterior = DirichletPosterior(domain.simulate(samples, data_rng), prior=domain.prior)
    drawn = posterior.sample(draws, draw_rng)
    mdp = nominal_of_draws(drawn, domain.mdp)
    test = posterior.sample(fresh, draw_rng)
    over_states = solve(mdp).value
    found = {}
    for norm in ("l1", "linf"):
        weights = weights_over_states(over_states, norm)[mdp.successor]
        for delta in DELTAS:
            for variant in VARIANTS:
                sizing = None if variant == "uniform" else weights
                solving = weights if variant == "consistent" else None
                budget = paper_credible_budget(drawn, mdp, norm, sizing, delta)
                inside = (distances(test, mdp, norm, solving) <= budget).all(axis=1)
                built = AmbiguitySet(mdp=mdp, norm=norm, budget=budget, weights=solving)
                guarantee = solve(mdp, built, tolerance=1e-3).return_lower
                found[variant, norm, delta] = (guarantee, float(inside.mean()))
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


def _summary(variant: str, norm: str, delta: float, results: Floats) -> Finding:
    weights = "uniform" if variant == "uniform" else "analytic"
    published = published_guarantee("riverswim", Method("bayesian", norm, weights), delta)
    if published is None:
        raise ValueError(f"the paper has no number for delta={delta}.")
    return Finding(
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
    lines = ["| sets | norm | delta | published | ours (mean) | sd | claimed | draws inside |"]
    lines.append("|---|---|---:|---:|---:|---:|---:|---:|")
    for f in findings:
        norm = "L1" if f.norm == "l1" else "L-infinity"
        # For the consistent sets the published number is what they are compared with, not theirs.
        lines.append(
            f"| {f.variant} | {norm} | {f.delta:g} | {f.published:.0f} | {f.mean:.0f} | {f.sd:.0f} "
            f"| {1 - f.delta:g} | {f.coverage:.3f} |"
        )
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
