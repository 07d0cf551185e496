"""Solve a robust MDP, or evaluate a policy in one, with bounds that hold at every stop."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.model.mdp import MDP
from surefoot.model.policies import RowPolicy, check_policy
from surefoot.solvers.algorithms import ALGORITHMS, Outcome, Stopping, default
from surefoot.solvers.problem import make_problem
from surefoot.solvers.solution import Solution
from surefoot.solvers.workspace import Workspace

Progress = Callable[[int, float], None]
"""Called after every sweep with the number of sweeps and the error bound reached."""


def solve(
    mdp: MDP,
    ambiguity: AmbiguitySet | None = None,
    *,
    algorithm: str | None = None,
    tolerance: float = 1e-6,
    max_iterations: int = 100_000,
    progress: Progress | None = None,
    objective: str = "max",
    nature: str = "worst",
    threads: int | None = None,
) -> Solution:
    """Find the policy that is best against nature's choice of model from a set.

    Solves ``v_s = max_a min_{p in set(s,a)} p.(r_{s,a,.} + discount*v)``. The returned bounds are
    certified: they hold at every stop, rounding included.

    Parameters
    ----------
    mdp
        The model.
    ambiguity
        What nature may choose from; None solves the nominal model.
    algorithm
        ``"value_iteration"``, ``"gauss_seidel"``, ``"policy_iteration"``,
        ``"partial_policy_iteration"``, or None to let the solver choose as it goes.
    tolerance
        Wanted error bound, in units of value.
    max_iterations
        Sweeps over all states before giving up (with bounds that hold, and a status that says so).
    progress
        Called with (sweeps, error bound) after each sweep.
    objective
        ``"max"`` for rewards, ``"min"`` for costs.
    nature
        ``"worst"`` plays against the objective, ``"best"`` with it.
    threads
        None: as many as pay off.

    Examples
    --------
    >>> from surefoot import AmbiguitySet, riverswim, solve
    >>> mdp = riverswim().mdp
    >>> round(solve(mdp).return_lower, 2)
    63080.09
    >>> robust = solve(mdp, AmbiguitySet.from_arrays(mdp, norm="l1", budget=0.1))
    >>> robust.status.name, robust.return_lower < 63080
    ('CONVERGED', True)
    """
    if algorithm is not None and algorithm not in ALGORITHMS:
        raise ValueError(
            f"algorithm={algorithm!r}; choose one of {', '.join(map(repr, ALGORITHMS))} or None."
        )
    return _run(
        mdp, ambiguity, None, None, algorithm, tolerance, max_iterations, progress, objective,
        nature, threads,
    )  # fmt: skip


def evaluate(
    mdp: MDP,
    policy: ArrayLike,
    ambiguity: AmbiguitySet | None = None,
    *,
    tolerance: float = 1e-6,
    max_iterations: int = 100_000,
    progress: Progress | None = None,
    objective: str = "max",
    nature: str = "worst",
    threads: int | None = None,
) -> Solution:
    """Bound the value of a fixed policy against nature's choice of model.

    Parameters
    ----------
    mdp, ambiguity, tolerance, max_iterations, progress, objective, nature, threads
        As for `solve`.
    policy
        ``(S,)`` action ids, or ``(S, A)`` probabilities for a randomised policy.

    Examples
    --------
    >>> import numpy as np
    >>> from surefoot import evaluate, riverswim
    >>> mdp = riverswim().mdp
    >>> always_left, always_right = np.zeros(6, dtype=int), np.ones(6, dtype=int)
    >>> evaluate(mdp, always_left).return_upper < evaluate(mdp, always_right).return_lower
    True
    """
    rows = check_policy(mdp, policy)
    given = np.array(policy)
    given = given.astype(np.int64 if given.ndim == 1 else np.float64)
    return _run(
        mdp, ambiguity, rows, given, None, tolerance, max_iterations, progress, objective, nature,
        threads,
    )  # fmt: skip


def _run(
    mdp: MDP,
    ambiguity: AmbiguitySet | None,
    rows: RowPolicy | None,
    given: NDArray[np.int64] | None,
    algorithm: str | None,
    tolerance: float,
    max_iterations: int,
    progress: Progress | None,
    objective: str,
    nature: str,
    threads: int | None,
) -> Solution:
    if not tolerance > 0:
        raise ValueError(f"tolerance={tolerance}; it must be a number above 0.")
    if not max_iterations >= 1:
        raise ValueError(f"max_iterations={max_iterations}; it must be at least 1.")
    if threads is not None and not threads >= 1:
        raise ValueError(f"threads={threads}; it must be at least 1, or None.")
    problem = make_problem(mdp, ambiguity, objective=objective, nature=nature)
    stopping = Stopping(tolerance=tolerance, max_iterations=max_iterations, progress=progress)
    method = ALGORITHMS[algorithm] if algorithm is not None else default
    with Workspace(problem, rows, threads) as work:
        outcome = method(work, stopping)
        policy = given if given is not None else mdp.row_action[work.choice]
        return _report(mdp, ambiguity, objective, nature, policy, work, outcome, algorithm)


def _report(
    mdp: MDP,
    ambiguity: AmbiguitySet | None,
    objective: str,
    nature: str,
    policy: NDArray[np.int64],
    work: Workspace,
    outcome: Outcome,
    algorithm: str | None,
) -> Solution:
    lower = work.image + outcome.bracket.below
    upper = work.image + outcome.bracket.above
    if objective == "min":
        lower, upper = -upper, -lower
    # The weighted mean of n numbers is off by at most n epsilons of the largest.
    slack = 2 * (mdp.num_states + 2) * np.finfo(np.float64).eps
    start = mdp.initial / mdp.initial.sum()
    largest = float(max(np.abs(lower).max(), np.abs(upper).max()))
    return Solution(
        mdp=mdp,
        ambiguity=ambiguity,
        objective=objective,
        nature=nature,
        policy=policy,
        value=0.5 * (lower + upper),
        lower=lower,
        upper=upper,
        return_lower=float(start @ lower - slack * largest),
        return_upper=float(start @ upper + slack * largest),
        error_bound=float(outcome.bracket.error_bound),
        iterations=work.sweeps,
        status=outcome.status,
        algorithm=algorithm or "default",
    )
