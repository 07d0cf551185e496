"""Robust models that end: how many steps nature can make the episode last."""

import numpy as np
from numpy.typing import NDArray

from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.model.mdp import MDP
from surefoot.solvers.bounds import EPSILON
from surefoot.solvers.dual_kernels import NOMINAL
from surefoot.solvers.problem import present
from surefoot.solvers.row_kernels import Problem
from surefoot.solvers.steps import MOST_SWEEPS, SETTLED, check_ends, counted_steps
from surefoot.solvers.workspace import Workspace


def steps_to_the_end(mdp: MDP, ambiguity: AmbiguitySet | None, problem: Problem) -> float:
    """Bound the expected number of steps of any policy, whatever nature chooses from the sets.

    Runs sweeps of value iteration with a reward of 1 per step, nature maximising, until no state
    rises by more than ``SETTLED``.
    """
    if ambiguity is None or problem.family == NOMINAL:
        return counted_steps(mdp)
    ends = check_ends(mdp, _sure(mdp, ambiguity, problem))
    counting = problem._replace(
        reward=np.where(ends[mdp.row_state], 0.0, 1.0), reward_per_entry=False, sign=-1.0,
        nominal_caps=False,
    )  # fmt: skip
    with Workspace(counting, None, None) as work:
        for _ in range(MOST_SWEEPS):
            change, allowance = work.step()
            slack = allowance + change.gap
            if change.most + slack <= SETTLED:
                most = float(work.v.max()) / (1.0 - change.most - slack)
                return max(1.0, most * (1 + 8 * EPSILON))
            work.accept_image(change.most)
            work.accuracy = 0.1 * SETTLED
    raise ValueError(
        f"discount=1 without a horizon counts until the end, which nature can delay by more than "
        f"{MOST_SWEEPS:,} steps. Give horizon=, smaller sets, or a discount below 1."
    )


def _sure(mdp: MDP, ambiguity: AmbiguitySet, problem: Problem) -> NDArray[np.bool_]:
    """Return ``(E,)``: entries whose probability is above 0 in every model of the sets."""
    p, row = mdp.probability, mdp.entry_row
    lengths = np.diff(mdp.row_start)
    if ambiguity.norm == "box" or len(problem.lower):
        floor = problem.lower
    elif ambiguity.norm == "l1":
        price = np.full(len(p), 2.0) if ambiguity.weights is None else ambiguity.weights
        floor = p * price - present(ambiguity.budget)[row]
    elif ambiguity.norm == "kl":
        floor = p  # KL(p || q) <= budget keeps q above 0 wherever p is above 0
    else:
        floor = np.where(problem.uncertain[row], 0.0, p)  # nothing is known about other balls
    return np.asarray(np.where(lengths[row] == 1, p > 0, floor > 0))
