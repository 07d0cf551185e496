"""Ambiguity sets: for every row of an MDP, the distributions that nature may choose from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot._arguments import check_choice
from surefoot._display import Shown, number_of
from surefoot._rows import freeze_fields
from surefoot.ambiguity.confidence import Confidence, seal_of
from surefoot.model.checks import SUM_TOLERANCE, as_float_array
from surefoot.model.mdp import MDP

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Ball:
    """A kind of ball around the nominal row, given by the distance that the budget bounds.

    Attributes
    ----------
    parts
        A function of the nominal and of other probabilities, both ``(E,)``: what each entry
        contributes to the distance.
    combine
        ``np.add`` or ``np.maximum``: how the contributions of a row give its distance.
    weighted
        Whether the contributions may be weighted.
    """

    parts: Callable[[Floats, Floats], Floats]
    combine: np.ufunc
    weighted: bool


def _deviation(nominal: Floats, p: Floats) -> Floats:
    return np.abs(p - nominal)


def _divergence(nominal: Floats, p: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(nominal > 0, nominal * np.log(nominal / p), 0.0)


NORMS = ("l1", "linf")
"""The balls that credible sets and weights support."""
BALLS = {
    "l1": Ball(parts=_deviation, combine=np.add, weighted=True),
    "linf": Ball(parts=_deviation, combine=np.maximum, weighted=True),
    "kl": Ball(parts=_divergence, combine=np.add, weighted=False),
}
"""All balls by name; each has its kernels in `surefoot.solvers`."""
WEIGHTS_WITHIN = (1e-150, 1e150)
"""Range of the weights other than 0 and infinity: their quotients and products stay finite."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AmbiguitySet(Shown):
    """One set per row of an MDP, around its nominal probabilities (a box may leave these out).

    ``l1``: ``sum_i w_i |p_i - pbar_i| <= budget``;
    ``linf``: ``max_i w_i |p_i - pbar_i| <= budget``;
    ``kl``: ``sum_i pbar_i log(pbar_i / p_i) <= budget``, in which an entry with nominal probability
    0 may receive mass; ``box``: ``lower <= p <= upper``; all within the simplex on the row's
    successors. Weights and budgets belong together: neither means anything without the other.

    Attributes
    ----------
    mdp
        The model whose rows and nominal probabilities the set is about.
    norm
        ``"l1"``, ``"linf"``, ``"kl"`` or ``"box"``.
    budget
        ``(R,)``; None for a box. Infinity is the whole simplex.
    weights
        ``(E,)``; None means 1 for every entry. Infinity pins an entry, 0 leaves it free.
    lower, upper
        ``(E,)``; for a box only.
    reward_lower, reward_upper
        ``(E,)``; intervals of uncertain mean rewards, covered by the same confidence. Solvers use
        the rewards of the model; `certify_frequentist` uses these intervals.
    confidence
        What the set promises and how it was made; None for a set made by hand. It is valid for
        exactly these numbers: a set with other numbers refuses it.

    Examples
    --------
    >>> from surefoot.domains import riverswim
    >>> AmbiguitySet.from_arrays(riverswim().mdp, norm="l1", budget=0.2)
    AmbiguitySet(l1, 12 rows, budget 0.2, uniform weights)
    """

    mdp: MDP
    norm: str
    budget: NDArray[np.float64] | None = None
    weights: NDArray[np.float64] | None = None
    lower: NDArray[np.float64] | None = None
    upper: NDArray[np.float64] | None = None
    reward_lower: NDArray[np.float64] | None = None
    reward_upper: NDArray[np.float64] | None = None
    confidence: Confidence | None = None

    def __post_init__(self) -> None:
        for name in ("budget", "weights", "lower", "upper", "reward_lower", "reward_upper"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, as_float_array(name, getattr(self, name)))
        freeze_fields(self)
        kinds = (*BALLS, "box")
        check_choice("norm", self.norm, kinds)
        if self.norm == "box":
            _check_box(self)
        else:
            _check_ball(self)
        _check_rewards(self)
        _check_confidence(self)

    @classmethod
    def from_arrays(
        cls, mdp: MDP, *, norm: str, budget: ArrayLike, weights: ArrayLike | None = None
    ) -> AmbiguitySet:
        """Build a norm ball for every row from dense arrays or single numbers.

        Parameters
        ----------
        mdp
            The model.
        norm
            ``"l1"``, ``"linf"`` or ``"kl"``.
        budget
            A number or ``(S, A)``.
        weights
            None (1 everywhere), a number, ``(S, A)`` or ``(S, A, S)``; a KL ball has none.
        """
        if norm not in BALLS:
            raise ValueError(
                f"norm={norm!r}; choose {', '.join(map(repr, BALLS))} (a box is made by "
                "AmbiguitySet.box)."
            )
        return cls(
            mdp=mdp,
            norm=norm,
            budget=_per_row(mdp, "budget", budget),
            weights=None if weights is None else per_entry(mdp, "weights", weights),
        )

    @classmethod
    def box(cls, mdp: MDP, *, lower: ArrayLike, upper: ArrayLike) -> AmbiguitySet:
        """Build an interval set: bounds as numbers, ``(S, A)`` or ``(S, A, S)``.

        Examples
        --------
        >>> from surefoot.domains import riverswim
        >>> mdp = riverswim().mdp
        >>> p = mdp.to_arrays().transitions
        >>> AmbiguitySet.box(mdp, lower=np.maximum(p - 0.1, 0), upper=np.minimum(p + 0.1, 1))
        AmbiguitySet(box, 12 rows)
        """
        return cls(
            mdp=mdp,
            norm="box",
            lower=per_entry(mdp, "lower", lower),
            upper=per_entry(mdp, "upper", upper),
        )

    def _facts(self) -> list[tuple[str, str]]:
        made = "by hand: it promises nothing about the true model"
        if self.confidence is not None:
            made = f"from data: {self.confidence!r}"
        return [("model", repr(self.mdp)), ("made", made)]

    def _remarks(self) -> tuple[str, ...]:
        return () if self.confidence is None else self.confidence.assumptions

    def __repr__(self) -> str:
        rows = number_of(self.mdp.num_rows, "row")
        if self.norm == "box":
            return f"AmbiguitySet(box, {rows}{_promise(self)})"
        budget = _need(self, "budget", self.mdp.num_rows)
        low, high = budget.min(), budget.max()
        size = f"budget {low:.4g}" if low == high else f"budgets {low:.4g} to {high:.4g}"
        if not BALLS[self.norm].weighted:
            return f"AmbiguitySet({self.norm}, {rows}, {size}{_promise(self)})"
        shape = "uniform weights" if self.weights is None else "weighted"
        return f"AmbiguitySet({self.norm}, {rows}, {size}, {shape}{_promise(self)})"


def _promise(ambiguity: AmbiguitySet) -> str:
    known = ambiguity.confidence
    return "" if known is None else f", {known.basis}, delta {known.delta:g}"


def seal(ambiguity: AmbiguitySet, confidence: Confidence) -> AmbiguitySet:
    """Return the set with a confidence that is valid for its numbers only.

    Examples
    --------
    >>> from surefoot.domains import riverswim
    >>> made = AmbiguitySet.from_arrays(riverswim().mdp, norm="l1", budget=0.2)
    >>> known = Confidence(basis="bayesian", delta=0.05, kind="l1", union="uncertain")
    >>> promise = seal(made, known)
    >>> promise
    AmbiguitySet(l1, 12 rows, budget 0.2, uniform weights, bayesian, delta 0.05)
    >>> replace(promise, budget=0.5 * promise.budget)
    Traceback (most recent call last):
        ...
    ValueError: these numbers are not those that the confidence (delta=0.05) was computed for. ...
    """
    tied = replace(confidence, seal=_seal_of(ambiguity, confidence))
    return replace(ambiguity, confidence=tied)


def _seal_of(ambiguity: AmbiguitySet, confidence: Confidence) -> str:
    return seal_of(
        confidence, ambiguity.norm, ambiguity.budget, ambiguity.weights, ambiguity.lower,
        ambiguity.upper, ambiguity.reward_lower, ambiguity.reward_upper,
        ambiguity.mdp.probability,
    )  # fmt: skip


def _check_confidence(ambiguity: AmbiguitySet) -> None:
    known = ambiguity.confidence
    if known is not None and known.seal != _seal_of(ambiguity, known):
        raise ValueError(
            f"these numbers are not those that the confidence (delta={known.delta:g}) was computed "
            "for. Make a new set, or pass confidence=None: a set made by hand promises nothing."
        )


def check_same_rows(ambiguity: AmbiguitySet, mdp: MDP) -> None:
    """Refuse a set that was made for another model: its budgets would mean nothing here."""
    own = ambiguity.mdp
    if own is mdp:
        return
    same = all(
        np.array_equal(getattr(own, name), getattr(mdp, name))
        for name in ("state_start", "row_action", "row_start", "successor", "probability")
    )
    if not same:
        raise ValueError(
            f"the ambiguity set was made for another model ({own!r}) than the one to solve "
            f"({mdp!r}): rows or nominal probabilities differ. Make the set from this model."
        )


def _per_row(mdp: MDP, name: str, value: ArrayLike) -> NDArray[np.float64]:
    array = as_float_array(name, value)
    if array.ndim == 0:
        return np.full(mdp.num_rows, float(array))
    if array.shape != (mdp.num_states, mdp.num_actions):
        raise ValueError(
            f"{name} has shape {array.shape}; give a number or (states, actions) = "
            f"({mdp.num_states}, {mdp.num_actions})."
        )
    return array[mdp.row_state, mdp.row_action]


def per_entry(mdp: MDP, name: str, value: ArrayLike) -> NDArray[np.float64]:
    """Return a number, ``(S, A)`` or ``(S, A, S)`` as one number per entry."""
    array = as_float_array(name, value)
    if array.ndim < 3:
        return _per_row(mdp, name, array)[mdp.entry_row]
    if array.shape != (mdp.num_states, mdp.num_actions, mdp.num_states):
        raise ValueError(
            f"{name} has shape {array.shape}; give a number, (states, actions) or "
            f"(states, actions, states) = "
            f"({mdp.num_states}, {mdp.num_actions}, {mdp.num_states})."
        )
    rows = mdp.entry_row
    return array[mdp.row_state[rows], mdp.row_action[rows], mdp.successor]


def _need(ambiguity: AmbiguitySet, name: str, length: int) -> NDArray[np.float64]:
    value: Any = getattr(ambiguity, name)
    if value is None or value.shape != (length,):
        found = "nothing" if value is None else f"shape {value.shape}"
        raise ValueError(f"a {ambiguity.norm} set needs {name} of shape ({length},), got {found}.")
    array: NDArray[np.float64] = value
    return array


def _without(ambiguity: AmbiguitySet, *names: str) -> None:
    """Refuse arrays that a set of this kind would ignore."""
    for name in names:
        if getattr(ambiguity, name) is not None:
            raise ValueError(f"a {ambiguity.norm} set has no {name}; leave it out.")


def _check_ball(ambiguity: AmbiguitySet) -> None:
    mdp = ambiguity.mdp
    _without(ambiguity, "lower", "upper")
    budget = _need(ambiguity, "budget", mdp.num_rows)
    bad = np.flatnonzero(~(budget >= 0))
    if len(bad):
        raise ValueError(
            f"the budget of {mdp.row_name(bad[0])} is {budget[bad[0]]}; budgets must be 0 or "
            f"more ({len(bad)} of {mdp.num_rows} fail)."
        )
    if ambiguity.weights is None:
        return
    if not BALLS[ambiguity.norm].weighted:
        raise ValueError(f"a {ambiguity.norm} ball has no weights; leave them out.")
    weights = _need(ambiguity, "weights", mdp.num_entries)
    bad = np.flatnonzero(~(weights >= 0))
    if len(bad):
        raise ValueError(
            f"the weight of {_entry_name(mdp, bad[0])} is {weights[bad[0]]}; weights must be 0 or "
            f"more ({len(bad)} of {mdp.num_entries} fail)."
        )
    smallest, largest = WEIGHTS_WITHIN
    extreme = (weights > 0) & (weights < smallest) | np.isfinite(weights) & (weights > largest)
    bad = np.flatnonzero(extreme)
    if len(bad):
        raise ValueError(
            f"the weight of {_entry_name(mdp, bad[0])} is {weights[bad[0]]}; weights must be 0 "
            f"(free), infinity (pinned) or lie within {smallest:g}..{largest:g}. Scale weights and "
            f"budgets by the same factor ({len(bad)} of {mdp.num_entries} fail)."
        )


def _check_box(ambiguity: AmbiguitySet) -> None:
    mdp = ambiguity.mdp
    _without(ambiguity, "budget", "weights")
    lower = _need(ambiguity, "lower", mdp.num_entries)
    upper = _need(ambiguity, "upper", mdp.num_entries)
    bad = np.flatnonzero(~((lower >= 0) & (lower <= upper) & (upper <= 1)))
    if len(bad):
        i = bad[0]
        raise ValueError(
            f"the interval of {_entry_name(mdp, i)} is [{lower[i]}, {upper[i]}]; it must satisfy "
            f"0 <= lower <= upper <= 1 ({len(bad)} of {mdp.num_entries} fail)."
        )
    tolerance = SUM_TOLERANCE * np.diff(mdp.row_start)
    least = np.add.reduceat(lower, mdp.row_start[:-1])
    most = np.add.reduceat(upper, mdp.row_start[:-1])
    bad = np.flatnonzero(~((least <= 1 + tolerance) & (most >= 1 - tolerance)))
    if len(bad):
        row = bad[0]
        which = "lower" if not least[row] <= 1 + tolerance[row] else "upper"
        total = least[row] if which == "lower" else most[row]
        side = "at most" if which == "lower" else "at least"
        raise ValueError(
            f"the {which} bounds of {mdp.row_name(row)} sum to {total:.9g}; they must sum to "
            f"{side} 1, or no distribution fits ({len(bad)} of {mdp.num_rows} rows fail)."
        )


def _check_rewards(ambiguity: AmbiguitySet) -> None:
    if ambiguity.reward_lower is None and ambiguity.reward_upper is None:
        return
    mdp = ambiguity.mdp
    lower = _need(ambiguity, "reward_lower", mdp.num_entries)
    upper = _need(ambiguity, "reward_upper", mdp.num_entries)
    bad = np.flatnonzero(~((lower <= upper) & np.isfinite(lower) & np.isfinite(upper)))
    if len(bad):
        i = bad[0]
        raise ValueError(
            f"the rewards of {_entry_name(mdp, i)} lie between {lower[i]} and {upper[i]}; the ends "
            f"must be finite and in order ({len(bad)} of {mdp.num_entries} fail)."
        )


def _entry_name(mdp: MDP, entry: int) -> str:
    target = mdp.state_name(mdp.successor[entry])
    return f"{mdp.row_name(mdp.entry_row[entry])}, successor {target}"


def contains(ambiguity: AmbiguitySet, probability: ArrayLike) -> NDArray[np.bool_]:
    """Tell for every row, ``(R,)``, whether given probabilities ``(E,)`` lie in its set.

    There is no tolerance: whether a point on the boundary counts as inside depends on rounding.

    Examples
    --------
    >>> from surefoot.domains import riverswim
    >>> mdp = riverswim().mdp
    >>> ball = AmbiguitySet.from_arrays(mdp, norm="l1", budget=0.1)
    >>> bool(contains(ball, mdp.probability).all())
    True
    """
    mdp = ambiguity.mdp
    p = as_float_array("probability", probability)
    if p.shape != (mdp.num_entries,):
        raise ValueError(f"probability has shape {p.shape}; it must be ({mdp.num_entries},).")
    starts = mdp.row_start[:-1]
    if ambiguity.lower is not None and ambiguity.upper is not None:
        inside = (ambiguity.lower <= p) & (p <= ambiguity.upper)
        return np.asarray(np.logical_and.reduceat(inside, starts))
    ball = BALLS[ambiguity.norm]
    parts = ball.parts(mdp.probability, p)
    if ambiguity.weights is not None:
        with np.errstate(invalid="ignore"):
            parts = np.where(parts == 0, 0.0, ambiguity.weights * parts)
    return np.asarray(ball.combine.reduceat(parts, starts) <= np.asarray(ambiguity.budget))
