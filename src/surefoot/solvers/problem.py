"""Turns a model and its sets into the plain arrays that the kernels read."""

from functools import cache
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from surefoot._arguments import check_choice
from surefoot.ambiguity.sets import AmbiguitySet, check_same_rows
from surefoot.model.checks import discount_text
from surefoot.model.mdp import MDP
from surefoot.solvers.dual_kernels import BOX, L1, L1_PINNED, NOMINAL
from surefoot.solvers.row_kernels import Problem
from surefoot.solvers.steps import ends_of, largest_value, until_the_end
from surefoot.solvers.sweep_kernels import OWN_FAMILY

EPSILON = float(np.finfo(np.float64).eps)
OBJECTIVES = ("max", "min")
NATURES = ("worst", "best")
LARGEST_VALUE = 1e150
"""Values must stay below this, so that their products and quotients stay finite."""
EMPTY = np.empty(0)
EMPTY.setflags(write=False)
NOTHING = np.empty(0, dtype=np.bool_)
NOTHING.setflags(write=False)


class SetArrays(NamedTuple):
    """The part of a Problem that depends on the sets alone."""

    family: int
    uncertain: NDArray[np.bool_]
    budget: NDArray[np.float64]
    weights: NDArray[np.float64]
    shared: bool
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    holds_nominal: bool


_rows: WeakKeyDictionary[MDP, tuple[NDArray[np.float64], int]] = WeakKeyDictionary()
"""The probabilities that the solvers use for a model, and the length of its longest row."""
_set_arrays: WeakKeyDictionary[AmbiguitySet, SetArrays] = WeakKeyDictionary()


def make_problem(
    mdp: MDP, ambiguity: AmbiguitySet | None, *, objective: str, nature: str
) -> Problem:
    """Validate the arguments of a solve and return its arrays. Costs are negated rewards.

    Results that take a pass over the entries are cached for as long as the model and the set live.
    """
    for name, thing, wanted in (("mdp", mdp, MDP), ("ambiguity", ambiguity, AmbiguitySet)):
        if not isinstance(thing, wanted) and not (name == "ambiguity" and thing is None):
            raise TypeError(f"{name} must be an {wanted.__name__}, got {type(thing).__name__}.")
    for name, value, choices in (
        ("objective", objective, OBJECTIVES),
        ("nature", nature, NATURES),
    ):
        check_choice(name, value, choices)
    if mdp not in _rows:
        _check_range(mdp)
        counting = _going_on(mdp, normalised(mdp.probability, mdp.row_start))
        _rows[mdp] = counting, int(np.diff(mdp.row_start).max())
    probability, longest = _rows[mdp]
    if ambiguity is None:
        arrays = SetArrays(NOMINAL, NOTHING, EMPTY, ones(longest), True, EMPTY, EMPTY, True)
    else:
        check_same_rows(ambiguity, mdp)
        if ambiguity not in _set_arrays:
            _set_arrays[ambiguity] = set_arrays(ambiguity, probability, longest)
        arrays = _set_arrays[ambiguity]
    return Problem(
        first=mdp.state_start[:-1].view(np.uint64),
        last=mdp.state_start[1:].view(np.uint64),
        row_start=mdp.row_start.view(np.uint64),
        successor=mdp.successor.view(np.uint32),
        probability=probability,
        reward=mdp.reward if objective == "max" else locked(-mdp.reward),
        reward_per_entry=mdp.reward_per_entry,
        discount=mdp.discount,
        sign=1.0 if nature == "worst" else -1.0,
        family=arrays.family,
        uncertain=arrays.uncertain,
        budget=arrays.budget,
        weights=arrays.weights,
        shared=arrays.shared,
        lower=arrays.lower,
        upper=arrays.upper,
        longest=longest,
        nominal_caps=arrays.holds_nominal and nature == "worst",
    )


def _going_on(mdp: MDP, probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probabilities; with discount 1 and no horizon, 0 in the rows of end states.

    An end then has the value 0 without further care, and ``I - P`` can be solved.
    """
    if not until_the_end(mdp):
        return probability
    ended = ends_of(mdp)[mdp.row_state[mdp.entry_row]]
    return locked(np.where(ended, 0.0, probability))


def _check_range(mdp: MDP) -> None:
    """Refuse rewards whose sums could overflow: no valid bound could be computed."""
    largest = largest_value(mdp)
    if not largest <= LARGEST_VALUE:
        raise ValueError(
            f"rewards as large as {np.abs(mdp.reward).max():g} at discount "
            f"{discount_text(mdp.discount)} give values beyond {LARGEST_VALUE:g}, too large to "
            "compute with. Use other units of reward."
        )


def set_arrays(
    ambiguity: AmbiguitySet, probability: NDArray[np.float64], longest: int
) -> SetArrays:
    """Classify the rows of a set and convert its numbers to the form the kernels read."""
    mdp = ambiguity.mdp
    uncertain = np.diff(mdp.row_start) > 1
    if ambiguity.norm != "box":
        uncertain &= ~_only_nominal(ambiguity)
    uncertain = locked(uncertain)
    weights, shared = ones(longest), True
    if ambiguity.norm == "l1":
        family = L1
        if ambiguity.weights is not None:
            weights, shared = ambiguity.weights, False
            family = L1_PINNED if np.any(np.isinf(weights)) else L1
        budget = locked(_clip_budget(ambiguity))
        return SetArrays(family, uncertain, budget, weights, shared, EMPTY, EMPTY, True)
    if ambiguity.norm in OWN_FAMILY:
        budget = present(ambiguity.budget)
        if ambiguity.weights is not None:
            weights, shared = ambiguity.weights, False
        return SetArrays(
            OWN_FAMILY[ambiguity.norm], uncertain, budget, weights, shared, EMPTY, EMPTY, True
        )
    lower, upper = box_bounds(ambiguity, probability)
    holds = bool(np.all((lower <= probability) & (probability <= upper)))
    return SetArrays(BOX, uncertain, EMPTY, weights, shared, locked(lower), locked(upper), holds)


def locked(array: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only, like those of a model, so that kernels compile for one kind only."""
    array.setflags(write=False)
    return array


@cache
def ones(length: int) -> NDArray[np.float64]:
    """Return the weights that all rows share when none are given."""
    return locked(np.ones(length))


def normalised(
    probability: NDArray[np.float64], row_start: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Divide rows by their sums; return the array itself if all sums are 1 up to rounding."""
    sums = np.add.reduceat(probability, row_start[:-1])
    lengths = np.diff(row_start)
    if np.all(np.abs(sums - 1) <= EPSILON * (lengths + 1)):
        return probability
    return locked(probability / np.repeat(sums, lengths))


def present(array: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Return an array that the checks of its set guarantee to be there."""
    if array is None:
        raise TypeError("an ambiguity set lost one of its arrays.")
    return array


def _clip_budget(ambiguity: AmbiguitySet) -> NDArray[np.float64]:
    """Cap budgets at the largest possible distance (infinite budgets would produce NaN)."""
    budget = present(ambiguity.budget)
    if ambiguity.weights is None:
        return np.minimum(budget, 2.0).astype(np.float64)
    finite = np.where(np.isinf(ambiguity.weights), 0.0, ambiguity.weights)
    furthest = 2 * np.maximum.reduceat(finite, ambiguity.mdp.row_start[:-1])
    clipped: NDArray[np.float64] = np.minimum(budget, furthest)
    return clipped


def _only_nominal(ambiguity: AmbiguitySet) -> NDArray[np.bool_]:
    """Find the rows whose ball is a point: budget 0, and at most one entry of weight 0."""
    budget = present(ambiguity.budget)
    if ambiguity.weights is None:
        return np.asarray(budget == 0)
    free = np.add.reduceat(ambiguity.weights == 0, ambiguity.mdp.row_start[:-1], dtype=np.int64)
    return np.asarray((budget == 0) & (free <= 1))


def _reaching_one(ambiguity: AmbiguitySet) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the bounds of a box; divided by their sum where rounding makes them miss 1.

    Otherwise the search would put the missing mass on an arbitrary successor: the best one.
    """
    lower, upper = present(ambiguity.lower), present(ambiguity.upper)
    start = ambiguity.mdp.row_start
    least = np.add.reduceat(lower, start[:-1])
    most = np.add.reduceat(upper, start[:-1])
    if np.all(least <= 1) and np.all(most >= 1):
        return lower, upper
    lengths = np.diff(start)
    return (
        lower / np.repeat(np.maximum(least, 1.0), lengths),
        upper / np.repeat(np.minimum(most, 1.0), lengths),
    )


def box_bounds(
    ambiguity: AmbiguitySet, probability: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the box of every row; an L-infinity ball is the box ``pbar -+ budget/w``."""
    if ambiguity.norm == "box":
        return _reaching_one(ambiguity)
    half = np.repeat(present(ambiguity.budget), np.diff(ambiguity.mdp.row_start))
    if ambiguity.weights is not None:
        weights = ambiguity.weights
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            half = np.where(weights == 0, np.inf, np.where(np.isinf(weights), 0.0, half / weights))
    return np.maximum(probability - half, 0.0), np.minimum(probability + half, 1.0)
