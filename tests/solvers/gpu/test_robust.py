"""Robust rows and sweeps on a device, against programs from the definitions and the cores."""

from typing import Any

import numpy as np
import pytest

from surefoot import MDP, AmbiguitySet, evaluate, garnet, solve
from surefoot.solvers.gpu import robust_rows
from surefoot.solvers.gpu.arrays import NUMPY
from surefoot.solvers.gpu.device import Device, doubles
from surefoot.solvers.gpu.robust_pallas import (
    BOX,
    L1,
    POINT,
    SHORT,
    RowArrays,
    rows_per_block,
    worst_rows,
)
from surefoot.solvers.gpu.robust_rows import LIST, NOTHING, Fold, worst_box, worst_l1
from surefoot.solvers.gpu.robust_work import DeviceWork
from surefoot.solvers.solution import Status


def rows(length: int, number: int, seed: int = 0) -> Any:
    """Values, probabilities, weights, budgets and boxes ``[successor, row]``."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(length, number))
    p = rng.dirichlet(np.ones(length), number).T
    w = rng.uniform(0.2, 3.0, (length, number))
    budget = rng.uniform(0.0, 1.5, number)
    budget[:3] = 0.0
    low = np.maximum(p - rng.uniform(0.0, 0.3, p.shape), 0.0)
    high = np.minimum(p + rng.uniform(0.0, 0.3, p.shape), 1.0)
    return z, p, w, budget, low, high


@pytest.mark.parametrize("guess", [0.0, 0.4])
def test_worst_rows_are_those_of_linear_programs(guess: float) -> None:
    from scipy.optimize import linprog

    z, p, w, budget, low, high = rows(5, 30)
    start = (np.full(30, guess), np.full(30, 1.2 * guess))
    exact = np.full(30, 1e-13)
    ball = worst_l1(NUMPY, LIST, list(z), list(p), list(w), budget, start, exact)
    box = worst_box(NUMPY, Fold(0), [z], [low], [high], start, exact)
    eye, none = np.eye(5), np.zeros((1, 5))
    for n in range(30):
        apart = np.block([[eye, -eye], [-eye, -eye]])
        found = linprog(
            np.r_[z[:, n], np.zeros(5)],
            A_ub=np.vstack([np.hstack([none, w[None, :, n]]), apart]),
            b_ub=np.r_[budget[n], p[:, n], -p[:, n]],
            A_eq=np.r_[np.ones(5), np.zeros(5)][None], b_eq=[1.0],
        )  # fmt: skip
        assert ball.value[n] == pytest.approx(found.fun, abs=1e-9)
        found = linprog(
            z[:, n], bounds=np.c_[low[:, n], high[:, n]], A_eq=np.ones((1, 5)), b_eq=[1.0]
        )
        assert box.value[n] == pytest.approx(found.fun, abs=1e-9)
    assert ball.gap.max() < 1e-12
    assert box.gap.max() < 1e-12


@pytest.mark.parametrize("budget", [0.05, 0.1, 0.3, 0.8])
def test_searches_from_scratch_begin_near_their_end(
    budget: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks of 32 rows search until the last is done: eight or nine evaluations from 0."""
    rng = np.random.default_rng(0)
    evaluations = []
    dual = robust_rows.l1_dual

    def counted(*given: Any) -> Any:
        evaluations[-1] += 1
        return dual(*given)

    monkeypatch.setattr(robust_rows, "l1_dual", counted)
    none, near = (np.zeros(32), np.zeros(32)), np.full(32, 1e-7)
    from_left = (np.full(32, 1e-300), np.full(32, 1e-300))
    for _ in range(40):
        p = rng.random((16, 32))
        z, w = 0.9 * rng.normal(size=p.shape), rng.random(p.shape) + 0.5
        for start in (none, from_left):
            evaluations.append(0)
            p_list, size = list(p / p.sum(axis=0)), np.full(32, budget)
            found = worst_l1(NUMPY, LIST, list(z), p_list, list(w), size, start, near)
            assert found.gap.max() <= 1e-7
    cold, left = np.mean(evaluations[::2]), np.mean(evaluations[1::2])
    assert cold < left - 1.0
    assert cold < 7.5


def test_values_of_any_size_have_a_first_multiplier() -> None:
    z, p, w, budget, *_ = rows(6, 40, 4)
    none, exact = (np.zeros(40), np.zeros(40)), np.full(40, 1e-13)
    usual = worst_l1(NUMPY, LIST, list(z), list(p), list(w), budget, none, exact).value
    for scale in (1e-200, 1e-12, 1e12, 1e200):
        far = scale * z
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            found = worst_l1(
                NUMPY, LIST, list(far), list(p), list(w), budget, none, scale * exact
            ).value
        np.testing.assert_allclose(found, scale * usual, rtol=1e-9)
    free = worst_l1(NUMPY, LIST, list(z), list(p), list(0.0 * w), budget, none, exact).value
    np.testing.assert_allclose(free, z.min(axis=0), rtol=1e-12)


def test_any_stop_is_a_lower_bound_with_its_gap() -> None:
    z, p, w, budget, low, high = rows(6, 200, 1)
    start = (np.zeros(200), np.zeros(200))
    exact, rough = np.full(200, 1e-13), np.full(200, 0.1)
    for worst, a, b in ((worst_l1, p, w), (worst_box, low, high)):
        more = (budget,) if worst is worst_l1 else ()
        true = worst(NUMPY, Fold(0), [z], [a], [b], *more, start, exact).value  # type: ignore[operator]
        found = worst(NUMPY, Fold(0), [z], [a], [b], *more, start, rough)  # type: ignore[operator]
        assert np.all(found.value <= true + 1e-12)
        assert np.all(true <= found.value + found.gap + 1e-12)


@pytest.mark.parametrize(
    ("kind", "length"),
    [(POINT, 4), (L1, 4), (BOX, 4), (L1, SHORT + 8), (L1, 128), (BOX, 128), (L1, 1024)],
)
def test_the_kernel_computes_the_same(kind: int, length: int) -> None:
    long = length > SHORT
    number = 2 * rows_per_block(length)
    _, p, w, budget, low, high = rows(length, number, 2)
    rng = np.random.default_rng(3)
    v, reward = rng.normal(size=50), rng.normal(size=number)
    target = rng.integers(0, 50, p.shape).astype(np.int32)
    target[-1, ::3] = -1
    a, b = (low, high) if kind == BOX else (p, w)
    a, b = np.where(target < 0, 0.0, a), np.where(target < 0, 0.0 if kind == BOX else 1.0, b)
    high_sum = b.sum(axis=0)
    if kind == BOX:
        b = np.where(high_sum < 1.0, b / high_sum, b)
    z = np.where(target < 0, NOTHING, reward + 0.9 * v[target])
    start, exact = (np.zeros(number), np.zeros(number)), np.full(number, 1e-12)
    if kind == POINT:
        wanted = (a * z).sum(axis=0)
    elif kind == L1:
        wanted = worst_l1(NUMPY, Fold(0), [z], [a], [b], budget, start, exact).value
    else:
        wanted = worst_box(NUMPY, Fold(0), [z], [a], [b], start, exact).value
    turn = (lambda x: np.ascontiguousarray(x.T)) if long else (lambda x: x)
    model = RowArrays(turn(target), turn(a), turn(b), reward, budget, np.array([1.0, 0.9]))
    with doubles():
        found = worst_rows(
            kind, v, model, start, np.array([1e-12]), long=long, interpret=True
        ).value
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-12, atol=1e-12)


def model() -> MDP:
    """States with two actions and one with one: two kinds of tiles."""
    whole = garnet(5, 2, 3, discount=0.7, rng=np.random.default_rng(0)).mdp
    dense = np.zeros((5, 2, 5))
    dense[whole.row_state[whole.entry_row], whole.row_action[whole.entry_row], whole.successor] = (
        whole.probability
    )
    dense[4, 1] = 0.0
    reward = np.random.default_rng(1).random((5, 2))
    return MDP.from_arrays(dense, reward, discount=0.7)


@pytest.mark.parametrize("norm", [None, "l1", "linf"])
@pytest.mark.parametrize(("objective", "nature"), [("max", "worst"), ("min", "best")])
def test_solves_agree_with_the_cores(norm: Any, objective: str, nature: str, gpu: Device) -> None:
    mdp = model()
    ambiguity = None if norm is None else AmbiguitySet.from_arrays(mdp, norm=norm, budget=0.3)
    asked: Any = {"objective": objective, "nature": nature, "tolerance": 1e-8}
    there = solve(mdp, ambiguity, device="gpu", **asked)
    here = solve(mdp, ambiguity, device="cpu", **asked)
    assert there.status.name == "CONVERGED"
    assert there.algorithm == "value_iteration, gpu"
    assert np.all(there.lower <= here.upper)
    assert np.all(here.lower <= there.upper)
    np.testing.assert_array_equal(there.policy, here.policy)
    if norm == "l1":
        mixed = np.where(mdp.available, 1.0, 0.0)
        mixed /= mixed.sum(axis=1, keepdims=True)
        there = evaluate(mdp, mixed, ambiguity, device="gpu", **asked)
        here = evaluate(mdp, mixed, ambiguity, device="cpu", **asked)
        np.testing.assert_allclose(there.value, here.value, atol=1e-7)


def test_weights_count(gpu: Device) -> None:
    mdp = model()
    weights = np.random.default_rng(2).uniform(0.5, 2.0, mdp.num_entries)
    ball = AmbiguitySet(mdp=mdp, norm="l1", budget=np.full(mdp.num_rows, 0.4), weights=weights)
    there = solve(mdp, ball, device="gpu", tolerance=1e-9)
    here = solve(mdp, ball, device="cpu", tolerance=1e-9)
    np.testing.assert_allclose(there.value, here.value, atol=1e-8)


def test_a_wrong_image_is_noticed(gpu: Device) -> None:
    from surefoot.solvers.problem import make_problem

    mdp = model()
    work = DeviceWork(gpu, make_problem(mdp, None, objective="max", nature="worst"), None)
    work.sweep()
    work.recheck()
    work.lifted = np.asarray(work.lifted) + 1e-6
    with pytest.raises(RuntimeError, match="disagree about state"):
        work.recheck()


def test_sweeps_end_at_their_limit(gpu: Device) -> None:
    """Several are made between two looks at the changes, but never one too many."""
    few, more = (solve(model(), device="gpu", tolerance=1e-300, max_iterations=n) for n in (7, 25))
    assert (few.iterations, more.iterations) == (7, 25)
    assert few.status is Status.ITERATION_LIMIT
    assert np.abs(few.value - more.value).max() <= few.error_bound + more.error_bound
    assert more.error_bound < few.error_bound
