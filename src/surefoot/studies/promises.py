"""One data set, every promise: published, robust, VaR, certificate, and the upper bound."""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surefoot._rounding import lower_text, upper_text
from surefoot.calibration.credible import credible_set
from surefoot.certificates.optimize import optimize
from surefoot.certificates.var import var_solve
from surefoot.domains.catalogue import make_domain
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.solvers.solver import solve
from surefoot.studies.published import Method, published_guarantee

SETTINGS = (
    ("riverswim", 20),
    ("riverswim", 500),
    ("machine", 20),
    ("population", 20),
    ("inventory", 20),
    ("cartpole", 20),
)
"""Domains and samples per state-action pair."""
VAR_STATES = 100
"""Most states for which the VaR promise is worth its draws."""
HEAD = (
    "domain", "samples", "published", "robust, uniform", "robust, optimised", "VaR", "certificate",
    "no policy more than",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Promises:
    """What can be promised from one data set, by method.

    Attributes
    ----------
    domain, samples, delta
        The setting.
    published
        The paper's best Bayesian L1 number for this delta; None where there is none.
    robust_uniform, robust_optimised
        Robust values of strict credible L1 sets (union over states).
    var
        The VaR operator's promise from fresh draws; None where strict ranks need too many.
    certificate, upper
        The two ends of the certificate.
    scope
        Whom the upper end speaks of.
    seconds
        What it took.
    """

    domain: str
    samples: int
    delta: float
    published: float | None
    robust_uniform: float
    robust_optimised: float
    var: float | None
    certificate: float
    upper: float
    scope: str
    seconds: float

    @property
    def row(self) -> tuple[str, ...]:
        """The line of the table, lower bounds rounded down."""
        printed = "-" if self.published is None else f"{self.published:g}"
        found = (self.robust_uniform, self.robust_optimised, self.var)
        robust = ("-" if x is None else lower_text(x, 5) for x in found)
        return (
            self.domain, f"{self.samples}", printed, *robust,
            lower_text(self.certificate, 5), upper_text(self.upper, 5),
        )  # fmt: skip


def promises(domain: str, samples: int, *, delta: float, seed: int) -> Promises:
    """Return every promise about one data set of a domain.

    Examples
    --------
    >>> found = promises("riverswim", 20, delta=0.2, seed=0)
    >>> found.robust_optimised < found.certificate < found.upper
    True
    """
    began = time.perf_counter()
    made = make_domain(domain)
    data_rng, set_rng, var_rng, search_rng = np.random.default_rng(seed).spawn(4)
    counts = made.simulate(samples, data_rng)
    posterior = DirichletPosterior(counts, prior=made.prior)
    mdp = counts.to_mdp(discount=made.mdp.discount, initial=made.mdp.initial, prior=made.prior)
    robust = [
        solve(
            mdp,
            credible_set(
                posterior, mdp, delta=delta, norm="l1", weights=weights, union="states",
                rng=set_rng,
            ),
        ).return_lower
        for weights in ("uniform", "analytic")
    ]  # fmt: skip
    var = None
    if mdp.num_states <= VAR_STATES:
        var = var_solve(posterior, mdp, delta=delta, rng=var_rng).promise
    certificate = optimize(posterior, mdp, delta=delta, rng=search_rng).certificate
    return Promises(
        domain=domain,
        samples=samples,
        delta=delta,
        published=published_guarantee(domain, Method("bayesian", "l1", "analytic"), delta),
        robust_uniform=robust[0],
        robust_optimised=robust[1],
        var=var,
        certificate=certificate.lower_bound,
        upper=certificate.upper_bound,
        scope=certificate.scope,
        seconds=time.perf_counter() - began,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, line by line."""
    parser = argparse.ArgumentParser(
        prog="python -m surefoot.studies.promises", description=__doc__
    )
    parser.add_argument("--domains", nargs="+", default=None)
    parser.add_argument("--delta", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    out = sys.stdout
    out.write("| " + " | ".join((*HEAD, "seconds")) + " |\n|" + "---|" * (len(HEAD) + 1) + "\n")
    for domain, samples in SETTINGS:
        if options.domains is None or domain in options.domains:
            found = promises(domain, samples, delta=options.delta, seed=options.seed)
            out.write("| " + " | ".join((*found.row, f"{found.seconds:.0f}")) + " |\n")
            out.flush()


if __name__ == "__main__":
    main()
