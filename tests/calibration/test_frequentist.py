"""Frequentist budgets against exact arithmetic, containment, and what is refused."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.stats import binom

from surefoot.calibration.concentration import clopper_pearson, kl_budget, norm_budget
from surefoot.calibration.frequentist import KINDS, NORM_OF, frequentist_set, split_counts
from surefoot.data.counts import Counts
from surefoot.domains import riverswim
from surefoot.solvers.solver import evaluate, solve

NORM_KINDS = tuple(NORM_OF)


def bound(kind, weights, n, psi):
    """P[distance >= psi] at most this, term by term with 60 digits."""
    w = sorted((Decimal(float(x)) for x in weights), reverse=True)
    n, psi, k = Decimal(n), Decimal(psi), len(w)
    total = Decimal(0)
    if kind == "hoeffding_linf":
        for x in w:
            total += 2 * (-2 * psi**2 * n / x**2).exp() if x else 0
    elif kind == "weighted_l1":
        for j in range(2, k + 1):
            total += Decimal(2) ** (k - j + 1) * (-2 * n * psi**2 / (w[0] + w[j - 1]) ** 2).exp()
    else:
        for i in range(1, k):
            x = w[i - 1]
            if not x:
                continue
            power = psi**2 * n / (2 * x**2)
            if kind == "bernstein_l1":
                power = 3 * psi**2 * n / (6 * x**2 + 4 * psi * x)
            total += 2 * Decimal(2) ** (k - i) * (-power).exp()
    return total


def kl_tail(k, n, eps):
    d, n, eps = Decimal(k - 1), Decimal(n), Decimal(eps)
    return (-n * eps + d * (1 + (eps * n / d).ln())).exp()


ROWS = [
    ([1.0, 1.0], 10, 0.05),
    ([1.0, 1.0, 1.0], 500, 0.05 / 12),
    ([0.9, 0.1, 0.4, 0.0], 37, 1e-6),
    ([3e-4, 1e-4, 2e-4], 5, 0.5),
    (list(np.linspace(0.01, 1, 60)), 1000, 1e-9),
]


@pytest.mark.parametrize("kind", NORM_KINDS)
@pytest.mark.parametrize(("weights", "n", "level"), ROWS)
def test_no_smaller_budget_satisfies_the_inequality(kind, weights, n, level):
    psi = norm_budget(kind, weights, samples=n, level=level)
    with localcontext() as context:
        context.prec = 60
        assert bound(kind, weights, n, psi) <= Decimal(level)
        assert bound(kind, weights, n, psi * (1 - 1e-10)) > Decimal(level)


@pytest.mark.parametrize("kind", NORM_KINDS)
def test_thousands_of_successors_lose_no_digits(kind):
    rng = np.random.default_rng(0)
    weights = rng.random(3000)
    level = 1e-5
    psi = norm_budget(kind, weights, samples=20, level=level)
    with localcontext() as context:
        context.prec = 60
        assert bound(kind, weights, 20, psi) <= Decimal(level)
        assert bound(kind, weights, 20, psi * (1 - 1e-10)) > Decimal(level)


@pytest.mark.parametrize(("k", "n", "level"), [(2, 10, 0.05), (3, 500, 1e-4), (5000, 20, 1e-9)])
def test_kl_budget_is_the_smallest(k, n, level):
    eps = kl_budget(k, samples=n, level=level)
    assert eps > (k - 1) / n
    with localcontext() as context:
        context.prec = 60
        assert kl_tail(k, n, eps) <= Decimal(level)
        assert kl_tail(k, n, eps * (1 - 1e-10)) > Decimal(level)


@pytest.mark.parametrize("k", [2, 3, 10, 200])
def test_uniform_weights_have_closed_forms(k):
    n, level, w = 70, 0.01, np.ones(k)
    many = k * math.log(2) + math.log1p(-(2.0 ** (1 - k)))  # log(2^k - 2)
    weissman = math.sqrt(2 / n * (many - math.log(level)))
    assert norm_budget("weighted_l1", w, samples=n, level=level) == pytest.approx(weissman)
    paper = math.sqrt(2 / n * (math.log(2) + many - math.log(level)))
    assert norm_budget("hoeffding_l1", w, samples=n, level=level) == pytest.approx(paper)
    box = math.sqrt(math.log(2 * k / level) / (2 * n))
    assert norm_budget("hoeffding_linf", w, samples=n, level=level) == pytest.approx(box)


def test_bernstein_is_looser_than_hoeffding_and_the_weighted_bound_sharper():
    rng = np.random.default_rng(1)
    for _ in range(100):
        k, n = int(rng.integers(2, 20)), int(rng.integers(1, 2000))
        weights, level = rng.random(k), 10 ** rng.uniform(-9, -0.5)
        hoeffding, bernstein, sharper = (
            norm_budget(kind, weights, samples=n, level=level)
            for kind in ("hoeffding_l1", "bernstein_l1", "weighted_l1")
        )
        assert sharper < hoeffding < bernstein


@pytest.mark.parametrize("kind", [k for k in NORM_KINDS if k != "bernstein_l1"])
def test_the_bounds_hold_in_simulation(kind):
    rng = np.random.default_rng(2)
    p, w, n, level = np.array([0.5, 0.3, 0.15, 0.05]), np.array([0.2, 1.0, 0.5, 0.8]), 40, 0.2
    psi = norm_budget(kind, w, samples=n, level=level)
    off = np.abs(rng.multinomial(n, p, size=50_000) / n - p) * w
    distance = off.max(axis=1) if NORM_OF[kind] == "linf" else off.sum(axis=1)
    assert np.mean(distance >= psi) <= level


@pytest.mark.parametrize(("hits", "n"), [(0, 7), (3, 10), (10, 10), (1, 100_000), (500, 1000)])
@pytest.mark.parametrize("level", [0.025, 1e-7])
def test_clopper_pearson_inverts_the_binomial_tails(hits, n, level):
    low, high = (float(x) for x in clopper_pearson(hits, n, level))
    if hits:
        assert binom.sf(hits - 1, n, low) <= level * (1 + 1e-9)
        assert binom.sf(hits - 1, n, low * (1 + 1e-9)) > level * (1 - 1e-6)
    else:
        assert low == 0.0
    if hits < n:
        assert binom.cdf(hits, n, high) <= level * (1 + 1e-9)
        assert binom.cdf(hits, n, high * (1 - 1e-9)) > level * (1 - 1e-6)
    else:
        assert high == 1.0


@pytest.fixture(scope="module")
def swim():
    counts = riverswim(discount=0.95).simulate(500, np.random.default_rng(0))
    return counts, counts.to_mdp(discount=0.95)


def test_a_random_number_of_samples_costs_n_times_n_plus_one(swim):
    counts, mdp = swim
    made = frequentist_set(counts, mdp, delta=0.05, kind="hoeffding_l1")
    fixed = frequentist_set(counts, mdp, delta=0.05, kind="hoeffding_l1", fixed_design=True)
    rows = np.flatnonzero(mdp.uncertain_rows)
    for row in rows:
        k = int(np.diff(mdp.row_start)[row])
        level = 0.05 / len(rows)
        expected = norm_budget("hoeffding_l1", np.ones(k), samples=500, level=level)
        assert fixed.budget[row] == pytest.approx(expected, rel=1e-12)
        shared = norm_budget("hoeffding_l1", np.ones(k), samples=500, level=level / (500 * 501))
        assert made.budget[row] == pytest.approx(shared, rel=1e-12)
    assert fixed.confidence.assumptions
    assert not made.confidence.assumptions


def test_the_tightest_kinds_are_tighter(swim):
    counts, mdp = swim
    found = {
        kind: solve(
            mdp, frequentist_set(counts, mdp, delta=0.05, kind=kind, fixed_design=True)
        ).return_lower
        for kind in KINDS
    }
    assert found["bernstein_l1"] < found["hoeffding_l1"] < found["weighted_l1"]
    assert found["weighted_l1"] < found["clopper_pearson"] < solve(mdp).return_lower


def test_published_orders_of_magnitude():
    # RiverSwim, discount .95: Clopper-Pearson and uniform L1 at 500 samples per row.
    domain, found = riverswim(discount=0.95), []
    for seed in range(6):
        counts = domain.simulate(500, np.random.default_rng(seed))
        mdp = counts.to_mdp(discount=0.95)
        found.append(
            [
                solve(
                    mdp, frequentist_set(counts, mdp, delta=0.05, kind=kind, fixed_design=True)
                ).return_lower
                for kind in ("clopper_pearson", "weighted_l1")
            ]
        )
    box, ball = np.mean(found, axis=0)
    assert box == pytest.approx(5195, rel=0.1)
    assert ball == pytest.approx(3302, rel=0.1)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_never_tried_get_the_whole_simplex(kind):
    mdp = riverswim(discount=0.95).mdp
    counts = Counts.on_rows_of(mdp, np.where(mdp.entry_row == 3, 0, 10))
    model = counts.to_mdp(discount=0.95)
    made = frequentist_set(counts, model, delta=0.1, kind=kind)
    entries = slice(*model.row_start[3:5])
    if kind == "clopper_pearson":
        assert made.lower[entries].max() == 0.0
        assert made.upper[entries].min() == 1.0
    else:
        assert made.budget[3] == np.inf
    assert np.isfinite(solve(model, made).return_lower)


def test_kinds_without_weights_refuse_them(swim):
    counts, mdp = swim
    for kind in ("kl", "clopper_pearson"):
        with pytest.raises(ValueError, match="no weights"):
            frequentist_set(counts, mdp, delta=0.1, kind=kind, weights="analytic")


def test_optimised_weights_need_data_of_their_own(swim):
    counts, mdp = swim
    with pytest.raises(ValueError, match="reuse=True"):
        frequentist_set(counts, mdp, delta=0.1, weights="analytic")
    reused = frequentist_set(counts, mdp, delta=0.1, weights="analytic", reuse=True)
    assert any("no proof" in said for said in reused.confidence.assumptions)
    first, second = split_counts(counts, np.random.default_rng(0))
    assert np.array_equal(first.count + second.count, counts.count)
    shape, model = first.to_mdp(discount=0.95), second.to_mdp(discount=0.95)
    made = frequentist_set(second, model, delta=0.1, weights="analytic", shape=shape)
    assert not any("no proof" in said for said in made.confidence.assumptions)
    assert solve(model, made).return_lower > 0
    # The weights come from the first half alone: other data in the second change budgets only.
    again = split_counts(counts, np.random.default_rng(1))[1]
    other = frequentist_set(
        again, again.to_mdp(discount=0.95), delta=0.1, weights="analytic", shape=shape
    )
    np.testing.assert_array_equal(made.weights, other.weights)


def test_a_policy_fixed_beforehand_shares_delta_over_its_own_rows(swim):
    counts, mdp = swim
    policy = np.ones(6, dtype=int)
    own = frequentist_set(counts, mdp, delta=0.1, kind="weighted_l1", policy=policy)
    whole = frequentist_set(counts, mdp, delta=0.1, kind="weighted_l1")
    played = np.array([mdp.row_of(s, 1) for s in range(6)])
    assert np.all(own.budget[played] <= whole.budget[played])
    others = np.setdiff1d(np.flatnonzero(mdp.uncertain_rows), played)
    assert np.all(np.isinf(own.budget[others]))
    assert own.confidence.union == "policy"
    low = evaluate(mdp, policy, own).return_lower
    assert low >= evaluate(mdp, policy, whole).return_lower


def test_models_and_counts_must_belong_together(swim):
    counts, mdp = swim
    smoothed = counts.to_mdp(discount=0.95, prior=1.0)
    with pytest.raises(ValueError, match="without a prior"):
        frequentist_set(counts, smoothed, delta=0.1)
    # A box is not centred on anything.
    assert frequentist_set(counts, smoothed, delta=0.1, kind="clopper_pearson").confidence
    log = Counts.from_arrays([[[3, 1]], [[0, 2]]], rewards=[[0.0], [1.0]])
    with pytest.raises(ValueError, match="on_support"):
        frequentist_set(log, mdp, delta=0.1)
    placed = log.on_support("all")
    with pytest.raises(ValueError, match="same rows"):
        frequentist_set(placed, mdp, delta=0.1)
    read_off = frequentist_set(placed, placed.to_mdp(discount=0.5), delta=0.1, kind="kl")
    assert any("read off" in said for said in read_off.confidence.assumptions)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": 1.0}, "delta=1.0"),
        ({"delta": np.nan}, "delta=nan"),
        ({"delta": 0.1, "kind": "chernoff"}, "'hoeffding_l1', 'hoeffding_linf'"),
        ({"delta": 0.1, "policy": [0.5] * 6}, "policy"),
        ({"delta": 0.1, "weights": "analytic", "reuse": True, "center": "search"}, "draws"),
    ],
)
def test_wrong_options_are_refused(swim, options, message):
    counts, mdp = swim
    with pytest.raises(ValueError, match=message):
        frequentist_set(counts, mdp, **options)


def test_fractional_counts_are_refused(swim):
    _, mdp = swim
    half = Counts.on_rows_of(mdp, np.full(mdp.num_entries, 0.5))
    with pytest.raises(ValueError, match="whole numbers"):
        frequentist_set(half, half.to_mdp(discount=0.9), delta=0.1)


def test_budget_functions_refuse_nonsense():
    with pytest.raises(ValueError, match="level"):
        norm_budget("weighted_l1", [1.0, 1.0], samples=5, level=0.0)
    with pytest.raises(ValueError, match="kind"):
        norm_budget("kl", [1.0, 1.0], samples=5, level=0.1)
    with pytest.raises(ValueError, match="weights"):
        norm_budget("weighted_l1", [1.0, np.nan], samples=5, level=0.1)
    with pytest.raises(ValueError, match="count"):
        clopper_pearson([5], [4], 0.1)
    assert norm_budget("weighted_l1", [1.0, 1.0], samples=0, level=0.1) == np.inf


def test_a_box_without_declared_successors_holds_the_mass_never_seen():
    """Forty successors, many of them rare: what a row of 300 tries missed lies in its box."""
    rng = np.random.default_rng(0)
    share = rng.dirichlet(np.full(40, 0.5))
    for _ in range(60):
        array = np.zeros((40, 1, 40), dtype=int)
        array[0, 0] = rng.multinomial(300, share)
        array[1:, 0, 0] = 1
        counts = Counts.from_arrays(array, rewards=np.ones((40, 1)))
        placed = counts.on_support("unseen")
        box = frequentist_set(
            placed, placed.to_mdp(discount=0.9), delta=0.05, kind="clopper_pearson"
        )
        entry = int(np.flatnonzero((placed.entry_state == 0) & (placed.successor == 40))[0])
        missing = share[array[0, 0] == 0].sum()
        assert 0 < missing <= box.upper[entry] <= 1
    assert not any("read off" in found.text for found in box.confidence.findings)
    with pytest.raises(ValueError, match="clopper_pearson"):
        frequentist_set(placed, placed.to_mdp(discount=0.9), delta=0.05, kind="weighted_l1")
