"""Our rules on the paper's data: sets with a valid guarantee."""

from dataclasses import replace

from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.calibration.credible import credible_set
from surefoot.calibration.frequentist import frequentist_set, split_counts
from surefoot.calibration.levels import share_level
from surefoot.data.counts import Counts
from surefoot.model.mdp import MDP
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.posterior.protocol import Posterior, at_most
from surefoot.studies.cells import TableCell

UNION, ETA = "states", 0.001
"""Delta is shared over states: only the sets of rows that the robust policy plays must hold."""
EFFORT, USUAL_DRAWS = 2, 10_000
"""Draws: this multiple of what the rule needs, and at least this many."""
SHAPE_SHARE = 0.25
"""Share of the transitions that frequentist weights are chosen from; the rest set the budget."""
KINDS = {"l1": "weighted_l1", "linf": "hoeffding_linf"}
"""The sharpest bound for a ball of each norm."""


def bayesian_set(posterior: Posterior, truth: MDP, cell: TableCell) -> tuple[AmbiguitySet, int]:
    """Return the credible set of a cell around the posterior mean, and its number of draws."""
    mdp = replace(truth, probability=posterior.mean())
    level = share_level(mdp, delta=cell.delta, eta=ETA, union=UNION, rule="strict")
    draws = cell.draws or max(EFFORT * level.needed, USUAL_DRAWS)
    draws = at_most(posterior, draws)
    made = credible_set(
        posterior,
        mdp,
        delta=cell.delta,
        norm=cell.method.norm,
        weights=cell.method.weights,
        union=UNION,
        eta=ETA,
        draws=draws,
        rng=cell.rng(1),
    )
    return made, draws


def confidence_set(counts: Counts, truth: MDP, cell: TableCell) -> AmbiguitySet:
    """Return the frequentist set of a cell; weights, if any, are chosen from a part of the data."""
    method, shape = cell.method, None
    if method.weights != "uniform":
        first, counts = split_counts(counts, cell.rng(1), share=SHAPE_SHARE)
        shape = replace(truth, probability=DirichletPosterior(first).mean())
    # The number of samples is fixed by design, and so is that of each part.
    return frequentist_set(
        counts,
        counts.to_mdp(discount=truth.discount, initial=truth.initial),
        delta=cell.delta,
        kind=KINDS[method.norm],
        weights=method.weights,
        shape=shape,
        fixed_design=True,
    )
