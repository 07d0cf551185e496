"""Coupled rows: one row a state has the law it always had, actions of a state are alike."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from surefoot import DirichletPosterior, LearnedPosterior, read_transitions
from surefoot.domains.garnet import garnet
from surefoot.domains.machine import machine_replacement
from surefoot.posterior import coupling_kernels as kernels
from surefoot.posterior.coupled import CoupledRows, can_couple, group_size
from surefoot.posterior.draws import PosteriorDraws
from surefoot.posterior.rows import RowLayout, SomeRows

N = 2048


def declared():
    return machine_replacement().simulate(5, np.random.default_rng(0))


def from_a_log():
    log = machine_replacement().log(episodes=40, rng=np.random.default_rng(0))
    return read_transitions(log, episode="episode", step="step")


def posteriors():
    counts = declared()
    rows = np.array([0, 1, 2, 3, 5, 7, 9, 11, 12, 13, 15, 17, 19])
    learned = LearnedPosterior(counts)
    return {
        "dirichlet": DirichletPosterior(counts),
        "learned, declared": learned,
        "learned, from a log": LearnedPosterior(from_a_log()),
        "some rows": SomeRows(learned, learned.layout, rows),
        "some independent rows": SomeRows(DirichletPosterior(counts), learned.layout, rows),
    }


@pytest.fixture(scope="module", params=list(posteriors()))
def pair(request):
    """Return a posterior, its coupling, and many draws of both."""
    posterior = posteriors()[request.param]
    values = np.random.default_rng(7).normal(size=posterior.num_entries)
    coupled = CoupledRows(posterior, posterior.layout, values)
    plain = posterior.sample(N, np.random.default_rng(1))
    return posterior, coupled, plain, coupled.sample(N, np.random.default_rng(2))


def worth(layout, draws, values):
    return layout.sum_rows(draws * values)


def test_rows_have_the_law_of_the_posterior(pair):
    posterior, coupled, plain, alike = pair
    layout = coupled.layout
    assert np.allclose(layout.sum_rows(alike), 1.0)
    assert np.abs(alike.mean(axis=0) - posterior.mean()).max() < 0.02
    ours, theirs = (worth(layout, draws, coupled.values) for draws in (alike, plain))
    for row in np.flatnonzero(np.diff(layout.row_start) > 1):
        assert ks_2samp(ours[:, row], theirs[:, row], method="asymp").pvalue > 1e-5


@pytest.mark.parametrize("seed", range(4))
def test_rows_of_one_policy_have_their_joint_law(pair, seed):
    """Sums over one row a state see what is shared between rows: laws, and shares of parts."""
    _, coupled, plain, alike = pair
    layout, rng = coupled.layout, np.random.default_rng(seed)
    policy = rng.integers(layout.state_start[:-1], layout.state_start[1:])
    other = rng.normal(size=layout.num_entries)
    ours, theirs = (worth(layout, d, other)[:, policy].sum(axis=1) for d in (alike, plain))
    assert ks_2samp(ours, theirs, method="asymp").pvalue > 1e-4
    assert abs(np.log(ours.std() / theirs.std())) < 0.1


def test_draws_of_one_policy_are_independent_of_each_other(pair):
    _, coupled, _, alike = pair
    policy = coupled.layout.state_start[:-1]
    total = worth(coupled.layout, alike, coupled.values)[:, policy].sum(axis=1)
    assert abs(np.corrcoef(total[1:], total[:-1])[0, 1]) < 0.08


def test_actions_of_a_state_are_lucky_together(pair):
    _, coupled, plain, alike = pair
    layout = coupled.layout

    def alikeness(draws):
        score = worth(layout, draws, coupled.values)
        pairs = [
            np.corrcoef(score[:, s], score[:, s + 1])[0, 1]
            for s, e in zip(layout.state_start[:-1], layout.state_start[1:], strict=True)
            if e - s > 1 and score[:, s].std() > 1e-9 and score[:, s + 1].std() > 1e-9
        ]
        return np.mean(pairs)

    assert alikeness(plain) < 0.3
    assert alikeness(alike) > 0.4 + max(0.0, alikeness(plain))


def test_draws_do_not_depend_on_how_many_there_are(pair):
    _, coupled, _, _ = pair
    some = coupled.sample(300, np.random.default_rng(3))
    more = coupled.sample(1500, np.random.default_rng(3))
    assert np.array_equal(some, more[:300])
    rows = np.array([2, 0])
    part = np.concatenate(list(coupled.stream(300, np.random.default_rng(3), rows)))
    assert np.array_equal(part, some[:, coupled.layout.entries_of(rows)])
    later = np.concatenate(list(coupled.stream_range(1000, 1100, np.random.default_rng(3))))
    assert np.array_equal(later, more[1000:1100])


def test_generators_move_on_alike(pair):
    posterior, coupled, _, _ = pair
    ours, theirs = np.random.default_rng(5), np.random.default_rng(5)
    coupled.stream(10, ours)
    posterior.stream(10, theirs)
    assert ours.random() == theirs.random()


def test_finitely_many_draws_and_models_too_large_are_not_coupled():
    counts = declared()
    posterior = DirichletPosterior(counts)
    draws = posterior.sample(100, np.random.default_rng(0))
    finite = PosteriorDraws.from_arrays(
        draws, mdp=counts.to_mdp(discount=0.9, prior=1.0), independent=True
    )
    assert can_couple(posterior)
    assert not can_couple(finite)
    assert group_size(posterior) == 1024
    large = garnet(3000, 200, 2, discount=0.9, rng=np.random.default_rng(0)).mdp
    every = np.arange(large.num_rows)
    assert group_size(SomeRows(posterior, RowLayout.of(large), every)) == 0
    assert group_size(SomeRows(LearnedPosterior(counts), RowLayout.of(large), every)) == 16


def test_kernels_do_what_they_say():
    draws = np.random.default_rng(0).random((3, 5))
    values, row_start = np.arange(5.0), np.array([0, 2, 5])
    out = np.empty((3, 2))
    kernels.score_rows.py_func(draws, values, row_start, out)
    assert np.allclose(out, np.add.reduceat(draws * values, row_start[:-1], axis=1))
    places = np.array([[1, 2], [0, 0], [2, 1]])
    dealt = np.empty_like(draws)
    kernels.deal_rows.py_func(draws, places, row_start, dealt)
    assert np.array_equal(dealt[[1, 0, 2], :2], draws[:, :2])
    assert np.array_equal(dealt[[2, 0, 1], 2:], draws[:, 2:])


@pytest.mark.parametrize("size", [1, 7, 8, 9, 32, 100])
def test_draws_are_ordered_by_class_then_score_and_equal_ones_stay_in_order(size):
    rng = np.random.default_rng(size)
    score, classes = rng.integers(0, 4, size) / 8, rng.integers(0, 3, (size, 2)).astype(float)
    key, order, room = np.empty(size), np.empty(size, int), np.empty(size, int)
    kernels.order_in_classes.py_func(score, classes, 1, key, order, room)
    assert np.array_equal(order, np.lexsort((score, classes[:, 1])))


def test_rows_that_have_shown_all_are_those_of_the_posterior_in_another_order():
    domain = garnet(4, 3, 3, discount=0.9, rng=np.random.default_rng(0))
    posterior = LearnedPosterior(domain.simulate(200, np.random.default_rng(1)))
    layout, values = posterior.layout, np.random.default_rng(2).normal(size=posterior.num_entries)
    full = np.flatnonzero(np.minimum.reduceat(posterior.counts.count, layout.row_start[:-1]))
    assert len(full) > 8
    plain = posterior.sample(1024, np.random.default_rng(3))
    alike = CoupledRows(posterior, layout, values).sample(1024, np.random.default_rng(3))
    assert not np.array_equal(plain, alike)
    for row in full:
        entries = layout.entries_of(np.array([row]))
        ours, theirs = alike[:, entries], plain[:, entries]
        assert np.array_equal(ours[np.lexsort(ours.T)], theirs[np.lexsort(theirs.T)])
