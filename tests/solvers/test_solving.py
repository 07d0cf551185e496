"""Solving and evaluating as a user would: known values, statuses, simulation."""

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from contracts import ALGORITHMS, EXACT_SETS, SETS, bounds_hold, brackets_meet, random_model
from exact_models import ExactModel
from surefoot import (
    MDP,
    AmbiguitySet,
    Solution,
    Status,
    evaluate,
    garnet,
    machine_replacement,
    river_chain,
    riverswim,
    solve,
)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(
    ("mdp", "wanted", "accuracy"),
    [
        (riverswim(discount=0.99).mdp, 63080.09, 0.005),
        (machine_replacement(discount=0.95).mdp, -16.814, 0.0005),
    ],
    ids=["riverswim", "machine"],
)
def test_nominal_returns(mdp: MDP, wanted: float, accuracy: float, algorithm: str | None) -> None:
    found = solve(mdp, algorithm=algorithm)
    assert found.status is Status.CONVERGED
    assert found.return_lower <= found.return_upper
    assert found.return_lower == pytest.approx(wanted, abs=accuracy)
    assert found.return_upper == pytest.approx(wanted, abs=accuracy)


def howard(mdp: MDP) -> NDArray[np.float64]:
    """Return the optimal values by dense policy iteration: a second way to the same numbers."""
    p, r = mdp.to_arrays()
    r = np.einsum("sat,sat->sa", p, r) if r.ndim == 3 else r
    n = np.arange(mdp.num_states)
    policy = np.argmax(mdp.available, axis=1)
    while True:
        v = np.linalg.solve(np.eye(len(n)) - mdp.discount * p[n, policy], r[n, policy])
        q = np.where(mdp.available, r + mdp.discount * p @ v, -np.inf)
        better = np.where(q.max(axis=1) > q[n, policy] + 1e-9, q.argmax(axis=1), policy)
        if np.array_equal(better, policy):
            return v
        policy = better


@pytest.mark.parametrize("discount", [0.0, 0.5, 0.99, 0.9999])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_nominal_values_equal_dense_policy_iteration(
    algorithm: str | None, discount: float
) -> None:
    rng = np.random.default_rng(1)
    for mdp in (
        garnet(30, 4, 6, discount=discount, rng=rng).mdp,
        river_chain(30, discount=discount).mdp,
        random_model(rng, 20, 3, discount=discount),
    ):
        found = solve(mdp, algorithm=algorithm, tolerance=1e-7, max_iterations=1000)
        truth = howard(mdp)
        slack = 1e-13 / (1 - discount) * (1 + np.abs(truth).max())
        assert np.all(found.lower <= truth + slack)
        assert np.all(found.upper >= truth - slack)
        if found.status is Status.CONVERGED:
            np.testing.assert_allclose(found.value, truth, rtol=0, atol=1e-7 + slack)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("name", [None, *SETS])
def test_running_out_of_iterations_is_a_status(name: str | None, algorithm: str | None) -> None:
    mdp = river_chain(50, discount=0.99).mdp
    ambiguity = None if name is None else SETS[name](mdp, 0.1)
    truth = solve(mdp, ambiguity, tolerance=1e-8)
    for stop in (1, 2, 3, 10):
        found = solve(mdp, ambiguity, algorithm=algorithm, max_iterations=stop, tolerance=1e-8)
        if found.status is Status.CONVERGED:
            assert found.error_bound <= 1e-8
            continue
        assert found.status is Status.ITERATION_LIMIT
        assert not found.converged
        assert "max_iterations" in found.status.message
        assert found.iterations == stop
        assert found.error_bound > 1e-8
        assert brackets_meet(found, truth)


@pytest.mark.parametrize("tolerance", [1e-13, 1e-100, 5e-324])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("name", [None, *EXACT_SETS])
def test_a_tolerance_below_rounding_is_a_status(
    name: str | None, algorithm: str | None, tolerance: float
) -> None:
    mdp = random_model(np.random.default_rng(3), 4, 2, discount=0.9)
    ambiguity = None if name is None else EXACT_SETS[name](mdp, 0.2)
    found = solve(mdp, ambiguity, algorithm=algorithm, tolerance=tolerance)
    assert found.status is Status.PRECISION_LIMIT
    assert "precision" in found.status.message
    assert tolerance < found.error_bound < 1e-10
    assert found.iterations < 1000
    assert bounds_hold(found, ExactModel(mdp, ambiguity).solve())


def test_progress_hears_of_every_bracket() -> None:
    mdp = river_chain(60, discount=0.99).mdp
    heard: list[tuple[int, float]] = []
    found = solve(mdp, algorithm="value_iteration", progress=lambda *x: heard.append(x))
    assert [sweeps for sweeps, _ in heard] == list(range(1, found.iterations + 1))
    assert heard[-1][1] == found.error_bound
    bounds = [error for _, error in heard]
    assert bounds == sorted(bounds, reverse=True)


def test_a_looser_tolerance_takes_fewer_sweeps() -> None:
    mdp = river_chain(100, discount=0.99).mdp
    sweeps = [
        solve(mdp, algorithm="value_iteration", tolerance=tolerance).iterations
        for tolerance in (np.inf, 1.0, 1e-3, 1e-6)
    ]
    assert sweeps == sorted(sweeps)
    assert sweeps[0] == 1


def test_costs_are_rewards_with_the_other_sign() -> None:
    rng = np.random.default_rng(5)
    mdp = random_model(rng, 10, 3, discount=0.9)
    p, r = mdp.to_arrays()
    negated = MDP.from_arrays(p, -r, discount=0.9, support=mdp.support)
    for name, nature in product(SETS, ("worst", "best")):
        gain = solve(mdp, SETS[name](mdp, 0.2), nature=nature)
        loss = solve(negated, SETS[name](negated, 0.2), nature=nature, objective="min")
        np.testing.assert_array_equal(gain.policy, loss.policy)
        np.testing.assert_array_equal(gain.lower, -loss.upper)
        np.testing.assert_array_equal(gain.upper, -loss.lower)


def test_nature_orders_the_values() -> None:
    mdp = random_model(np.random.default_rng(6), 10, 3, discount=0.9)
    nominal = solve(mdp)
    for make in (make for name, make in SETS.items() if "beside" not in name):
        worst = solve(mdp, make(mdp, 0.2))
        best = solve(mdp, make(mdp, 0.2), nature="best")
        assert np.all(worst.lower <= nominal.upper)
        assert np.all(nominal.lower <= best.upper)
        assert worst.return_upper < nominal.return_lower < nominal.return_upper < best.return_lower


def returns(mdp: MDP, policy: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Simulate discounted returns of many episodes at once."""
    p, r = mdp.to_arrays()
    r = r[:, :, None] + np.zeros_like(p) if r.ndim == 2 else r
    state = rng.choice(mdp.num_states, 40_000, p=mdp.initial)
    total, weight = np.zeros(len(state)), 1.0
    for _ in range(120):
        action = policy[state]
        edges = p[state, action].cumsum(axis=1)
        after = np.minimum((rng.random((len(state), 1)) > edges).sum(axis=1), p.shape[2] - 1)
        total += weight * r[state, action, after]
        weight *= mdp.discount
        state = after
    return total


@pytest.mark.parametrize("name", [None, "l1 weighted", "box", "kl"])
def test_values_agree_with_simulation(name: str | None) -> None:
    mdp = random_model(np.random.default_rng(7), 6, 2, discount=0.85)
    found = solve(mdp, None if name is None else SETS[name](mdp, 0.3))
    policy = np.asarray(found.policy, dtype=np.int64)
    drawn = returns(found.nature_model(), policy, np.random.default_rng(8))
    error = 4 * drawn.std() / np.sqrt(len(drawn)) + 1e-6
    assert found.return_lower - error <= drawn.mean() <= found.return_upper + error


def test_a_randomised_policy_lies_between_its_parts() -> None:
    mdp = riverswim().mdp
    ambiguity = AmbiguitySet.from_arrays(mdp, norm="l1", budget=0.1)
    left, right = np.zeros(6, dtype=np.int64), np.ones(6, dtype=np.int64)
    ends = [evaluate(mdp, policy, ambiguity).return_lower for policy in (left, right)]
    sure = evaluate(mdp, np.tile([0.0, 1.0], (6, 1)), ambiguity)
    assert sure.return_lower == pytest.approx(ends[1], abs=1e-6)
    mixed = evaluate(mdp, np.tile([0.1, 0.9], (6, 1)), ambiguity)
    assert min(ends) < mixed.return_lower < max(ends)


def test_a_solution_holds_what_it_promises() -> None:
    mdp = random_model(np.random.default_rng(9), 6, 3, discount=0.9)
    found = solve(mdp, SETS["l1"](mdp, 0.2))
    assert isinstance(found, Solution)
    assert found.policy.dtype == np.int64
    assert mdp.available[np.arange(6), found.policy].all()
    np.testing.assert_array_equal(found.value, 0.5 * (found.lower + found.upper))
    assert np.all(found.upper - found.lower <= 2 * found.error_bound + 1e-14)
    assert evaluate(mdp, [0] * 6).policy.dtype == np.int64
    mixed = mdp.available / mdp.available.sum(axis=1, keepdims=True)
    assert evaluate(mdp, mixed).policy.dtype == np.float64


def test_the_first_state_matters_as_the_initial_distribution_says() -> None:
    p, r = riverswim().mdp.to_arrays()
    for initial in ([1.0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1.0], [0.5, 0, 0, 0, 0, 0.5 + 1e-8]):
        mdp = MDP.from_arrays(p, r, discount=0.99, initial=initial)
        found = solve(mdp)
        start = np.asarray(initial) / np.sum(initial)
        assert found.return_lower <= start @ found.value <= found.return_upper
        assert found.return_upper - found.return_lower < 1e-5
