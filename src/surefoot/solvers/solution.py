"""What a solver returns: a policy, its value, error bounds, and how the solve ended."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from surefoot._display import MOST_ROWS, Grid, Shown, label_text
from surefoot._rounding import bracket_text, column_texts, near_text
from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.model.mdp import MDP
from surefoot.model.step_policy import StepPolicy
from surefoot.solvers.problem import make_problem
from surefoot.solvers.sweep_kernels import sweeps_of

SolvedPolicy = NDArray[np.int64] | NDArray[np.float64] | StepPolicy
"""One action per state, action probabilities per state, or with a horizon a policy by step."""


class Status(Enum):
    """How a solve ended; the text is the message for the user.

    Examples
    --------
    >>> from surefoot import riverswim, solve
    >>> solve(riverswim().mdp).status.message
    'converged: the error bound is within the tolerance.'
    """

    CONVERGED = "converged: the error bound is within the tolerance."
    ITERATION_LIMIT = (
        "stopped at max_iterations before reaching the tolerance; the bounds hold but are wider. "
        "Raise max_iterations."
    )
    PRECISION_LIMIT = (
        "stopped at the limit of double precision before reaching the tolerance; the bounds hold "
        "and cannot be made tighter. Use a larger tolerance."
    )

    @property
    def message(self) -> str:
        """The text for the user."""
        return str(self.value)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Solution(Shown):
    """A policy, its value, and bounds that hold whatever the status.

    Attributes
    ----------
    policy
        ``(S,)`` action ids (or the randomised policy that was evaluated); with a horizon a
        `StepPolicy`.
    value
        ``(S,)``; the middle of ``lower`` and ``upper``.
    lower, upper
        ``(S,)``; certified bounds on the optimal robust value (on the policy's robust value when a
        policy was evaluated); with a horizon, at the first step. The cautious bound, ``lower`` for
        rewards and ``upper`` for costs, also holds for the returned policy itself.
    return_lower, return_upper
        The same for the expected return from the initial distribution.
    error_bound
        Half the largest distance between ``upper`` and ``lower``, in units of value.
    iterations
        Sweeps over all states.
    status
        How the solve ended; ``status.message`` says it in words.

    Examples
    --------
    >>> from surefoot import riverswim, solve
    >>> solution = solve(riverswim().mdp)
    >>> solution.policy.tolist(), solution.converged
    ([1, 1, 1, 1, 1, 1], True)
    >>> bool(solution.return_lower <= solution.return_upper)
    True
    """

    mdp: MDP
    ambiguity: AmbiguitySet | None
    objective: str
    nature: str
    policy: SolvedPolicy
    value: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    return_lower: float
    return_upper: float
    error_bound: float
    iterations: int
    status: Status
    algorithm: str

    @property
    def converged(self) -> bool:
        """Whether the tolerance was reached."""
        return self.status is Status.CONVERGED

    def nature_model(self) -> MDP:
        """Return the model whose rows are nature's choices at this solution's value.

        Examples
        --------
        >>> from surefoot import AmbiguitySet, evaluate, riverswim, solve
        >>> mdp = riverswim().mdp
        >>> robust = solve(mdp, AmbiguitySet.from_arrays(mdp, norm="l1", budget=0.1))
        >>> check = evaluate(robust.nature_model(), robust.policy)
        >>> bool(abs(check.return_lower - robust.return_lower) < 1e-4)
        True
        """
        mdp = self.mdp
        if mdp.horizon is not None:
            raise ValueError(
                "with a horizon nature chooses again at every step: no single model holds its "
                "choices."
            )
        problem = make_problem(mdp, self.ambiguity, objective=self.objective, nature=self.nature)
        chosen = np.empty(mdp.num_entries)
        v = self.value if self.objective == "max" else -self.value
        sweeps_of(problem).nature_rows(
            problem,
            v,
            np.arange(mdp.num_rows, dtype=np.uint64),
            problem.row_start[:-1],
            chosen,
            np.empty((4, problem.longest)),
        )
        return replace(mdp, probability=np.clip(chosen, 0.0, 1.0))

    def _facts(self) -> list[tuple[str, str]]:
        known = "the model alone" if self.ambiguity is None else repr(self.ambiguity)
        return [
            ("objective", f"{self.objective}, {self.nature} case of {known}"),
            ("error bound", f"{self.error_bound:.1e}, after {self.iterations:,} sweeps"),
            ("status", self.status.message),
        ]

    def _grid(self) -> Grid:
        mdp, shown = self.mdp, range(min(self.mdp.num_states, MOST_ROWS))
        values = column_texts([float(v) for v in self.value[: len(shown)]])
        rows = [(label_text(mdp.state_labels, s), self._action(s), values[s]) for s in shown]
        return Grid(head=("state", "action", "value"), rows=rows, total=mdp.num_states)

    def _action(self, state: int) -> str:
        labels = self.mdp.action_labels
        if isinstance(self.policy, StepPolicy):
            own = slice(*self.policy.state_start[state : state + 2])
            done = [label_text(labels, int(a)) for a in self.policy.action[own]]
            begun = self.policy.first_step[own]
            later = [f"{name} from step {step}" for name, step in zip(done, begun, strict=True)]
            return ", ".join([done[0], *later[1:]])
        if self.policy.ndim == 1:
            return label_text(labels, int(self.policy[state]))
        share = self.policy[state]
        return ", ".join(
            f"{label_text(labels, int(a))} {near_text(100 * share[a], 3)}%"
            for a in np.flatnonzero(share > 0)
        )

    def __repr__(self) -> str:
        low, high = bracket_text(self.return_lower, self.return_upper)
        return (
            f"Solution(return in [{low}, {high}], error bound {self.error_bound:.2g}, "
            f"{self.iterations} sweeps, {self.status.name})"
        )
