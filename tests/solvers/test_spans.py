"""The span of a set along a direction, and Theorem 3.2's bound."""

import numpy as np
import pytest

from contracts import EXACT_SETS, random_model
from exact_models import ExactModel
from oracles import exact, lp_ball, lp_box
from surefoot import (
    AmbiguitySet,
    DirichletPosterior,
    credible_set,
    evaluate,
    loss_bound,
    riverswim,
    solve,
    spans,
)


@pytest.mark.parametrize("name", EXACT_SETS)
def test_spans_equal_exact_fractions(name: str) -> None:
    rng = np.random.default_rng(1)
    for objective in ("max", "min"):
        mdp = random_model(rng, 6, 2, discount=0.9)
        ambiguity = EXACT_SETS[name](mdp, 0.3)
        v = rng.normal(size=6)
        low = ExactModel(mdp, ambiguity, nature="worst")
        high = ExactModel(mdp, ambiguity, nature="best")
        truth = [
            float(high.row(row, exact(v)).value - low.row(row, exact(v)).value)
            for row in range(mdp.num_rows)
        ]
        found = spans(ambiguity, v, objective=objective)
        np.testing.assert_allclose(found, truth, rtol=0, atol=1e-12)


@pytest.mark.parametrize("norm", ["l1", "linf", "box"])
def test_spans_equal_linear_programs(norm: str) -> None:
    rng = np.random.default_rng(2)
    mdp = random_model(rng, 6, 2, discount=0.9)
    ambiguity = EXACT_SETS["box" if norm == "box" else f"{norm} weighted"](mdp, 0.3)
    v = rng.normal(size=6)
    found = spans(ambiguity, v)
    for row in np.flatnonzero(mdp.uncertain_rows):
        at = slice(*mdp.row_start[row : row + 2])
        reward = mdp.reward[at] if mdp.reward_per_entry else mdp.reward[row]
        z = reward + mdp.discount * v[mdp.successor[at]]
        if ambiguity.lower is not None and ambiguity.upper is not None:
            ends = [lp_box(sign * z, ambiguity.lower[at], ambiguity.upper[at]) for sign in (1, -1)]
        else:
            assert ambiguity.weights is not None
            assert ambiguity.budget is not None
            w, budget = ambiguity.weights[at], ambiguity.budget[row]
            p = mdp.probability[at]
            ends = [lp_ball(sign * z, p, w, budget, norm) for sign in (1, -1)]
        assert found[row] == pytest.approx(-sum(ends), abs=1e-6)


def test_certain_rows_have_no_span() -> None:
    mdp = riverswim().mdp
    ambiguity = AmbiguitySet.from_arrays(mdp, norm="l1", budget=2.0)
    found = spans(ambiguity, np.arange(6.0))
    assert np.all(found[~mdp.uncertain_rows] == 0)
    assert np.all(found[mdp.uncertain_rows] > 0)


@pytest.mark.parametrize("budget", [0.01, 0.1, 0.5])
def test_the_loss_bound_bounds_the_loss(budget: float) -> None:
    """No model of the set can give the robust policy more than its robust value and the bound."""
    mdp = riverswim().mdp
    ambiguity = AmbiguitySet.from_arrays(mdp, norm="l1", budget=budget)
    robust = solve(mdp, ambiguity)
    best = evaluate(mdp, robust.policy, ambiguity, nature="best")
    assert best.return_lower <= robust.return_upper + loss_bound(
        ambiguity, robust.value, delta=0.05
    )


@pytest.mark.parametrize("objective", ["max", "min"])
def test_the_loss_bound_is_the_largest_span_and_the_error_that_is_left(objective: str) -> None:
    mdp = random_model(np.random.default_rng(3), 6, 2, discount=0.9)
    ambiguity = AmbiguitySet.from_arrays(mdp, norm="l1", budget=0.3)
    solution = solve(mdp, ambiguity, objective=objective)
    largest = spans(ambiguity, solution.value, objective=objective).max()
    found = loss_bound(ambiguity, solution.value, objective=objective, delta=0.1)
    assert largest / 0.1 <= found <= largest / 0.1 + 1e-3


def test_the_loss_bound_needs_converged_values() -> None:
    mdp = riverswim().mdp
    ambiguity = AmbiguitySet.from_arrays(mdp, norm="l1", budget=0.1)
    early = solve(mdp, ambiguity, max_iterations=3, algorithm="value_iteration")
    with pytest.raises(ValueError, match=r"away from the robust value .* solve\(mdp, ambiguity\)"):
        loss_bound(ambiguity, early.value, delta=0.1)
    other = solve(mdp)  # converged, for another set
    with pytest.raises(ValueError, match="away from the robust value"):
        loss_bound(ambiguity, other.value, delta=0.1)


def test_the_loss_bound_needs_delta_below_one_half() -> None:
    mdp = riverswim().mdp
    by_hand = AmbiguitySet.from_arrays(mdp, norm="l1", budget=0.1)
    value = solve(mdp, by_hand).value
    with pytest.raises(ValueError, match="made by hand and carries no delta"):
        loss_bound(by_hand, value)
    for delta in (0.5, 0.9, 0.0, float("nan")):
        with pytest.raises(ValueError, match="proven for 0 < delta < 1/2"):
            loss_bound(by_hand, value, delta=delta)
    posterior = DirichletPosterior(riverswim().simulate(5, np.random.default_rng(0)))
    for delta in (0.9, 0.2):
        rng = np.random.default_rng(1)
        made = credible_set(posterior, mdp, delta=delta, rng=rng)
        value = solve(mdp, made).value
        if delta < 0.5:
            assert loss_bound(made, value) > 0
            with pytest.raises(ValueError, match=r"made for delta=0\.2"):
                loss_bound(made, value, delta=0.1)
        else:
            with pytest.raises(ValueError, match="proven for 0 < delta < 1/2"):
                loss_bound(made, value)
