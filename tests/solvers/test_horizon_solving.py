"""Finite horizons: backward induction against exact rational values, and its limits."""

import tracemalloc
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from contracts import EXACT_SETS, NATURES, OBJECTIVES, SETS, bounds_hold, promise_kept, random_model
from exact_models import ExactModel
from oracles import exact
from surefoot import MDP, AmbiguitySet, StepPolicy, evaluate, garnet, riverswim, solve
from surefoot.solvers.solution import Status

SIDES = list(product(OBJECTIVES, NATURES))
DISCOUNTS = (0.0, 0.7, 0.999, 1.0)


def exact_values(
    oracle: ExactModel, horizon: int, final: list[Fraction], policy: StepPolicy | None = None
) -> list[Fraction]:
    """Return exact values of the first step: of the best policy, or of one by step."""
    mdp, v = oracle.mdp, final
    for step in reversed(range(horizon)):
        worth = [oracle.row(row, v).value for row in range(mdp.num_rows)]
        if policy is None:
            v = [
                oracle.better(worth[mdp.state_start[s] : mdp.state_start[s + 1]])
                for s in range(mdp.num_states)
            ]
        else:
            played = policy.actions_at(step)
            v = [worth[mdp.row_of(s, int(a))] for s, a in enumerate(played)]
    return v


@pytest.mark.parametrize("discount", DISCOUNTS)
@pytest.mark.parametrize("name", EXACT_SETS)
def test_bounds_hold_exactly(name: str, discount: float) -> None:
    rng = np.random.default_rng([list(EXACT_SETS).index(name), DISCOUNTS.index(discount)])
    for objective, nature in SIDES:
        horizon = int(rng.integers(1, 6))
        mdp = random_model(rng, int(rng.integers(2, 5)), 2, discount=discount)
        final = rng.normal(size=mdp.num_states)
        ambiguity = EXACT_SETS[name](mdp, float(rng.choice([0.0, 0.05, 0.3, 2.0])))
        found = solve(
            mdp, ambiguity, objective=objective, nature=nature, horizon=horizon, final_reward=final
        )
        oracle = ExactModel(mdp, ambiguity, objective=objective, nature=nature)
        assert found.status is Status.CONVERGED
        assert bounds_hold(found, exact_values(oracle, horizon, exact(final)))
        assert isinstance(found.policy, StepPolicy)
        own = exact_values(oracle, horizon, exact(final), found.policy)
        assert promise_kept(found, own)
        again = evaluate(
            mdp, np.asarray(found.policy), ambiguity, objective=objective, nature=nature,
            horizon=horizon, final_reward=final,
        )  # fmt: skip
        assert bounds_hold(again, own)


@pytest.mark.parametrize("scale", [1e-308, 1e-12, 1e12, 1e140])
def test_bounds_hold_for_tiny_and_huge_rewards(scale: float) -> None:
    rng = np.random.default_rng(5)
    for name in ("l1 weighted", "box"):
        mdp = random_model(rng, 3, 2, discount=1.0, scale=scale)
        ambiguity = EXACT_SETS[name](mdp, 0.2)
        found = solve(mdp, ambiguity, horizon=7, tolerance=1e-9 * scale)
        truth = exact_values(ExactModel(mdp, ambiguity), 7, [Fraction(0)] * mdp.num_states)
        assert bounds_hold(found, truth)


@pytest.mark.parametrize("name", SETS)
def test_sets_with_a_horizon(name: str) -> None:
    mdp = random_model(np.random.default_rng(3), 5, 2, discount=1.0)
    nominal = solve(mdp, horizon=6)
    values = [solve(mdp, SETS[name](mdp, size), horizon=6).return_lower for size in (0.05, 0.5)]
    assert values[1] <= values[0]
    if "special" not in name and "zero" not in name and "beside" not in name:
        point = solve(mdp, SETS[name](mdp, 0.0), horizon=6)
        assert np.all(np.abs(point.value - nominal.value) <= 1e-6)
        assert values[0] <= nominal.return_upper


def test_a_long_horizon_is_the_discounted_future() -> None:
    mdp = riverswim(discount=0.95).mdp
    ball = AmbiguitySet.from_arrays(mdp, norm="l1", budget=0.1)
    largest = float(np.abs(mdp.reward).max()) / 0.05
    for ambiguity in (None, ball):
        endless = solve(mdp, ambiguity)
        for horizon in (10, 100, 1000):
            found = solve(mdp, ambiguity, horizon=horizon)
            rest = 0.95**horizon * largest
            assert np.all(found.lower <= endless.upper + rest)
            assert np.all(found.upper >= endless.lower - rest)


def test_policies_of_all_forms_are_evaluated() -> None:
    mdp = riverswim().mdp
    right = np.ones(6, dtype=int)
    forms = (right, np.eye(2)[right], StepPolicy.constant(9, right), np.tile(right, (9, 1)))
    found = [evaluate(mdp, form, horizon=9).value for form in forms]
    for other in found[1:]:
        assert np.allclose(other, found[0], rtol=1e-12)
    best = solve(mdp, horizon=9)
    assert best.return_upper >= evaluate(mdp, right, horizon=9).return_lower


def test_costs_are_minimised() -> None:
    mdp = MDP.from_arrays(
        [[[0.5, 0.5], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]], [[1.0, 3.0], [0.0, 0.0]], discount=1.0
    )
    found = solve(mdp, horizon=3, objective="min", final_reward=[2.0, 0.0])
    # Waiting costs 1 at each step: 1 + (1 + (1 + 2/2)/2)/2 = 2.
    assert found.policy[0, 0] == 0
    assert abs(found.value[0] - 2.0) < 1e-9


def test_step_policy_reads_as_an_array() -> None:
    rng = np.random.default_rng(0)
    table = rng.integers(0, 3, (7, 5))
    policy = StepPolicy.from_array(table)
    assert np.array_equal(np.asarray(policy), table)
    assert policy.shape == table.shape
    assert policy[3, 2] == table[3, 2] == policy.action_at(2, 3)
    assert np.array_equal(policy[-1], table[-1])
    assert np.array_equal(policy[2:4, 1], table[2:4, 1])
    assert not policy.is_constant
    assert StepPolicy.constant(4, table[0]).is_constant
    with pytest.raises(ValueError, match="steps go from 0 to 6"):
        policy.action_at(0, 7)


def test_bad_horizons_are_refused() -> None:
    mdp = riverswim().mdp
    for wrong in (0, -1, 2.5, True):
        with pytest.raises(ValueError, match="whole number of steps"):
            solve(mdp, horizon=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="give horizon="):
        solve(mdp, final_reward=np.zeros(6))
    with pytest.raises(ValueError, match="one per state"):
        solve(mdp, horizon=3, final_reward=np.zeros(5))
    with pytest.raises(ValueError, match="is for 4 steps"):
        evaluate(mdp, StepPolicy.constant(4, np.ones(6, dtype=int)), horizon=5)
    bad = np.ones((3, 6), dtype=int)
    bad[1, 2] = 7
    with pytest.raises(ValueError, match="unknown action 7"):
        evaluate(mdp, bad, horizon=3)


def test_discounts_near_one_are_not_shown_as_one() -> None:
    mdp = riverswim(discount=0.9999999).mdp
    assert "discount 0.9999999" in repr(mdp)
    assert "discount 1, at most 12 steps" in repr(riverswim(discount=1.0).mdp.over(12))


def test_a_thousand_steps_take_little_more_memory_than_one() -> None:
    mdp = garnet(2000, 4, 10, discount=0.99, rng=np.random.default_rng(0)).mdp
    solve(mdp, horizon=2)  # compiles
    peaks = []
    for horizon in (1, 1000):
        tracemalloc.start()
        parts = {
            name: getattr(mdp, name).copy() for name in ("probability", "successor", "row_start")
        }
        solve(mdp, horizon=horizon)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        del parts
    assert peaks[1] < 2 * peaks[0]


@pytest.mark.parametrize("horizon", [1, 10, 1000])
@pytest.mark.parametrize("name", SETS)
def test_every_step_is_swept_once(name: str, horizon: int) -> None:
    """So time grows as the number of steps does."""
    mdp = riverswim().mdp
    assert solve(mdp, SETS[name](mdp, 0.1), horizon=horizon).iterations == horizon
