"""What every kind of set and every solver must fulfil.

A new kind of set is one more line in ``SETS`` (in ``EXACT_SETS``, with its row in
``exact_models.exact_row``, where its worst case is rational); a new algorithm is there by its
name. The tests run over all of them.
"""

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.model.mdp import MDP
from surefoot.solvers.algorithms import ALGORITHMS as NAMED
from surefoot.solvers.solution import Solution, Status

ALGORITHMS: tuple[str | None, ...] = (None, *NAMED)
OBJECTIVES = ("max", "min")
NATURES = ("worst", "best")

MakeSet = Callable[[MDP, float], AmbiguitySet]


def _ball(norm: str, shape: str) -> MakeSet:
    """Return a maker of norm balls; the weights depend on the model only, never on the size."""

    def make(mdp: MDP, size: float) -> AmbiguitySet:
        rng = np.random.default_rng(mdp.num_entries)
        weights = rng.uniform(0.3, 2.0, mdp.num_entries)
        if shape == "special":
            weights = rng.choice([0.0, 0.5, 1.0, np.inf], mdp.num_entries, p=[0.2, 0.3, 0.3, 0.2])
        return AmbiguitySet(
            mdp=mdp,
            norm=norm,
            budget=size * rng.uniform(0.5, 1.0, mdp.num_rows),
            weights=None if shape == "uniform" else weights,
        )

    return make


def _box(mdp: MDP, size: float) -> AmbiguitySet:
    """Return a box around the nominal probabilities."""
    rng = np.random.default_rng(mdp.num_entries)
    below, above = rng.uniform(0.2, 1.0, (2, mdp.num_entries)) * size
    p = mdp.probability
    lower, upper = np.maximum(p - below, 0.0), np.minimum(p + above, 1.0)
    return AmbiguitySet(mdp=mdp, norm="box", lower=lower, upper=upper)


def _box_beside(mdp: MDP, size: float) -> AmbiguitySet:
    """Return a box around other probabilities: the nominal ones may lie outside."""
    rng = np.random.default_rng(mdp.num_entries)
    centre = rng.exponential(size=mdp.num_entries)
    centre /= np.add.reduceat(centre, mdp.row_start[:-1])[mdp.entry_row]
    half = size + 1e-9  # room for the rounding of the centre
    lower, upper = np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)
    return AmbiguitySet(mdp=mdp, norm="box", lower=lower, upper=upper)


def _kl(mdp: MDP, size: float) -> AmbiguitySet:
    budget = size * np.random.default_rng(mdp.num_entries).uniform(0.5, 1.0, mdp.num_rows)
    return AmbiguitySet(mdp=mdp, norm="kl", budget=budget)


EXACT_SETS: dict[str, MakeSet] = {
    "l1": _ball("l1", "uniform"),
    "l1 weighted": _ball("l1", "weighted"),
    "l1 with zero and infinite weights": _ball("l1", "special"),
    "linf": _ball("linf", "uniform"),
    "linf weighted": _ball("linf", "weighted"),
    "linf with zero and infinite weights": _ball("linf", "special"),
    "box": _box,
    "box beside the nominal": _box_beside,
}
"""Kinds whose worst case is a rational number, so that ``exact_models`` knows it exactly."""

SETS: dict[str, MakeSet] = {**EXACT_SETS, "kl": _kl}


def random_model(
    rng: np.random.Generator,
    num_states: int,
    num_actions: int,
    *,
    discount: float,
    scale: float = 1.0,
) -> MDP:
    """Return a model with all that rows may be: short, long, certain, unseen successors.

    Actions are missing in some states; rewards depend on the successor or not.
    """
    shape = (num_states, num_actions, num_states)
    support = rng.random(shape) < rng.uniform(0.3, 1.0)
    support |= np.eye(num_states, dtype=bool)[rng.integers(num_states, size=shape[:2])]
    missing = rng.random(shape[:2]) < 0.2
    missing[:, 0] = False
    support[missing] = False
    weight = rng.exponential(size=shape) * support
    weight[rng.random(shape) < 0.2] = 0.0  # reachable, never seen
    first = np.argmax(support, axis=2)
    rows = np.ix_(range(num_states), range(num_actions))
    weight[(*rows, first)] += 0.1
    weight[missing] = 0.0
    total = weight.sum(axis=2, keepdims=True)
    transitions = np.divide(weight, total, out=np.zeros(shape), where=total > 0)
    per_entry = rng.random() < 0.5
    rewards = scale * rng.normal(size=shape if per_entry else shape[:2])
    return MDP.from_arrays(transitions, rewards, discount=discount, support=support)


def bounds_hold(solution: Solution, truth: Iterable[Fraction | float]) -> bool:
    """Tell whether ``lower <= truth <= upper`` in exact arithmetic, state by state and on average.

    The middle must lie within the error bound of the truth; figures must be finite.
    """
    if not np.all(np.isfinite([*solution.lower, *solution.upper, solution.error_bound])):
        return False
    exact = [Fraction(x) for x in truth]
    start = [Fraction(x) for x in solution.mdp.initial]
    mean = sum((p * x for p, x in zip(start, exact, strict=True)), Fraction(0)) / sum(start)
    inside = all(
        Fraction(low) <= x <= Fraction(high)
        for low, x, high in zip(solution.lower, exact, solution.upper, strict=True)
    )
    return (
        inside
        and Fraction(solution.return_lower) <= mean <= Fraction(solution.return_upper)
        and all(
            abs(Fraction(value) - x) <= Fraction(solution.error_bound)
            for value, x in zip(solution.value, exact, strict=True)
        )
    )


def brackets_meet(left: Solution, right: Solution) -> bool:
    """Tell whether two certified brackets of one truth have a point in common everywhere."""
    return bool(
        np.all(left.lower <= right.upper)
        and np.all(right.lower <= left.upper)
        and left.return_lower <= right.return_upper
        and right.return_lower <= left.return_upper
    )


def promised(solution: Solution) -> NDArray[np.float64]:
    """Return the bound that also holds for the returned policy: lower, or upper for costs."""
    return solution.lower if solution.objective == "max" else solution.upper


def promise_kept(solution: Solution, value: Iterable[Fraction | float]) -> bool:
    """Tell whether the policy's own robust value is as good as promised, exactly."""
    bound = promised(solution)
    if not np.all(np.isfinite(bound)):
        return False
    sign = 1 if solution.objective == "max" else -1
    return all(sign * (Fraction(x) - Fraction(b)) >= 0 for x, b in zip(value, bound, strict=True))


def status_is_honest(solution: Solution, tolerance: float, max_iterations: int) -> bool:
    """Tell whether the status says how the run ended."""
    reached = solution.error_bound <= tolerance
    if solution.status is Status.CONVERGED:
        return reached
    if solution.status is Status.ITERATION_LIMIT:
        return not reached and solution.iterations >= max_iterations
    return not reached


def arrays_of(thing: Any) -> dict[str, bytes]:
    """Return the bytes of all arrays that an object holds, to see whether they change."""
    found = {
        name: value.tobytes()
        for name, value in vars(thing).items()
        if isinstance(value, np.ndarray)
    }
    assert found
    return found
