"""Every bad input gets one clear error that names the place."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from surefoot import (
    MDP,
    AmbiguitySet,
    evaluate,
    machine_replacement,
    riverswim,
    solve,
    spans,
    worst_case,
)

RIVER = riverswim().mdp
BALL = AmbiguitySet.from_arrays(RIVER, norm="l1", budget=0.1)
MISSING = MDP.from_arrays(
    [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 0.0]]], np.ones((2, 2)), discount=0.9
)
NAN, INF = np.nan, np.inf


def row(**change: Any) -> Callable[[], Any]:
    options = {"values": [1.0, 2.0], "nominal": [0.5, 0.5], "budget": 0.1, **change}
    return lambda: worst_case(options.pop("values"), options.pop("nominal"), **options)


def run(**change: Any) -> Callable[[], Any]:
    return lambda: solve(RIVER, **change)


def play(policy: Any, mdp: MDP = RIVER) -> Callable[[], Any]:
    return lambda: evaluate(mdp, policy)


CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "values NaN": (row(values=[1.0, NAN]), "values[1] is nan"),
    "values infinite": (row(values=[INF, 1.0]), "values[0] is inf"),
    "values huge": (row(values=[1.0, 1e200]), "values[1] is 1e+200"),
    "values empty": (row(values=[], nominal=[]), "values has shape (0,)"),
    "values square": (row(values=[[1.0, 2.0]]), "values has shape (1, 2)"),
    "values words": (row(values=["a", "b"]), "values must be an array of numbers"),
    "nominal negative": (row(nominal=[-0.1, 1.1]), "nominal[0] is -0.1"),
    "nominal NaN": (row(nominal=[0.5, NAN]), "nominal[1] is nan"),
    "nominal sum": (row(nominal=[0.5, 0.4]), "nominal sums to 0.9; it must sum to 1"),
    "nominal shape": (row(nominal=[1.0]), "nominal has shape (1,); it must be (2,)"),
    "budget negative": (row(budget=-1.0), "budget=-1.0; it must be one number, 0 or more"),
    "budget NaN": (row(budget=NAN), "budget=nan"),
    "budget missing": (row(budget=None), "budget=None"),
    "budget list": (row(budget=[0.1, 0.2]), "budget=[0.1, 0.2]"),
    "weights negative": (row(weights=[1.0, -1.0]), "weights[1] is -1.0"),
    "weights NaN": (row(weights=[NAN, 1.0]), "weights[0] is nan"),
    "weights shape": (row(weights=[1.0]), "weights has shape (1,); it must be (2,)"),
    "norm": (row(norm="l2"), "norm='l2'; choose one of 'l1', 'linf'"),
    "norm of a box": (row(norm="box"), "norm='box'; choose one of"),
    "algorithm": (run(algorithm="vi"), "algorithm='vi'; choose one of 'value_iteration'"),
    "tolerance zero": (run(tolerance=0.0), "tolerance=0.0"),
    "tolerance NaN": (run(tolerance=NAN), "tolerance=nan"),
    "no iterations": (run(max_iterations=0), "max_iterations=0"),
    "iterations NaN": (run(max_iterations=NAN), "max_iterations=nan"),
    "no threads": (run(threads=0), "threads=0"),
    "objective": (run(objective="maximum"), "objective='maximum'; choose 'max' or 'min'"),
    "nature": (run(nature="good"), "nature='good'; choose 'worst' or 'best'"),
    "another model": (
        lambda: solve(machine_replacement().mdp, BALL),
        "the ambiguity set was made for another model",
    ),
    "other probabilities": (
        lambda: solve(BALL.mdp.__class__.from_arrays(*shifted(), discount=0.99), BALL),
        "rows or nominal probabilities differ",
    ),
    "huge rewards": (
        lambda: solve(MDP.from_arrays(np.ones((1, 1, 1)), [[1e200]], discount=0.9)),
        "rewards as large as 1e+200 at discount 0.9",
    ),
    "policy short": (play(np.zeros(5, dtype=int)), "policy has shape (5,)"),
    "policy of floats": (play(np.zeros(6)), "whole action ids"),
    "policy of words": (play(["left"] * 6), "whole action ids"),
    "policy unknown action": (play([0, 0, 0, 2, 0, 0]), "state 3 plays unknown action 2"),
    "policy negative action": (play([0, -1, 0, 0, 0, 0]), "state 1 plays unknown action -1"),
    "policy sum": (play(np.full((6, 2), 0.4)), "probabilities of state 0 sum to 0.8"),
    "policy NaN": (play(np.full((6, 2), NAN)), "state 0 plays action 'left' with probability nan"),
    "policy negative": (play([[2.0, -1.0]] * 6), "with probability 2.0; it must lie in [0, 1]"),
    "policy shape": (play(np.ones((6, 3)) / 3), "policy has shape (6, 3)"),
    "policy ragged": (play([[1.0, 0.0], [1.0]]), "policy must be an array"),
    "policy missing action": (play([1, 1], MISSING), "action 1 is not available in state 1"),
    "policy mixes a missing action": (
        play(np.full((2, 2), 0.5), MISSING),
        "action 1 is not available in state 1",
    ),
    "value short": (lambda: spans(BALL, np.zeros(5)), "value has shape (5,); it must be (6,)"),
    "value NaN": (lambda: spans(BALL, [0, 0, NAN, 0, 0, 0]), "value[2] is nan"),
    "value words": (lambda: spans(BALL, "abcdef"), "value must be an array of numbers"),
    "span objective": (lambda: spans(BALL, np.zeros(6), objective="x"), "objective='x'"),
}


def shifted() -> tuple[Any, Any]:
    p, r = RIVER.to_arrays()
    p[0, 1, :2] = (0.6, 0.4)
    return p, r


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_named(case: str) -> None:
    call, wanted = CASES[case]
    with pytest.raises(ValueError, match=re.escape(wanted)) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_wrong_things_are_named() -> None:
    wrong: Any = 0.2
    with pytest.raises(TypeError, match="ambiguity must be an AmbiguitySet, got float"):
        solve(RIVER, wrong)
    with pytest.raises(TypeError, match="mdp must be an MDP, got float"):
        solve(wrong)


def test_arguments_are_never_modified() -> None:
    arrays = [np.array(x) for x in ([1.0, 2.0, 0.5], [0.2, 0.3, 0.5 + 1e-8], [1.0, 0.0, np.inf])]
    before = [x.copy() for x in arrays]
    for norm in ("l1", "linf"):
        worst_case(arrays[0], arrays[1], budget=0.3, weights=arrays[2], norm=norm)
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)
        assert array.flags.writeable
