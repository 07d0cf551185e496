"""Full systems: exact elimination, and LAPACK's numbers from where it takes over."""

from fractions import Fraction

import numpy as np
import pytest

from surefoot.solvers.evaluation import dense, dense_kernels


def exact_matrix(size, seed=0):
    """Return ``I - discount P`` in fractions, some entries zero."""
    weights = np.random.default_rng(seed).integers(0, 5, (size, size))
    weights[:, 0] += 1
    return np.array(
        [
            [Fraction(int(s == t)) - Fraction(9 * int(w), 10 * int(row.sum()))
             for t, w in enumerate(row)]
            for s, row in enumerate(weights)
        ],
        dtype=object,
    )  # fmt: skip


@pytest.mark.parametrize("transposed", [False, True])
def test_systems_are_solved_exactly_in_fractions(transposed):
    matrix = exact_matrix(5).T.copy() if transposed else exact_matrix(5)
    right = np.array([Fraction(k, 3) for k in range(5)], dtype=object)
    factors, x = matrix.copy(), right.copy()
    dense_kernels.factorise.py_func(factors)
    dense_kernels.substitute.py_func(factors, 0, x)
    assert (matrix @ x).tolist() == right.tolist()


def test_columns_of_the_inverse_are_exact_in_fractions():
    matrix = exact_matrix(5, seed=1)
    factors = matrix.copy()
    dense_kernels.factorise.py_func(factors)
    for s in range(5):
        column = np.array([Fraction(int(t == s)) for t in range(5)], dtype=object)
        unit = column.copy()
        dense_kernels.substitute.py_func(factors, s, column)  # nothing stands before place s
        assert (matrix @ column).tolist() == unit.tolist()


@pytest.mark.parametrize("size", [1, 7, dense.LAPACK_STATES - 1, dense.LAPACK_STATES, 60])
def test_the_kernel_and_lapack_agree(size):
    rng = np.random.default_rng(size)
    matrices = np.eye(size) - 0.95 * rng.dirichlet(np.ones(size), (3, size))
    right = rng.normal(size=(3, size))
    found = right.copy()
    dense.solve_dense(matrices.copy(), found)
    np.testing.assert_allclose((matrices @ found[..., None])[..., 0], right, rtol=1e-9, atol=1e-11)
    columns = dense.inverse_columns(matrices.copy())
    np.testing.assert_allclose(columns.transpose(0, 2, 1), np.linalg.inv(matrices), rtol=1e-9)


def test_parts_cover_the_range_once():
    for size in (3, 400):
        parts = [k for a, b in dense.chunks(5, 50, size) for k in range(a, b)]
        assert parts == list(range(5, 50))


def test_lapack_is_taken_where_it_is_cheaper():
    assert dense.dense_work(dense.LAPACK_STATES) < dense.LAPACK_STATES**3 / 3
    assert dense.dense_work(200) < 200**3 / 3 / 3
