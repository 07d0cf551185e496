"""Rows remember where their last solution was. That may only change the time they take."""

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from contracts import EXACT_SETS, NATURES, SETS, random_model
from exact_models import ExactModel
from oracles import exact
from surefoot import MDP, garnet
from surefoot.solvers.pair_kernels import NEVER
from surefoot.solvers.problem import make_problem
from surefoot.solvers.row_kernels import Problem
from surefoot.solvers.sweep_kernels import sweeps_of
from surefoot.solvers.workspace import Workspace

Vector = NDArray[np.float64]


def journey(rng: np.random.Generator, n: int) -> Iterator[Vector]:
    """Yield value functions as a solve would meet them, and as it never would."""
    v = rng.normal(size=n)
    yield np.zeros(n)
    for turn in range(25):
        yield v
        kind = turn % 8
        if kind < 3:
            v = v + 0.01 * rng.normal(size=n)
        elif kind == 3:
            v = -v
        elif kind == 4:
            v = rng.integers(-2, 3, n).astype(float)  # ties
        elif kind == 5:
            v = np.full(n, rng.normal())
        elif kind == 6:
            v = rng.normal(size=n) * 10.0 ** rng.integers(-6, 7)
        else:
            v = rng.normal(size=n)


def all_rows(problem: Problem, v: Vector, memory: NDArray[np.int32]) -> Vector:
    num_rows = len(problem.row_start) - 1
    out = np.empty(num_rows)
    rows = np.arange(num_rows, dtype=np.uint64)
    sweeps_of(problem).row_values(problem, v, rows, memory, out, np.empty((4, problem.longest)))
    return out


def no_memory(mdp: MDP) -> NDArray[np.int32]:
    return np.full((mdp.num_rows, 2), NEVER, dtype=np.int32)


@pytest.mark.parametrize("nature", NATURES)
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("long_rows", [False, True])
def test_warm_rows_equal_cold_rows(name: str, nature: str, long_rows: bool) -> None:
    rng = np.random.default_rng(len(name))
    mdp = random_model(rng, 12, 3, discount=0.9)
    if long_rows:
        mdp = garnet(45, 1, 45, discount=0.9, rng=rng).mdp
    for size in (1e-9, 0.1, 0.7):
        problem = make_problem(mdp, SETS[name](mdp, size), objective="max", nature=nature)
        memory = no_memory(mdp)
        for v in journey(rng, mdp.num_states):
            scale = np.abs(mdp.reward).max() + np.abs(v).max()
            warm = all_rows(problem, v, memory)
            cold = all_rows(problem, v, no_memory(mdp))
            np.testing.assert_allclose(warm, cold, rtol=0, atol=1e-13 * scale)


@pytest.mark.parametrize("nature", NATURES)
@pytest.mark.parametrize("name", EXACT_SETS)
def test_warm_rows_are_exact(name: str, nature: str) -> None:
    rng = np.random.default_rng(len(name))
    mdp = random_model(rng, 6, 2, discount=0.9)
    ambiguity = EXACT_SETS[name](mdp, 0.3)
    problem = make_problem(mdp, ambiguity, objective="max", nature=nature)
    oracle = ExactModel(mdp, ambiguity, nature=nature)
    memory = no_memory(mdp)
    for v in journey(rng, mdp.num_states):
        scale = np.abs(mdp.reward).max() + np.abs(v).max()
        found = all_rows(problem, v, memory)
        truth = [float(oracle.row(row, exact(v)).value) for row in range(mdp.num_rows)]
        np.testing.assert_allclose(found, truth, rtol=0, atol=1e-12 * scale)


@pytest.mark.parametrize("name", SETS)
def test_rows_that_are_skipped_would_not_have_won(name: str) -> None:
    rng = np.random.default_rng(len(name))
    mdp = random_model(rng, 12, 3, discount=0.9)
    problem = make_problem(mdp, SETS[name](mdp, 0.3), objective="max", nature="worst")
    with Workspace(problem, None, 1) as work:
        work.solve_rows_exactly()
        for v in journey(rng, mdp.num_states):
            for _ in range(3):
                wanted = all_rows(problem, work.v, no_memory(mdp))
                change, _ = work.step()
                best = np.maximum.reduceat(wanted, mdp.state_start[:-1])
                scale = np.abs(mdp.reward).max() + np.abs(work.v).max()
                np.testing.assert_allclose(work.image, best, rtol=0, atol=1e-13 * scale)
                work.accept_image(change.most)
            work.move_to(v.copy())
