"""Ambiguity sets: what they hold, what they refuse, and that they leave inputs alone."""

import re
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest

from contracts import SETS, arrays_of, random_model
from surefoot import MDP, AmbiguitySet, machine_replacement, riverswim, solve, worst_case
from surefoot.ambiguity.sets import check_same_rows

RIVER = riverswim().mdp
NAN = np.nan


def dense(fill: float = 1.0) -> np.ndarray[Any, Any]:
    return np.full((6, 2, 6), fill)


def test_numbers_and_arrays_mean_the_same() -> None:
    number = AmbiguitySet.from_arrays(RIVER, norm="l1", budget=0.2, weights=0.5)
    table = AmbiguitySet.from_arrays(
        RIVER, norm="l1", budget=np.full((6, 2), 0.2), weights=np.full((6, 2), 0.5)
    )
    cube = AmbiguitySet.from_arrays(RIVER, norm="l1", budget=0.2, weights=dense(0.5))
    assert arrays_of(number) == arrays_of(table) == arrays_of(cube)


def test_arrays_go_to_the_right_rows_and_entries() -> None:
    """A state without the second action: dense numbers there are not looked at."""
    p = np.zeros((3, 2, 3))
    p[:, 0] = [0.5, 0.25, 0.25]
    p[1, 1, 2] = 1.0
    mdp = MDP.from_arrays(p, np.zeros((3, 2)), discount=0.9)
    budget = np.arange(6.0).reshape(3, 2)
    budget[0, 1] = NAN
    weights = np.arange(18.0).reshape(3, 2, 3)
    weights[2, 1] = -1.0
    made = AmbiguitySet.from_arrays(mdp, norm="linf", budget=budget, weights=weights)
    assert made.budget is not None
    assert made.weights is not None
    assert made.budget.tolist() == [0, 2, 3, 4]
    assert made.weights.tolist() == [0, 1, 2, 6, 7, 8, 11, 12, 13, 14]


@pytest.mark.parametrize("name", SETS)
def test_sets_are_frozen_and_copies(name: str) -> None:
    mdp = random_model(np.random.default_rng(0), 5, 2, discount=0.9)
    made = SETS[name](mdp, 0.2)
    with pytest.raises(FrozenInstanceError):
        made.norm = "l1"  # type: ignore[misc]
    for field in ("budget", "weights", "lower", "upper"):
        array = getattr(made, field)
        if array is not None:
            assert array.dtype == np.float64
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0.5


def test_later_changes_of_the_callers_arrays_do_not_reach_a_set() -> None:
    budget, weights = np.full((6, 2), 0.2), dense()
    made = AmbiguitySet.from_arrays(RIVER, norm="l1", budget=budget, weights=weights)
    before = solve(RIVER, made).return_lower
    budget[:], weights[:] = 2.0, 0.0
    assert solve(RIVER, made).return_lower == before
    assert budget.flags.writeable
    own = np.full(RIVER.num_rows, 0.2)
    made = AmbiguitySet(mdp=RIVER, norm="l1", budget=own)
    own[:] = 2.0
    assert solve(RIVER, made).return_lower == pytest.approx(before)


def test_whole_numbers_and_lists_are_numbers_too() -> None:
    made = AmbiguitySet(mdp=RIVER, norm="l1", budget=[1] * RIVER.num_rows)  # type: ignore[arg-type]
    same = AmbiguitySet.from_arrays(RIVER, norm="l1", budget=1)
    assert arrays_of(made) == arrays_of(same)


def test_weights_and_budgets_scale_together() -> None:
    """Both times a power of two: the same set, to the last bit."""
    mdp = random_model(np.random.default_rng(1), 8, 2, discount=0.95)
    for norm in ("l1", "linf"):
        weights = np.random.default_rng(2).uniform(0.1, 1.0, mdp.num_entries)
        budget = np.full(mdp.num_rows, 0.2)
        plain = AmbiguitySet(mdp=mdp, norm=norm, budget=budget, weights=weights)
        scaled = AmbiguitySet(mdp=mdp, norm=norm, budget=4 * budget, weights=4 * weights)
        np.testing.assert_array_equal(solve(mdp, plain).lower, solve(mdp, scaled).lower)


def test_uniform_weights_are_weights_of_one() -> None:
    mdp = random_model(np.random.default_rng(3), 8, 2, discount=0.95)
    for norm in ("l1", "linf"):
        without = AmbiguitySet.from_arrays(mdp, norm=norm, budget=0.3)
        ones = AmbiguitySet.from_arrays(mdp, norm=norm, budget=0.3, weights=1.0)
        left, right = solve(mdp, without, tolerance=1e-9), solve(mdp, ones, tolerance=1e-9)
        np.testing.assert_allclose(left.value, right.value, rtol=0, atol=2e-9)


def test_an_linf_ball_is_its_box() -> None:
    mdp = random_model(np.random.default_rng(4), 8, 2, discount=0.95)
    ball = AmbiguitySet.from_arrays(mdp, norm="linf", budget=0.1)
    p = mdp.to_arrays().transitions
    box = AmbiguitySet.box(mdp, lower=np.maximum(p - 0.1, 0), upper=np.minimum(p + 0.1, 1))
    left, right = solve(mdp, ball, tolerance=1e-9), solve(mdp, box, tolerance=1e-9)
    np.testing.assert_allclose(left.value, right.value, rtol=0, atol=2e-9)


def test_an_l1_ball_of_two_successors_is_an_linf_ball_of_half_the_budget() -> None:
    found = [
        worst_case([1.0, 3.0], [0.25, 0.75], budget=size, norm=norm).value
        for norm, size in (("l1", 0.5), ("linf", 0.25))
    ]
    assert found == [2.0, 2.0]


def test_only_declared_single_successors_are_certain() -> None:
    """A row that lists one successor stays; one that also lists an unseen one may lose it all."""
    p = [[[1.0, 0.0]], [[0.0, 1.0]]]
    rewards = [[1.0], [0.0]]
    declared = MDP.from_arrays(p, rewards, discount=0.5)
    open_ = MDP.from_arrays(p, rewards, discount=0.5, support=np.ones((2, 1, 2)))
    for mdp, wanted in ((declared, 2.0), (open_, 1.0)):
        ambiguity = AmbiguitySet.from_arrays(mdp, norm="l1", budget=2.0)
        assert solve(mdp, ambiguity).value[0] == pytest.approx(wanted)


def test_a_set_belongs_to_its_model() -> None:
    made = AmbiguitySet.from_arrays(RIVER, norm="l1", budget=0.1)
    check_same_rows(made, riverswim().mdp)
    check_same_rows(made, replace(RIVER, discount=0.5))  # the set does not depend on it
    with pytest.raises(ValueError, match="another model"):
        check_same_rows(made, machine_replacement().mdp)


def test_repr_is_one_line() -> None:
    mixed = AmbiguitySet.from_arrays(
        RIVER, norm="linf", budget=np.linspace(0.1, 0.2, 12).reshape(6, 2), weights=2.0
    )
    assert repr(mixed) == "AmbiguitySet(linf, 12 rows, budgets 0.1 to 0.2, weighted)"


def ball(**change: Any) -> Callable[[], Any]:
    return lambda: AmbiguitySet.from_arrays(RIVER, **{"norm": "l1", "budget": 0.1, **change})


def box(lower: Any, upper: Any) -> Callable[[], Any]:
    return lambda: AmbiguitySet.box(RIVER, lower=lower, upper=upper)


def plain(**fields: Any) -> Callable[[], Any]:
    return lambda: AmbiguitySet(mdp=RIVER, **fields)


def one(value: float, *place: int, shape: tuple[int, ...] = (6, 2, 6)) -> Any:
    array = np.ones(shape)
    array[place] = value
    return array


CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "budget negative": (
        ball(budget=one(-0.1, 2, 1, shape=(6, 2))),
        "the budget of state 2, action 'right' is -0.1; budgets must be 0 or more (1 of 12 fail)",
    ),
    "budget NaN": (
        ball(budget=one(NAN, 5, 0, shape=(6, 2))),
        "the budget of state 5, action 'left' is nan",
    ),
    "budget shape": (ball(budget=np.ones(6)), "budget has shape (6,); give a number or"),
    "budget cube": (ball(budget=dense()), "budget has shape (6, 2, 6); give a number or"),
    "budget words": (ball(budget="a"), "budget must be an array of numbers"),
    "weights negative": (
        ball(weights=one(-1.0, 1, 1, 2)),
        "the weight of state 1, action 'right', successor 2 is -1.0; weights must be 0 or more",
    ),
    "weights NaN": (
        ball(weights=one(NAN, 0, 0, 0)),
        "the weight of state 0, action 'left', successor 0 is nan",
    ),
    "weights huge": (ball(weights=one(1e160, 1, 1, 2)), "successor 2 is 1e+160; weights must be 0"),
    "weights tiny": (
        ball(weights=one(1e-160, 1, 1, 2)),
        "successor 2 is 1e-160; weights must be 0",
    ),
    "weights shape": (ball(weights=np.ones((6, 2, 5))), "weights has shape (6, 2, 5); give"),
    "norm capital": (ball(norm="L1"), "norm='L1'; choose 'l1', 'linf'"),
    "norm box": (ball(norm="box"), "a box is made by AmbiguitySet.box"),
    "norm unknown": (plain(norm="l2", budget=np.ones(12)), "norm='l2'; choose one of 'l1'"),
    "no budget": (plain(norm="l1"), "a l1 set needs budget of shape (12,), got nothing"),
    "budget length": (
        plain(norm="l1", budget=np.ones(11)),
        "a l1 set needs budget of shape (12,), got shape (11,)",
    ),
    "weights length": (
        plain(norm="l1", budget=np.ones(12), weights=np.ones(21)),
        "a l1 set needs weights of shape (22,), got shape (21,)",
    ),
    "ball with bounds": (
        plain(norm="l1", budget=np.ones(12), lower=np.zeros(22)),
        "a l1 set has no lower",
    ),
    "box with budget": (
        plain(norm="box", budget=np.ones(12), lower=np.zeros(22), upper=np.ones(22)),
        "a box set has no budget",
    ),
    "box without upper": (plain(norm="box", lower=np.zeros(22)), "a box set needs upper"),
    "lower sum": (
        box(0.9, 1.0),
        "the lower bounds of state 0, action 'right' sum to 1.8; they must sum to at most 1",
    ),
    "upper sum": (
        box(0.0, np.where(RIVER.to_arrays().transitions == 1, 1.0, 0.2)),
        "the upper bounds of state 0, action 'right' sum to 0.4; they must sum to at least 1",
    ),
    "crossed": (
        box(0.5, 0.4),
        "the interval of state 0, action 'left', successor 0 is [0.5, 0.4]; it must satisfy",
    ),
    "lower NaN": (box(NAN, 1.0), "successor 0 is [nan, 1.0]"),
    "upper NaN": (
        box(0.0, one(NAN, 1, 1, 1)),
        "state 1, action 'right', successor 1 is [0.0, nan]",
    ),
    "upper above 1": (box(0.0, 1.5), "is [0.0, 1.5]; it must satisfy 0 <= lower <= upper <= 1"),
    "lower below 0": (box(-0.1, 1.0), "is [-0.1, 1.0]"),
    "box shape": (box(np.zeros(3), 1.0), "lower has shape (3,); give"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_sets_are_named(case: str) -> None:
    call, wanted = CASES[case]
    with pytest.raises(ValueError, match=re.escape(wanted)) as caught:
        call()
    assert "\n" not in str(caught.value)
