"""Small models at the ends of what doubles can hold, and whether their certified bounds hold.

``python -m benchmarks.extremes`` goes through 100,000 of them; the tests take a few.
"""

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
