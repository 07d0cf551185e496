"""The population-growth model with uncertain growth parameters.

The sampler (JAX) and the draws (NumPy) use the same functions, which take the array module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr as numpy_ndtr

from surefoot.data.counts import Counts
from surefoot.domains.population import ARRIVALS_MEAN, ARRIVALS_SD, arrivals_law, grown_law
from surefoot.posterior.hierarchical import HierarchicalPosterior, Key, Parameters
from surefoot.posterior.mcmc import Sampling, require, run_nuts
from surefoot.posterior.rows import Floats, Ints, RowLayout

LEAST_SHARE = 0.99
"""A model is refused if the successors of a row hold less of its mass than this."""
FLOOR = 1e-12
"""Added to probabilities before the logarithm: parameters may rule out an observed transition."""


class GrowthPrior(NamedTuple):
    """Log-normal priors of the growth parameters: median, and deviation of the logarithm."""

    untreated: tuple[float, float] = (1.5, 0.5)
    treated: tuple[float, float] = (0.5, 0.75)
    curve: tuple[float, float] = (0.5, 0.75)
    deviation: tuple[float, float] = (0.5, 0.5)


@dataclass(frozen=True, kw_only=True, eq=False)
class PopulationRows:
    """Population growth: mean ``untreated`` without treatment, else ``treated + curve x^2``.

    ``x = (size - capacity/2) / (capacity/2)``, so that the domain's own parameters are 2, 0.2 and
    1. ``deviation`` holds one standard deviation per action. Arrivals are known.

    Attributes
    ----------
    layout
        The rows and entries; states are population sizes, action 0 is no treatment.
    arrivals_mean, arrivals_sd
        Mean and standard deviation of the Normal number of arrivals per step.
    """

    layout: RowLayout
    arrivals_mean: float = ARRIVALS_MEAN
    arrivals_sd: float = ARRIVALS_SD

    @property
    def capacity(self) -> int:
        """The largest population."""
        return self.layout.num_states - 1

    def law(self, parameters: Any, xp: Any = np, ndtr: Any = numpy_ndtr) -> Any:
        """Return ``(..., R, S)``: the law of the next population for each row."""
        size, action = self.layout.row_state, self.layout.row_action
        middle = self.capacity / 2
        bend = ((size - middle) / middle) ** 2
        treated = parameters["treated"][..., None] + parameters["curve"][..., None] * bend
        mean = xp.where(action == 0, parameters["untreated"][..., None], treated)
        deviation = parameters["deviation"][..., action]
        grown = grown_law(self.capacity, size, mean, deviation, xp, ndtr)
        return grown @ self._arrivals()

    def _arrivals(self) -> Floats:
        """Return ``(S, S)``: from the grown population to the next state."""
        law = arrivals_law(self.capacity, self.arrivals_mean, self.arrivals_sd)
        matrix = np.zeros((self.capacity + 1, self.capacity + 1))
        for grown in range(self.capacity + 1):
            matrix[grown, grown:] = law[: self.capacity + 1 - grown]
            matrix[grown, -1] += law[self.capacity + 1 - grown :].sum()
        return matrix

    def expected(self, parameters: Parameters) -> Floats:
        """Return ``(b, E)``: the model of each parameter draw, rescaled on the successors."""
        law: Floats = self.law(parameters)[:, self.layout.entry_row, self.layout.successor]
        share = self.layout.sum_rows(law)
        if not share.min() >= LEAST_SHARE:
            row = int(np.unravel_index(np.argmin(share), share.shape)[-1])
            raise ValueError(
                f"the successors of {self.layout.row_name(row)} hold only {share.min():.3g} of its "
                "probability under some fitted parameters. Fit on counts that list more successors "
                "(population_growth(drop_below=0))."
            )
        return law / share[:, self.layout.entry_row]

    def draw(self, parameters: Parameters, _key: Key, _first: int, rows: Ints, /) -> Floats:
        """Return ``(b, entries of the rows)``: the parameters determine the model."""
        return self.expected(parameters)[:, self.layout.entries_of(rows)]


def fit_population(
    counts: Counts,
    *,
    rng: np.random.Generator,
    prior: GrowthPrior | None = None,
    draws: int = 1000,
    warmup: int = 1000,
    chains: int = 4,
    progress: bool = True,
) -> HierarchicalPosterior:
    """Fit the growth parameters of the population domain to counts, with NumPyro.

    Parameters
    ----------
    counts
        Declared counts whose states are the population sizes 0, 1, ... and whose action 0 is no
        treatment, such as those of ``population_growth(drop_below=0).simulate(...)``. Successors
        that are not listed count as impossible; fitted parameters that give them more than 1% of a
        row are refused.
    rng
        Seeds the sampler.
    prior
        Log-normal priors of the growth parameters.
    draws, warmup, chains, progress
        As in :func:`fit_pooled`.

    Examples
    --------
    >>> from surefoot.domains import population_growth
    >>> rng = np.random.default_rng(0)
    >>> counts = population_growth(drop_below=0).simulate(2, rng)
    >>> posterior = fit_population(counts, rng=rng, draws=10, warmup=30, chains=1, progress=False)
    >>> sorted(posterior.parameters)  # use the default number of draws
    ['curve', 'deviation', 'treated', 'untreated']
    """
    sampling = Sampling(draws=draws, warmup=warmup, chains=chains, progress=progress)
    if not counts.declared:
        raise ValueError(
            "counts must list every possible successor here: the growth law determines what can "
            "happen, not the log. Use population_growth(drop_below=0).simulate(...), or "
            "Counts.from_arrays(..., support=...)."
        )
    layout = RowLayout.of(counts)
    model = PopulationRows(layout=layout)
    result = run_nuts(_program(model, counts, prior or GrowthPrior()), sampling, rng)
    title = "population growth" if progress else None
    return HierarchicalPosterior.fitted(model, layout, result, counts, title)


def _program(model: PopulationRows, counts: Counts, prior: GrowthPrior) -> Any:
    """Return the NumPyro program with the exact likelihood of the transitions."""
    jax, numpyro, dist = require("jax"), require("numpyro"), require("numpyro.distributions")
    jnp, ndtr = jax.numpy, require("jax.scipy.special").ndtr
    layout = model.layout
    seen = np.flatnonzero(counts.count > 0)
    row, successor, count = layout.entry_row[seen], layout.successor[seen], counts.count[seen]
    possible = np.zeros((layout.num_rows, layout.num_states))
    possible[layout.entry_row, layout.successor] = 1.0

    def around(median_and_deviation: tuple[float, float]) -> Any:
        median, deviation = median_and_deviation
        return dist.LogNormal(np.log(median), deviation)

    def program() -> None:
        parameters = {
            name: numpyro.sample(name, around(getattr(prior, name)))
            for name in ("untreated", "treated", "curve")
        }
        spreads = around(prior.deviation).expand([layout.num_actions]).to_event(1)
        parameters["deviation"] = numpyro.sample("deviation", spreads)
        law = model.law(parameters, jnp, ndtr)
        chance = law[row, successor] / (law * possible).sum(axis=-1)[row]
        numpyro.factor("transitions", (count * jnp.log(chance + FLOOR)).sum())

    return program
