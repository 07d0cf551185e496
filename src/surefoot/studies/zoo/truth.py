"""The true returns of policies in a world, by linear solves on its true model.

A policy is given by ``(S, A)`` shares of actions; a state whose shares are all zero is *open*. In
an open state the policy is assumed to play the worst action, so its return is never overstated.
"""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import splu

from surefoot.data.counts import Counts
from surefoot.model.mdp import MDP
from surefoot.model.policies import AnyPolicy
from surefoot.model.step_policy import StepPolicy
from surefoot.studies.zoo.worlds import Floats, Ints, World

DENSE = 150
"""Up to this many states a dense solve is faster."""
MOST_ROUNDS = 1000
TIE = 1e-9
"""Actions whose values differ by less than this share count as ties."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice:
    """A policy in terms of the labels of the log it was learned from.

    Attributes
    ----------
    states, actions
        The labels of the model that the policy belongs to.
    policy
        ``(S,)`` action ids or ``(S, A)`` probabilities of that model, or a policy by step.
    known
        ``(S,)``: states in which the policy's action counts; None: all. States that exist only in
        the model (terminal, unseen) need no flag: their labels are not in the world.
    """

    states: tuple[Hashable, ...]
    actions: tuple[Hashable, ...]
    policy: AnyPolicy
    known: NDArray[np.bool_] | None = None


def choice_of(policy: AnyPolicy, counts: Counts, mdp: MDP) -> Choice:
    """Return a policy in terms of its log's labels; it has no action where the log has none."""
    known = np.zeros(mdp.num_states, dtype=np.bool_)
    known[counts.row_state[counts.visits > 0]] = True
    return Choice(
        states=mdp.state_labels or (), actions=mdp.action_labels or (), policy=policy, known=known
    )


class TrueReturn(NamedTuple):
    """The return of a policy, and the share of discounted time it spends in open states."""

    total: float
    open_share: float


def shares_of(world: World, choice: Choice) -> Floats:
    """Return ``(S, A)``: the policy's shares in the states of the world; zeros in open states.

    Examples
    --------
    >>> from surefoot.studies.zoo.catalogue import make_world
    >>> world = make_world("riverswim")
    >>> choice = Choice(states=(5, 0), actions=("right",), policy=np.array([0, 0]))
    >>> shares_of(world, choice)[[0, 1, 5]].tolist()
    [[0.0, 1.0], [0.0, 0.0], [0.0, 1.0]]
    """
    policy = np.asarray(choice.policy)
    if policy.ndim == 1:
        policy = np.eye(len(choice.actions))[policy.astype(np.int64)]
    action_of = {_plain(label): i for i, label in enumerate(world.actions)}
    known_actions = [i for i, label in enumerate(choice.actions) if _plain(label) in action_of]
    targets = [action_of[_plain(choice.actions[i])] for i in known_actions]
    places: dict[Hashable, list[int]] = {}
    for state, label in enumerate(world.labels):
        places.setdefault(_plain(label), []).append(state)
    shares = np.zeros((world.mdp.num_states, world.mdp.num_actions))
    told = np.zeros(world.mdp.num_states, dtype=np.bool_)
    for i, label in enumerate(choice.states):
        if choice.known is None or choice.known[i]:
            for state in places.get(_plain(label), ()):
                shares[state, targets] = policy[i, known_actions]
                told[state] = True
    if shares[~world.mdp.available].any() or not np.allclose(shares.sum(axis=1), told, atol=1e-9):
        raise ValueError(
            f"the policy plays actions that the world {world.name!r} does not offer, or its "
            "probabilities do not sum to 1."
        )
    return shares


def _plain(label: Hashable) -> Hashable:
    """Return a label as a plain Python object: not every NumPy scalar equals its counterpart."""
    return label.item() if isinstance(label, np.generic) else label


def earned(world: World, shares: Floats) -> TrueReturn:
    """Return the expected discounted return of a policy, without end.

    Examples
    --------
    >>> from surefoot.studies.zoo.catalogue import make_world
    >>> world = make_world("riverswim")
    >>> right = np.tile([0.0, 1.0], (6, 1))
    >>> round(earned(world, right).total, 1) == round(optimum(world), 1)
    True
    """
    is_open = _open(world, shares)
    weights = weights_of(world, shares)
    rows = _respond(world, weights, is_open, best=False)
    value = _solve(world, rows, world.gain)
    visits = _solve(world, rows, None)
    share = (1 - world.mdp.discount) * float(visits @ is_open)
    return TrueReturn(float(world.mdp.initial @ value), share)


def earned_in(world: World, shares: Floats, steps: int) -> float:
    """Return the expected discounted return of the first ``steps`` steps of an episode."""
    is_open = _open(world, shares)
    weights = weights_of(world, shares)
    value = np.zeros(world.mdp.num_states)
    for _ in range(steps):
        quality = world.gain + world.mdp.discount * (world.transitions @ value)
        worst = np.minimum.reduceat(quality, world.mdp.state_start[:-1])
        value = np.where(is_open, worst, weights @ quality)
    return float(world.mdp.initial @ value)


def earned_by(world: World, choice: Choice, steps: int) -> float:
    """Return `earned_in` for a policy that may depend on the step."""
    policy, mdp = choice.policy, world.mdp
    value, shares = np.zeros(mdp.num_states), np.empty(0)
    before: NDArray[np.int64] | None = None
    for step in reversed(range(steps)):
        now = policy.actions_at(step) if isinstance(policy, StepPolicy) else None
        if before is None or not (now is None or np.array_equal(now, before)):
            shares = shares_of(world, choice if now is None else replace(choice, policy=now))
        before = np.empty(0, np.int64) if now is None else now
        quality = world.gain + mdp.discount * (world.transitions @ value)
        worst = np.minimum.reduceat(quality, mdp.state_start[:-1])
        value = np.where(_open(world, shares), worst, weights_of(world, shares) @ quality)
    return float(mdp.initial @ value)


def optimum_in(world: World, steps: int) -> float:
    """Return the best expected return over a number of steps, of any policy by step."""
    value = np.zeros(world.mdp.num_states)
    for _ in range(steps):
        quality = world.gain + world.mdp.discount * (world.transitions @ value)
        value = np.maximum.reduceat(quality, world.mdp.state_start[:-1])
    return float(world.mdp.initial @ value)


def optimum(world: World) -> float:
    """Return the return of the best policy that can tell all states apart."""
    return float(world.mdp.initial @ best_values(world))


def best_values(world: World) -> Floats:
    """Return ``(S,)``: the value of every state under the best policy."""
    return _solve(world, _best_rows(world), world.gain)


def optimal_actions(world: World) -> Ints:
    """Return ``(S,)``: an optimal action in every state, the first of those that tie."""
    mdp = world.mdp
    quality = world.gain + mdp.discount * (world.transitions @ best_values(world))
    highest = np.maximum.reduceat(quality, mdp.state_start[:-1])
    # Ties are common (every sixth state of the clinic), but computed values differ by rounding.
    good = np.flatnonzero(quality >= (highest - TIE * (1.0 + np.abs(highest)))[mdp.row_state])
    return mdp.row_action[good[np.searchsorted(good, mdp.state_start[:-1])]]


def weights_of(world: World, shares: Floats) -> sparse.csr_array:
    """Return ``(S, R)``: the probability that each state plays each row."""
    mdp = world.mdp
    weight = shares[mdp.row_state, mdp.row_action]
    return sparse.csr_array(
        (weight, np.arange(mdp.num_rows), mdp.state_start), shape=(mdp.num_states, mdp.num_rows)
    )


def _open(world: World, shares: Floats) -> NDArray[np.bool_]:
    return np.asarray((shares.sum(axis=1) < 0.5) & ~world.terminal)


def _best_rows(world: World) -> sparse.csr_array:
    nothing = sparse.csr_array((world.mdp.num_states, world.mdp.num_rows))
    return _respond(world, nothing, np.ones(world.mdp.num_states, dtype=np.bool_), best=True)


def _respond(
    world: World, weights: sparse.csr_array, free: NDArray[np.bool_], *, best: bool
) -> sparse.csr_array:
    """Return weights in which free states play their best (or worst) row, the others unchanged.

    Uses Howard's policy iteration. Terminal states are absorbing without reward whatever they play,
    so they need no weights.
    """
    mdp = world.mdp
    sign = 1.0 if best else -1.0
    first = mdp.state_start[:-1]
    chosen = first.copy()
    for _ in range(MOST_ROUNDS):
        played = _with_rows(world, weights, free, chosen)
        value = _solve(world, played, world.gain)
        quality = sign * (world.gain + mdp.discount * (world.transitions @ value))
        highest = np.maximum.reduceat(quality, first)
        better = free & (highest > quality[chosen] + 1e-10 * (1.0 + np.abs(highest)))
        if not better.any():
            return played
        winners = np.flatnonzero(quality == highest[mdp.row_state])
        chosen = np.where(better, winners[np.searchsorted(winners, first)], chosen)
    raise ArithmeticError(f"policy iteration did not settle in the world {world.name!r}.")


def _with_rows(
    world: World, weights: sparse.csr_array, free: NDArray[np.bool_], chosen: Ints
) -> sparse.csr_array:
    """Return the weights with free and terminal states playing their chosen row."""
    at = np.flatnonzero(free | world.terminal)
    size = weights.shape
    single = sparse.csr_array((np.ones(len(at)), (at, chosen[at])), shape=size)
    if len(at) == size[0]:
        return single
    kept = np.where(free | world.terminal, 0.0, 1.0)
    return sparse.csr_array(sparse.diags_array(kept) @ weights + single)


def _solve(world: World, weights: sparse.csr_array, gain: Floats | None) -> Floats:
    """Return the values of a policy, or with ``gain=None`` its discounted visits from the start."""
    mdp = world.mdp
    system = sparse.eye_array(mdp.num_states) - mdp.discount * (weights @ world.transitions)
    right = mdp.initial if gain is None else weights @ gain
    if mdp.num_states <= DENSE:
        matrix = system.toarray()
        return np.linalg.solve(matrix.T if gain is None else matrix, right)
    matrix = system.tocsc()
    return np.asarray(splu(matrix.T.tocsc() if gain is None else matrix).solve(right))
