"""Solve a robust MDP, or evaluate a policy in one, with bounds that hold at every stop."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.model.mdp import MDP
from surefoot.model.policies import RowPolicy, as_step_policy, check_policy
from surefoot.model.step_policy import StepPolicy
from surefoot.solvers.algorithms import (
    ALGORITHMS,
    OnSweep,
    Outcome,
    Stopping,
    default,
    value_iteration,
)
from surefoot.solvers.backward import induce
from surefoot.solvers.bounds import EPSILON, Bracket
from surefoot.solvers.gpu.choice import solves_on_device
from surefoot.solvers.gpu.device import the_gpu
from surefoot.solvers.gpu.robust_work import DeviceWork
from surefoot.solvers.problem import make_problem
from surefoot.solvers.solution import Solution, SolvedPolicy, Status
from surefoot.solvers.steps import until_the_end
from surefoot.solvers.termination import steps_to_the_end
from surefoot.solvers.workspace import Workspace


def solve(
    mdp: MDP,
    ambiguity: AmbiguitySet | None = None,
    *,
    algorithm: str | None = None,
    tolerance: float = 1e-6,
    max_iterations: int = 100_000,
    progress: OnSweep | None = None,
    objective: str = "max",
    nature: str = "worst",
    threads: int | None = None,
    horizon: int | None = None,
    final_reward: ArrayLike | None = None,
    device: str = "auto",
) -> Solution:
    """Find the policy that is best against nature's choice of model from a set.

    Solves ``v_s = max_a min_{p in set(s,a)} p.(r_{s,a,.} + discount*v)``. The returned bounds are
    certified: they hold at every stop, rounding included. With discount 1 and no horizon every
    policy must reach an end, whatever nature chooses; otherwise a ValueError names states from
    which some policy never does.

    Parameters
    ----------
    mdp
        The model.
    ambiguity
        The set that nature chooses from; None solves the nominal model.
    algorithm
        ``"value_iteration"``, ``"gauss_seidel"``, ``"policy_iteration"``,
        ``"partial_policy_iteration"``, or None to let the solver choose as it goes.
    tolerance
        Wanted error bound, in units of value.
    max_iterations
        Sweeps over all states before stopping; the bounds still hold, and the status says so.
    progress
        Called with (sweeps, error bound) after each sweep.
    objective
        ``"max"`` for rewards, ``"min"`` for costs.
    nature
        ``"worst"`` plays against the objective, ``"best"`` with it.
    threads
        Number of threads; None uses as many as pay off.
    horizon
        Count at most this many steps: backward induction, with a policy that may depend on the step
        (`StepPolicy`) and bounds for the first step. None uses the horizon of the model, if any.
        All steps are computed, whatever ``max_iterations`` and ``algorithm`` say.
    final_reward
        ``(S,)``: the reward for the state reached after the last step.
    device
        ``"cpu"``, ``"gpu"``, or ``"auto"``: a GPU if there is one and it clearly pays. The
        ``algorithm`` of the solution says which was used.

    Examples
    --------
    >>> from surefoot import AmbiguitySet, riverswim, solve
    >>> mdp = riverswim().mdp
    >>> round(solve(mdp).return_lower, 2)
    63080.09
    >>> robust = solve(mdp, AmbiguitySet.from_arrays(mdp, norm="l1", budget=0.1))
    >>> robust.status.name, robust.return_lower < 63080
    ('CONVERGED', True)
    >>> season = solve(mdp, horizon=26)
    >>> season.policy
    StepPolicy(26 steps, 6 states, 11 ranges)
    """
    mdp = counted(mdp, horizon, final_reward)
    if algorithm is not None and algorithm not in ALGORITHMS:
        raise ValueError(
            f"algorithm={algorithm!r}; choose one of {', '.join(map(repr, ALGORITHMS))} or None."
        )
    return _run(
        mdp, ambiguity, None, None, algorithm, tolerance, max_iterations, progress, objective,
        nature, threads, device,
    )  # fmt: skip


def evaluate(
    mdp: MDP,
    policy: ArrayLike,
    ambiguity: AmbiguitySet | None = None,
    *,
    tolerance: float = 1e-6,
    max_iterations: int = 100_000,
    progress: OnSweep | None = None,
    objective: str = "max",
    nature: str = "worst",
    threads: int | None = None,
    horizon: int | None = None,
    final_reward: ArrayLike | None = None,
    device: str = "auto",
) -> Solution:
    """Bound the value of a fixed policy against nature's choice of model.

    Parameters
    ----------
    mdp, ambiguity, tolerance, max_iterations, progress, objective, nature, threads
        As for `solve`.
    policy
        ``(S,)`` action ids, or ``(S, A)`` probabilities for a randomised policy; with a horizon
        also a `StepPolicy` or ``(horizon, S)`` action ids.
    horizon, final_reward, device
        As for `solve`.

    Examples
    --------
    >>> import numpy as np
    >>> from surefoot import evaluate, riverswim
    >>> mdp = riverswim().mdp
    >>> always_left, always_right = np.zeros(6, dtype=int), np.ones(6, dtype=int)
    >>> evaluate(mdp, always_left).return_upper < evaluate(mdp, always_right).return_lower
    True
    """
    mdp = counted(mdp, horizon, final_reward)
    by_step = as_step_policy(mdp, policy)
    if by_step is not None:
        rows = check_policy(mdp, by_step.actions_at(by_step.horizon - 1))
        given: SolvedPolicy = by_step
    else:
        rows = check_policy(mdp, policy)
        array = np.array(policy)
        given = array.astype(np.int64) if array.ndim == 1 else array.astype(np.float64)
    return _run(
        mdp, ambiguity, rows, given, None, tolerance, max_iterations, progress, objective, nature,
        threads, device,
    )  # fmt: skip


def counted(mdp: MDP, horizon: int | None, final_reward: ArrayLike | None) -> MDP:
    """Return the model with the given horizon and final reward; unchanged if both are None."""
    if horizon is None and final_reward is None:
        return mdp
    return mdp.over(mdp.horizon if horizon is None else horizon, final_reward)


def _run(
    mdp: MDP,
    ambiguity: AmbiguitySet | None,
    rows: RowPolicy | None,
    given: SolvedPolicy | None,
    algorithm: str | None,
    tolerance: float,
    max_iterations: int,
    progress: OnSweep | None,
    objective: str,
    nature: str,
    threads: int | None,
    device: str,
) -> Solution:
    if not tolerance > 0:
        raise ValueError(f"tolerance={tolerance}; it must be a number above 0.")
    if not max_iterations >= 1:
        raise ValueError(f"max_iterations={max_iterations}; it must be at least 1.")
    if threads is not None and not threads >= 1:
        raise ValueError(f"threads={threads}; it must be at least 1, or None.")
    problem = make_problem(mdp, ambiguity, objective=objective, nature=nature)
    stopping = Stopping(tolerance=tolerance, max_iterations=max_iterations, progress=progress)
    if solves_on_device(device, mdp, ambiguity, algorithm):
        there = DeviceWork(the_gpu(), problem, rows, max_iterations)
        outcome = value_iteration(there, stopping)
        there.recheck()
        policy: SolvedPolicy = mdp.row_action[there.choice] if given is None else given
        return _report(
            mdp, ambiguity, objective, nature, policy, there, outcome, "value_iteration, gpu"
        )
    method = ALGORITHMS[algorithm] if algorithm is not None else default
    steps = steps_to_the_end(mdp, ambiguity, problem) if until_the_end(mdp) else None
    with Workspace(problem, rows, threads, steps) as work:
        if mdp.horizon is not None:
            outcome, found = _backward(mdp, work, stopping, given, objective)
        else:
            outcome, found = method(work, stopping), None
        policy = mdp.row_action[work.choice] if found is None else found
        policy = policy if given is None else given
        return _report(mdp, ambiguity, objective, nature, policy, work, outcome, algorithm)


def _backward(
    mdp: MDP, work: Workspace, stopping: Stopping, given: SolvedPolicy | None, objective: str
) -> tuple[Outcome, StepPolicy | None]:
    final = np.zeros(mdp.num_states) if mdp.final_reward is None else mdp.final_reward
    fixed = given if isinstance(given, StepPolicy) else None
    made = induce(work, mdp, final if objective == "max" else -final, stopping, fixed)
    # Adding a bound to the value rounds once more.
    last = 2 * EPSILON * (float(np.abs(work.image).max()) + made.below + made.above)
    bounds = Bracket(-made.below - last, made.above + last, made.below)
    reached = bounds.error_bound <= stopping.tolerance
    status = Status.CONVERGED if reached else Status.PRECISION_LIMIT
    return Outcome(bracket=bounds, status=status), made.policy


def _report(
    mdp: MDP,
    ambiguity: AmbiguitySet | None,
    objective: str,
    nature: str,
    policy: SolvedPolicy,
    work: Workspace | DeviceWork,
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
        algorithm=algorithm or ("default" if mdp.horizon is None else "backward induction"),
    )
