"""Certified bounds against exact rational solutions, at every stop."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from contracts import (
    ALGORITHMS,
    EXACT_SETS,
    NATURES,
    OBJECTIVES,
    bounds_hold,
    promise_kept,
    random_model,
    status_is_honest,
)
from exact_models import ExactModel
from oracles import exact, exact_distribution
from surefoot import MDP, AmbiguitySet, evaluate, solve
from surefoot.solvers.solution import Status

DISCOUNTS = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999)
STOPS = (1, 2, 3, 4, 5, 8, 13, 18, 30)
SIDES = list(product(OBJECTIVES, NATURES))


def check_all_stops(
    mdp: MDP, ambiguity: AmbiguitySet | None, objective: str, nature: str, tolerance: float
) -> None:
    """Stop every algorithm after 1, 2, 3... sweeps; the bounds and the promise must hold."""
    oracle = ExactModel(mdp, ambiguity, objective=objective, nature=nature)
    truth = oracle.solve()
    kept: dict[bytes, list[Fraction]] = {}
    for algorithm, stop in product(ALGORITHMS, STOPS):
        found = solve(
            mdp, ambiguity, algorithm=algorithm, tolerance=tolerance, max_iterations=stop,
            objective=objective, nature=nature,
        )  # fmt: skip
        key = found.policy.tobytes()
        if key not in kept:
            kept[key] = oracle.value_of(found.policy)
        assert bounds_hold(found, truth), (algorithm, stop, found)
        assert promise_kept(found, kept[key]), (algorithm, stop, found)
        assert status_is_honest(found, tolerance, stop), (algorithm, stop, found)
        assert found.iterations <= stop


@pytest.mark.parametrize("discount", DISCOUNTS)
@pytest.mark.parametrize("name", EXACT_SETS)
def test_bounds_hold_at_every_stop(name: str, discount: float) -> None:
    seed = [list(EXACT_SETS).index(name), DISCOUNTS.index(discount)]
    rng = np.random.default_rng(seed)
    for objective, nature in (SIDES[sum(seed) % 4], SIDES[(sum(seed) + 1) % 4]):
        mdp = random_model(rng, int(rng.integers(2, 5)), 2, discount=discount)
        size = float(rng.choice([0.0, 0.05, 0.3, 2.0]))
        check_all_stops(mdp, EXACT_SETS[name](mdp, size), objective, nature, 1e-9)


@pytest.mark.parametrize(("objective", "nature"), SIDES)
@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_bounds_hold_for_tiny_and_huge_rewards(scale: float, objective: str, nature: str) -> None:
    rng = np.random.default_rng(11)
    for name in ("l1 weighted", "linf"):
        mdp = random_model(rng, 3, 2, discount=0.99, scale=scale)
        check_all_stops(mdp, EXACT_SETS[name](mdp, 0.2), objective, nature, 1e-9 * scale)


@pytest.mark.parametrize("scale", [1e-308, 1e-312, 1e-320, 1e140])
def test_bounds_hold_at_the_ends_of_the_doubles(scale: float) -> None:
    rng = np.random.default_rng(13)
    for name in EXACT_SETS:
        mdp = random_model(rng, 3, 2, discount=0.9, scale=scale)
        check_all_stops(mdp, EXACT_SETS[name](mdp, 0.2), "max", "worst", 1e-300)


@pytest.mark.parametrize("discount", [1 - 1e-8, 1 - 1e-13, 1 - 2**-53])
def test_bounds_hold_next_to_discount_one(discount: float) -> None:
    rng = np.random.default_rng(14)
    for name in EXACT_SETS:
        mdp = random_model(rng, 3, 2, discount=discount)
        check_all_stops(mdp, EXACT_SETS[name](mdp, 0.2), "max", "worst", 1e-6)


@pytest.mark.parametrize("name", [None, *EXACT_SETS])
def test_bounds_hold_for_one_state(name: str | None) -> None:
    mdp = MDP.from_arrays(np.ones((1, 3, 1)), np.array([[-1.0, 2.0, 0.5]]), discount=0.99)
    ambiguity = None if name is None else EXACT_SETS[name](mdp, 0.5)
    check_all_stops(mdp, ambiguity, "max", "worst", 1e-9)
    assert solve(mdp, ambiguity).value == pytest.approx(200)


def test_bounds_hold_when_rewards_are_all_alike() -> None:
    """Nothing to do at all: the first sweep knows the value, be it zero or not."""
    rng = np.random.default_rng(4)
    like = random_model(rng, 4, 2, discount=0.9)
    for reward in (0.0, -3.0):
        mdp = replace(like, reward=np.full_like(like.reward, reward))
        check_all_stops(mdp, EXACT_SETS["l1"](mdp, 0.4), "max", "worst", 1e-9)
        assert solve(mdp, EXACT_SETS["l1"](mdp, 0.4)).iterations <= 3


@pytest.mark.parametrize("nature", NATURES)
@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_what_rows_leave_open_is_charged_to_the_right_side(norm: str, nature: str) -> None:
    """All rows alike: the bracket is as narrow as can be, and rows are solved roughly at first.

    The value of a row is a lower bound of nature's minimum, but an upper one of its maximum.
    """
    rng = np.random.default_rng(2)
    n = 40
    p, r = rng.dirichlet(np.ones(n)), rng.normal(size=n)
    transitions, rewards = np.broadcast_to(p, (n, 1, n)), np.broadcast_to(r, (n, 1, n))
    mdp = MDP.from_arrays(transitions, rewards, discount=0.99)
    for budget in (0.1, 0.3, 0.5, 0.9):
        size = budget if norm == "l1" else budget / n
        ambiguity = AmbiguitySet.from_arrays(mdp, norm=norm, budget=size)
        one_row = ExactModel(mdp, ambiguity, nature=nature).row(0, [Fraction(0)] * n).value
        truth = [one_row / (1 - Fraction(mdp.discount))] * n
        for stop in (1, 2, 3, 4):
            found = solve(
                mdp, ambiguity, nature=nature, max_iterations=stop, tolerance=1e-12,
                algorithm="value_iteration",
            )  # fmt: skip
            assert bounds_hold(found, truth), (budget, stop, found)


@pytest.mark.parametrize("off", [3e-8, -3e-8, 1e-15])
@pytest.mark.parametrize("name", [None, *EXACT_SETS])
def test_rows_mean_their_numbers_divided_by_their_sum(name: str | None, off: float) -> None:
    """At discount .9999, rows that sum to 1 + 3e-8 would shift the value by 3e-4."""
    rng = np.random.default_rng(8)
    straight = random_model(rng, 3, 2, discount=0.9999)
    wobble = 1 + off * rng.uniform(0.5, 1.0, straight.num_rows)[straight.entry_row]
    mdp = replace(straight, probability=straight.probability * wobble)
    ambiguity = None if name is None else EXACT_SETS[name](mdp, 0.1)
    truth = ExactModel(mdp, ambiguity).solve()
    found = solve(mdp, ambiguity, tolerance=1e-6)
    assert found.status is Status.CONVERGED
    assert bounds_hold(found, truth)


@pytest.mark.parametrize("nature", NATURES)
def test_a_box_that_misses_one_by_rounding_is_divided_by_its_sum(nature: str) -> None:
    """Else what is missing would go to the best successor: a promise too high."""
    rng = np.random.default_rng(9)
    mdp = random_model(rng, 4, 2, discount=0.9999)
    for factor in (1 - 3e-8, 1 + 3e-8):
        bounds = np.minimum(mdp.probability * factor, 1.0)
        ambiguity = AmbiguitySet(mdp=mdp, norm="box", lower=bounds, upper=bounds)
        truth = ExactModel(mdp, ambiguity, nature=nature).solve()
        assert bounds_hold(solve(mdp, ambiguity, nature=nature), truth)


def test_evaluate_holds_exactly() -> None:
    rng = np.random.default_rng(12)
    for number, (name, discount) in enumerate(product(EXACT_SETS, (0.0, 0.9, 0.999))):
        objective, nature = SIDES[number % 4]
        mdp = random_model(rng, 4, 3, discount=discount)
        ambiguity = EXACT_SETS[name](mdp, float(rng.choice([0.0, 0.1, 1.0])))
        oracle = ExactModel(mdp, ambiguity, objective=objective, nature=nature)
        chances = rng.dirichlet(np.ones(3), size=4) * mdp.available
        chances /= chances.sum(axis=1, keepdims=True)
        for policy in (np.argmax(chances, axis=1), chances):
            truth = oracle.value_of(policy)
            for stop in (1, 2, 3, 7, 20, 100_000):
                found = evaluate(
                    mdp, policy, ambiguity, objective=objective, nature=nature,
                    max_iterations=stop, tolerance=1e-9,
                )  # fmt: skip
                assert bounds_hold(found, truth), (name, discount, stop, found)
                assert status_is_honest(found, 1e-9, stop)
            assert found.status is not Status.ITERATION_LIMIT


def test_a_policy_of_very_many_actions_is_summed_with_care() -> None:
    """Twenty thousand equal chances add up to 1 only roughly, and the discount is near 1."""
    n = 20_000
    rng = np.random.default_rng(0)
    rewards = np.full((1, n), 1.0)
    mdp = MDP.from_arrays(np.ones((1, n, 1)), rewards, discount=0.9999)
    for policy in (np.full((1, n), 1 / n), rng.dirichlet(np.ones(n), size=1)):
        found = evaluate(mdp, policy, tolerance=1e-300)
        assert bounds_hold(found, [1 / (1 - Fraction(0.9999))]), found


def test_the_oracle_meets_closed_forms() -> None:
    """The judge himself: a two-state chain whose value is known by hand."""
    mdp = MDP.from_arrays(
        [[[0.5, 0.5]], [[0.0, 1.0]]], [[1.0], [0.0]], discount=0.5, initial=[1.0, 0.0]
    )
    assert ExactModel(mdp).solve() == [Fraction(4, 3), 0]
    ambiguity = AmbiguitySet.from_arrays(mdp, norm="l1", budget=0.5)
    assert ExactModel(mdp, ambiguity).solve() == [Fraction(8, 7), 0]
    assert ExactModel(mdp, ambiguity, nature="best").solve() == [Fraction(8, 5), 0]
    assert exact_distribution([2.0, 6.0]) == exact([0.25, 0.75])
