"""What the solvers should have found, checked without any of our kernels.

The candidate is an exact linear solve: the policy found, in the model that nature chose. It is then
bracketed by one Bellman step in NumPy. From below by weak duality (every multiplier gives a lower
bound on a row), from above by feasibility (nature's choice is checked to lie in the set). Only a
candidate that is right makes the two meet, whoever proposed it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import Case
from surefoot.model.mdp import MDP
from surefoot.solvers.solver import solve

BISECTIONS = 70
FEASIBLE = 1e-12
"""How far nature's choice may leave its set by rounding."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Truth:
    """The optimal values, and half the width of the bracket that proves them."""

    value: Floats
    half_width: float


def find_truth(case: Case, kind: str) -> Truth:
    """Solve a case as exactly as doubles allow, and prove it independently."""
    mdp, ambiguity = case.mdp, case.sets[kind]
    solution = solve(mdp, ambiguity, tolerance=1e-13)
    policy = np.asarray(solution.policy, dtype=np.int64)
    rows = mdp.state_start[:-1] + [
        np.searchsorted(mdp.row_action[a:b], chosen)
        for a, b, chosen in zip(mdp.state_start[:-1], mdp.state_start[1:], policy, strict=True)
    ]
    p = mdp.probability if ambiguity is None else solution.nature_model().probability
    v = _evaluate(mdp, p, rows)
    below, above = row_bracket(case, kind, v, p)
    low = np.maximum.reduceat(below, mdp.state_start[:-1])
    high = np.maximum.reduceat(above, mdp.state_start[:-1])
    factor = mdp.discount / (1 - mdp.discount)
    lower = low + factor * float((low - v).min())
    upper = high + factor * float((high - v).max())
    return Truth(value=0.5 * (lower + upper), half_width=0.5 * float((upper - lower).max()))


def _evaluate(mdp: MDP, p: Floats, rows: NDArray[np.int64]) -> Floats:
    """Solve ``v = r + discount*Pv`` of a policy by dense elimination, refined once."""
    size = mdp.num_states
    length = mdp.num_entries // mdp.num_rows
    matrix = np.eye(size)
    successors = mdp.successor.reshape(-1, length)[rows]
    matrix[np.arange(size)[:, None], successors] -= mdp.discount * p.reshape(-1, length)[rows]
    v = np.linalg.solve(matrix, mdp.reward[rows])
    refined: Floats = v + np.linalg.solve(matrix, mdp.reward[rows] - matrix @ v)
    return refined


def successor_values(mdp: MDP, v: Floats) -> Floats:
    """Return ``r + discount*v`` of every successor, one line per row."""
    length = mdp.num_entries // mdp.num_rows
    values: Floats = mdp.reward[:, None] + mdp.discount * v[mdp.successor].reshape(-1, length)
    return values


def row_bracket(case: Case, kind: str, v: Floats, nature: Floats) -> tuple[Floats, Floats]:
    """Return bounds on the worst expectation of every row: a dual value and a feasible one."""
    z = successor_values(case.mdp, v)
    choice = nature.reshape(z.shape)
    above = np.einsum("rk,rk->r", choice, z)
    if kind == "nominal":
        return above, above
    nominal = case.mdp.probability.reshape(z.shape)
    if kind == "box":
        lower, upper = case.lower.reshape(z.shape), case.upper.reshape(z.shape)
        outside = np.maximum(lower - choice, choice - upper).max()
        below = _box_dual(z, lower, upper)
    else:
        weights = np.ones_like(z) if kind == "uniform" else case.weights.reshape(z.shape)
        outside = ((weights * np.abs(choice - nominal)).sum(axis=1) - case.budget).max()
        below = _l1_dual(z, nominal, weights, case.budget)
    if not max(outside, -choice.min(), np.abs(choice.sum(axis=1) - 1).max()) <= FEASIBLE:
        raise RuntimeError(f"{case.name}: nature's choice lies outside its {kind} set.")
    return below, above


def _l1_dual(z: Floats, nominal: Floats, weights: Floats, budget: Floats) -> Floats:
    """Maximise ``p.z - mu*budget - sum_i p_i (z_i - mu*w_i - m)^+``, ``m = min_i z_i + mu*w_i``.

    Concave in mu; bisection on its slope. The value is a lower bound at every mu.
    """
    lines = np.arange(len(z))
    low, high = np.zeros(len(z)), (z.max(axis=1) - z.min(axis=1)) / (2 * weights.min(axis=1))
    for _ in range(BISECTIONS):
        mu = 0.5 * (low + high)
        raised = z + mu[:, None] * weights
        receiver = raised.argmin(axis=1)
        donates = z - mu[:, None] * weights > raised[lines, receiver][:, None]
        spent = np.sum(nominal * donates * (weights + weights[lines, receiver][:, None]), axis=1)
        low, high = np.where(spent > budget, mu, low), np.where(spent > budget, high, mu)
    values = []
    for mu in (low, high):
        lowest = (z + mu[:, None] * weights).min(axis=1)
        gain = np.maximum(z - mu[:, None] * weights - lowest[:, None], 0.0)
        values.append(np.sum(nominal * (z - gain), axis=1) - mu * budget)
    best: Floats = np.maximum(*values)
    return best


def _box_dual(z: Floats, lower: Floats, upper: Floats) -> Floats:
    """Maximise ``m + sum_i min(lower_i (z_i - m), upper_i (z_i - m))`` by bisection on m."""
    low, high = z.min(axis=1), z.max(axis=1)
    for _ in range(BISECTIONS):
        level = 0.5 * (low + high)
        mass = np.where(z < level[:, None], upper, lower).sum(axis=1)
        low, high = np.where(mass < 1, level, low), np.where(mass < 1, high, level)
    values = []
    for level in (low, high):
        above = z - level[:, None]
        values.append(level + np.minimum(lower * above, upper * above).sum(axis=1))
    best: Floats = np.maximum(*values)
    return best
