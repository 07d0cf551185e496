"""How often a policy visits the states of a model, and plays its rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from surefoot.model.mdp import MDP
from surefoot.model.policies import Changes, RowPolicy
from surefoot.solvers.steps import counted_steps, ends_of, until_the_end

SETTLED = 1e-6
"""Visits are summed until the remaining ones are at most this share of them."""
DENSE = 200
"""Models with at most this many states solve one dense system for their visits."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def transition_matrix(mdp: MDP, played: RowPolicy) -> Any:
    """Return the sparse ``(S, S)`` transition matrix of a policy."""
    rows = played.rows.astype(np.int64)
    sizes = np.diff(mdp.row_start)[rows]
    entries = mdp.entries_of(rows)
    chance = mdp.probability[entries] * np.repeat(played.share, sizes)
    start = np.concatenate(([0], np.cumsum(sizes)))[played.start]
    return sparse.csr_matrix((chance, mdp.successor[entries], start), shape=(mdp.num_states,) * 2)


def visits_of(mdp: MDP, played: RowPolicy) -> Floats:
    """Return ``(S,)``: the expected discounted visits of a policy to each state.

    Examples
    --------
    >>> from surefoot import riverswim
    >>> from surefoot.model.policies import check_policy
    >>> mdp = riverswim().mdp
    >>> round(float(visits_of(mdp, check_policy(mdp, [1] * 6)).sum()), 6)  # 1/(1 - discount)
    100.0
    """
    matrix = transition_matrix(mdp, played).T.tocsr()
    visits = np.array(mdp.initial, dtype=np.float64)
    step = visits.copy()
    if mdp.horizon is not None:
        for _ in range(mdp.horizon - 1):
            step = mdp.discount * (matrix @ step)
            visits += step
        return visits
    goes_on = ~ends_of(mdp) if until_the_end(mdp) else np.ones(mdp.num_states, dtype=np.bool_)
    if mdp.num_states <= DENSE and mdp.discount < 1.0:
        onward = mdp.discount * goes_on[:, None] * matrix.toarray()
        return np.asarray(np.linalg.solve(np.eye(mdp.num_states) - onward, visits))
    most = counted_steps(mdp)
    while step.sum() * most > SETTLED * visits.sum():
        step = mdp.discount * (matrix @ step) * goes_on
        visits += step
    return visits


def plays_of_rows(mdp: MDP, played: RowPolicy) -> Floats:
    """Return ``(R,)``: how often, discounted, a policy plays each row; also one by step.

    Examples
    --------
    >>> from surefoot import riverswim
    >>> from surefoot.model.policies import check_policy
    >>> mdp = riverswim().mdp
    >>> rule, by_step = check_policy(mdp, [1] * 6), check_policy(mdp.over(3), [[1] * 6] * 3)
    >>> plays_of_rows(mdp, rule).sum().round(6), plays_of_rows(mdp.over(3), by_step).sum().round(4)
    (np.float64(100.0), np.float64(2.9701))
    """
    rows = played.rows.astype(np.int64)
    sizes = np.diff(played.start).astype(np.int64)
    state = np.repeat(np.arange(mdp.num_states), sizes)
    if played.changes is None or mdp.horizon is None:
        plays = visits_of(mdp, played)[state] * played.share
    else:
        plays = _over_steps(mdp, played, played.changes, state, mdp.horizon)
    return np.asarray(np.bincount(rows, plays, mdp.num_rows))


def _over_steps(mdp: MDP, played: RowPolicy, changes: Changes, state: Ints, horizon: int) -> Floats:
    """Return how often each of the policy's rows is played over the steps of a horizon."""
    share = np.array(played.share)
    for step in reversed(range(horizon - 1)):
        _change(share, changes, step, forwards=False)
    rows = played.rows.astype(np.int64)
    entries = mdp.entries_of(rows)
    of_row = np.repeat(np.arange(len(rows)), np.diff(mdp.row_start)[rows])
    successor, chance = mdp.successor[entries], mdp.discount * mdp.probability[entries]
    visits, plays = np.array(mdp.initial, dtype=np.float64), np.zeros(len(rows))
    for step in range(horizon):
        now = visits[state] * share
        plays += now
        visits[:] = np.bincount(successor, chance * now[of_row], mdp.num_states)
        if step < horizon - 1:
            _change(share, changes, step, forwards=True)
    return plays


def _change(share: Floats, changes: Changes, step: int, *, forwards: bool) -> None:
    """Turn the shares of step ``step + 1`` into those of ``step``, or the other way round.

    Policies by step play one row in each state, so a change backwards is undone by its opposite.
    """
    some = slice(changes.start[step], changes.start[step + 1])
    share[changes.place[some]] = 1.0 - changes.to[some] if forwards else changes.to[some]
