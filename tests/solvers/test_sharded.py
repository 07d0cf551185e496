"""Rows that lie apart give the bounds and the policy of rows that lie together."""

import numpy as np
import pytest

import surefoot as sf
from surefoot.solvers.problem import make_problem
from surefoot.solvers.sharded import part_of, solve_sharded


@pytest.mark.parametrize("norm", [None, "l1", "linf", "kl"])
@pytest.mark.parametrize("edges", [[0, 40], [0, 7, 8, 40]])
def test_blocks_change_nothing(norm, edges):
    rng = np.random.default_rng(1)
    mdp = sf.garnet(40, 3, 5, discount=0.9, rng=rng).mdp
    ball = None
    if norm is not None:
        ball = sf.AmbiguitySet.from_arrays(mdp, norm=norm, budget=rng.random((40, 3)) * 0.2)
    whole = make_problem(mdp, ball, objective="max", nature="worst")
    found = solve_sharded(part_of(whole), edges, discount=0.9, tolerance=1e-5)
    alone = sf.solve(mdp, ball, tolerance=1e-5, algorithm="value_iteration")
    assert np.array_equal(found.lower, alone.lower)
    assert np.array_equal(found.upper, alone.upper)
    assert np.array_equal(mdp.row_action[mdp.state_start[:-1] + found.chosen], alone.policy)
    assert (found.sweeps, found.status) == (alone.iterations, alone.status)


def test_a_limit_of_sweeps_is_told():
    mdp = sf.riverswim().mdp
    whole = make_problem(mdp, None, objective="max", nature="worst")
    found = solve_sharded(part_of(whole), [0, 6], discount=mdp.discount, max_iterations=3)
    assert found.status is sf.Status.ITERATION_LIMIT
    assert np.all(found.lower <= found.upper)


def test_uncertain_rows_of_one_successor_are_refused():
    mdp = sf.garnet(6, 2, 1, discount=0.9, rng=np.random.default_rng(0)).mdp
    ball = sf.AmbiguitySet.from_arrays(mdp, norm="l1", budget=0.1)
    whole = make_problem(mdp, ball, objective="max", nature="worst")
    solve_sharded(part_of(whole), [0, 6], discount=0.9)  # certain: as `solve` takes them
    wrong = whole._replace(uncertain=np.ones(mdp.num_rows, dtype=np.bool_))
    with pytest.raises(ValueError, match="states 0 to 5 have uncertain rows of one successor"):
        solve_sharded(part_of(wrong), [0, 6], discount=0.9)
