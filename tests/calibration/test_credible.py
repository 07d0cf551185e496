"""Credible sets: budgets against brute force, the rules' draws, provenance, Example 1."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import beta, binom

from surefoot.calibration import levels
from surefoot.calibration.credible import credible_set
from surefoot.calibration.levels import joint_factors, order_statistics, share_level
from surefoot.data.counts import Counts
from surefoot.domains import machine_replacement, riverswim
from surefoot.model.mdp import MDP
from surefoot.posterior.batch import Batch
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.posterior.draws import PosteriorDraws
from surefoot.solvers.solver import solve
from surefoot.studies.example_one import exact_set


@pytest.fixture(scope="module")
def swim():
    """A posterior, and the model with its mean."""
    counts = riverswim().simulate(30, np.random.default_rng(0))
    return DirichletPosterior(counts), counts.to_mdp(discount=0.95, prior=1.0)


def distances(mdp, draws, norm, weights):
    part = np.abs(draws - mdp.probability) * (1.0 if weights is None else weights)
    combine = np.add if norm == "l1" else np.maximum
    return combine.reduceat(part, mdp.row_start[:-1], axis=1)


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize("weights", ["uniform", "analytic"])
@pytest.mark.parametrize("rule", ["strict", "marginal"])
def test_budgets_are_the_order_statistics_of_the_recorded_draws(swim, norm, weights, rule):
    posterior, mdp = swim
    made = credible_set(
        posterior, mdp, delta=0.1, norm=norm, weights=weights, rule=rule, draws=2000,
        rng=np.random.default_rng(5),
    )  # fmt: skip
    known = made.confidence
    draws = posterior.sample(2000, np.random.default_rng((known.seed, 1)))
    measured = np.sort(distances(mdp, draws, norm, made.weights), axis=0)
    uncertain = np.diff(mdp.row_start) > 1
    m, alpha = uncertain.sum(), 0.1 / uncertain.sum()
    if rule == "strict":
        fits = [k for k in range(1, 2001) if binom.sf(k - 1, 2000, 1 - alpha) <= 0.001 / m]
        rank = fits[0]
    else:
        rank = int(np.ceil(2001 * (1 - alpha)))
    expected = np.where(uncertain, measured[rank - 1], 0.0)
    np.testing.assert_allclose(made.budget, expected, rtol=1e-13)


def test_blocks_of_rows_and_draws_change_nothing(swim, monkeypatch):
    posterior, mdp = swim
    options = {"delta": 0.05, "weights": "analytic", "center": "search", "draws": 1500}
    whole = credible_set(posterior, mdp, rng=np.random.default_rng(0), **options)
    monkeypatch.setattr(levels, "BLOCK_DISTANCES", 1)
    monkeypatch.setattr("surefoot.posterior.of_counts.BLOCK_VALUES", 100)
    parts = credible_set(posterior, mdp, rng=np.random.default_rng(0), **options)
    np.testing.assert_array_equal(whole.budget, parts.budget)
    np.testing.assert_array_equal(whole.weights, parts.weights)


def test_levels_share_delta_as_asked():
    mdp = machine_replacement().mdp
    rows = int(mdp.uncertain_rows.sum())
    states = len(set(mdp.row_state[mdp.uncertain_rows]))
    for union, parts in (("all", 20), ("uncertain", rows), ("states", states), ("joint", 1)):
        level = share_level(mdp, delta=0.05, eta=0.001, union=union, rule="strict")
        assert level.alpha == 0.05 / parts
        assert level.eta == 0.001 / (1 if union == "joint" else rows)
    assert share_level(mdp, delta=0.05, eta=0.001, union="uncertain", rule="strict").needed == 3308


def twelve_rows():
    """Twelve uncertain rows, as in the example of an error message."""
    support = np.ones((6, 2, 6))
    counts = Counts.from_arrays(
        np.ones((6, 2, 6), dtype=int), rewards=np.zeros((6, 2)), support=support
    )
    return DirichletPosterior(counts), counts.to_mdp(discount=0.9, prior=1.0)


def test_too_few_draws_are_refused_with_the_number_needed():
    posterior, mdp = twelve_rows()

    def refusal(**options):
        with pytest.raises(ValueError, match="needs at least") as raised:
            credible_set(posterior, mdp, rng=np.random.default_rng(0), **options)
        return str(raised.value)

    assert refusal(delta=0.05, draws=1000) == (
        "delta=0.05 over 12 uncertain rows needs at least 2250 posterior draws (strict rule, "
        'eta=0.001), got 1000. Draw more, accept a larger delta, or use rule="marginal" (239).'
    )
    assert refusal(delta=0.05, draws=238, rule="marginal") == (
        "delta=0.05 over 12 uncertain rows needs at least 239 posterior draws (marginal rule), got "
        "238. Draw more or accept a larger delta."
    )
    assert "over 6 uncertain states" in refusal(delta=0.05, draws=100, union="states")
    assert "marginal" not in refusal(delta=0.05, draws=100, union="states")
    assert "one joint region needs at least 135" in refusal(delta=0.05, draws=134, union="joint")
    credible_set(posterior, mdp, delta=0.05, draws=2250, rng=np.random.default_rng(0))
    credible_set(
        posterior, mdp, delta=0.05, draws=239, rule="marginal", rng=np.random.default_rng(0)
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": 0.1, "center": "middle"}, "center='middle'; choose one of"),
        ({"delta": 0.1, "objective": "cost"}, "objective='cost'; choose 'max' or 'min'"),
        ({"delta": 0.0}, "delta=0.0"),
        ({"delta": np.nan}, "delta=nan"),
        ({"delta": 0.1, "eta": 1.0}, "eta=1.0"),
        ({"delta": 0.1, "norm": "l2"}, "'l1' or 'linf'"),
        ({"delta": 0.1, "union": "rows"}, "'all', 'uncertain', 'states', 'joint'"),
        ({"delta": 0.1, "rule": "loose"}, "'strict' or 'marginal'"),
        ({"delta": 0.1, "union": "states", "rule": "marginal"}, 'needs rule="strict"'),
        ({"delta": 0.1, "passes": 0}, "passes=0"),
        ({"delta": 0.1, "draws": 0}, "draws"),
        ({"delta": 0.1, "rng": 0}, "rng must be a numpy Generator"),
        ({"delta": 0.1, "weights": [np.inf] * 22}, "finite"),
    ],
)
def test_wrong_options_are_refused(swim, options, message):
    posterior, mdp = swim
    with pytest.raises(ValueError, match=message):
        credible_set(posterior, mdp, **{"rng": np.random.default_rng(0), **options})


def test_a_model_with_other_rows_is_refused(swim):
    posterior, _ = swim
    other = machine_replacement().mdp
    with pytest.raises(ValueError, match="same rows"):
        credible_set(posterior, other, delta=0.1, rng=np.random.default_rng(0))


def test_the_set_remembers_how_it_was_made(swim):
    posterior, mdp = swim
    made = credible_set(
        posterior, mdp, delta=0.1, norm="linf", weights="analytic", rng=np.random.default_rng(2)
    )
    known = made.confidence
    assert (known.basis, known.delta, known.eta, known.rule) == ("bayesian", 0.1, 0.001, "strict")
    assert (known.union, known.kind, known.scale) == ("uncertain", "linf", "unit")
    assert known.weights == "analytic, median centre"
    assert known.draws == 10_000
    norms = np.sqrt(np.add.reduceat(made.weights**2, mdp.row_start[:-1]))
    np.testing.assert_allclose(norms, 1.0)
    marginal = credible_set(
        posterior, mdp, delta=0.1, rule="marginal", rng=np.random.default_rng(2)
    )
    assert marginal.confidence.eta is None


def test_numbers_and_confidence_cannot_be_parted(swim):
    posterior, mdp = swim
    made = credible_set(posterior, mdp, delta=0.1, weights="socp", rng=np.random.default_rng(2))
    for change in (
        {"budget": 0.7 * made.budget},
        {"weights": 0.5 * made.weights},
        {"weights": None},
        {"confidence": dataclasses.replace(made.confidence, delta=0.01)},
        {"confidence": dataclasses.replace(made.confidence, rule="marginal")},
    ):
        with pytest.raises(ValueError, match="not those that the confidence"):
            dataclasses.replace(made, **change)
    by_hand = dataclasses.replace(made, budget=0.7 * made.budget, confidence=None)
    assert by_hand.confidence is None


def test_equal_generators_give_equal_sets(swim):
    posterior, mdp = swim
    options = {"delta": 0.1, "weights": "analytic", "center": "search", "passes": 2}
    first, second, third = (
        credible_set(posterior, mdp, rng=np.random.default_rng(seed), **options)
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.budget, second.budget)
    assert not np.array_equal(first.budget, third.budget)


@pytest.mark.parametrize("union", ["all", "uncertain", "joint"])
@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_fresh_draws_lie_inside(swim, union, norm):
    posterior, mdp = swim
    made = credible_set(
        posterior, mdp, delta=0.2, norm=norm, weights="analytic", union=union,
        rng=np.random.default_rng(3),
    )  # fmt: skip
    fresh = posterior.sample(20_000, np.random.default_rng(99))
    outside = np.mean(np.any(distances(mdp, fresh, norm, made.weights) > made.budget, axis=1))
    assert outside <= 0.2
    if union == "joint":  # nothing is lost to a union bound, only to the strict rule
        assert outside >= 0.17


def test_a_joint_region_pays_off_for_correlated_rows():
    rng = np.random.default_rng(12)
    mdp = riverswim(discount=0.9).mdp
    # All rows share one parameter: knowing one distance is knowing all.
    shared = rng.normal(size=(3000, 1)) * 0.05
    tilt = np.zeros(mdp.num_entries)
    tilt[mdp.row_start[1:] - 1] = 1.0
    draws = mdp.probability * np.exp(shared * 4 * tilt)
    draws /= np.add.reduceat(draws, mdp.row_start[:-1], axis=1)[:, mdp.entry_row]
    draws[:, ~mdp.uncertain_rows[mdp.entry_row]] = 1.0
    posterior = PosteriorDraws.from_arrays(draws, mdp=mdp, independent=True)
    rows = credible_set(posterior, mdp, delta=0.1, draws=2000, rng=rng)
    joint = credible_set(posterior, mdp, delta=0.1, draws=2000, union="joint", rng=rng)
    moving = mdp.uncertain_rows & (rows.budget > 0)
    assert np.all(joint.budget[moving] < 0.9 * rows.budget[moving])


def finite(swim, n):
    posterior, mdp = swim
    draws = posterior.sample(n, np.random.default_rng(8))
    return PosteriorDraws.from_arrays(draws, mdp=mdp, independent=True), mdp


def test_shape_and_size_never_share_a_draw(swim, monkeypatch):
    posterior, mdp = finite(swim, 3000)
    seen: list[set[float]] = []
    original = Batch.blocks

    def spy(self, rows):
        for block in original(self, rows):
            seen.append((self.first, set(block[:, -1].tolist())))
            yield block

    monkeypatch.setattr(Batch, "blocks", spy)
    made = credible_set(
        posterior, mdp, delta=0.1, weights="analytic", center="search", rng=np.random.default_rng(0)
    )
    shape = set().union(*(values for first, values in seen if first == 0))
    size = set().union(*(values for first, values in seen if first > 0))
    assert len(shape) == made.confidence.shape_draws == 1000
    assert len(size) == made.confidence.draws == 2000
    assert not shape & size


def test_finitely_many_draws_are_not_stretched(swim):
    posterior, mdp = finite(swim, 1500)
    made = credible_set(posterior, mdp, delta=0.1, rng=np.random.default_rng(0))
    assert made.confidence.draws == 1500
    with pytest.raises(ValueError, match="1500 independent draws"):
        credible_set(posterior, mdp, delta=0.1, draws=1501, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="in addition to those for the shape"):
        credible_set(
            posterior, mdp, delta=0.1, draws=1500, union="joint", rng=np.random.default_rng(0)
        )


def test_the_mean_of_the_measuring_draws_is_no_centre(swim):
    posterior, mdp = finite(swim, 1500)
    own = dataclasses.replace(mdp, probability=posterior.mean())
    with pytest.raises(ValueError, match=r"posterior\.split"):
        credible_set(posterior, own, delta=0.1, rng=np.random.default_rng(0))
    shape, size = posterior.split(400, np.random.default_rng(1))
    centred = dataclasses.replace(mdp, probability=shape.mean())
    assert credible_set(size, centred, delta=0.1, rng=np.random.default_rng(0)).confidence


def test_the_search_is_no_worse_than_the_usual_centre(swim):
    posterior, mdp = swim
    for norm in ("l1", "linf"):
        found = {
            center: solve(
                mdp,
                credible_set(
                    posterior, mdp, delta=0.1, norm=norm, weights="analytic", center=center,
                    draws=20_000, rng=np.random.default_rng(6),
                ),
            ).return_lower
            for center in (None, "search")
        }  # fmt: skip
        # Chosen on other draws than those that size the sets: better up to their noise.
        assert found["search"] >= found[None] - 0.02 * abs(found[None])


def test_costs_are_rewards_with_the_other_sign(swim):
    posterior, mdp = swim
    costs = dataclasses.replace(mdp, reward=-mdp.reward)
    for center in ("mean", "search"):
        options = {"delta": 0.1, "weights": "analytic", "center": center, "passes": 2}
        one = credible_set(posterior, mdp, rng=np.random.default_rng(4), **options)
        two = credible_set(
            posterior, costs, rng=np.random.default_rng(4), objective="min", **options
        )
        if center == "mean":  # a search meets ties: of two successors any weights make one set
            np.testing.assert_allclose(one.weights, two.weights, atol=1e-6)
        most = solve(costs, two, objective="min").return_upper
        assert most == pytest.approx(-solve(mdp, one).return_lower, rel=1e-5)


def test_a_model_without_doubt_has_empty_balls():
    mdp = MDP.from_arrays([[[1.0, 0.0]], [[0.0, 1.0]]], [[1.0], [0.0]], discount=0.5)
    counts = Counts.on_rows_of(mdp, [5, 5])
    made = credible_set(DirichletPosterior(counts), mdp, delta=0.1, rng=np.random.default_rng(0))
    assert made.budget.tolist() == [0.0, 0.0]


def test_unmoved_rows_leave_a_joint_region_alone(swim):
    posterior, mdp = swim
    batch = Batch.take(posterior, 50, np.random.default_rng((0, 1)))
    rows = np.flatnonzero(mdp.uncertain_rows)
    weights = np.ones(mdp.num_entries)
    size = np.zeros(mdp.num_rows)
    factors = joint_factors(batch, mdp, norm="l1", weights=weights, size=size, rows=rows)
    assert np.all(np.isinf(factors))
    at_most = order_statistics(batch, mdp, norm="l1", weights=weights[None], rank=50, rows=rows)[0]
    factors = joint_factors(batch, mdp, norm="l1", weights=weights, size=at_most, rows=rows)
    assert factors.max() == 1.0


def example_one():
    counts = np.zeros((4, 1, 4), dtype=int)
    counts[0, 0, 1:] = 9, 9, 0
    support = np.eye(4)[:, None].copy()
    support[0, 0] = 0, 1, 1, 1
    rewards = np.zeros((4, 1, 4))
    rewards[0, 0, 1:] = 0.25, 0.25, -1.0
    placed = Counts.from_arrays(counts, rewards=rewards, support=support)
    mdp = placed.to_mdp(discount=0.5, prior=1.0, initial=[1, 0, 0, 0])
    return DirichletPosterior(placed), mdp


EXAMPLE = [
    ("uniform", "l1", -0.003),
    ("uniform", "linf", -0.003),
    ("stated", "l1", 0.082),
    ("stated", "linf", 0.129),
    ("median", "l1", 0.1345),
    ("median", "linf", 0.1345),
]


@pytest.mark.parametrize(("name", "norm", "known"), EXAMPLE)
def test_example_one_from_many_draws(name, norm, known):
    posterior, mdp = example_one()
    exact = exact_set(name, norm)
    assert exact.guarantee == pytest.approx(known, abs=6e-4)
    weights = {
        "uniform": "uniform",
        "stated": np.array([0.25, 0.25, 1.0, 1.0, 1.0, 1.0]),
        "median": np.array([0.0, 0.0, 1.0, 1.0, 1.0, 1.0]),
    }[name]
    made = credible_set(
        posterior, mdp, delta=0.2, norm=norm, weights=weights, rule="marginal", draws=400_000,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    assert made.budget[0] == pytest.approx(exact.budget, rel=0.01)
    found = solve(mdp, made).return_lower
    assert found == pytest.approx(exact.guarantee, abs=2e-3)
    best = 0.25 - 1.25 * (1 - 0.2 ** (1 / 20))
    assert found < best == pytest.approx(0.1534, abs=5e-5)


def test_example_one_median_by_hand():
    # p_3 ~ Beta(1, 20); the budget is the 80% quantile of |p_3 - 1/21|.
    budget = exact_set("median", "l1").budget
    inside = beta.cdf(1 / 21 + budget, 1, 20) - beta.cdf(1 / 21 - budget, 1, 20)
    assert inside == pytest.approx(0.8, abs=1e-10)
