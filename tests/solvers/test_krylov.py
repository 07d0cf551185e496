"""Policies evaluated without a matrix: the right values, however slowly the model moves."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

import surefoot as sf
from surefoot.model.policies import check_policy
from surefoot.solvers.evaluation import krylov_kernels as kernels
from surefoot.solvers.evaluation.evaluator import choose_evaluator
from surefoot.solvers.evaluation.returns import best_returns, policy_returns
from surefoot.solvers.evaluation.rewards import rewards_of


def random_rows(rng, states, successors):
    """Return rows of random successors with random probabilities."""
    column = np.array([rng.choice(states, successors, replace=False) for _ in range(states)])
    return column, rng.dirichlet(np.ones(successors), states)


def with_a_trap(rng, states):
    """Return a model that mixes well but for a state that nobody leaves: sweeps are slow in it."""
    column, chance = random_rows(rng, states, 6)
    column[:, 0], chance = 0, 0.9999 * chance
    chance[:, 0] = 1.0 - chance[:, 1:].sum(axis=1)
    column[0], chance[0] = np.arange(6), np.eye(6)[0]
    return column, chance


def chain(rng, states):
    """Return a slow walk along a line."""
    place = np.arange(states)
    column = np.stack((np.maximum(place - 1, 0), place, np.minimum(place + 1, states - 1)), axis=1)
    return column, rng.dirichlet(np.ones(3), states)


def room(gain):
    return np.empty((kernels.VECTORS, len(gain)))


MODELS = {"fast": lambda rng, states: random_rows(rng, states, 6), "trap": with_a_trap,
          "chain": chain}  # fmt: skip


def system(kind, discount, states=150, seed=0):
    rng = np.random.default_rng(seed)
    column, chance = MODELS[kind](rng, states)
    matrix = np.eye(states)
    np.add.at(matrix, (np.arange(states)[:, None], column), -discount * chance)
    start = column.shape[1] * np.arange(states + 1)
    gain = rng.normal(size=states)
    return start, column.ravel(), (discount * chance).ravel(), gain, matrix


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("discount", [0.0, 0.9, 0.99, 0.9999])
def test_values_settle_within_the_tolerance(kind, discount):
    start, column, chance, gain, matrix = system(kind, discount)
    truth = np.linalg.solve(matrix, gain)
    for tolerance in (1e-3, 1e-7):
        value, work = np.zeros(len(gain)), room(gain)
        kernels.settle(
            start, column, chance, gain, discount, tolerance, 20_000, value, np.empty(len(gain)),
            work,
        )  # fmt: skip
        np.testing.assert_allclose(value, truth, atol=1.01 * tolerance)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("transposed", [False, True])
def test_both_systems_are_solved(kind, transposed):
    start, column, chance, gain, matrix = system(kind, 0.99)
    x = np.zeros(len(gain))
    products = kernels.solve_sparse(start, column, chance, transposed, gain, 1e-9, x, room(gain))
    residual = gain - (matrix.T if transposed else matrix) @ x
    assert np.abs(residual).max() < 2e-9
    assert products < kernels.MAX_PRODUCTS


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("discount", [0.0, 0.9, 0.999])
def test_visits_settle_within_the_goal(kind, discount):
    start, column, chance, gain, matrix = system(kind, discount)
    initial = np.abs(gain) / np.abs(gain).sum()
    x = initial.copy()
    kernels.settle_visits(start, column, chance, initial, 1e-7, 20_000, x, room(gain))
    assert np.abs(initial - matrix.T @ x).max() < 2e-7


def test_a_trap_takes_few_products():
    """Sweeps would need the discount's own pace: hundreds. The trap is two errors, not hundreds."""
    start, column, chance, gain, _ = system("trap", 0.99, states=600)
    x = np.zeros(len(gain))
    products = kernels.solve_sparse(start, column, chance, False, gain, 1e-8, x, room(gain))
    assert products < 50


def test_the_solution_itself_and_zero_are_left_alone():
    start, column, chance, gain, matrix = system("fast", 0.9)
    work = room(gain)
    truth = np.linalg.solve(matrix, gain)
    x = truth.copy()
    assert kernels.solve_sparse(start, column, chance, False, gain, 1e-9, x, work) == 1
    np.testing.assert_array_equal(x, truth)
    nothing = np.zeros(len(gain))
    assert kernels.solve_sparse(start, column, chance, False, nothing, 0.0, nothing, work) == 1
    # A goal that arithmetic cannot reach: it ends, and is no worse than before.
    x = truth + 1e-3
    kernels.solve_sparse(start, column, chance, False, gain, 0.0, x, work)
    np.testing.assert_allclose(x, truth, atol=1e-9)


def test_the_inner_product():
    rng = np.random.default_rng(0)
    for size in range(1, 12):
        a, b = rng.normal(size=(2, size))
        assert kernels.dot(a, b) == pytest.approx(a @ b)


def trapped_problem(states=260):
    """Return a posterior from a log: its model has a state for all that was never observed."""
    rng = np.random.default_rng(1)
    counts = sf.garnet(states, 3, 4, discount=0.95, rng=rng).simulate(30, rng)
    seen = counts.count > 0
    row = counts.entry_row[seen]
    log = {
        "state": counts.row_state[row], "action": counts.row_action[row],
        "next_state": counts.successor[seen], "reward": rng.random(int(seen.sum())),
        "count": counts.count[seen],
    }  # fmt: skip
    placed = sf.read_transitions(log, count="count").on_support()
    return placed.to_mdp(discount=0.95, prior=1.0), sf.DirichletPosterior(placed)


def test_brackets_of_large_models_are_narrow_and_right():
    mdp, posterior = trapped_problem()
    assert choose_evaluator(mdp).kind == "products"
    rewards = rewards_of(mdp, posterior, objective="max")
    rng = np.random.default_rng(2)
    policy = sf.solve(mdp).policy
    rows = check_policy(mdp, policy)
    draws = posterior.sample(3, deepcopy(rng))
    found = policy_returns(posterior, mdp, rows, 3, rng, rewards=rewards)
    assert found.numerical_error < 1e-6
    best = best_returns(
        posterior, mdp, 3, deepcopy(rng), rewards=rewards, start=rows.rows.astype(np.int64)
    )
    assert best.numerical_error < 1e-6
    for i, draw in enumerate(draws):
        model = replace(mdp, probability=draw)
        truth = sf.evaluate(model, policy, tolerance=1e-9)
        assert found.lower[i] <= truth.return_upper
        assert truth.return_lower <= found.upper[i]
    for draw, low, high in zip(
        posterior.sample(3, deepcopy(rng)), best.lower, best.upper, strict=True
    ):
        optimum = sf.solve(replace(mdp, probability=draw), tolerance=1e-9)
        assert low <= optimum.return_upper
        assert optimum.return_lower <= high


def test_a_policy_compared_with_itself_earns_nothing_more():
    """As action ids and as probabilities: other rows, other blocks, the same models and rewards."""
    rng = np.random.default_rng(3)
    size = 4000
    log = {
        "state": rng.integers(0, 30, size), "action": rng.integers(0, 3, size),
        "next_state": rng.integers(0, 30, size), "reward": rng.normal(1.0, 1.0, size),
    }  # fmt: skip
    counts = sf.read_transitions(log).on_support("observed")
    mdp, posterior = counts.to_mdp(discount=0.9), sf.DirichletPosterior(counts)
    assert rewards_of(mdp, posterior, objective="max").uncertain.any()
    policy = mdp.row_action[mdp.state_start[:-1]].astype(np.int64)
    share = np.zeros((30, 3))
    share[np.arange(30), policy] = 1.0 - 1e-12
    share[np.arange(30), (policy + 1) % 3] = 1e-12  # all rows are drawn, in smaller blocks
    made = sf.compare(policy, share, posterior, mdp, draws=3000, rng=np.random.default_rng(5))
    assert abs(made.difference_lower_bound) < 1e-6
