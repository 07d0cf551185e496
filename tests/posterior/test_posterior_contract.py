"""What every posterior must do, whatever it came from."""

import numpy as np
import pytest

from surefoot.domains import machine_replacement, population_growth, riverswim
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.posterior.draws import PosteriorDraws
from surefoot.posterior.growth import PopulationRows
from surefoot.posterior.hierarchical import HierarchicalPosterior
from surefoot.posterior.learned import LearnedPosterior
from surefoot.posterior.pooled import PooledRows
from surefoot.posterior.protocol import Posterior
from surefoot.posterior.rows import RowLayout


def dirichlet():
    domain = machine_replacement()
    return DirichletPosterior(domain.simulate(6, np.random.default_rng(0))), domain.mdp


def learned():
    domain = machine_replacement()
    return LearnedPosterior(domain.simulate(6, np.random.default_rng(0))), domain.mdp


def draws():
    domain = riverswim()
    exact = DirichletPosterior(domain.simulate(6, np.random.default_rng(0)))
    array = exact.sample(1200, np.random.default_rng(1)).reshape(4, 300, -1)
    return PosteriorDraws.from_arrays(array, mdp=domain.mdp), domain.mdp


def pooled():
    """Parameters drawn at will: the fit has tests of its own."""
    domain = riverswim()
    counts = domain.simulate(6, np.random.default_rng(0))
    layout = RowLayout.of(counts)
    uncertain = np.diff(layout.row_start)[layout.entry_row] > 1
    displacement = layout.successor - layout.row_state[layout.entry_row] + 1
    model = PooledRows(
        layout=layout,
        count=counts.count.astype(float),
        slot=np.where(uncertain, displacement, -1),
        fixed=1.0,
    )
    rng = np.random.default_rng(2)
    parameters = {
        "weight": rng.exponential(size=(4, 300, 3)),
        "concentration": rng.lognormal(size=(4, 300, 2)),
    }
    return HierarchicalPosterior(layout=layout, parameters=parameters, model=model), domain.mdp


def population():
    domain = population_growth(drop_below=0)
    rng = np.random.default_rng(3)
    shape = (2, 60)
    parameters = {
        "untreated": rng.normal(2.0, 0.05, size=shape),
        "treated": rng.normal(0.2, 0.02, size=shape),
        "curve": rng.normal(1.0, 0.05, size=shape),
        "deviation": np.array([0.6, 0.6, 0.5, 0.4, 0.3]) * rng.uniform(0.9, 1.1, size=(*shape, 5)),
    }
    layout = RowLayout.of(domain.mdp)
    model = PopulationRows(layout=layout)
    posterior = HierarchicalPosterior(
        layout=layout, parameters=parameters, model=model, max_rhat=1.2
    )
    return posterior, domain.mdp


@pytest.fixture(scope="module", params=[dirichlet, learned, draws, pooled, population])
def case(request):
    return request.param()


def wanted(posterior, most=500):
    return min(most, posterior.num_draws or most)


def test_satisfies_the_protocol(case):
    posterior, mdp = case
    assert isinstance(posterior, Posterior)
    assert posterior.num_entries == mdp.num_entries
    np.testing.assert_array_equal(posterior.row_start, mdp.row_start)
    np.testing.assert_array_equal(posterior.support, mdp.support)
    assert posterior.matches(mdp)
    posterior.check_matches(mdp)
    assert posterior.independent_rows is isinstance(posterior, DirichletPosterior)


def test_another_model_is_refused(case):
    posterior, _ = case
    other = machine_replacement() if posterior.num_entries != 45 else riverswim()
    assert not posterior.matches(other.mdp)
    with pytest.raises(ValueError, match="do not have the same rows"):
        posterior.check_matches(other.mdp)


def test_draws_are_models(case):
    posterior, _ = case
    n = wanted(posterior)
    draws = posterior.sample(n, np.random.default_rng(0))
    assert draws.shape == (n, posterior.num_entries)
    assert np.all(draws >= 0)
    sums = np.add.reduceat(draws, posterior.row_start[:-1], axis=1)
    np.testing.assert_allclose(sums, 1.0, rtol=0, atol=1e-12)


def test_mean_is_the_mean_of_the_draws(case):
    posterior, _ = case
    n = wanted(posterior, 2000)
    draws = posterior.sample(n, np.random.default_rng(1))
    mean = posterior.mean()
    assert mean.shape == (posterior.num_entries,)
    np.testing.assert_allclose(np.add.reduceat(mean, posterior.row_start[:-1]), 1.0)
    error = draws.std(axis=0) / np.sqrt(n)
    assert np.all(np.abs(draws.mean(axis=0) - mean) <= 5 * error + 1e-9)


def test_stream_gives_the_draws_of_sample(case):
    posterior, _ = case
    n = wanted(posterior)
    whole = posterior.sample(n, np.random.default_rng(2))
    streamed = np.concatenate(list(posterior.stream(n, np.random.default_rng(2))))
    np.testing.assert_array_equal(streamed, whole)


def test_some_rows_are_those_rows_of_the_same_draws(case):
    posterior, _ = case
    n = wanted(posterior, 100)
    rows = [5, 0, 7]
    whole = posterior.sample(n, np.random.default_rng(3))
    some = np.concatenate(list(posterior.stream(n, np.random.default_rng(3), rows=rows)))
    start = posterior.row_start
    entries = np.concatenate([np.arange(start[row], start[row + 1]) for row in rows])
    np.testing.assert_array_equal(some, whole[:, entries])


def test_the_generator_decides(case):
    posterior, _ = case
    n = wanted(posterior, 50)
    one, two = (posterior.sample(n, np.random.default_rng(4)) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, posterior.sample(n, np.random.default_rng(5)))


def test_finite_posteriors_give_no_more_than_they_have(case):
    posterior, _ = case
    if posterior.num_draws is None:
        assert len(posterior.sample(5000, np.random.default_rng(6))) == 5000
        return
    everything = posterior.sample(posterior.num_draws, np.random.default_rng(6))
    assert len(np.unique(everything, axis=0)) == posterior.num_draws
    with pytest.raises(ValueError, match=rf"n={posterior.num_draws + 1} independent draws wanted"):
        posterior.sample(posterior.num_draws + 1, np.random.default_rng(6))


def test_bad_arguments(case):
    posterior, _ = case
    with pytest.raises(ValueError, match="n=0"):
        posterior.sample(0, np.random.default_rng(0))
    with pytest.raises(ValueError, match="rng must be"):
        posterior.sample(3, np.random.RandomState(0))
    with pytest.raises(ValueError, match="unknown row"):
        posterior.stream(3, np.random.default_rng(0), rows=[posterior.num_entries])
    with pytest.raises(ValueError, match="row numbers"):
        posterior.stream(3, np.random.default_rng(0), rows=np.ones(4, dtype=bool))
