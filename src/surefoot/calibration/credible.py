"""Ambiguity sets from a posterior: Algorithm 1 of Behzadian et al. (2021), corrected."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot._arguments import check_choice
from surefoot.ambiguity.confidence import Confidence
from surefoot.ambiguity.sets import NORMS, AmbiguitySet, seal
from surefoot.calibration.levels import (
    Level,
    joint_factors,
    order_statistics,
    share_level,
)
from surefoot.calibration.shapes import Shaping, choose_shape
from surefoot.calibration.weights import SEARCH, ChosenWeights
from surefoot.model.mdp import MDP
from surefoot.posterior.batch import Batch
from surefoot.posterior.protocol import Posterior, check_draws_wanted, check_generator

Floats = NDArray[np.float64]

EFFORT = 4
"""Default number of draws, as a multiple of the fewest allowed: more draws give smaller sets."""
USUAL_DRAWS = 10_000
"""At least this many draws by default: in small models they cost milliseconds."""
DEFAULT_VALUES = 2**28
"""Limit on the number of drawn probabilities, about ten seconds: large models get fewer draws."""
JOINT_VALUES = 2**25
"""The same limit for ``union="joint"``, for shape and size draws each. This union needs few draws;
with three times as many, the worst case of a model of a thousand states was only 1% higher."""
SHAPE_DRAWS = 20_000
"""The most draws used to choose a shape."""
SHAPE_SHARE = 3
"""Of a posterior with finitely many draws, one draw in this many goes to the shape."""


def credible_set(
    posterior: Posterior,
    mdp: MDP,
    *,
    delta: float,
    norm: str = "l1",
    weights: str | ArrayLike = "uniform",
    center: str | float | None = None,
    union: str = "uncertain",
    rule: str = "strict",
    draws: int | None = None,
    rng: np.random.Generator,
    eta: float = 0.001,
    passes: int = 1,
    objective: str = "max",
) -> AmbiguitySet:
    """Build a set around the nominal rows that holds the posterior model with probability 1-delta.

    Every row gets ``{p : ||p - pbar||_w <= psi}`` with ``pbar`` the probabilities of ``mdp``,
    weights ``w`` chosen for a small span along the optimal values, and ``psi`` an order statistic
    of the distances of posterior draws from ``pbar``. Shape and size use different draws.

    Parameters
    ----------
    posterior
        The posterior of the transition model; it must have the rows of ``mdp``.
    mdp
        The nominal model, for instance with the posterior mean. It must not depend on the draws
        that set the sizes.
    delta
        The probability with which the model may lie outside.
    norm
        ``"l1"`` or ``"linf"``.
    weights
        ``"uniform"``; ``"analytic"`` (minimises a bound on the span, by the dual-norm rule);
        ``"socp"`` (minimises it over the centre as well; L1 only); or an array ``(E,)``, ``(S, A)``
        or ``(S, A, S)``, chosen without looking at the draws.
    center
        The centre of the analytic weights: ``"midrange"`` (usual for L1), ``"median"`` (usual for
        L-infinity), ``"mean"``, a number, or ``"search"`` for the best on the shape draws. None
        means the usual one.
    union
        What delta is shared over: ``"all"`` rows, the ``"uncertain"`` ones, ``"states"`` (the set
        then promises only to hold the rows of one deterministic policy, which is what the robust
        policy needs; strict rule only) or ``"joint"`` (one factor for all sets; pays off where rows
        are correlated).
    rule
        ``"strict"``: with probability ``1 - eta`` over the draws every set is large enough.
        ``"marginal"``: delta holds on average over the draws.
    draws
        Number of draws for the sizes. None means four times what the rule needs and at least 10000,
        fewer for large models but never less than the rule needs; of a posterior with finitely many
        draws, all those not used for the shape.
    rng
        The source of the draws.
    eta
        The probability that the Monte Carlo fails under the strict rule.
    passes
        How often weights are chosen: first at the nominal value function, then at the robust one.
        The pass with the best robust return on the shape draws is kept.
    objective
        ``"max"`` for rewards, ``"min"`` for costs: which value function the weights are for.

    Examples
    --------
    >>> from surefoot.domains import riverswim
    >>> from surefoot.posterior.dirichlet import DirichletPosterior
    >>> rng = np.random.default_rng(0)
    >>> counts = riverswim().simulate(500, rng)
    >>> posterior = DirichletPosterior(counts)
    >>> mdp = counts.to_mdp(discount=0.99, prior=1.0)
    >>> made = credible_set(posterior, mdp, delta=0.05, norm="l1", weights="analytic", rng=rng)
    >>> made.confidence.rule, made.confidence.draws
    ('strict', 10000)
    """
    check_choice("norm", norm, NORMS)
    check_choice("objective", objective, ("max", "min"))
    if not passes >= 1:
        raise ValueError(f"passes={passes!r}; it must be at least 1.")
    posterior.check_matches(mdp)
    level = share_level(mdp, delta=delta, eta=eta, union=union, rule=rule)
    wants_shape_draws = union == "joint" or (
        isinstance(weights, str)
        and weights in ("analytic", "socp")
        and (passes > 1 or (isinstance(center, str) and center == SEARCH))
    )
    seed = _seed(rng)
    plan = _plan(posterior, mdp, level, draws, seed, wants_shape_draws)
    shaping = Shaping(mdp=mdp, norm=norm, objective=objective, batch=plan.shape, level=level)
    chosen = choose_shape(shaping, weights, center, passes)
    budget = _sizes(plan, shaping, chosen)
    made = AmbiguitySet(mdp=mdp, norm=norm, budget=budget, weights=chosen.weights)
    return seal(made, _confidence(level, plan, chosen, norm, rule, seed))


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawPlan:
    """Which draws choose the shapes and which set the sizes; fixed before any draw is seen."""

    shape: Batch | None
    size: Batch
    rank: int


def _seed(rng: np.random.Generator) -> int:
    return int(check_generator(rng).integers(0, 2**63))


def _plan(
    posterior: Posterior, mdp: MDP, level: Level, draws: int | None, seed: int, shape: bool
) -> DrawPlan:
    available = posterior.num_draws
    if available is None:
        return _plan_endless(posterior, mdp, level, draws, seed, shape)
    _check_center(posterior, mdp)
    first = 0
    if shape:
        first = available // SHAPE_SHARE if draws is None else min(draws, available - draws)
    size = available - first if draws is None else check_draws_wanted(draws)
    if first + size > available or (shape and first < 1):
        aside = " in addition to those for the shape" if shape else ""
        raise ValueError(
            f"draws={size} wanted{aside}, but the posterior has {available} independent draws. Ask "
            "for fewer, or run the sampler longer."
        )
    # One generator for both: it shuffles the finitely many draws, and the two ranges are disjoint.
    parts = [
        Batch(posterior=posterior, source=np.random.default_rng((seed, 1)), first=a, last=b)
        for a, b in ((0, first), (first, first + size))
    ]
    return DrawPlan(shape=parts[0] if shape else None, size=parts[1], rank=level.rank(size))


def _plan_endless(
    posterior: Posterior, mdp: MDP, level: Level, draws: int | None, seed: int, shape: bool
) -> DrawPlan:
    some, shaping = EFFORT * level.needed, SHAPE_DRAWS
    affordable = DEFAULT_VALUES // max(1, mdp.num_entries)
    if level.union == "joint":
        affordable = max(some, JOINT_VALUES // max(1, mdp.num_entries))
        shaping = min(SHAPE_DRAWS, affordable)
    if draws is None:
        draws = max(level.needed, min(max(some, USUAL_DRAWS), affordable))
    size = check_draws_wanted(draws)
    rank = level.rank(size)
    batches = [
        Batch.take(posterior, n, np.random.default_rng((seed, number)))
        for number, n in enumerate((shaping, size))
    ]
    return DrawPlan(shape=batches[0] if shape else None, size=batches[1], rank=rank)


def _check_center(posterior: Posterior, mdp: MDP) -> None:
    """Refuse a nominal model that is the mean of the same draws whose distances set its sizes."""
    if np.allclose(posterior.mean(), mdp.probability, rtol=0.0, atol=1e-12):
        raise ValueError(
            "the model's probabilities are the mean of all draws of this posterior, so the draws "
            "would measure distances from their own mean. Split the draws (posterior.split), take "
            "the mean of one part and pass the other; or use probabilities from the counts."
        )


def _sizes(plan: DrawPlan, shaping: Shaping, chosen: ChosenWeights) -> Floats:
    """Return the budgets; only this step uses the size draws."""
    mdp, norm = shaping.mdp, shaping.norm
    rows = np.flatnonzero(mdp.uncertain_rows)
    weights = np.ones(mdp.num_entries) if chosen.weights is None else chosen.weights
    size: Floats
    if shaping.level.union != "joint":
        (size,) = order_statistics(
            plan.size, mdp, norm=norm, weights=weights[None], rank=plan.rank, rows=rows
        )
        return size
    (size,) = shaping.sizes(weights[None])
    factors = joint_factors(plan.size, mdp, norm=norm, weights=weights, size=size, rows=rows)
    factor = float(np.partition(factors, plan.rank - 1)[plan.rank - 1])
    if not np.isfinite(factor):
        raise ValueError(
            "a row had distance 0 in the shape draws but not in the size draws, so that no common "
            'factor fits. Use union="uncertain".'
        )
    return size * factor


def _confidence(
    level: Level, plan: DrawPlan, chosen: ChosenWeights, norm: str, rule: str, seed: int
) -> Confidence:
    return Confidence(
        basis="bayesian", delta=level.delta, kind=norm, union=level.union, rule=rule,
        eta=level.total_eta if rule == "strict" else None,
        draws=plan.size.draws, shape_draws=0 if plan.shape is None else plan.shape.draws,
        seed=seed, weights=chosen.name, scale=chosen.scale,
    )  # fmt: skip
