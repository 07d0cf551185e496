"""Nature's side of a solution."""

import dataclasses

import numpy as np

from surefoot.model.mdp import MDP
from surefoot.solvers.problem import make_problem
from surefoot.solvers.solution import Solution
from surefoot.solvers.sweep_kernels import sweeps_of


def nature_model(solution: Solution) -> MDP:
    """Return the model in which every row holds nature's choice at the solution's value."""
    mdp = solution.mdp
    problem = make_problem(
        mdp, solution.ambiguity, objective=solution.objective, nature=solution.nature
    )
    chosen = np.empty(mdp.num_entries)
    v = solution.value if solution.objective == "max" else -solution.value
    sweeps_of(problem).nature_rows(
        problem,
        v,
        np.arange(mdp.num_rows, dtype=np.uint64),
        problem.row_start[:-1],
        chosen,
        np.empty((4, problem.longest)),
    )
    return dataclasses.replace(mdp, probability=np.clip(chosen, 0.0, 1.0))
