"""What a solver returns, with its honesty built in."""

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.model.mdp import MDP


class Status(Enum):
    """How a solve ended; the text is the message for the user."""

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
class Solution:
    """A policy, its value, and bounds that hold whatever the status.

    Attributes
    ----------
    policy
        ``(S,)`` action ids (or the randomised policy that was evaluated).
    value
        ``(S,)``; the middle of ``lower`` and ``upper``.
    lower, upper
        ``(S,)``; certified bounds on the optimal robust value (on the policy's robust value when a
        policy was evaluated). What the policy is promised, ``lower`` for rewards and ``upper`` for
        costs, also holds for the returned policy itself.
    return_lower, return_upper
        The same for the expected return from the initial distribution.
    error_bound
        Half the largest distance between ``upper`` and ``lower``, in units of value.
    iterations
        Sweeps over all states.
    status
        How it ended; ``status.message`` says it in words.
    """

    mdp: MDP
    ambiguity: AmbiguitySet | None
    objective: str
    nature: str
    policy: NDArray[np.int64] | NDArray[np.float64]
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
        """Return the model in which every row holds nature's choice at this solution's value.

        Examples
        --------
        >>> from surefoot import AmbiguitySet, evaluate, riverswim, solve
        >>> mdp = riverswim().mdp
        >>> robust = solve(mdp, AmbiguitySet.from_arrays(mdp, norm="l1", budget=0.1))
        >>> check = evaluate(robust.nature_model(), robust.policy)
        >>> bool(abs(check.return_lower - robust.return_lower) < 1e-4)
        True
        """
        from surefoot.solvers.nature import nature_model

        return nature_model(self)

    def __repr__(self) -> str:
        return (
            f"Solution(return in [{self.return_lower:.6g}, {self.return_upper:.6g}], "
            f"error bound {self.error_bound:.2g}, {self.iterations} sweeps, {self.status.name})"
        )
