"""Policies as users write them, and as the kernels read them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.model.checks import SUM_TOLERANCE
from surefoot.model.mdp import MDP
from surefoot.model.step_policy import StepPolicy

AnyPolicy = NDArray[Any] | StepPolicy
"""``(S,)`` action ids, ``(S, A)`` probabilities, or a policy that depends on the step."""


class Changes(NamedTuple):
    """How a policy's shares change from step to step, in the order of backward induction.

    From step ``t + 1`` back to step ``t``, the changes ``start[t]:start[t+1]`` set
    ``share[place]`` to ``to``.
    """

    start: NDArray[np.int64]
    place: NDArray[np.int64]
    to: NDArray[np.float64]


class RowPolicy(NamedTuple):
    """State ``s`` plays ``rows[start[s]:start[s+1]]`` with probabilities ``share``.

    Indices are unsigned, as in all kernels. For a policy that depends on the step, ``rows`` are
    all rows it plays at any step, ``share`` holds the last step, and ``changes`` lead from there
    back to the first.
    """

    start: NDArray[np.uint64]
    rows: NDArray[np.uint64]
    share: NDArray[np.float64]
    changes: Changes | None = None


def deterministic(choice: NDArray[np.uint64]) -> RowPolicy:
    """Return the policy that plays row ``choice[s]`` in state ``s``; ``choice`` is not copied."""
    start = np.arange(len(choice) + 1, dtype=np.uint64)
    return RowPolicy(start, choice, np.ones(len(choice)))


def check_policy(mdp: MDP, policy: ArrayLike) -> RowPolicy:
    """Turn ``(S,)`` action ids or ``(S, A)`` probabilities into rows, or raise an error.

    With a horizon, the policy may also be a `StepPolicy` or ``(horizon, S)`` action ids.
    """
    by_step = as_step_policy(mdp, policy)
    if by_step is not None:
        return _rows_by_step(mdp, by_step)
    try:
        given = np.asarray(policy)
    except ValueError as problem:
        raise ValueError(f"policy must be an array of numbers: {problem}") from None
    if given.ndim == 1:
        return deterministic(_rows_of_actions(mdp, given))
    if given.shape != (mdp.num_states, mdp.num_actions):
        raise ValueError(
            f"policy has shape {given.shape}; give ({mdp.num_states},) action ids or "
            f"({mdp.num_states}, {mdp.num_actions}) probabilities."
        )
    share = given.astype(np.float64)
    bad = np.argwhere(~((share >= 0) & (share <= 1 + SUM_TOLERANCE)))
    if len(bad):
        s, a = bad[0]
        raise ValueError(
            f"policy: state {mdp.state_name(s)} plays action {mdp.action_name(a)} with "
            f"probability {share[s, a]}; it must lie in [0, 1]."
        )
    total = share.sum(axis=1)
    bad = np.argwhere(~(np.abs(total - 1) <= SUM_TOLERANCE * mdp.num_actions))
    if len(bad):
        s = bad[0, 0]
        raise ValueError(
            f"policy: probabilities of state {mdp.state_name(s)} sum to {total[s]:.9g}; they must "
            "sum to 1."
        )
    _check_available(mdp, share > 0)
    chance = share[mdp.row_state, mdp.row_action] / total[mdp.row_state]
    rows = np.flatnonzero(chance > 0)
    start = np.searchsorted(mdp.row_state[rows], np.arange(mdp.num_states + 1))
    return RowPolicy(start.astype(np.uint64), rows.astype(np.uint64), chance[rows])


def row_shares(mdp: MDP, policy: ArrayLike) -> NDArray[np.float64]:
    """Return ``(R,)``: the probability with which a policy plays each row in its state.

    For a policy that depends on the step, these are the probabilities of the last step.

    Examples
    --------
    >>> from surefoot import riverswim
    >>> row_shares(riverswim().mdp, [1, 0, 0, 0, 0, 0])[:4].tolist()
    [0.0, 1.0, 1.0, 0.0]
    """
    played = check_policy(mdp, policy)
    share = np.zeros(mdp.num_rows)
    share[played.rows.astype(np.int64)] = played.share
    return share


def as_step_policy(mdp: MDP, policy: Any) -> StepPolicy | None:
    """Return a policy that depends on the step as a `StepPolicy`; None for any other policy.

    An integer array of shape ``(horizon, S)`` is read as action ids by step.
    """
    if isinstance(policy, StepPolicy):
        if policy.shape != (mdp.horizon, mdp.num_states):
            steps = "no horizon" if mdp.horizon is None else f"{mdp.horizon} steps"
            raise ValueError(
                f"policy is for {policy.horizon} steps and {policy.num_states} states; the model "
                f"has {steps} and {mdp.num_states} states."
            )
        return policy
    if mdp.horizon is None or np.ndim(policy) != 2:
        return None
    given = np.asarray(policy)
    if given.dtype.kind not in "iu" or given.shape != (mdp.horizon, mdp.num_states):
        return None
    return StepPolicy.from_array(given)


def action_at(policy: AnyPolicy, state: int, step: int = 0) -> int:
    """Return the action id of a policy of any kind at a state and step.

    The step matters only for a `StepPolicy`; for a randomised policy this is the most probable
    action.

    Examples
    --------
    >>> action_at(np.array([0, 1]), 1), action_at(StepPolicy.from_array([[0, 1], [0, 0]]), 1, 1)
    (1, 0)
    """
    if isinstance(policy, StepPolicy):
        return policy.action_at(state, step)
    return int(policy[state] if policy.ndim == 1 else np.argmax(policy[state]))


def as_given(mdp: MDP, policy: Any) -> AnyPolicy:
    """Return a policy as it is stored: a `StepPolicy` if it depends on the step, else an array."""
    by_step = as_step_policy(mdp, policy)
    return np.array(policy) if by_step is None else by_step


def _rows_by_step(mdp: MDP, policy: StepPolicy) -> RowPolicy:
    row = rows_of_ranges(mdp, policy)
    rows, place = np.unique(row, return_inverse=True)
    share = np.zeros(len(rows))
    share[place[policy.last_step == policy.horizon - 1]] = 1.0
    # Backwards in time, a range is entered at its last step: the row of the next range is dropped.
    begun = np.flatnonzero(policy.last_step < policy.horizon - 1)
    step = policy.last_step[begun]
    order = np.argsort(step, kind="stable")
    given_up, taken = place[begun + 1][order], place[begun][order]
    start = np.searchsorted(step[order], np.arange(policy.horizon + 1))
    changes = Changes(
        start=2 * start.astype(np.int64),
        place=np.stack((given_up, taken), axis=1).ravel().astype(np.int64),
        to=np.tile([0.0, 1.0], len(order)),
    )
    states = np.searchsorted(mdp.row_state[rows], np.arange(mdp.num_states + 1))
    return RowPolicy(states.astype(np.uint64), rows.astype(np.uint64), share, changes)


def rows_of_ranges(mdp: MDP, policy: StepPolicy) -> NDArray[np.int64]:
    """Return the row of every range of a policy that depends on the step, or raise an error."""
    bad = np.flatnonzero((policy.action < 0) | (policy.action >= mdp.num_actions))
    if len(bad):
        raise ValueError(
            f"policy: state {mdp.state_name(policy.range_state[bad[0]])} plays unknown action "
            f"{policy.action[bad[0]]}; ids go from 0 to {mdp.num_actions - 1}."
        )
    key = mdp.row_state * mdp.num_actions + mdp.row_action
    wanted = policy.range_state * mdp.num_actions + policy.action
    row = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    off = np.flatnonzero(key[row] != wanted)
    if len(off):
        raise ValueError(
            f"policy: action {mdp.action_name(policy.action[off[0]])} is not available in state "
            f"{mdp.state_name(policy.range_state[off[0]])} ({len(off)} such ranges of steps)."
        )
    return np.asarray(row, dtype=np.int64)


def _rows_of_actions(mdp: MDP, actions: NDArray[np.generic]) -> NDArray[np.uint64]:
    if actions.shape != (mdp.num_states,) or actions.dtype.kind not in "iu":
        raise ValueError(
            f"policy has shape {actions.shape} and type {actions.dtype}; a deterministic policy is "
            f"({mdp.num_states},) whole action ids."
        )
    ids = actions.astype(np.int64)
    bad = np.flatnonzero((ids < 0) | (ids >= mdp.num_actions))
    if len(bad):
        raise ValueError(
            f"policy: state {mdp.state_name(bad[0])} plays unknown action {ids[bad[0]]}; ids go "
            f"from 0 to {mdp.num_actions - 1}."
        )
    played = np.zeros((mdp.num_states, mdp.num_actions), dtype=np.bool_)
    played[np.arange(mdp.num_states), ids] = True
    _check_available(mdp, played)
    key = mdp.row_state * mdp.num_actions + mdp.row_action
    rows = np.searchsorted(key, np.arange(mdp.num_states) * mdp.num_actions + ids)
    return rows.astype(np.uint64)


def _check_available(mdp: MDP, played: NDArray[np.bool_]) -> None:
    bad = np.argwhere(played & ~mdp.available)
    if len(bad):
        s, a = bad[0]
        raise ValueError(
            f"policy: action {mdp.action_name(a)} is not available in state {mdp.state_name(s)} "
            f"({len(bad)} such pairs)."
        )
