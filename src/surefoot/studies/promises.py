"""Every promise from one data set: published, robust, VaR, certificate, and the upper bound."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import typer

from surefoot._rounding import lower_text, upper_text
from surefoot.calibration.credible import credible_set
from surefoot.certificates.optimize import optimize
from surefoot.certificates.var import var_solve
from surefoot.domains.catalogue import as_domain
from surefoot.domains.domain import Domain
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.solvers.solver import solve
from surefoot.studies.options import Delta, Domains, Seed
from surefoot.studies.published import Method, published_guarantee
from surefoot.studies.table import Table, markdown_row, markdown_table, number_text

SETTINGS = (
    ("riverswim", 20),
    ("riverswim", 500),
    ("machine", 20),
    ("population", 20),
    ("inventory", 20),
    ("cartpole", 20),
)
"""Domains and samples per state-action pair."""
USUAL_SAMPLES = 20
"""For domains that are not listed."""
VAR_STATES = 100
"""Models with more states than this get no VaR promise: it would need too many draws."""
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
        The paper's best Bayesian L1 number for this delta; None if it has none.
    robust_uniform, robust_optimised
        Robust values of strict credible L1 sets (union over states).
    var
        The VaR operator's promise from fresh draws; None if strict ranks need too many.
    certificate, upper
        The lower and upper bound of the certificate.
    scope
        The policies that the upper bound is about.
    discount
        Discount of the model.
    seconds
        Time it took.
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
    discount: float
    seconds: float

    @property
    def var_is_weak(self) -> bool:
        """Whether a robust set promises more than the VaR operator, which is then not shown."""
        return self.var is not None and self.var < max(self.robust_uniform, self.robust_optimised)

    @property
    def row(self) -> tuple[str, ...]:
        """The row of the table, lower bounds rounded down."""
        var = None if self.var_is_weak else self.var
        found = (self.robust_uniform, self.robust_optimised, var)
        robust = ("-" if x is None else lower_text(x, 5) for x in found)
        return (
            self.domain, f"{self.samples}", number_text(self.published), *robust,
            lower_text(self.certificate, 5), upper_text(self.upper, 5),
        )  # fmt: skip

    @property
    def remark(self) -> str:
        """Why no VaR promise is shown; "" if one is."""
        place = f"{self.domain}, {self.samples} samples"
        if self.var is None:
            return f"{place}: no VaR promise, its strict ranks would need too many draws."
        if not self.var_is_weak:
            return ""
        return (
            f"{place}: the VaR promise, {lower_text(self.var, 5)}, is below the robust ones and "
            "left out. It pays for the state that fares worst on its fresh draws, divided by "
            f"1 - discount = {1 - self.discount:.2g}; with rows this uncertain that is most of the "
            "value."
        )


def promises_table(found: Sequence[Promises]) -> Table:
    """Return the promises of several data sets as one table."""
    title = f"Every promise from one data set, delta {found[0].delta:g}" if found else ""
    remarks = tuple(one.remark for one in found if one.remark)
    return Table(title, HEAD, [one.row for one in found], remarks)


def chosen_settings(domains: Sequence[str | Domain] | None) -> list[tuple[str | Domain, int]]:
    """Return (domain, samples) pairs: all listed ones, or those of the given domains.

    Examples
    --------
    >>> chosen_settings(["riverswim"])
    [('riverswim', 20), ('riverswim', 500)]
    """
    if domains is None:
        return list(SETTINGS)
    chosen: list[tuple[str | Domain, int]] = []
    for domain in domains:
        own = domain if isinstance(domain, str) else domain.name
        listed = [(domain, samples) for name, samples in SETTINGS if name == own]
        chosen += listed or [(domain, USUAL_SAMPLES)]
    return chosen


def promises(domain: str | Domain, samples: int, *, delta: float, seed: int) -> Promises:
    """Return every promise about one data set of a domain.

    Examples
    --------
    >>> found = promises("riverswim", 20, delta=0.2, seed=0)
    >>> found.robust_optimised < found.certificate < found.upper
    True
    """
    began = time.perf_counter()
    made = as_domain(domain)
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
        domain=made.name,
        samples=samples,
        delta=delta,
        published=published_guarantee(made.name, Method("bayesian", "l1", "analytic"), delta),
        robust_uniform=robust[0],
        robust_optimised=robust[1],
        var=var,
        certificate=certificate.lower_bound,
        upper=certificate.upper_bound,
        scope=certificate.scope,
        discount=made.mdp.discount,
        seconds=time.perf_counter() - began,
    )


def command(domain: Domains = None, delta: Delta = 0.05, seed: Seed = 0) -> None:
    """Every promise from one data set: published, robust, VaR, certificate, upper bound."""
    for line in markdown_table((*HEAD, "seconds"), [], words=1):
        typer.echo(line)
    remarks = []
    for name, samples in chosen_settings(domain):
        found = promises(name, samples, delta=delta, seed=seed)
        typer.echo(markdown_row((*found.row, f"{found.seconds:.0f}")))
        remarks += [found.remark] if found.remark else []
    for remark in remarks:
        typer.echo(f"\n{remark}")
