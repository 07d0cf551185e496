"""The peers: quantecon, mdpsolver, HiGHS row by row, Storm."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from benchmarks.cases import KINDS, Case
from benchmarks.contenders import TOLERANCE, Answer, Contender, Job, our_solve
from benchmarks.storm import storm_intervals
from benchmarks.truth import Floats, Truth, row_bracket, successor_values

MANY = 1_000_000
"""An iteration limit that is never met (quantecon's own would end a solve silently)."""

HIGHS_ROWS = 20
"""Rows solved by HiGHS, spread over the model; a whole sweep takes minutes."""


def quantecon_sparse(case: Case, _: Truth) -> Job:
    """Return modified policy iteration on pairs with a sparse matrix: the yardstick."""
    from quantecon.markov import DiscreteDP

    mdp = case.mdp
    matrix = sp.csr_matrix(
        (mdp.probability, mdp.successor, mdp.row_start), shape=(mdp.num_rows, mdp.num_states)
    )
    model = DiscreteDP(mdp.reward, matrix, mdp.discount, mdp.row_state, mdp.row_action)
    return _quantecon_job(model)


def quantecon_dense(case: Case, _: Truth) -> Job:
    """Return the same on dense ``(S, A, S)`` arrays, faster where rows are dense."""
    from quantecon.markov import DiscreteDP

    dense = case.mdp.to_arrays()
    return _quantecon_job(DiscreteDP(dense.rewards, dense.transitions, case.mdp.discount))


def _quantecon_job(model: Any) -> Job:
    def job() -> Answer:
        found = model.solve(method="mpi", epsilon=TOLERANCE, max_iter=MANY)
        return Answer(value=np.asarray(found.v))

    return job


def mdpsolver_mpi(case: Case, _: Truth) -> Job:
    """Return modified policy iteration with its standard updates on one thread."""
    from mdpsolver import model as make_model

    mdp = case.mdp
    shape = (mdp.num_states, mdp.num_actions, case.row_length)
    model = make_model()
    model.mdp(
        discount=mdp.discount,
        rewards=mdp.reward.reshape(shape[:2]).tolist(),
        tranMatProbs=mdp.probability.reshape(shape).tolist(),
        tranMatColumns=mdp.successor.reshape(shape).tolist(),
    )

    def job() -> Answer:
        model.solve(algorithm="mpi", tolerance=TOLERANCE, parallel=False)
        return Answer(value=np.array(model.getValueVector()))

    return job


def highs_sweep(case: Case, truth: Truth) -> Job:
    """Return the weighted L1 rows of one sweep as linear programs, as many as patience allows."""
    mdp = case.mdp
    rows = np.unique(np.linspace(0, mdp.num_rows - 1, HIGHS_ROWS).astype(int))
    z = successor_values(mdp, truth.value)
    nominal, weights = mdp.probability.reshape(z.shape), case.weights.reshape(z.shape)
    exact, _ = row_bracket(case, "weighted", truth.value, mdp.probability)

    def job() -> Answer:
        found = [_worst_by_lp(z[r], nominal[r], weights[r], case.budget[r]) for r in rows]
        error = float(np.abs(np.array(found) - exact[rows]).max())
        return Answer(true_error=error, share=len(rows) / mdp.num_rows)

    return job


def _worst_by_lp(z: Floats, nominal: Floats, weights: Floats, budget: float) -> float:
    """Solve ``min z.(pbar + up - down)``: as much up as down, ``w.(up + down) <= budget``.

    Only two constraints: the form that suits HiGHS best.
    """
    ones = np.ones_like(z)
    found = linprog(
        np.concatenate([z, -z]),
        A_ub=np.concatenate([weights, weights])[None, :],
        b_ub=np.array([budget]),
        A_eq=np.concatenate([ones, -ones])[None, :],
        b_eq=np.zeros(1),
        bounds=[(0, None)] * len(z) + [(0, most) for most in nominal.tolist()],
        method="highs",
    )
    if found.fun is None:
        raise RuntimeError(f"HiGHS: {found.message}")
    return float(nominal @ z) + float(found.fun)


YARDSTICK = Contender(
    name="quantecon MPI, nominal",
    kind="nominal",
    prepare=quantecon_sparse,
    package="quantecon",
    compiles=True,
)

CONTENDERS = (
    *(our_solve(kind) for kind in KINDS),
    YARDSTICK,
    Contender(
        name="quantecon MPI, nominal, dense arrays",
        kind="nominal",
        prepare=quantecon_dense,
        package="quantecon",
        compiles=True,
        suits=lambda case: case.row_length == case.mdp.num_states,
    ),
    Contender(
        name="mdpsolver MPI, nominal",
        kind="nominal",
        prepare=mdpsolver_mpi,
        package="mdpsolver",
        remembers=True,
    ),
    Contender(name="Storm, box", kind="box", prepare=storm_intervals, package="stormpy"),
    Contender(name="one HiGHS sweep, weighted L1", kind="weighted", prepare=highs_sweep),
)
