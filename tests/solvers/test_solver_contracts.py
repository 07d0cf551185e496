"""Contracts that every kind of set and every algorithm must fulfil."""

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from contracts import (
    ALGORITHMS,
    NATURES,
    OBJECTIVES,
    SETS,
    arrays_of,
    brackets_meet,
    promise_kept,
    random_model,
)
from surefoot import MDP, AmbiguitySet, Status, evaluate, garnet, river_chain, solve
from surefoot.ambiguity.sets import BALLS

Vector = NDArray[np.float64]
SIDES = list(product(OBJECTIVES, NATURES))


def middling(seed: int, discount: float = 0.95) -> MDP:
    """Return a model of middling size with all sorts of rows."""
    return random_model(np.random.default_rng(seed), 15, 3, discount=discount)


@pytest.mark.parametrize(("objective", "nature"), SIDES)
@pytest.mark.parametrize("name", [None, *SETS])
def test_algorithms_agree(name: str | None, objective: str, nature: str) -> None:
    for size in (0.02, 0.4):
        mdp = middling(1)
        ambiguity = None if name is None else SETS[name](mdp, size)
        found = [
            solve(
                mdp, ambiguity, algorithm=algorithm, objective=objective, nature=nature,
                tolerance=1e-9,
            )
            for algorithm in ALGORITHMS
        ]  # fmt: skip
        for one, other in product(found, found):
            assert one.status is Status.CONVERGED
            assert brackets_meet(one, other)
            np.testing.assert_allclose(one.value, other.value, rtol=0, atol=2e-9)


@pytest.mark.parametrize(("objective", "nature"), SIDES)
@pytest.mark.parametrize("name", SETS)
def test_growing_a_set_never_helps_against_nature(name: str, objective: str, nature: str) -> None:
    mdp = middling(2)
    sign = 1 if (objective == "max") == (nature == "worst") else -1
    before = None
    for size in (0.0, 1e-6, 0.01, 0.1, 0.3, 1.0, 3.0):
        ambiguity = SETS[name](mdp, size)
        now = solve(mdp, ambiguity, objective=objective, nature=nature, tolerance=1e-9)
        if before is not None:
            assert np.all(sign * (now.value - before.value) <= 2e-9)
        before = now


@pytest.mark.parametrize(("objective", "nature"), SIDES)
@pytest.mark.parametrize("name", [n for n in SETS if "zero" not in n and "beside" not in n])
def test_no_budget_is_the_nominal_model(name: str, objective: str, nature: str) -> None:
    mdp = middling(3)
    robust = solve(mdp, SETS[name](mdp, 0.0), objective=objective, nature=nature, tolerance=1e-9)
    nominal = solve(mdp, objective=objective, tolerance=1e-9)
    assert brackets_meet(robust, nominal)
    np.testing.assert_array_equal(robust.policy, nominal.policy)


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_one_weightless_entry_needs_a_budget_two_do_not(norm: str) -> None:
    mdp = garnet(6, 2, 4, discount=0.9, rng=np.random.default_rng(0)).mdp
    budget, weights = np.zeros(mdp.num_rows), np.ones(mdp.num_entries)
    nominal = solve(mdp, tolerance=1e-9)
    weights[mdp.row_start[:-1]] = 0.0
    one = AmbiguitySet(mdp=mdp, norm=norm, budget=budget, weights=weights)
    assert np.allclose(solve(mdp, one, tolerance=1e-9).value, nominal.value, rtol=0, atol=2e-9)
    weights[mdp.row_start[:-1] + 1] = 0.0
    two = AmbiguitySet(mdp=mdp, norm=norm, budget=budget, weights=weights)
    assert np.all(solve(mdp, two, tolerance=1e-9).upper < nominal.lower)


@pytest.mark.parametrize(("objective", "nature"), SIDES)
@pytest.mark.parametrize("name", SETS)
def test_nature_lies_in_the_set_and_reproduces_the_value(
    name: str, objective: str, nature: str
) -> None:
    mdp = middling(4)
    ambiguity = SETS[name](mdp, 0.3)
    found = solve(mdp, ambiguity, objective=objective, nature=nature, tolerance=1e-10)
    chosen = found.nature_model()
    assert membership(ambiguity, chosen.probability) <= 1e-12
    again = solve(chosen, objective=objective, tolerance=1e-10)
    np.testing.assert_allclose(again.value, found.value, rtol=0, atol=1e-8)
    own = evaluate(chosen, found.policy, objective=objective, tolerance=1e-10)
    np.testing.assert_allclose(own.value, found.value, rtol=0, atol=1e-8)


def membership(ambiguity: AmbiguitySet, q: Vector) -> float:
    """Return by how much probabilities leave their sets."""
    mdp, p = ambiguity.mdp, ambiguity.mdp.probability
    starts = mdp.row_start[:-1]
    off = [np.abs(np.add.reduceat(q, starts) - 1).max(), -q.min()]
    if ambiguity.lower is not None and ambiguity.upper is not None:
        certain = np.repeat(~mdp.uncertain_rows, np.diff(mdp.row_start))
        off += [np.where(certain, 0, ambiguity.lower - q).max()]
        off += [np.where(certain, 0, q - ambiguity.upper).max()]
        return float(max(off))
    w = np.ones(len(p)) if ambiguity.weights is None else ambiguity.weights
    pinned = np.isinf(w)
    off.append(np.abs(q - p)[pinned].max(initial=0.0))
    far = np.where(pinned, 0.0, w) * np.abs(q - p)
    if ambiguity.norm == "kl":
        seen = p > 0
        far = np.where(seen, p * np.log(np.where(seen, p, 1) / np.where(seen, q, 1)), 0.0)
    used = (np.maximum if ambiguity.norm == "linf" else np.add).reduceat(far, starts)
    if ambiguity.norm not in ("l1", "linf", "kl"):  # known by its definition alone
        ball = BALLS[ambiguity.norm]
        used = ball.combine.reduceat(ball.parts(p, q), starts)
    return float(max(*off, (used - ambiguity.budget).max()))


@pytest.mark.parametrize("name", [None, *SETS])
def test_inputs_are_never_modified(name: str | None) -> None:
    mdp = middling(5)
    ambiguity = None if name is None else SETS[name](mdp, 0.3)
    chances = mdp.available / mdp.available.sum(axis=1, keepdims=True)
    things = [mdp] if ambiguity is None else [mdp, ambiguity]
    before = [arrays_of(thing) for thing in things], chances.tobytes()
    for algorithm in ALGORITHMS:
        solve(mdp, ambiguity, algorithm=algorithm).nature_model()
    evaluate(mdp, chances, ambiguity)
    after = [arrays_of(thing) for thing in things], chances.tobytes()
    assert after == before


@pytest.mark.parametrize("name", [None, *SETS])
def test_threads_change_nothing(name: str | None) -> None:
    mdp = middling(6)
    ambiguity = None if name is None else SETS[name](mdp, 0.3)
    alone = solve(mdp, ambiguity, threads=1)
    for threads in (2, 3, 40):
        for algorithm in ALGORITHMS:
            shared = solve(mdp, ambiguity, threads=threads, algorithm=algorithm)
            assert shared.status is Status.CONVERGED
            assert brackets_meet(alone, shared)
    again = solve(mdp, ambiguity, threads=3)
    np.testing.assert_array_equal(again.lower, alone.lower)


@pytest.mark.parametrize("discount", [0.5, 0.9, 0.99, 0.999, 0.9999])
@pytest.mark.parametrize("name", [None, *SETS])
def test_bounds_meet_at_every_stop_on_larger_models(name: str | None, discount: float) -> None:
    """The truth lies in the bracket of a long solve; so every other bracket must meet it."""
    rng = np.random.default_rng(7)
    chain, random = river_chain(25, discount=discount), garnet(25, 3, 9, discount=discount, rng=rng)
    for mdp in (chain.mdp, random.mdp):
        ambiguity = None if name is None else SETS[name](mdp, 0.2)
        truth = solve(mdp, ambiguity, algorithm="policy_iteration", tolerance=1e-8)
        assert truth.status is not Status.ITERATION_LIMIT
        worth: dict[bytes, Vector] = {}
        for algorithm, stop in product(ALGORITHMS, (1, 2, 3, 5, 9, 18, 40)):
            found = solve(mdp, ambiguity, algorithm=algorithm, max_iterations=stop)
            assert brackets_meet(found, truth), (algorithm, stop)
            key = found.policy.tobytes()
            if key not in worth:
                worth[key] = evaluate(mdp, found.policy, ambiguity, tolerance=1e-8).upper
            assert promise_kept(found, worth[key]), (algorithm, stop)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_nature_may_forbid_to_stay(algorithm: str | None, norm: str) -> None:
    """In-place sweeps solve out the chance to stay; with more of it than nature leaves, they
    once overshot without end, and policy rounds went in circles."""
    mdp = river_chain(60, discount=0.99).mdp
    for budget in (0.1, 0.5, 1.0, 2.0):
        ambiguity = AmbiguitySet.from_arrays(mdp, norm=norm, budget=budget)
        found = solve(mdp, ambiguity, algorithm=algorithm, max_iterations=20_000)
        assert found.status is Status.CONVERGED


@pytest.mark.parametrize("algorithm", [None, "policy_iteration"])
@pytest.mark.parametrize("name", SETS)
def test_policy_rounds_converge_near_discount_one(algorithm: str | None, name: str) -> None:
    """Closed classes or a tolerance out of reach: it must end soon, and say why."""
    for seed in range(4):
        mdp = random_model(np.random.default_rng(seed), 5, 2, discount=0.9999)
        for (objective, nature), tolerance in product(SIDES, (1e-6, 1e-300)):
            found = solve(
                mdp, SETS[name](mdp, 0.5), algorithm=algorithm, tolerance=tolerance,
                objective=objective, nature=nature, max_iterations=3000,
            )  # fmt: skip
            assert found.status is not Status.ITERATION_LIMIT, (seed, objective, nature)
            assert found.error_bound <= max(1e-6, 1e-9 * np.abs(found.value).max())
