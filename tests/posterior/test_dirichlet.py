"""The conjugate posterior: exact moments and laws, the same bits however they are asked for."""

import concurrent.futures

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from surefoot.data.counts import Counts
from surefoot.data.support import UNSEEN_PRIOR
from surefoot.domains import machine_replacement, population_growth
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.posterior.dirichlet_kernels import BLOCK_DRAWS


def posterior_of(shape_rows):
    """Return the posterior whose rows have the given Dirichlet parameters."""
    states = max(len(shape_rows), *map(len, shape_rows))
    counts, support = (np.zeros((states, 1, states), dtype=t) for t in (int, bool))
    for row, shapes in enumerate(shape_rows):
        support[row, 0, : len(shapes)] = True
    support[len(shape_rows) :, 0, 0] = True
    prior = np.concatenate([*shape_rows, np.ones(states - len(shape_rows))])
    return DirichletPosterior(Counts.from_arrays(counts, support=support), prior=prior)


def test_mean_and_covariance_match_the_dirichlet():
    shapes = [np.array([0.5, 3.0, 7.5]), np.array([1.0, 1.0]), np.array([20.0, 1.0, 2.0, 0.2])]
    posterior = posterior_of(shapes)
    draws = posterior.sample(400_000, np.random.default_rng(1))
    start = posterior.row_start
    for row, shape in enumerate(shapes):
        block = draws[:, start[row] : start[row + 1]]
        total = shape.sum()
        mean = shape / total
        covariance = (np.diag(mean) - np.outer(mean, mean)) / (total + 1)
        np.testing.assert_allclose(posterior.mean()[start[row] : start[row + 1]], mean, rtol=1e-15)
        np.testing.assert_allclose(block.mean(axis=0), mean, atol=5e-3 * np.sqrt(mean.max()))
        np.testing.assert_allclose(np.cov(block.T), covariance, atol=1.5e-3)
        np.testing.assert_allclose(
            posterior.variance()[start[row] : start[row + 1]], np.diag(covariance), rtol=1e-12
        )


@pytest.mark.parametrize("shapes", [[2.0, 3.0, 5.0], [0.3, 0.3, 0.3], [1.0, 150.0], [0.05] * 4])
def test_marginals_are_beta(shapes):
    posterior = posterior_of([np.array(shapes)])
    draws = posterior.sample(50_000, np.random.default_rng(2))
    total = sum(shapes)
    for k, shape in enumerate(shapes):
        law = stats.beta(shape, total - shape)
        # Shares below the smallest normal number are ties at zero: compare above it.
        assert stats.kstest(np.maximum(draws[:, k], 1e-300), law.cdf).pvalue > 1e-4


def test_rows_are_independent():
    posterior = posterior_of([np.array([2.0, 3.0]), np.array([2.0, 3.0])])
    draws = posterior.sample(100_000, np.random.default_rng(3))
    assert abs(np.corrcoef(draws[:, 0], draws[:, 2])[0, 1]) < 0.02
    assert abs(np.corrcoef(draws[1:, 0], draws[:-1, 0])[0, 1]) < 0.02


def test_tiny_shapes_give_a_vertex_and_never_nan():
    posterior = posterior_of([np.full(5, 1e-8), np.full(3, 1e-4), np.array([1e-6, 1e-6, 4.0])])
    draws = posterior.sample(4000, np.random.default_rng(4))
    assert np.all(np.isfinite(draws))
    np.testing.assert_allclose(np.add.reduceat(draws, posterior.row_start[:-1], axis=1), 1.0)
    chosen = draws[:, :5].argmax(axis=1)
    assert draws[:, :5].max(axis=1).min() > 1 - 1e-6
    assert stats.chisquare(np.bincount(chosen, minlength=5)).pvalue > 1e-4


def test_one_successor_is_certain_and_takes_no_bits():
    posterior = posterior_of([np.array([1.0]), np.array([2.0, 1.0])])
    draws = posterior.sample(50, np.random.default_rng(0))
    assert np.all(draws[:, 0] == 1.0)


@pytest.fixture(scope="module")
def machine():
    domain = machine_replacement()
    return DirichletPosterior(domain.simulate(7, np.random.default_rng(0)))


def test_stream_is_sample(machine):
    whole = machine.sample(3000, np.random.default_rng(9))
    blocks = list(machine.stream(3000, np.random.default_rng(9)))
    np.testing.assert_array_equal(np.concatenate(blocks), whole)


def test_large_streams_come_in_blocks():
    posterior = DirichletPosterior(population_growth().simulate(3, np.random.default_rng(0)))
    sizes = [len(block) for block in posterior.stream(500, np.random.default_rng(0))]
    assert len(sizes) > 1
    assert sum(sizes) == 500


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(st.integers(0, 19), min_size=1, max_size=8, unique=True),
    first=st.integers(0, 90),
    length=st.integers(1, 60),
    threads=st.integers(1, 3),
)
def test_any_rows_any_chunk_any_threads_give_the_same_bits(machine, rows, first, length, threads):
    key = (np.uint64(11), np.uint64(12))
    whole = machine.draws(key, 0, 150)
    part = machine.draws(key, first, first + length, rows, threads=threads)
    entries = machine.layout.entries_of(np.array(rows))
    np.testing.assert_array_equal(part, whole[first : first + length, entries])


def test_fewer_draws_are_the_first_of_more(machine):
    few = machine.sample(BLOCK_DRAWS + 3, np.random.default_rng(5))
    many = machine.sample(10 * BLOCK_DRAWS, np.random.default_rng(5))
    np.testing.assert_array_equal(few, many[: len(few)])


def test_streams_of_several_threads_at_once(machine):
    expected = machine.sample(500, np.random.default_rng(1))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(machine.sample, 500, np.random.default_rng(1)) for _ in range(8)]
    for future in futures:
        np.testing.assert_array_equal(future.result(), expected)


def test_each_call_takes_one_key_whatever_it_draws(machine):
    one, two = np.random.default_rng(3), np.random.default_rng(3)
    machine.sample(5, one)
    list(machine.stream(800, two, rows=[3]))
    assert one.random() == two.random()
    assert not np.array_equal(machine.sample(5, one), machine.sample(5, one))


def test_draws_pinned():
    """A change of these numbers changes every certificate: raise the version if it must be."""
    posterior = posterior_of([np.array([0.5, 1.0, 6.0])])
    draw = posterior.draws((np.uint64(1), np.uint64(2)), 0, 1)[0, :3]
    np.testing.assert_allclose(
        draw, [0.03808303205250564, 0.02973466669231181, 0.9321823012551825], rtol=1e-12
    )


def test_prior_per_number_row_and_entry():
    counts = Counts.from_arrays([[[3, 0]], [[1, 2]]], support=np.ones((2, 1, 2)))
    by_row = DirichletPosterior(counts, prior=[1.0, 2.0])
    by_entry = DirichletPosterior(counts, prior=[1.0, 1.0, 2.0, 2.0])
    np.testing.assert_array_equal(by_row.shape, [4.0, 1.0, 3.0, 4.0])
    np.testing.assert_array_equal(by_row.shape, by_entry.shape)
    np.testing.assert_array_equal(DirichletPosterior(counts, prior=2).shape, [5, 2, 3, 4])


def test_counts_from_a_log_get_the_default_support():
    counts = Counts.from_arrays([[[3, 1]], [[0, 2]]], rewards=[[0.0], [1.0]])
    posterior = DirichletPosterior(counts)
    mdp = counts.to_mdp(discount=0.9, prior=1.0)
    assert posterior.matches(mdp)
    np.testing.assert_allclose(posterior.mean(), mdp.probability)
    unseen = posterior.layout.successor == posterior.counts.unseen
    assert posterior.shape[unseen][0] == UNSEEN_PRIOR


def test_mismatch_with_a_model_is_named():
    counts = Counts.from_arrays([[[3, 1]], [[0, 2]]], rewards=[[0.0], [1.0]])
    posterior = DirichletPosterior(counts.on_support("observed"))
    with pytest.raises(ValueError, match="do not have the same rows"):
        posterior.check_matches(counts.to_mdp(discount=0.9, support="all"))


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (0.0, "prior is 0.0"),
        (-1.0, "positive and finite"),
        (np.nan, "prior is nan"),
        ([1.0, np.inf], r"prior\[1\] is inf"),
        ([1.0, 1.0, 1.0], "shape"),
        ("one", "number"),
    ],
)
def test_bad_priors(prior, message):
    counts = Counts.from_arrays([[[3, 0]], [[1, 2]]], support=np.ones((2, 1, 2)))
    with pytest.raises(ValueError, match=message):
        DirichletPosterior(counts, prior=prior)


def test_bad_arguments(machine):
    rng = np.random.default_rng(0)
    for bad in (0, -1, 2.5, True):
        with pytest.raises(ValueError, match="n="):
            machine.sample(bad, rng)
    with pytest.raises(ValueError, match="rng"):
        machine.sample(5, 0)
    with pytest.raises(ValueError, match="unknown row 20"):
        machine.stream(5, rng, rows=[20])
    with pytest.raises(ValueError, match="counts must be Counts"):
        DirichletPosterior(np.ones((2, 1, 2)))


def test_arrays_of_the_caller_are_left_alone():
    prior = np.array([1.0, 2.0])
    counts = Counts.from_arrays([[[3, 0]], [[1, 2]]], support=np.ones((2, 1, 2)))
    DirichletPosterior(counts, prior=prior).sample(3, np.random.default_rng(0))
    assert prior.flags.writeable
    np.testing.assert_array_equal(prior, [1.0, 2.0])
