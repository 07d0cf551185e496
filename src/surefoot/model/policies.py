"""Policies as people write them, and as the kernels read them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.model.checks import SUM_TOLERANCE
from surefoot.model.mdp import MDP


class RowPolicy(NamedTuple):
    """State ``s`` plays ``rows[start[s]:start[s+1]]`` with probabilities ``share``.

    Indices are unsigned, as all that kernels index with.
    """

    start: NDArray[np.uint64]
    rows: NDArray[np.uint64]
    share: NDArray[np.float64]


def deterministic(choice: NDArray[np.uint64]) -> RowPolicy:
    """Return the policy that plays one row per state; it follows ``choice`` as that changes."""
    start = np.arange(len(choice) + 1, dtype=np.uint64)
    return RowPolicy(start, choice, np.ones(len(choice)))


def check_policy(mdp: MDP, policy: ArrayLike) -> RowPolicy:
    """Turn ``(S,)`` action ids or ``(S, A)`` probabilities into rows, or say what is wrong."""
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
