"""The worst case of one row, and the span of a set along a direction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot._arguments import check_choice
from surefoot._display import MOST_ROWS, Grid, Shown, number_of
from surefoot._rounding import column_texts
from surefoot.ambiguity.sets import BALLS, AmbiguitySet
from surefoot.model.checks import as_float_array, check_distribution
from surefoot.model.mdp import MDP
from surefoot.solvers.pair_kernels import NEVER
from surefoot.solvers.problem import LARGEST_VALUE, make_problem
from surefoot.solvers.sweep_kernels import sweeps_of


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class WorstCase(Shown):
    """The smallest expectation over a set, and a distribution that attains it.

    Examples
    --------
    >>> worst_case([1.0, 0.0], [0.75, 0.25], budget=0.5)
    WorstCase(0.5, 2 successors)
    """

    value: float
    distribution: NDArray[np.float64]

    def _grid(self) -> Grid:
        order = np.argsort(-self.distribution, kind="stable")[:MOST_ROWS]
        shares = column_texts([float(self.distribution[i]) for i in order], 4)
        rows = [(str(i), share) for i, share in zip(order, shares, strict=True)]
        return Grid(head=("successor", "probability"), rows=rows, total=len(self.distribution))

    def __repr__(self) -> str:
        return f"WorstCase({self.value:.6g}, {number_of(len(self.distribution), 'successor')})"


def worst_case(
    values: ArrayLike,
    nominal: ArrayLike,
    *,
    budget: float,
    weights: ArrayLike | None = None,
    norm: str = "l1",
) -> WorstCase:
    """Return ``min p.values  s.t.  ||p - nominal||_w <= budget, p in the simplex``.

    Exact up to rounding, in time linear in the number of entries. A weight of infinity pins its
    entry, a weight of 0 leaves it free within the simplex; a successor with nominal probability 0
    may still receive mass.

    Parameters
    ----------
    values
        ``(K,)``; the value of each successor.
    nominal
        ``(K,)``; the nominal distribution.
    budget
        The radius of the ball, 0 or more.
    weights
        ``(K,)``; None means 1 everywhere. A KL ball takes no weights.
    norm
        ``"l1"`` (``sum w|p - nominal|``), ``"linf"`` (``max w|p - nominal|``) or ``"kl"``
        (``sum nominal log(nominal/p)``).

    Examples
    --------
    >>> worst_case([0.25, 0.25, -1.0], [0.5, 0.5, 0.0], budget=0.2).value
    0.125
    """
    z = as_float_array("values", values)
    if z.ndim != 1 or len(z) == 0:
        raise ValueError(f"values has shape {z.shape}; it must be (K,), one per successor.")
    check_numbers("values", z)
    p = check_distribution("nominal", nominal, len(z))
    check_choice("norm", norm, BALLS)
    mdp = _one_row(z, p)
    ambiguity = AmbiguitySet(
        mdp=mdp,
        norm=norm,
        budget=_beside(_radius(budget), len(z)),
        weights=None if weights is None else _entry_weights(weights, len(z)),
    )
    problem = make_problem(mdp, ambiguity, objective="max", nature="worst")
    v, scratch = np.zeros(len(z)), np.empty((4, problem.longest))
    out, chosen = np.empty(1), np.empty(len(z))
    first = np.zeros(1, dtype=np.uint64)
    sweeps_of(problem).row_values(problem, v, first, np.full((len(z), 2), NEVER), out, scratch)
    sweeps_of(problem).nature_rows(problem, v, first, first, chosen, scratch)
    return WorstCase(value=float(out[0]), distribution=np.clip(chosen, 0.0, 1.0))


def _one_row(z: NDArray[np.float64], p: NDArray[np.float64]) -> MDP:
    """Return a model whose state 0 has the row; the other states are only its successors."""
    k = len(z)
    row_start = np.concatenate(([0], np.arange(k, 2 * k)))
    return MDP(
        state_start=np.arange(k + 1),
        row_action=np.zeros(k, dtype=np.int64),
        row_start=row_start,
        successor=np.concatenate((np.arange(k), np.arange(1, k))).astype(np.int32),
        probability=np.concatenate((p, np.ones(k - 1))),
        reward=np.concatenate((z, np.zeros(k - 1))),
        discount=0.0,
        initial=_beside(1.0, k),
        num_actions=1,
        reward_per_entry=True,
    )


def _beside(budget: float, rows: int) -> NDArray[np.float64]:
    return np.concatenate(([budget], np.zeros(rows - 1)))


def _entry_weights(weights: ArrayLike, k: int) -> NDArray[np.float64]:
    w = as_float_array("weights", weights)
    if w.shape != (k,):
        raise ValueError(f"weights has shape {w.shape}; it must be ({k},).")
    bad = np.flatnonzero(~(w >= 0))
    if len(bad):
        raise ValueError(f"weights[{bad[0]}] is {w[bad[0]]}; weights must be 0 or more.")
    return np.concatenate((w, np.ones(k - 1)))


def _radius(budget: float) -> float:
    size = as_float_array("budget", budget)
    if size.ndim != 0 or not size >= 0:
        raise ValueError(f"budget={budget!r}; it must be one number, 0 or more.")
    return float(size)


def check_numbers(name: str, array: NDArray[np.float64]) -> None:
    """Refuse numbers that are not finite, or too large to compute with."""
    bad = np.flatnonzero(~(np.abs(array) <= LARGEST_VALUE))
    if len(bad):
        raise ValueError(
            f"{name}[{bad[0]}] is {array[bad[0]]}; it must be a number within "
            f"-{LARGEST_VALUE:g}..{LARGEST_VALUE:g} ({len(bad)} of {len(array)} fail)."
        )


def spans(
    ambiguity: AmbiguitySet, value: ArrayLike, *, objective: str = "max"
) -> NDArray[np.float64]:
    """Return, for every row, the span of its set along ``z = r + discount*value``.

    The span is ``max (p1 - p2).z`` over two members of the set: the range of nature's choices.

    Examples
    --------
    >>> from surefoot import riverswim
    >>> mdp = riverswim().mdp
    >>> ambiguity = AmbiguitySet.from_arrays(mdp, norm="l1", budget=0.1)
    >>> float(spans(ambiguity, np.zeros(6))[-1])  # 0.1 of mass moves between 0 and 10000
    1000.0
    """
    mdp = ambiguity.mdp
    v = as_float_array("value", value)
    if v.shape != (mdp.num_states,):
        raise ValueError(f"value has shape {v.shape}; it must be ({mdp.num_states},).")
    check_numbers("value", v)
    worst, best = (_row_ends(ambiguity, v, objective, nature) for nature in ("worst", "best"))
    return np.maximum(best - worst, 0.0)


def _row_ends(
    ambiguity: AmbiguitySet, v: NDArray[np.float64], objective: str, nature: str
) -> NDArray[np.float64]:
    """Return, for every row, nature's extreme expectation of ``r + discount*v``; costs negated."""
    mdp = ambiguity.mdp
    problem = make_problem(mdp, ambiguity, objective=objective, nature=nature)
    out = np.empty(mdp.num_rows)
    sweeps_of(problem).row_values(
        problem,
        v if objective == "max" else -v,
        np.arange(mdp.num_rows, dtype=np.uint64),
        np.full((mdp.num_rows, 2), NEVER),
        out,
        np.empty((4, problem.longest)),
    )
    return out


SMALL = 1e-6
"""Spans are taken to be at least this share of the largest value when errors are compared."""
CONVERGED = 1e-3
"""The error of the values may be at most this share of the largest span."""


def loss_bound(
    ambiguity: AmbiguitySet,
    value: ArrayLike,
    *,
    objective: str = "max",
    delta: float | None = None,
) -> float:
    """Return Theorem 3.2's bound on the cost of robustness: the largest span over 1 - discount.

    If ``value`` is the robust value of a set that holds the truth with probability 1 - delta, the
    percentile optimum exceeds the robust return by at most this. The proof needs ``delta`` below
    1/2. In practice the bound is very loose: see docs/errata.md.

    Parameters
    ----------
    ambiguity
        The set.
    value
        ``(S,)``; its robust value, converged: ``solve(mdp, ambiguity).value``. The bound includes
        the remaining error.
    objective
        ``"max"`` for rewards, ``"min"`` for costs.
    delta
        The probability that the truth lies outside the set. Only for sets made by hand: other sets
        carry theirs.

    Examples
    --------
    >>> from surefoot import riverswim, solve
    >>> mdp = riverswim().mdp
    >>> ambiguity = AmbiguitySet.from_arrays(mdp, norm="l1", budget=0.1)
    >>> loss_bound(ambiguity, solve(mdp, ambiguity).value, delta=0.05) > 100_000
    True
    """
    _check_failure(ambiguity, delta)
    if ambiguity.mdp.horizon is not None or ambiguity.mdp.discount == 1.0:
        raise ValueError(
            "Theorem 3.2 is about an infinite horizon at a discount below 1; this model has a "
            "horizon or discount 1."
        )
    largest = float(spans(ambiguity, value, objective=objective).max())
    discount = ambiguity.mdp.discount
    error = _value_error(ambiguity, np.asarray(value, dtype=np.float64), objective)
    # If the value moves by e, a span changes by at most 2 * discount * e.
    bound = (largest + 2 * discount * error) / (1 - discount)
    scale = float(np.abs(ambiguity.mdp.reward).max()) / (1 - discount)
    if not error <= CONVERGED * max(largest, SMALL * scale):
        raise ValueError(
            f"value may be {error:.3g} away from the robust value of this set, whose spans are at "
            f"most {largest:.3g}. Pass the converged value of solve(mdp, ambiguity)."
        )
    return bound


def _check_failure(ambiguity: AmbiguitySet, delta: float | None) -> None:
    """Require a failure probability below 1/2, from the set or from ``delta``."""
    known = None if ambiguity.confidence is None else ambiguity.confidence.delta
    if known is not None and delta is not None and delta != known:
        raise ValueError(f"delta={delta!r}, but this set was made for delta={known}. Leave it out.")
    level = delta if known is None else known
    if level is None:
        raise ValueError(
            "this set was made by hand and carries no delta. Pass delta=, the probability that "
            "the true model lies outside it."
        )
    if not 0 < level < 0.5:
        raise ValueError(f"delta={level!r}; the bound is proven for 0 < delta < 1/2 only.")


def _value_error(ambiguity: AmbiguitySet, v: NDArray[np.float64], objective: str) -> float:
    """Bound the distance of ``v`` from the robust value by its residual / (1 - discount)."""
    mdp = ambiguity.mdp
    rows = _row_ends(ambiguity, v, objective, "worst")
    backed_up = np.maximum.reduceat(rows, mdp.state_start[:-1])
    sign = 1.0 if objective == "max" else -1.0
    return float(np.abs(backed_up - sign * v).max()) / (1 - mdp.discount)
