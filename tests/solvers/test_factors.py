"""Elimination among the few entries that are not zero: exact, in an order that fills in little."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import surefoot as sf
from surefoot.domains.garnet import river_chain
from surefoot.model.policies import check_policy
from surefoot.solvers.evaluation import evaluator
from surefoot.solvers.evaluation import factor_kernels as kernels
from surefoot.solvers.evaluation.evaluator import choose_evaluator
from surefoot.solvers.evaluation.orders import band_order
from surefoot.solvers.evaluation.returns import best_returns, policy_returns
from surefoot.solvers.evaluation.rewards import rewards_of
from surefoot.solvers.evaluation.system_kernels import fill, find_places, find_value, find_visits


def rng(seed=0):
    return np.random.default_rng(seed)


def random_links(size, degree, seed):
    """Return a random sparse system: starts, columns and discounted probabilities of its rows."""
    source = rng(seed)
    column = np.concatenate([source.choice(size, degree, replace=False) for _ in range(size)])
    chance = 0.95 * source.dirichlet(np.ones(degree), size).ravel()
    return degree * np.arange(size + 1), column, chance


def ordered(start, column, size):
    """Return the order of minimum degree, with its bounds on work and fill."""
    links = np.zeros((size, size), dtype=bool)
    links[np.repeat(np.arange(size), np.diff(start)), column] = True
    links |= links.T
    np.fill_diagonal(links, False)
    order, degree, near = np.empty((3, size), dtype=np.int64)
    work, fill_in = kernels.minimum_degree(links, 10**12, order, degree, near)
    return order, work, fill_in


def room(size, fill_in, dtype=np.float64):
    starts = [np.zeros(size + 1, dtype=np.int64) for _ in range(2)]
    columns = [np.zeros(fill_in, dtype=np.int64) for _ in range(2)]
    numbers = [np.zeros(fill_in, dtype=dtype) for _ in range(2)]
    return starts, columns, numbers, np.zeros(size, dtype=dtype), np.zeros(size + 1, dtype=np.int64)


def solved(start, column, chance, right, fill_in, *, transposed, exact=False):
    size = len(right)
    (below, above), (left, up), (lower, upper), pivot, link = room(size, fill_in, right.dtype)
    kernels.analyse(start, column, below, left, above, up, link)
    factorise, substitute = kernels.factorise, kernels.back_substitute
    if exact:
        factorise, substitute = factorise.py_func, substitute.py_func
    row = np.zeros(size, dtype=right.dtype)
    factorise(start, column, chance, below, left, lower, above, up, upper, pivot, row)
    x = right.copy()
    substitute(below, left, lower, above, up, upper, pivot, transposed, x)
    return x


@pytest.mark.parametrize("transposed", [False, True])
def test_systems_are_solved_exactly_in_fractions(transposed):
    size, degree = 12, 3
    start, column, _ = random_links(size, degree, 1)
    column[start[:-1]] = np.arange(size)  # every row knows itself: 1 / 1 is no fraction
    weights = rng(2).integers(1, 9, (size, degree))
    chance = np.array(
        [Fraction(9 * int(w), 10 * int(row.sum())) for row in weights for w in row], dtype=object
    )
    right = np.array([Fraction(int(k)) for k in rng(3).integers(-5, 9, size)], dtype=object)
    x = solved(start, column, chance, right, size * size, transposed=transposed, exact=True)
    matrix = np.zeros((size, size), dtype=object) + Fraction(0)
    for i in range(size):
        matrix[i, i] += 1
        for e in range(start[i], start[i + 1]):
            matrix[i, column[e]] -= chance[e]
    assert ((matrix.T if transposed else matrix) @ x).tolist() == right.tolist()


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_any_order_gives_the_solution_and_a_good_one_fits(seed, transposed):
    size = 40
    start, column, chance = random_links(size, 3, seed)
    order, work, fill_in = ordered(start, column, size)
    assert sorted(order.tolist()) == list(range(size))
    assert 0 < fill_in <= size * (size - 1) / 2
    assert work <= size**3
    place = np.argsort(order)
    pieces = [np.arange(start[s], start[s + 1]) for s in order]
    moved = np.concatenate(([0], np.cumsum([len(piece) for piece in pieces])))
    entries = np.concatenate(pieces)
    right = rng(seed).normal(size=size)
    # Room for no more entries than the order promised.
    x = solved(
        moved, place[column[entries]], chance[entries], right[order], fill_in, transposed=transposed
    )
    matrix = np.eye(size)
    np.add.at(matrix, (np.repeat(np.arange(size), 3), column), -chance)
    truth = np.linalg.solve(matrix.T if transposed else matrix, right)
    np.testing.assert_allclose(x, truth[order], rtol=1e-11)


def test_a_chain_with_a_trap_fills_in_next_to_nothing():
    """The state that all others lead to waits until hardly any are left."""
    size = 300
    place = np.arange(1, size)
    column = np.stack((np.zeros(size - 1), np.maximum(place - 1, 1), place,
                       np.minimum(place + 1, size - 1)), axis=1).astype(int)  # fmt: skip
    start = np.concatenate(([0, 1], 1 + 4 * np.arange(1, size)))
    order, work, fill_in = ordered(start, np.concatenate(([0], column.ravel())), size)
    assert 0 in order[-5:]
    assert fill_in < 3 * size
    assert work < 10 * size


def test_the_search_for_an_order_ends_at_its_limit():
    start, column, _ = random_links(200, 8, 0)
    links = np.zeros((200, 200), dtype=bool)
    links[np.repeat(np.arange(200), 8), column] = True
    links |= links.T
    np.fill_diagonal(links, False)
    order, degree, near = np.empty((3, 200), dtype=np.int64)
    assert kernels.minimum_degree(links, 1000, order, degree, near) == (-1, -1)
    assert start[-1] == len(column)


def chain_problem(size=250, discount=0.99):
    counts = river_chain(size, discount=discount).simulate(20, rng(1))
    return counts.to_mdp(discount=discount, prior=1.0), sf.DirichletPosterior(counts)


def test_policies_of_a_chain_are_evaluated_by_elimination():
    mdp, posterior = chain_problem()
    assert choose_evaluator(mdp).kind == "factored"
    policy = sf.solve(mdp).policy
    rows = check_policy(mdp, policy)
    rewards = rewards_of(mdp, posterior, objective="max")
    found = policy_returns(posterior, mdp, rows, 4, rng(2), rewards=rewards)
    best = best_returns(
        posterior, mdp, 4, rng(2), rewards=rewards, start=rows.rows.astype(np.int64)
    )
    assert max(found.numerical_error, best.numerical_error) < 1e-8
    for i, draw in enumerate(posterior.sample(4, rng(2))):
        model = replace(mdp, probability=draw)
        truth = sf.evaluate(model, policy, tolerance=1e-10)
        assert found.lower[i] <= truth.return_upper
        assert truth.return_lower <= found.upper[i]
        optimum = sf.solve(model, tolerance=1e-10)
        assert best.lower[i] <= optimum.return_upper
        assert optimum.return_lower <= best.upper[i]


def test_a_randomised_policy_may_reach_a_state_by_several_rows():
    mdp, posterior = chain_problem(40)
    share = rng(3).dirichlet(np.ones(2), 40)
    rows = check_policy(mdp, share)
    played = rows.rows.astype(np.int64)
    method = replace(choose_evaluator(mdp, played), kind="factored", fill=40 * 40)
    system = method.system(mdp.num_entries)
    reward = mdp.reward if mdp.reward_per_entry else mdp.reward[mdp.entry_row]
    fill(
        system, mdp.probability, reward, rows.start.astype(np.int64), played, rows.share,
        mdp.row_start, mdp.successor.astype(np.int64), mdp.discount,
    )  # fmt: skip
    find_places(system)
    value, visits = np.zeros(40), np.zeros(40)
    find_value(system, mdp.discount, 1e-9, 10, value)
    np.testing.assert_allclose(value, sf.evaluate(mdp, share, tolerance=1e-11).value, rtol=1e-9)
    initial = np.full(40, 1 / 40)
    find_visits(system, initial, 1e-9, 10, visits)
    dense = mdp.to_arrays()
    gain = (share * dense.rewards).sum(axis=1)
    assert visits @ gain == pytest.approx(initial @ value)
    assert posterior.matches(mdp)


def test_the_cheapest_way_is_chosen(monkeypatch):
    mdp, _ = chain_problem()
    assert choose_evaluator(mdp).work < 40 * mdp.num_entries
    random = sf.garnet(300, 3, 8, discount=0.9, rng=rng(0)).mdp
    assert choose_evaluator(random).kind == "products"
    assert choose_evaluator(sf.riverswim().mdp).kind == "full"
    monkeypatch.setattr(evaluator, "FACTORED_STATES", 100)
    assert choose_evaluator(mdp).kind == "factored"  # in the order of the chain itself
    monkeypatch.setattr(evaluator, "FULL_STATES", 0)
    assert choose_evaluator(sf.riverswim().mdp).kind in ("factored", "products")


def test_no_band_is_looked_for_where_states_spread():
    rng = np.random.default_rng(0)
    size = 2000
    source, target = np.repeat(np.arange(size), 8), rng.integers(0, size, 8 * size)
    assert band_order(size, source, target, 25.0) is None
    again = rng.permutation(len(source))  # links in any order
    assert band_order(size, source[again], target[again], 25.0) is None
    # A grid of 20 columns, its states renamed: there is a band, and it is found.
    at = rng.permutation(size)
    right, down = np.arange(size - 1), np.arange(size - 20)
    links = at[np.r_[right, down]], at[np.r_[right + 1, down + 20]]
    found = band_order(size, *links, 40.0)
    assert found is not None
    order, room, _ = found
    place = np.argsort(order)
    assert np.abs(place[links[0]] - place[links[1]]).max() * size == room <= 40 * size
