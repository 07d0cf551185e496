"""Partial pooling: the rows of one action learn from each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surefoot.data.counts import Counts
from surefoot.data.support import UNSEEN_PRIOR
from surefoot.posterior.hierarchical import (
    HierarchicalPosterior,
    Key,
    Parameters,
    draw_dirichlet_models,
)
from surefoot.posterior.mcmc import Sampling, require, run_nuts
from surefoot.posterior.rows import Floats, Ints, RowLayout

CONCENTRATION_PRIOR = (1.0, 2.0)
"""Mean and deviation of the logarithm of an action's concentration: 95% between 0.05 and 140."""
SMALLEST_SHAPE = 1e-12
"""Lower limit of Dirichlet parameters: a weight of the base measure may come close to zero."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PooledRows:
    """Dirichlet rows with a base measure and a concentration shared by the rows of an action.

    Row ``r`` of action ``a`` has the prior ``Dirichlet(concentration_a * base_a)``, with the base
    measure restricted to the row's successors and rescaled.

    Attributes
    ----------
    layout
        The rows and entries.
    count
        ``(E,)``: how often each transition was seen.
    slot
        ``(E,)``: which weight of the base measure an entry uses; -1 for the unseen successor and
        for rows with one successor.
    fixed
        The Dirichlet parameter where ``slot`` is -1: no data can inform it.
    """

    layout: RowLayout
    count: Floats
    slot: Ints
    fixed: float

    def shapes(self, parameters: Parameters) -> Floats:
        """Return ``(b, E)``: the Dirichlet parameters of the rows given each parameter draw."""
        weight = np.where(self.slot < 0, 0.0, parameters["weight"][:, self.slot])
        total = self.layout.sum_rows(weight)[:, self.layout.entry_row]
        action = self.layout.row_action[self.layout.entry_row]
        prior = parameters["concentration"][:, action] * weight / np.where(total > 0, total, 1.0)
        prior = np.where(self.slot < 0, self.fixed, np.maximum(prior, SMALLEST_SHAPE))
        shapes: Floats = self.count + prior
        return shapes

    def expected(self, parameters: Parameters) -> Floats:
        """Return ``(b, E)``: the mean model given each parameter draw."""
        shapes = self.shapes(parameters)
        return shapes / self.layout.sum_rows(shapes)[:, self.layout.entry_row]

    def draw(self, parameters: Parameters, key: Key, first: int, rows: Ints, /) -> Floats:
        """Return ``(b, entries of the rows)``: one model for each parameter draw."""
        return draw_dirichlet_models(self.shapes(parameters), self.layout, key, first, rows)


def fit_pooled(
    counts: Counts,
    *,
    rng: np.random.Generator,
    pool: str | ArrayLike = "successor",
    unseen: float = UNSEEN_PRIOR,
    draws: int = 1000,
    warmup: int = 1000,
    chains: int = 4,
    progress: bool = True,
) -> HierarchicalPosterior:
    """Fit Dirichlet rows that are pooled across the states of each action, with NumPyro.

    For every action a base measure (uniform prior) and a concentration (log-normal prior) are
    learned; where the rows of an action look alike the concentration becomes large and rows with
    few data borrow from the others. The rows themselves are integrated out, so the sampler sees
    only the shared parameters.

    Parameters
    ----------
    counts
        Counts of transitions; where they list only what was observed they are placed on
        ``on_support("action")``, since rows can only pool successors they have in common.
    rng
        Seeds the sampler.
    pool
        What rows share: ``"successor"`` (the same next state), ``"displacement"`` (next state
        minus state, for ordered states) or one number per entry.
    unseen
        Dirichlet parameter of the unseen successor, where the support has one.
    draws, warmup, chains
        Length and number of the Markov chains, run side by side.
    progress
        Show a bar while sampling and the diagnostics at the end (standard error).

    Examples
    --------
    >>> from surefoot.domains import riverswim
    >>> rng = np.random.default_rng(0)
    >>> counts = riverswim().simulate(5, rng)
    >>> posterior = fit_pooled(counts, rng=rng, pool="displacement", draws=10, warmup=30,
    ...                        chains=1, progress=False)  # use the default number of draws
    >>> posterior.mean().shape, posterior.independent_rows
    ((22,), False)
    """
    sampling = Sampling(draws=draws, warmup=warmup, chains=chains, progress=progress)
    placed = counts if counts.declared else counts.on_support("action")
    layout = RowLayout.of(placed)
    model = PooledRows(
        layout=layout,
        count=placed.count.astype(np.float64),
        slot=_slots(placed, layout, pool),
        fixed=unseen,
    )
    result = run_nuts(_program(model), sampling, rng)
    title = "pooled rows" if progress else None
    return HierarchicalPosterior.fitted(model, layout, result, placed, title)


def _slots(counts: Counts, layout: RowLayout, pool: str | ArrayLike) -> Ints:
    """Return the number of each entry's pair (action, what rows share), -1 for none."""
    entry_state = layout.row_state[layout.entry_row]
    if isinstance(pool, str):
        kinds = {
            "successor": layout.successor.astype(np.int64),
            "displacement": layout.successor.astype(np.int64) - entry_state,
        }
        if pool not in kinds:
            raise ValueError(
                f"pool={pool!r}; choose 'successor', 'displacement' or one number per entry."
            )
        shared = kinds[pool]
    else:
        shared = np.asarray(pool)
        if shared.shape != (layout.num_entries,) or shared.dtype.kind not in "iu":
            raise ValueError(
                f"pool must be whole numbers of shape ({layout.num_entries},), got {shared.dtype} "
                f"of shape {shared.shape}."
            )
    # Rows with one successor carry no information; the unseen successor never has data.
    taught = np.diff(layout.row_start)[layout.entry_row] > 1
    if counts.unseen is not None:
        taught &= layout.successor != counts.unseen
    if not taught.any():
        raise ValueError("no row of these counts has two successors: there is nothing to learn.")
    pairs = np.stack((layout.row_action[layout.entry_row], shared), axis=1)[taught]
    slot = np.full(layout.num_entries, -1)
    slot[taught] = np.unique(pairs, axis=0, return_inverse=True)[1].ravel()
    return slot


def _program(model: PooledRows) -> Any:
    """Return the NumPyro program, with the rows integrated out (Dirichlet-multinomial)."""
    jax, numpyro, dist = require("jax"), require("numpyro"), require("numpyro.distributions")
    jnp, gammaln = jax.numpy, require("jax.scipy.special").gammaln
    layout = model.layout
    entries = np.flatnonzero(model.slot >= 0)
    rows, row = np.unique(layout.entry_row[entries], return_inverse=True)
    slot, count = model.slot[entries], model.count[entries]
    action = layout.row_action[layout.entry_row[entries]]
    visits = np.bincount(row, weights=count, minlength=len(rows))
    row_action = layout.row_action[rows]
    slots = int(model.slot.max()) + 1

    def program() -> None:
        # Independent exponentials, rescaled, are a uniform draw from the simplex.
        weight = numpyro.sample("weight", dist.Exponential(jnp.ones(slots)).to_event(1))
        concentration = numpyro.sample(
            "concentration",
            dist.LogNormal(*CONCENTRATION_PRIOR).expand([layout.num_actions]).to_event(1),
        )
        total = jax.ops.segment_sum(weight[slot], row, num_segments=len(rows))
        prior = jnp.maximum(concentration[action] * weight[slot] / total[row], SMALLEST_SHAPE)
        known = concentration[row_action]
        numpyro.factor(
            "transitions",
            (gammaln(prior + count) - gammaln(prior)).sum()
            + (gammaln(known) - gammaln(known + visits)).sum(),
        )

    return program
