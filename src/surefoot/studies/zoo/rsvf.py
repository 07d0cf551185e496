"""RSVF: sets built around the value functions that matter (Petrik, Russel 2019).

For a value function v the promise only needs each row's set to contain a point p with ``p.z`` at
most the delta/(S A)-quantile of the posterior's ``p.z``, where ``z = r + discount v``. Sets that
contain such a point for every v of a list suffice for that list. So the method solves the robust
problem, adds the robust value to the list if the sets contain no such point for it yet, makes the
sets again as small as possible, and repeats.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.model.mdp import MDP
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.solvers.solution import Solution
from surefoot.solvers.solver import solve
from surefoot.studies.zoo.claims import Claim, Facts
from surefoot.studies.zoo.log_model import PRIOR, read_log
from surefoot.studies.zoo.logs import ColumnArrays

Floats = NDArray[np.float64]

DRAWS = 1000
MOST_VALUES = 10
"""The largest number of value functions; if the list still grows then, there is no promise."""
NEAR = 1e-3
"""Weight of a centre's distance from the mean, relative to the size of the set."""
SLACK = 1e-6


def rsvf(
    columns: ColumnArrays, facts: Facts, deltas: Sequence[float], rng: np.random.Generator
) -> list[Claim]:
    """Return the robust return of RSVF sets; None if the sets did not settle."""
    read = read_log(columns, facts, prior=PRIOR)
    posterior = DirichletPosterior(read.counts, prior=PRIOR)
    draws = posterior.sample(DRAWS, rng)
    claims = []
    for delta in deltas:
        settled, solution = rsvf_solve(read.mdp, draws, delta)
        claims.append(
            Claim(kind="promise", value=solution.return_lower if settled else None, delta=delta,
                  subject=read.choice(solution.policy), exempt=read.within_range_seen)
        )  # fmt: skip
    return claims


def rsvf_solve(mdp: MDP, draws: Floats, delta: float) -> tuple[bool, Solution]:
    """Return whether the sets settled, and the last robust solution.

    Examples
    --------
    >>> from surefoot import DirichletPosterior, riverswim
    >>> counts = riverswim().simulate(50, np.random.default_rng(0))
    >>> mdp = counts.to_mdp(discount=0.9, prior=1.0)
    >>> draws = DirichletPosterior(counts).sample(1000, np.random.default_rng(1))
    >>> settled, solution = rsvf_solve(mdp, draws, 0.05)
    >>> settled, solution.return_lower < solve(mdp).return_lower
    (True, True)
    """
    level = delta / int(np.count_nonzero(np.diff(mdp.row_start) > 1) or 1)
    worths: list[Floats] = []
    limits: list[Floats] = []
    center, budget = mdp, np.zeros(mdp.num_rows)
    solution = solve(mdp)
    for _ in range(MOST_VALUES):
        worth = mdp.entry_reward + mdp.discount * solution.value[mdp.successor]
        limit = np.quantile(np.add.reduceat(draws * worth, mdp.row_start[:-1], axis=1), level, 0)
        lowest = _lowest(center, budget, worth)
        if worths and np.all(lowest <= limit + SLACK * (1 + np.abs(limit))):
            return True, solution
        worths.append(worth)
        limits.append(limit)
        center, budget = _sets(mdp, worths, limits)
        solution = solve(center, _balls(center, budget))
    return False, solution


def _balls(center: MDP, budget: Floats) -> AmbiguitySet:
    dense = np.zeros((center.num_states, center.num_actions))
    dense[center.row_state, center.row_action] = budget
    return AmbiguitySet.from_arrays(center, norm="l1", budget=dense)


def _lowest(center: MDP, budget: Floats, worth: Floats) -> Floats:
    """Return ``(R,)``: the lowest ``p.worth`` of each ball; mass moves from best to worst."""
    found = np.empty(center.num_rows)
    for r in range(center.num_rows):
        part = slice(center.row_start[r], center.row_start[r + 1])
        p, z = center.probability[part].copy(), worth[part]
        low, left = int(np.argmin(z)), budget[r] / 2
        for k in np.argsort(-z):
            moved = 0.0 if k == low else min(left, p[k])
            p[k] -= moved
            p[low] += moved
            left -= moved
        found[r] = p @ z
    return found


def _sets(mdp: MDP, worths: list[Floats], limits: list[Floats]) -> tuple[MDP, Floats]:
    """Return centres and budgets of the smallest L1 balls with a point below every limit."""
    probability = mdp.probability.copy()
    budget = np.zeros(mdp.num_rows)
    for r in np.flatnonzero(np.diff(mdp.row_start) > 1):
        part = slice(mdp.row_start[r], mdp.row_start[r + 1])
        probability[part], budget[r] = smallest_ball(
            mdp.probability[part], [z[part] for z in worths], [limit[r] for limit in limits]
        )
    return replace(mdp, probability=probability), budget


def smallest_ball(mean: Floats, worths: list[Floats], limits: list[float]) -> tuple[Floats, float]:
    """Return centre and budget: ``min budget`` such that the ball contains points p_i with
    ``p_i.z_i <= limit_i``; among equally small balls, one near the mean.

    A linear program in the centre, its distance from the mean, the points, their distances from the
    centre, and the budget.
    """  # noqa: D205
    size, number = len(mean), len(worths)
    point = [slice((2 + 2 * i) * size, (3 + 2 * i) * size) for i in range(number)]
    apart = [slice((3 + 2 * i) * size, (4 + 2 * i) * size) for i in range(number)]
    width = (2 + 2 * number) * size + 1
    upper, right, equal = [], [], []
    eye = np.eye(size)

    def line(**parts: tuple[slice, Floats]) -> Floats:
        made = np.zeros((len(next(iter(parts.values()))[1]), width))
        for where, values in parts.values():
            made[:, where] = values
        return made

    center, off = slice(0, size), slice(size, 2 * size)
    for sign in (1.0, -1.0):
        upper.append(line(a=(center, sign * eye), b=(off, -eye)))
        right.append(sign * mean)
    equal.append(line(a=(center, np.ones((1, size)))))
    for i in range(number):
        for sign in (1.0, -1.0):
            upper.append(
                line(a=(point[i], sign * eye), b=(center, -sign * eye), c=(apart[i], -eye))
            )
            right.append(np.zeros(size))
        sums = line(a=(apart[i], np.ones((1, size))))
        sums[0, -1] = -1.0
        upper += [sums, line(a=(point[i], worths[i][None]))]
        right += [np.zeros(1), np.array([max(limits[i], float(worths[i].min()))])]
        equal.append(line(a=(point[i], np.ones((1, size)))))
    cost = np.zeros(width)
    cost[-1], cost[off] = 1.0, NEAR
    found = linprog(
        cost, A_ub=np.vstack(upper), b_ub=np.concatenate(right), A_eq=np.vstack(equal),
        b_eq=np.ones(len(equal)), bounds=(0, None), method="highs",
    )  # fmt: skip
    if found.x is None:
        raise ValueError(f"the smallest ball of a row was not found: {found.message}")
    middle = np.maximum(found.x[center], 0.0)
    return middle / middle.sum(), max(float(found.x[-1]), 0.0) + SLACK
