"""How much better the actions of a policy are than others, in the nominal model."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.model.mdp import MDP
from surefoot.model.policies import check_policy
from surefoot.model.step_policy import StepPolicy
from surefoot.solvers.solver import evaluate

Floats = NDArray[np.float64]


def rule_margins(mdp: MDP, policy: NDArray[Any]) -> Floats:
    """Return ``(R,)`` margins under a rule without steps; with a horizon, the smallest of all."""
    if mdp.horizon is None:
        return _margins(mdp, qualities(mdp, evaluate(mdp, policy).value))
    rows, share = check_policy(mdp, policy).rows.astype(np.int64), check_policy(mdp, policy).share
    smallest = np.full(mdp.num_rows, np.inf)
    value = np.zeros(mdp.num_states) if mdp.final_reward is None else mdp.final_reward
    for _ in range(mdp.horizon):
        quality = qualities(mdp, value)
        smallest = np.minimum(smallest, _margins(mdp, quality))
        value = np.zeros(mdp.num_states)
        np.add.at(value, mdp.row_state[rows], share * quality[rows])
    return smallest


def _margins(mdp: MDP, quality: Floats) -> Floats:
    """Return ``(R,)``: how much better each row is than the best other row of its state."""
    order = np.lexsort((-quality, mdp.row_state))
    first = mdp.state_start[:-1]
    second = np.minimum(first + 1, mdp.state_start[1:] - 1)
    best, runner_up = quality[order[first]], quality[order[second]]
    is_best = np.zeros(mdp.num_rows, dtype=np.bool_)
    is_best[order[first]] = True
    return quality - np.where(is_best, runner_up[mdp.row_state], best[mdp.row_state])


def range_margins(mdp: MDP, policy: StepPolicy, row: NDArray[np.int64]) -> Floats:
    """Return the smallest margin of each range over its steps, by one backward pass."""
    smallest = np.full(len(row), np.inf)
    value = np.zeros(mdp.num_states) if mdp.final_reward is None else mdp.final_reward
    now = np.zeros(mdp.num_states, dtype=np.int64)
    start, which = policy.switches
    for step in reversed(range(policy.horizon)):
        begun = which[start[step] : start[step + 1]]
        now[policy.range_state[begun]] = begun
        quality = qualities(mdp, value)
        smallest[now] = np.minimum(smallest[now], _margins(mdp, quality)[row[now]])
        value = quality[row[now]]
    return smallest


def qualities(mdp: MDP, value: Floats) -> Floats:
    """Return ``(R,)``: the value of taking each action once, given the values of successors."""
    reward = mdp.entry_reward
    gain = mdp.probability * (reward + mdp.discount * value[mdp.successor])
    return np.asarray(np.add.reduceat(gain, mdp.row_start[:-1]))
