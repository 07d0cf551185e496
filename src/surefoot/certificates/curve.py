"""Certified return against confidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot._display import Grid, Shown
from surefoot._order_statistics import draws_needed, lower_rank
from surefoot._rounding import lower_text, upper_text
from surefoot.certificates import provenance
from surefoot.certificates.certification import check_levels
from surefoot.model.mdp import MDP
from surefoot.model.policies import check_policy
from surefoot.posterior.protocol import Posterior, at_most
from surefoot.solvers.evaluation.returns import policy_returns
from surefoot.solvers.evaluation.rewards import rewards_of
from surefoot.solvers.solver import counted

CURVE = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975, 0.99, 0.995, 0.999)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class GuaranteeCurve(Shown):
    """Certified return against confidence.

    Attributes
    ----------
    confidence, bound
        The points of the curve; ``bound`` is NaN where there are too few draws.
    eta
        Failure probability of the Monte Carlo, shared over the points: all of them hold together.
    draws
        Posterior draws behind the curve.
    note
        Where the curve ends for want of draws, or "".
    objective
        ``"max"`` for rewards, ``"min"`` for costs.

    Examples
    --------
    >>> curve = GuaranteeCurve(
    ...     confidence=np.array([0.5, 0.9]), bound=np.array([12.345, 10.0]), eta=0.001, draws=500,
    ...     note="",
    ... )
    >>> print(curve.summary())
    GuaranteeCurve(2 confidences from 50% to 90%, 500 draws)
    <BLANKLINE>
    confidence  at least
           50%    12.345
           90%    10.000
    """

    confidence: NDArray[np.float64]
    bound: NDArray[np.float64]
    eta: float
    draws: int
    note: str
    objective: str = "max"

    _pictured = True

    def _grid(self) -> Grid:
        safe, head = (
            (lower_text, "at least") if self.objective == "max" else (upper_text, "at most")
        )
        rows = [
            (f"{100 * level:.4g}%", "" if np.isnan(bound) else safe(float(bound)))
            for level, bound in zip(self.confidence, self.bound, strict=True)
        ]
        return Grid(head=("confidence", head), rows=rows, total=len(rows))

    def _remarks(self) -> tuple[str, ...]:
        return (self.note,) if self.note else ()

    def __repr__(self) -> str:
        ends = f"{100 * self.confidence[0]:.4g}% to {100 * self.confidence[-1]:.4g}%"
        return (
            f"GuaranteeCurve({len(self.confidence)} confidences from {ends}, {self.draws:,} draws)"
        )


def guarantee_curve(
    policy: ArrayLike,
    posterior: Posterior,
    mdp: MDP,
    *,
    confidences: Sequence[float] = CURVE,
    eta: float = 0.001,
    draws: int = 20_000,
    rng: np.random.Generator,
    objective: str = "max",
    horizon: int | None = None,
    final_reward: ArrayLike | None = None,
) -> GuaranteeCurve:
    """Return what can be promised at each confidence, with eta shared over the points.

    If the posterior has fewer than ``draws`` draws, all of them are used; the curve ends where they
    do not suffice. ``horizon`` and ``final_reward`` are those of `solve`.

    Examples
    --------
    >>> import numpy as np
    >>> from surefoot import DirichletPosterior, guarantee_curve, riverswim, solve
    >>> counts = riverswim().simulate(50, np.random.default_rng(0))
    >>> mdp, posterior = counts.to_mdp(discount=0.99, prior=1.0), DirichletPosterior(counts)
    >>> curve = guarantee_curve(
    ...     solve(mdp).policy, posterior, mdp, draws=1000, rng=np.random.default_rng(1)
    ... )
    >>> curve.note
    'with 1000 draws the curve ends at 99%; 99.5% needs 1838.'
    """
    provenance.check_objective(posterior, objective)
    mdp = counted(mdp, horizon, final_reward)
    posterior.check_matches(mdp)
    rows = check_policy(mdp, policy)
    draws = at_most(posterior, draws)
    rewards = rewards_of(mdp, posterior, objective=objective)
    returns = policy_returns(posterior, mdp, rows, draws, rng, rewards=rewards)
    return curve_of(returns.lower, confidences=confidences, eta=eta, objective=objective)


def curve_of(
    returns: NDArray[np.float64],
    *,
    confidences: Sequence[float] = CURVE,
    eta: float = 0.001,
    objective: str = "max",
) -> GuaranteeCurve:
    """Return the curve of a policy from its returns in draws that were not used to choose it."""
    levels = np.sort(np.array([float(c) for c in confidences]))
    if len(levels) == 0 or not np.all((levels >= 0.5) & (levels < 1 - 1e-12)):
        raise ValueError(f"confidences={list(confidences)!r}; they must lie in [0.5, 1).")
    share = check_levels(0.5, eta)[1] / len(levels)
    ordered = np.sort(returns)
    draws = len(ordered)
    ranks = [lower_rank(draws, float(round(1 - level, 12)), share) for level in levels]
    sign = 1.0 if objective == "max" else -1.0
    bound = np.array([sign * ordered[k - 1] if k >= 1 else np.nan for k in ranks])
    return GuaranteeCurve(
        confidence=levels, bound=bound, eta=eta, draws=draws,
        note=_where_it_ends(levels, ranks, draws, share), objective=objective,
    )  # fmt: skip


def _where_it_ends(levels: NDArray[Any], ranks: list[int], draws: int, share: float) -> str:
    short = [i for i, rank in enumerate(ranks) if rank < 1]
    if not short:
        return ""
    first = short[0]
    needed = draws_needed(float(round(1 - levels[first], 12)), share)
    reached = f"ends at {100 * levels[first - 1]:.4g}%" if first else "has no point"
    return f"with {draws} draws the curve {reached}; {100 * levels[first]:.4g}% needs {needed}."
