"""How samples are shared out: against every other way, and the law that it rests on."""

from itertools import product

import numpy as np
import pytest

from surefoot.certificates.allocation import Distance


def rng(seed):
    return np.random.default_rng(seed)


def some(seed, rows=3, *, unlisted=False):
    draw = rng(seed)
    return Distance(
        spread=draw.gamma(0.5, size=rows), size=draw.uniform(1.0, 30.0, size=rows),
        unlisted=draw.gamma(0.3, size=rows) * unlisted, reach=2.0,
    )  # fmt: skip


def best(distance, samples):
    """The smallest distance that any allocation reaches."""
    rows = len(distance.spread)
    every = [m for m in product(range(samples + 1), repeat=rows) if sum(m) == samples]
    return min(distance.after(np.array(m, dtype=float)) for m in every)


@pytest.mark.parametrize("seed", range(6))
def test_no_other_allocation_is_better(seed):
    distance = some(seed)
    found = distance.allocate(9)
    assert found.sum() == 9
    assert distance.after(found.astype(float)) == pytest.approx(best(distance, 9), rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_with_unlisted_successors_it_is_as_good_as_the_best_but_for_little(seed):
    distance = some(seed, unlisted=True)
    now = distance.after(np.zeros(3))
    gained = now - distance.after(distance.allocate(9).astype(float))
    assert gained >= 0.99 * (now - best(distance, 9))


def test_bundles_are_as_good_as_the_best_but_for_little():
    distance = some(3, rows=4)
    bundles, cost = rng(1).integers(0, 4, size=(3, 4)).astype(float), np.array([2.0, 3.0, 5.0])
    taken = distance.allocate_bundles(bundles, cost, 30)
    assert taken @ cost <= 32.5  # half an episode more at most
    now = distance.after(np.zeros(4))
    every = [m for m in product(range(16), repeat=3) if np.array(m) @ cost <= taken @ cost]
    most = max(now - distance.after(np.array(m) @ bundles) for m in every)
    assert now - distance.after(taken @ bundles) >= 0.97 * most


def test_large_numbers_are_given_out_in_few_turns():
    distance = some(2, rows=5)
    found = distance.allocate(1_000_000)
    assert found.sum() == 1_000_000
    even = distance.after(np.full(5, 200_000.0))
    assert distance.after(found.astype(float)) < even


def test_nothing_is_given_out_where_nothing_is_in_doubt():
    sure = Distance(spread=np.zeros(2), size=np.full(2, np.inf), unlisted=np.zeros(2), reach=0.0)
    assert sure.allocate(10).tolist() == [0, 0]
    assert sure.allocate_bundles(np.ones((3, 2)), np.ones(3), 10).tolist() == [0, 0, 0]


def test_a_dirichlet_row_keeps_that_much_of_its_variance():
    shape, z, m = np.array([3.0, 2.0, 1.0]), np.array([0.0, 1.0, 5.0]), 4
    total = shape.sum()

    def variance(parameters):
        share = parameters / parameters.sum()
        return (share @ z**2 - (share @ z) ** 2) / (parameters.sum() + 1.0)

    draw = rng(0)
    left = [variance(shape + draw.multinomial(m, draw.dirichlet(shape))) for _ in range(20_000)]
    assert np.mean(left) == pytest.approx(variance(shape) * total / (total + m), rel=0.01)
