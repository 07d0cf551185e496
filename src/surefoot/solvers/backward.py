"""Backward induction: values over a horizon, and the policy by step that attains them.

``v_t = max_a min_p p.(r + discount v_{t+1})`` from ``v_H``, the final reward, to ``v_0``. Each step
is one sweep of the robust operator. The error bounds need no contraction: each step multiplies the
error of ``v_{t+1}`` by at most the discount and adds its own rounding error and inner gap. Time is
linear in the number of steps. Memory holds two value vectors, and the policy only at the steps
where it changes.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.model.mdp import MDP
from surefoot.model.policies import rows_of_ranges
from surefoot.model.step_policy import StepPolicy
from surefoot.solvers.algorithms import Stopping
from surefoot.solvers.bounds import EPSILON
from surefoot.solvers.workspace import Workspace

GAP_SHARE = 0.25
"""The inner gaps of all steps together may use this share of the tolerance."""

Ints = NDArray[np.int64]


class Induced(NamedTuple):
    """Error bounds of ``work.image`` (both 0 or more), and the policy that was found.

    The value lies between ``work.image - below`` and ``work.image + above``.
    """

    below: float
    above: float
    policy: StepPolicy | None


def induce(
    work: Workspace, mdp: MDP, final: NDArray[np.float64], stopping: Stopping,
    fixed: StepPolicy | None,
) -> Induced:  # fmt: skip
    """Step from the last step back to the first and leave its value in ``work.image``.

    Evaluates ``fixed`` (a policy by step) if given, or the policy of ``work`` if that is fixed;
    otherwise finds the best policy and returns it.
    """
    horizon = mdp.horizon or 1
    discount, worst = work.problem.discount, work.problem.sign > 0
    work.v[:] = final
    work.accuracy = GAP_SHARE * stopping.tolerance / horizon
    below = above = 0.0
    rows = None if fixed is None else rows_of_ranges(mdp, fixed)
    found = Ranges(mdp, horizon)
    for step in reversed(range(horizon)):
        if fixed is not None and rows is not None:
            start, which = fixed.switches
            some = which[start[step] : start[step + 1]]
            work.policy.rows[fixed.range_state[some]] = rows[some]
        change, allowance = work.step()
        # A few epsilons more for the rounding of these sums themselves.
        below = (discount * below + allowance + (0.0 if worst else change.gap)) * (1 + 4 * EPSILON)
        above = (discount * above + allowance + (change.gap if worst else 0.0)) * (1 + 4 * EPSILON)
        if not work.fixed:
            found.note(step, work.choice)
        if stopping.progress is not None:
            stopping.progress(work.sweeps, 0.5 * (below + above))
        if step:
            work.accept_image(change.most)
    return Induced(below, above, None if work.fixed else found.policy())


class Ranges:
    """Collects the ranges of a policy, from the last step to the first; rows in, actions out."""

    def __init__(self, mdp: MDP, horizon: int) -> None:
        self.mdp, self.horizon = mdp, horizon
        self.played: NDArray[np.uint64] | Ints | None = None
        self.begun: list[tuple[Ints, Ints, int]] = []

    def note(self, step: int, choice: NDArray[np.uint64] | Ints) -> None:
        """Record the states whose choice at ``step`` differs from that at ``step + 1``.

        For these states, a range with the later choice begins at ``step + 1``.
        """
        if self.played is None:
            self.played = choice.copy()
            return
        state = np.flatnonzero(choice != self.played)
        if len(state):
            self.begun.append((state, self.played[state].astype(np.int64), step + 1))
            self.played[state] = choice[state]

    def policy(self) -> StepPolicy:
        """Return the policy; the choice at step 0 begins the first range of every state."""
        size = self.mdp.num_states
        first = np.zeros(size, np.uint64) if self.played is None else self.played
        parts = [(np.arange(size), first.astype(np.int64), 0), *self.begun]
        state, row = (np.concatenate([part[k] for part in parts]) for k in range(2))
        step = np.repeat([part[2] for part in parts], [len(part[0]) for part in parts])
        return StepPolicy.from_ranges(self.horizon, size, state, step, self.mdp.row_action[row])
