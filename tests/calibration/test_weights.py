"""Weights against random ones, against a conic solver, and against the paper's example."""

import cvxpy as cp
import numpy as np
import pytest

from surefoot.calibration.preference import preferred_norm
from surefoot.calibration.weights import (
    centers,
    choose_weights,
    given_weights,
    span_bound,
    successor_values,
    weights_at,
)
from surefoot.model.mdp import MDP
from surefoot.solvers.worst_case import worst_case


def one_row(z) -> MDP:
    """A model whose first row leads to ``len(z)`` absorbing successors worth ``z``."""
    k = len(z)
    transitions = np.zeros((k, 1, k))
    transitions[0, 0] = 1 / k
    for state in range(1, k):
        transitions[state, 0, state] = 1.0
    rewards = np.zeros((k, 1, k))
    rewards[0, 0] = z
    return MDP.from_arrays(transitions, rewards, discount=0.5)


def row_weights(z, norm, center):
    mdp = one_row(z)
    values = successor_values(mdp, np.zeros(len(z)))
    return weights_at(mdp, values, centers(mdp, values, center), norm)[: len(z)]


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize("center", ["midrange", "median", "mean", 0.3])
def test_weights_minimise_the_bound_among_random_ones(norm, center):
    rng = np.random.default_rng(3)
    for k in (3, 6):
        z = rng.normal(size=k)
        mdp = one_row(z)
        at = centers(mdp, successor_values(mdp, np.zeros(k)), center)[0]
        ours = row_weights(z, norm, center)
        assert np.linalg.norm(ours) == pytest.approx(1.0)
        best = span_bound(z, ours, at, norm)
        random = np.abs(rng.normal(size=(100_000, k)))
        near = np.abs(ours + 0.02 * rng.normal(size=(100_000, k)))
        for tried in (random, near):
            tried /= np.linalg.norm(tried, axis=1, keepdims=True)
            ratio = np.abs(z - at) / tried
            bound = ratio.max(axis=1) if norm == "l1" else ratio.sum(axis=1)
            assert bound.min() >= best * (1 - 1e-12)
        # Close to the optimum there are competitors: the comparison is not an empty one.
        assert bound.min() <= best * 1.05


@pytest.mark.parametrize("seed", range(6))
def test_socp_closed_form_equals_the_cone_program(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 9))
    z = rng.normal(size=k) * 10 ** rng.uniform(-1, 2)
    g, c, center = cp.Variable(k), cp.Variable(), cp.Variable()
    cone = [g >= z - center, g >= center - z, cp.norm(g) <= c, g >= 0]
    problem = cp.Problem(cp.Minimize(c), cone)
    problem.solve(solver="CLARABEL")
    assert center.value == pytest.approx(z.mean(), abs=1e-4 * np.ptp(z))
    mdp = one_row(z)
    values = successor_values(mdp, np.zeros(k))
    ours = choose_weights(mdp, "socp", norm="l1", center=None, z=values)
    assert ours.weights is not None
    np.testing.assert_allclose(ours.weights[:k], g.value / c.value, atol=1e-4)
    assert span_bound(z, ours.weights[:k], z.mean(), "l1") == pytest.approx(problem.value, rel=1e-6)


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_the_bound_bounds_the_span(norm):
    rng = np.random.default_rng(7)
    for _ in range(20):
        k = int(rng.integers(2, 7))
        z, p = rng.normal(size=k), rng.dirichlet(np.ones(k))
        w = row_weights(z, norm, "mean") + 1e-9
        psi = 0.1 * rng.random()
        low = worst_case(z, p, budget=psi, weights=w, norm=norm).value
        high = -worst_case(-z, p, budget=psi, weights=w, norm=norm).value
        for center in (z.mean(), np.median(z), 0.5 * (z.max() + z.min())):
            assert high - low <= 2 * psi * span_bound(z, w, center, norm) + 1e-12


def test_rows_whose_values_agree_get_uniform_weights():
    np.testing.assert_allclose(row_weights([7.0, 7.0, 7.0, 7.0], "l1", "midrange"), 0.5)
    noise = 1e6 * (1 + np.array([0, 1, -1, 1]) * 1e-16)
    np.testing.assert_allclose(row_weights(noise, "linf", "mean"), 0.5)


def test_an_entry_at_the_centre_has_weight_zero():
    assert row_weights([0.0, 1.0, 5.0], "linf", "median")[1] == 0
    w = row_weights([0.25, 0.25, -1.0], "l1", "median")
    assert w.tolist() == [0.0, 0.0, 1.0]


def test_the_weights_stated_in_example_one_belong_to_centre_zero():
    w = row_weights([0.25, 0.25, -1.0], "l1", 0.0)
    np.testing.assert_allclose(w / w[2], [0.25, 0.25, 1.0])
    w = row_weights([0.25, 0.25, -1.0], "l1", "midrange")
    np.testing.assert_allclose(w, 1 / np.sqrt(3))


def test_centres_look_at_reachable_successors_only():
    mdp = one_row([1.0, 2.0, 9.0])
    z = successor_values(mdp, np.zeros(3))
    assert centers(mdp, z, "midrange").tolist() == [5.0, 0.0, 0.0]
    assert centers(mdp, z, "median").tolist() == [2.0, 0.0, 0.0]
    assert centers(mdp, z, "mean").tolist() == [4.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("weights", "center", "message"),
    [
        ("best", None, "'uniform', 'analytic', 'socp'"),
        ("analytic", "middle", "'midrange', 'median', 'mean', 'search' or a number"),
        ("analytic", np.nan, "finite"),
        ("socp", None, "norm='l1'"),
        ([1.0, np.inf, 1.0, 1.0, 1.0], None, "finite"),
        ([1.0, -1.0, 1.0, 1.0, 1.0], None, "0 or more"),
        (np.nan, None, "0 or more"),
    ],
)
def test_wrong_options_are_answered_with_the_right_ones(weights, center, message):
    mdp = one_row([1.0, 2.0, 9.0])
    z = successor_values(mdp, np.zeros(3))
    with pytest.raises(ValueError, match=message):
        choose_weights(mdp, weights, norm="linf", center=center, z=z)


def test_given_weights_are_copied_and_kept():
    mdp = one_row([1.0, 2.0, 9.0])
    own = np.arange(1.0, 6.0)
    entries = given_weights(mdp, own)
    entries[0] = 5.0
    assert own[0] == 1.0
    assert given_weights(mdp, 2.0).tolist() == [2.0] * 5


def test_preference_follows_the_spans_of_the_two_balls():
    # With room in every direction the bound is attained, so the rule picks the smaller span.
    rng = np.random.default_rng(5)
    p = np.full(4, 0.25)
    seen = set()
    for _ in range(200):
        z = rng.normal(size=4)
        budgets = {"l1": 0.1 * rng.random(), "linf": 0.1 * rng.random()}
        spans = {
            norm: -worst_case(-z, p, budget=psi, norm=norm).value
            - worst_case(z, p, budget=psi, norm=norm).value
            for norm, psi in budgets.items()
        }
        found = preferred_norm(z, l1_budget=budgets["l1"], linf_budget=budgets["linf"])
        assert spans[found] == pytest.approx(min(spans.values()), rel=1e-9)
        seen.add(found)
    assert seen == {"l1", "linf"}


def test_preference_refuses_nonsense():
    with pytest.raises(ValueError, match="values"):
        preferred_norm([np.nan], l1_budget=1.0, linf_budget=1.0)
    with pytest.raises(ValueError, match="linf_budget"):
        preferred_norm([0.0, 1.0], l1_budget=1.0, linf_budget=np.nan)
