"""Worst cases over KL balls against convex programs and high-precision arithmetic."""

from decimal import Decimal, localcontext

import cvxpy as cp
import numpy as np
import pytest

from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.domains import riverswim
from surefoot.domains.garnet import garnet
from surefoot.model.mdp import MDP
from surefoot.solvers.algorithms import ALGORITHMS
from surefoot.solvers.solver import evaluate, solve
from surefoot.solvers.worst_case import spans, worst_case

EPSILON = np.finfo(np.float64).eps


def divergence(p, q):
    seen = p > 0
    return float(np.sum(p[seen] * np.log(p[seen] / q[seen])))


def random_row(rng):
    k = int(rng.integers(2, 12))
    z = rng.normal(size=k) * 10 ** rng.uniform(-2, 4) + rng.choice([0.0, 0.0, 1000.0])
    if rng.random() < 0.3 and np.abs(z).max() > 2:
        z = np.round(z)
    p = rng.dirichlet(np.full(k, rng.choice([0.1, 0.5, 3.0])))
    p[rng.random(k) < 0.3] = 0.0
    p[0] += p.sum() == 0
    return z, p / p.sum()


def convex_program(z, p, budget):
    """min q.z  s.t.  KL(p || q) <= budget, q in the simplex, written from the definition."""
    scale = np.abs(z).max()
    q, seen = cp.Variable(len(z), nonneg=True), p > 0
    kl = cp.sum(cp.multiply(p[seen], -cp.log(q[seen]))) + np.sum(p[seen] * np.log(p[seen]))
    problem = cp.Problem(cp.Minimize((z / scale) @ q), [cp.sum(q) == 1, kl <= budget])
    problem.solve(solver="CLARABEL")
    return problem.value * scale


def precise(z, p, budget):
    """The maximum of the dual with 50 digits, by bisection on the sign of its slope."""
    with localcontext() as context:
        context.prec = 50
        z, p = [Decimal(float(x)) for x in z], [Decimal(float(x)) for x in p]
        p = [x / sum(p) for x in p]
        eps, low = Decimal(float(budget)), min(z)
        seen = [(x, y - low) for x, y in zip(p, z, strict=True) if x > 0]

        def log_mean(t):
            return sum(x * (d + t).ln() for x, d in seen)

        def excess(t):
            return log_mean(t) + sum(x / (d + t) for x, d in seen).ln() - eps

        def dual(t):
            return low - t + (log_mean(t) - eps).exp()

        if all(d == 0 for _, d in seen):
            return low
        if all(d > 0 for _, d in seen) and excess(Decimal(0)) <= 0:
            return dual(Decimal(0))
        left, right = Decimal(-2000), Decimal(60)
        for _ in range(180):
            middle = (left + right) / 2
            left, right = (middle, right) if excess(middle.exp()) > 0 else (left, middle)
        return dual(left.exp())


@pytest.mark.parametrize("seed", range(25))
def test_value_and_distribution_solve_the_convex_program(seed):
    rng = np.random.default_rng(seed)
    z, p = random_row(rng)
    budget = 10 ** rng.uniform(-3, 1)
    found = worst_case(z, p, budget=budget, norm="kl")
    scale = np.abs(z).max()
    assert found.value == pytest.approx(convex_program(z, p, budget), abs=2e-6 * scale)
    q = found.distribution
    assert q.sum() == pytest.approx(1.0, abs=1e-12)
    assert divergence(p, q) <= budget * (1 + 1e-6) + 1e-12
    assert q @ z == pytest.approx(found.value, abs=1e-9 * scale)


@pytest.mark.parametrize("seed", range(40))
def test_value_is_a_lower_bound_to_the_last_digits(seed):
    rng = np.random.default_rng([1, seed])
    z, p = random_row(rng)
    budget = 10 ** rng.uniform(-13, 2.5)
    found = worst_case(z, p, budget=budget, norm="kl").value
    unit = (len(z) + 8) * EPSILON * np.abs(z).max()  # an eighth of what the solver allows for
    assert abs(float(Decimal(found) - precise(z, p, budget))) <= unit


def test_an_unseen_successor_receives_mass():
    found = worst_case([1.0, 0.0], [1.0, 0.0], budget=0.1, norm="kl")
    np.testing.assert_allclose(found.distribution, [np.exp(-0.1), 1 - np.exp(-0.1)])
    assert found.value == pytest.approx(np.exp(-0.1))


def test_two_successors_by_hand():
    # KL(Bernoulli(0.3) || Bernoulli(q)) = 0.2 has the smaller root q.
    q = 1 - worst_case([0.0, 1.0], [0.7, 0.3], budget=0.2, norm="kl").distribution[0]
    assert q < 0.3
    assert divergence(np.array([0.7, 0.3]), np.array([1 - q, q])) == pytest.approx(0.2, rel=1e-9)


def test_budgets_at_the_ends():
    z, p = np.array([3.0, -1.0, 2.0]), np.array([0.5, 0.0, 0.5])
    assert worst_case(z, p, budget=0.0, norm="kl").value == 2.5
    everything = worst_case(z, p, budget=np.inf, norm="kl")
    assert everything.value == -1.0
    assert everything.distribution.tolist() == [0.0, 1.0, 0.0]
    assert worst_case(z, p, budget=800.0, norm="kl").value == pytest.approx(-1.0, abs=1e-15)
    assert worst_case([2.0, 2.0], [0.4, 0.6], budget=1.0, norm="kl").value == 2.0


def test_thousands_of_successors():
    rng = np.random.default_rng(0)
    k = 5000
    z, p = rng.normal(size=k), rng.multinomial(2000, np.full(k, 1 / k)) / 2000
    values = [worst_case(z, p, budget=b, norm="kl").value for b in (0.01, 0.1, 1.0, 10.0)]
    assert values == sorted(values, reverse=True)
    q = worst_case(z, p, budget=0.1, norm="kl").distribution
    assert divergence(p, q) == pytest.approx(0.1, rel=1e-7)
    assert q @ z == pytest.approx(values[1], abs=1e-9)


@pytest.fixture(scope="module")
def model():
    return garnet(25, 3, 6, discount=0.9, rng=np.random.default_rng(4)).mdp


def test_solvers_agree_and_budgets_order_the_values(model):
    last = solve(model).return_lower
    for budget in (1e-9, 0.01, 0.2, 2.0):
        made = AmbiguitySet.from_arrays(model, norm="kl", budget=budget)
        found = [solve(model, made, algorithm=name, tolerance=1e-8) for name in ALGORITHMS]
        for solution in found:
            assert solution.return_upper >= max(f.return_lower for f in found)
        assert found[0].return_lower <= last + 1e-9
        last = found[0].return_lower
        check = evaluate(found[0].nature_model(), found[0].policy, tolerance=1e-9)
        assert check.return_lower == pytest.approx(found[0].return_lower, abs=1e-6)


def test_budget_zero_is_the_nominal_solve(model):
    made = AmbiguitySet.from_arrays(model, norm="kl", budget=0.0)
    assert solve(model, made).return_lower == solve(model).return_lower
    assert spans(made, np.arange(25.0)).max() == 0.0


def test_nature_on_our_side_and_costs_mirror_each_other(model):
    made = AmbiguitySet.from_arrays(model, norm="kl", budget=0.1)
    mirrored = MDP(**{**vars_of(model), "reward": -model.reward})
    other = AmbiguitySet.from_arrays(mirrored, norm="kl", budget=0.1)
    worst = solve(model, made, tolerance=1e-8)
    costs = solve(mirrored, other, objective="min", tolerance=1e-8)
    assert costs.return_upper == pytest.approx(-worst.return_lower, abs=1e-6)
    best = solve(model, made, nature="best")
    assert best.return_lower > solve(model).return_upper > worst.return_upper


def vars_of(mdp):
    names = (
        "state_start row_action row_start successor probability reward discount initial "
        "num_actions reward_per_entry"
    )
    return {name: getattr(mdp, name) for name in names.split()}


def test_a_kl_ball_has_no_weights_and_shows_itself():
    mdp = riverswim().mdp
    with pytest.raises(ValueError, match="no weights"):
        AmbiguitySet.from_arrays(mdp, norm="kl", budget=0.1, weights=2.0)
    assert repr(AmbiguitySet.from_arrays(mdp, norm="kl", budget=0.1)) == (
        "AmbiguitySet(kl, 12 rows, budget 0.1)"
    )
    with pytest.raises(ValueError, match="budgets must be 0 or more"):
        AmbiguitySet.from_arrays(mdp, norm="kl", budget=np.nan)
