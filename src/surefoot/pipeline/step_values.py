"""A policy's values of an action, averaged over the steps at which the policy takes it.

Over a horizon the value of a state depends on how many steps are left: ``q_t(s, a)`` and
``v_{t+1}(s')``. A transition of a log has the same distribution at every step, so what it says
about the promise is an average over the steps t at which the policy takes a in s, with weights
fixed by the model: the discounted probability that the policy is in s at step t.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.model.mdp import MDP
from surefoot.model.policies import AnyPolicy
from surefoot.model.step_policy import StepPolicy

NEVER = 1e-12
"""The weight of steps at which the model never reaches a state."""

Floats = NDArray[np.float64]


class StepValues(NamedTuple):
    """The values of a policy's steps.

    Attributes
    ----------
    quality
        ``(R,)``: the action value of each row.
    after
        ``(n,)``: the value of the state that each kind of step led to.
    best
        ``(R,)``: the highest value of a successor of each row.
    expected
        The policy's return by the model.
    """

    quality: Floats
    after: Floats
    best: Floats
    expected: float


def averaged(
    mdp: MDP, policy: AnyPolicy, row: NDArray[np.int64], following: Callable[[Floats], Floats]
) -> StepValues:
    """Return a policy's values over a horizon, averaged over the steps.

    Parameters
    ----------
    row
        ``(n,)``: the row of each kind of step.
    following
        From values of all states ``(S,)`` to the values ``(n,)`` after each kind of step.

    Notes
    -----
    One pass forward for the visits, of which every ``sqrt(H)``-th vector is kept, and one backward
    for the values: O(H E) time, O(sqrt(H) S + E) memory.
    """
    horizon = mdp.horizon or 1
    value = np.zeros(mdp.num_states) if mdp.final_reward is None else np.array(mdp.final_reward)
    weight, quality = np.zeros(mdp.num_rows), np.zeros(mdp.num_rows)
    after, reached = np.zeros(len(row)), np.zeros(mdp.num_entries)
    for step, visits in _visits_backward(mdp, policy, horizon):
        share = played(mdp, policy, step)
        now = share * (mdp.discount**step * visits[mdp.row_state] + NEVER)
        own = np.add.reduceat(
            mdp.probability * (mdp.entry_reward + mdp.discount * value[mdp.successor]),
            mdp.row_start[:-1],
        )
        weight += now
        quality += now * own
        after += now[row] * following(value)
        reached += now[mdp.entry_row] * value[mdp.successor]
        value = _summed(mdp.row_state, share * own, mdp.num_states)
    whole = np.where(weight > 0, weight, 1.0)
    best = np.maximum.reduceat(reached, mdp.row_start[:-1])
    return StepValues(quality / whole, after / whole[row], best / whole, float(mdp.initial @ value))


def played(mdp: MDP, policy: AnyPolicy, step: int) -> Floats:
    """Return ``(R,)``: the probability that the policy takes each row at a step, in its state."""
    now = policy.actions_at(step) if isinstance(policy, StepPolicy) else np.asarray(policy)
    if now.ndim == 2:
        return np.asarray(now[mdp.row_state, mdp.row_action], dtype=np.float64)
    return np.asarray(now[mdp.row_state] == mdp.row_action, dtype=np.float64)


def _visits_backward(mdp: MDP, policy: AnyPolicy, horizon: int) -> Iterator[tuple[int, Floats]]:
    """Yield each step, the last one first, with the probability of each state at that step."""
    size = int(np.ceil(np.sqrt(horizon)))
    kept, visits = [], np.array(mdp.initial, dtype=np.float64)
    for step in range(horizon):
        if step % size == 0:
            kept.append(visits)
        visits = _moved(mdp, policy, step, visits)
    for block in reversed(range(len(kept))):
        first = block * size
        some = [kept[block]]
        for step in range(first, min(first + size, horizon) - 1):
            some.append(_moved(mdp, policy, step, some[-1]))
        yield from ((first + i, some[i]) for i in reversed(range(len(some))))


def _moved(mdp: MDP, policy: AnyPolicy, step: int, visits: Floats) -> Floats:
    flow = played(mdp, policy, step) * visits[mdp.row_state]
    return _summed(mdp.successor, flow[mdp.entry_row] * mdp.probability, mdp.num_states)


def _summed(place: NDArray[Any], weight: Floats, size: int) -> Floats:
    return np.asarray(np.bincount(place, weight, size), dtype=np.float64)
