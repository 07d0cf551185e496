"""Small models at the ends of what doubles can hold, and whether their certified bounds hold.

``python -m benchmarks.extremes`` goes through 100,000 of them; the tests take a few.
"""

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contracts import ALGORITHMS, NATURES, OBJECTIVES, bounds_hold, promise_kept
from exact_models import ExactModel
from surefoot import MDP, AmbiguitySet, evaluate, solve
from surefoot.solvers.solution import Solution

DISCOUNTS = (0.0, 1e-300, 0.3, 0.9, 0.99, 0.999, 0.9999)
STOPS = (1, 2, 3, 5, 10, 40, 1000)
SMALLEST = 5e-324
KINDS = ("none", "l1", "linf", "box")


class Case(NamedTuple):
    """A model, a set, and how they are solved."""

    mdp: MDP
    ambiguity: AmbiguitySet | None
    objective: str
    nature: str
    algorithm: str | None
    stop: int
    policy: NDArray[Any] | None


def powers(rng: np.random.Generator, low: float, high: float, size: Any = None) -> Any:
    """Return numbers whose decimal exponents are evenly spread."""
    return 10.0 ** rng.uniform(low, high, size)


def extreme_case(seed: int) -> Case:
    """Return the case of a number."""
    rng = np.random.default_rng([seed, 20])
    mdp = _model(rng)
    algorithm = ALGORITHMS[rng.integers(len(ALGORITHMS))]
    policy = None
    if rng.random() < 0.3:
        chances = rng.dirichlet(np.ones(mdp.num_actions), size=mdp.num_states) * mdp.available
        chances /= chances.sum(axis=1, keepdims=True)
        policy = chances if rng.random() < 0.5 else np.argmax(chances, axis=1)
    return Case(
        mdp=mdp,
        ambiguity=_set(rng, mdp),
        objective=OBJECTIVES[rng.integers(2)],
        nature=NATURES[rng.integers(2)],
        algorithm=algorithm,
        stop=int(rng.choice(STOPS)),
        policy=policy,
    )


def _model(rng: np.random.Generator) -> MDP:
    states, actions = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    shape = (states, actions, states)
    support = rng.random(shape) < rng.uniform(0.4, 1.0)
    support |= np.eye(states, dtype=bool)[rng.integers(states, size=shape[:2])]
    mass = rng.exponential(size=shape)
    tiny = rng.random(shape) < 0.3
    mass = np.where(tiny, powers(rng, -308, -1, shape), mass)
    mass[rng.random(shape) < 0.1] = SMALLEST
    mass[rng.random(shape) < 0.1] = 0.0
    largest = np.argmax(rng.random(shape) * support, axis=2)
    mass[(*np.ix_(range(states), range(actions)), largest)] = 1.0
    mass *= support
    transitions = mass / mass.sum(axis=2, keepdims=True)
    wanted = shape if rng.random() < 0.5 else shape[:2]
    rewards = rng.normal(size=wanted)
    size = rng.integers(4)
    if size < 3:
        rewards *= (1e-12, 1.0, 1e12)[size]
    else:
        rewards *= powers(rng, -12, 12, wanted)
    rewards[rng.random(wanted) < 0.1] = 0.0
    discount = float(rng.choice(DISCOUNTS))
    return MDP.from_arrays(transitions, rewards, discount=discount, support=support)


def _set(rng: np.random.Generator, mdp: MDP) -> AmbiguitySet | None:
    kind = KINDS[rng.integers(len(KINDS))]
    if kind == "none":
        return None
    if kind == "box":
        p, size = mdp.probability, mdp.num_entries
        below, above = _budgets(rng, size), _budgets(rng, size)
        lower, upper = np.maximum(p - below, 0.0), np.minimum(p + above, 1.0)
        return AmbiguitySet(mdp=mdp, norm="box", lower=lower, upper=upper)
    weights, scale = _weights(rng, mdp)
    budget = _budgets(rng, mdp.num_rows) * scale
    return AmbiguitySet(mdp=mdp, norm=kind, budget=budget, weights=weights)


def _weights(rng: np.random.Generator, mdp: MDP) -> tuple[NDArray[np.float64] | None, float]:
    """Return weights, or none, and a size for budgets that goes with them."""
    size = mdp.num_entries
    how = rng.integers(4)
    if how == 0:
        return None, 1.0
    if how == 1:  # all of one size
        scale = float(powers(rng, -149, 149))
        return scale * rng.uniform(0.3, 2.0, size), scale
    weights = powers(rng, -150, 150, size)
    if how == 3:
        weights = np.where(rng.random(size) < 0.5, rng.choice([0.0, 1.0, np.inf], size), weights)
    finite = weights[np.isfinite(weights) & (weights > 0)]
    return weights, float(rng.choice(finite)) if len(finite) else 1.0


def _budgets(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    ends = np.array([0.0, SMALLEST, 1e-310, 1e-300, 1e-16, 0.1, 0.5, 2.0])
    found = np.where(rng.random(size) < 0.5, rng.choice(ends, size), powers(rng, -320, 0.3, size))
    return np.asarray(found, dtype=np.float64)


def solved(case: Case) -> Solution:
    """Solve a case as it says."""
    how: dict[str, Any] = {
        "objective": case.objective,
        "nature": case.nature,
        "max_iterations": case.stop,
        "tolerance": 1e-300,
    }
    if case.policy is not None:
        return evaluate(case.mdp, case.policy, case.ambiguity, **how)
    return solve(case.mdp, case.ambiguity, algorithm=case.algorithm, **how)


def wrong_side(case: Case) -> str:
    """Return what is on the wrong side of the exact value; "" where nothing is."""
    found = solved(case)
    oracle = ExactModel(case.mdp, case.ambiguity, objective=case.objective, nature=case.nature)
    if case.policy is not None:
        return "" if bounds_hold(found, oracle.value_of(case.policy)) else "bounds of a policy"
    own = oracle.value_of(found.policy)
    if not promise_kept(found, own):
        return "the policy's own value"
    truth = own if oracle.is_solution(own) else oracle.solve()
    return "" if bounds_hold(found, truth) else "bounds"


def medium_case(seed: int) -> Case:
    """Return a case of tens of states, for fifty digits."""
    rng = np.random.default_rng([seed, 50])
    states, actions, longest = int(rng.integers(8, 25)), int(rng.integers(1, 4)), 7
    transitions = np.zeros((states, actions, states))
    support = np.zeros(transitions.shape, dtype=np.bool_)
    for row in np.ndindex(states, actions):
        k = int(rng.integers(1, longest))
        where = rng.choice(states, size=k, replace=False)
        mass = np.where(rng.random(k) < 0.2, powers(rng, -300, -3, k), rng.exponential(size=k))
        mass[0] = 1.0
        support[(*row, where)] = True
        transitions[(*row, where)] = mass / mass.sum()
    rewards = rng.normal(size=transitions.shape) * powers(rng, -12, 12)
    discount = float(rng.choice([0.5, 0.95, 0.999, 0.9999]))
    mdp = MDP.from_arrays(transitions, rewards, discount=discount, support=support)
    norm = ("l1", "linf", "box", None)[seed % 4]
    size = float(rng.choice([1e-12, 0.01, 0.2, 1.0]))
    ambiguity = None
    if norm == "box":
        below, above = size * rng.random((2, mdp.num_entries))
        lower, upper = (
            np.maximum(mdp.probability - below, 0),
            np.minimum(mdp.probability + above, 1),
        )
        ambiguity = AmbiguitySet(mdp=mdp, norm="box", lower=lower, upper=upper)
    elif norm is not None:
        weights = rng.uniform(0.2, 3.0, mdp.num_entries)
        budget = size * rng.random(mdp.num_rows)
        ambiguity = AmbiguitySet(mdp=mdp, norm=norm, budget=budget, weights=weights)
    algorithm = ALGORITHMS[rng.integers(len(ALGORITHMS))]
    nature = NATURES[rng.integers(2)]
    return Case(mdp, ambiguity, "max", nature, algorithm, int(rng.choice(STOPS)), None)


def medium_wrong_side(case: Case) -> str:
    """Return whether a bound of a medium case is on the wrong side of fifty digits; "" if not.

    Fifty digits are so many more than a bound has that the last of them cannot matter.
    """
    from precise_models import PreciseModel

    found = solved(case)
    precise = PreciseModel(case.mdp, case.ambiguity, case.nature)
    rows = np.array([case.mdp.row_of(s, int(a)) for s, a in enumerate(found.policy)])
    own = precise.value_of(rows, [precise.discount * 0 + x for x in found.value.tolist()])
    if any(x < low for x, low in zip(own, found.lower.tolist(), strict=True)):
        return "the policy's own value"
    truth = precise.solve(rows, own)
    ends = zip(found.lower.tolist(), truth, found.upper.tolist(), strict=True)
    return "" if all(low <= x <= high for low, x, high in ends) else "bounds"


def long_row_wrong_side(seed: int, successors: int = 100_000) -> str:
    """Return whether a bound is on the wrong side where a row has very many successors; "" if not.

    All successors stay where they are, so that their values are known exactly.
    """
    rng = np.random.default_rng([seed, 100])
    n = successors
    mass = rng.exponential(size=n)
    mass[rng.random(n) < 0.3] *= 1e-280
    probability = np.concatenate((mass / mass.sum(), np.ones(n)))
    reward = np.concatenate(([0.5], rng.normal(size=n) * powers(rng, -12, 12)))
    mdp = MDP.from_rows(
        state=np.concatenate((np.zeros(n, dtype=np.int64), np.arange(1, n + 1))),
        action=np.zeros(2 * n, dtype=np.int64),
        successor=np.concatenate((np.arange(1, n + 1), np.arange(1, n + 1))),
        probability=probability,
        reward=np.concatenate((np.full(n, reward[0]), reward[1:])),
        discount=0.9999,
    )
    norm = ("l1", "linf")[seed % 2]
    ball = AmbiguitySet.from_arrays(mdp, norm=norm, budget=0.3 if norm == "l1" else 0.3 / n)
    found = solve(mdp, ball, tolerance=1e-300, max_iterations=int(rng.choice([1, 3, 10, 30])))
    oracle = ExactModel(mdp, ball)
    later = [Fraction(x) / (1 - oracle.discount) for x in reward.tolist()]
    truth = [oracle.row(0, later).value, *later[1:]]
    return "" if bounds_hold(found, truth) else "bounds of a long row"
