"""Models with shared parameters: the law, the fit, and what pooling is good for."""

import contextlib
import io
import sys

import numpy as np
import pytest

from surefoot.data.counts import Counts
from surefoot.domains import population_growth, riverswim
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.posterior.draws import PosteriorDraws
from surefoot.posterior.growth import PopulationRows, fit_population
from surefoot.posterior.hierarchical import HierarchicalPosterior
from surefoot.posterior.pooled import PooledRows, fit_pooled
from surefoot.posterior.rows import RowLayout

TRUTH = {
    "untreated": np.array([2.0]),
    "treated": np.array([0.2]),
    "curve": np.array([1.0]),
    "deviation": np.array([[0.6, 0.6, 0.5, 0.4, 0.3]]),
}


def test_growth_law_is_the_domains_law():
    mdp = population_growth(drop_below=0).mdp
    model = PopulationRows(layout=RowLayout.of(mdp))
    np.testing.assert_allclose(model.expected(TRUTH)[0], mdp.probability, rtol=0, atol=1e-15)


def test_growth_law_refuses_a_support_that_is_too_small():
    mdp = population_growth(drop_below=0.01).mdp
    model = PopulationRows(layout=RowLayout.of(mdp))
    with pytest.raises(ValueError, match=r"hold only .* of its probability"):
        model.expected(TRUTH)


@pytest.fixture(scope="module")
def population_fit():
    counts = population_growth(drop_below=0).simulate(2, np.random.default_rng(0))
    return fit_population(
        counts, rng=np.random.default_rng(1), draws=100, warmup=150, chains=2, progress=False
    )


def test_population_parameters_are_found(population_fit):
    assert population_fit.diagnostics.rhat < 1.05
    for name, truth in TRUTH.items():
        draws = population_fit.parameters[name].reshape(200, -1)
        z = (draws.mean(axis=0) - truth.ravel()) / draws.std(axis=0)
        assert np.all(np.abs(z) < 4), name


def test_population_posterior_is_tighter_than_independent_rows(population_fit):
    mdp = population_growth(drop_below=0).mdp
    counts = population_growth(drop_below=0).simulate(2, np.random.default_rng(0))
    rows = DirichletPosterior(counts).mean()
    error = [np.abs(mean - mdp.probability).sum() for mean in (population_fit.mean(), rows)]
    assert error[0] < 0.2 * error[1]


@pytest.fixture(scope="module")
def pooled_fit():
    """Eight rows of one action, all alike, seven of them with many data and one with a single."""
    rng = np.random.default_rng(2)
    counts = rng.multinomial(60, [0.7, 0.2, 0.1, 0, 0, 0, 0, 0], size=8)[:, None, :]
    counts[7] = 0
    counts[7, 0, 2] = 1
    placed = Counts.from_arrays(counts, rewards=np.zeros((8, 1)))
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(io.StringIO()) as shown:
        for name in ("CI", "PYTEST_XDIST_WORKER"):  # NumPyro draws no bar where one is set
            patch.delenv(name, raising=False)
        posterior = fit_pooled(
            placed, rng=np.random.default_rng(3), draws=200, warmup=200, chains=2
        )
    return placed, posterior, shown.getvalue()


def test_rows_with_few_data_borrow_from_the_others(pooled_fit):
    counts, posterior, _ = pooled_fit
    assert posterior.diagnostics.rhat < 1.05
    assert posterior.matches(counts.to_mdp(discount=0.9, support="action"))
    last = posterior.mean()[posterior.row_start[7] :]
    alone = DirichletPosterior(counts.on_support("action")).mean()[posterior.row_start[7] :]
    truth = np.array([0.7, 0.2, 0.1])
    assert np.abs(last - truth).sum() < 0.25 < np.abs(alone - truth).sum()


def test_fits_know_the_counts_that_they_rest_on(pooled_fit, population_fit):
    for posterior in (pooled_fit[1], population_fit):
        assert np.array_equal(posterior.counts.successor, posterior.layout.successor)


def test_rows_of_one_action_move_together():
    layout = RowLayout.of(Counts.from_arrays(np.zeros((2, 1, 2), int), support=np.ones((2, 1, 2))))
    model = PooledRows(layout=layout, count=np.zeros(4), slot=np.array([0, 1, 0, 1]), fixed=1.0)
    rng = np.random.default_rng(0)
    parameters = {
        "weight": rng.exponential(size=(4, 1000, 2)),
        "concentration": np.full((4, 1000, 1), 20.0),
    }
    posterior = HierarchicalPosterior(layout=layout, parameters=parameters, model=model)
    draws = posterior.sample(posterior.num_draws, rng)
    assert not posterior.independent_rows
    assert np.corrcoef(draws[:, 0], draws[:, 2])[0, 1] > 0.5


def test_unseen_successor_keeps_its_own_prior():
    """No data can teach how rare the unseen is, so it does not take part in the pooling."""
    layout = RowLayout.of(Counts.from_arrays(np.zeros((2, 1, 2), int), support=np.ones((2, 1, 2))))
    model = PooledRows(layout=layout, count=np.zeros(4), slot=np.array([0, -1, 0, -1]), fixed=0.5)
    shapes = model.shapes({"weight": np.array([[3.0]]), "concentration": np.array([[7.0]])})
    np.testing.assert_allclose(shapes, [[7.0, 0.5, 7.0, 0.5]])


def test_pooling_by_displacement_and_bad_options():
    counts = riverswim().simulate(3, np.random.default_rng(0))
    with pytest.raises(ValueError, match="pool='colour'"):
        fit_pooled(counts, rng=np.random.default_rng(0), pool="colour")
    with pytest.raises(ValueError, match="pool must be whole numbers"):
        fit_pooled(counts, rng=np.random.default_rng(0), pool=[1, 2, 3])
    with pytest.raises(ValueError, match="draws=0"):
        fit_pooled(counts, rng=np.random.default_rng(0), draws=0)
    certain = Counts.from_arrays([[[3]]], support=[[[True]]])
    with pytest.raises(ValueError, match="nothing to learn"):
        fit_pooled(certain, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="list every possible successor"):
        fit_population(Counts.from_arrays([[[3]]]), rng=np.random.default_rng(0))


def test_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ImportError, match=r"surefoot\[mcmc\]"):
        fit_pooled(riverswim().simulate(3, np.random.default_rng(0)), rng=np.random.default_rng(0))


def test_fitting_shows_progress_and_diagnostics(pooled_fit):
    shown = pooled_fit[-1]
    assert "100%" in shown
    assert "pooled rows: 2 chains of 200 draws: r-hat" in shown


def test_draws_of_a_numpyro_model_agree_with_the_conjugate_posterior():
    import jax
    import numpyro
    from numpyro import distributions as dist

    counts = np.array([[[6, 2]], [[1, 4]]])

    def model():
        rows = numpyro.sample("P", dist.Dirichlet(np.ones((2, 1, 2))).to_event(2))
        numpyro.factor("seen", (counts * jax.numpy.log(rows)).sum())

    mcmc = numpyro.infer.MCMC(
        numpyro.infer.NUTS(model), num_warmup=200, num_samples=500, num_chains=2,
        chain_method="vectorized", progress_bar=False,
    )  # fmt: skip
    mcmc.run(jax.random.PRNGKey(0))
    posterior = PosteriorDraws.from_inference(mcmc, variable="P")
    exact = DirichletPosterior(Counts.from_arrays(counts, support=np.ones((2, 1, 2))))
    assert posterior.diagnostics.divergences is not None
    np.testing.assert_allclose(posterior.mean(), exact.mean(), atol=0.03)
    drawn = posterior.sample(posterior.num_draws, np.random.default_rng(0))
    np.testing.assert_allclose(drawn.var(axis=0), exact.variance(), rtol=0.35)
