"""How many steps a model counts: the return of a policy that earns 1 at every step.

With discount 1 and no horizon this is the expected number of steps until an end, and it is finite
only if every policy reaches an end. That is checked in two parts. On the graph of possible
successors, no policy may stay away from the ends forever; otherwise an error names the states where
one can. Then numbers ``w >= 1 + max_a P_a w`` bound the expected steps of every policy; they
replace the ``1/(1 - discount)`` of discounted models.
"""

from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from surefoot.model.mdp import MDP

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

SETTLED = 0.1
"""Sweeps stop at changes of at most this: the bound on steps is then at most a ninth too large."""
MOST_SWEEPS = 100_000
NAMED = 3
"""How many states an error message names."""

_expected: WeakKeyDictionary[MDP, Floats] = WeakKeyDictionary()


def counted_steps(mdp: MDP) -> float:
    """Return the largest expected ``sum of discount^t`` over all steps, of any policy.

    Examples
    --------
    >>> from surefoot.domains import riverswim
    >>> mdp = riverswim().mdp
    >>> round(counted_steps(mdp)), counted_steps(mdp.over(1)), round(counted_steps(mdp.over(10)), 2)
    (100, 1.0, 9.56)
    """
    discount, horizon = mdp.discount, mdp.horizon
    if until_the_end(mdp):
        return max(1.0, float(expected_steps(mdp).max()))
    if horizon is None:
        return 1.0 / (1.0 - discount)
    if discount == 1.0:
        return float(horizon)
    return float(-np.expm1(horizon * np.log(discount)) / (1.0 - discount)) if discount else 1.0


def largest_value(mdp: MDP) -> float:
    """Return a bound on the absolute value of every state under every policy."""
    final = 0.0 if mdp.final_reward is None else float(np.abs(mdp.final_reward).max())
    return float(np.abs(mdp.reward).max()) * counted_steps(mdp) + final


def until_the_end(mdp: MDP) -> bool:
    """Return whether rewards count until an end: discount 1 and no horizon."""
    return mdp.discount == 1.0 and mdp.horizon is None


def ends_of(mdp: MDP) -> Flags:
    """Return ``(S,)``: whether every action stays in the state for sure, without reward."""
    lengths = np.diff(mdp.row_start)
    stays = (lengths == 1) & (mdp.successor[mdp.row_start[:-1]] == mdp.row_state)
    if mdp.reward_per_entry:
        paid = np.add.reduceat((mdp.reward != 0).astype(np.int64), mdp.row_start[:-1]) > 0
    else:
        paid = mdp.reward != 0
    ended: Flags = np.logical_and.reduceat(stays & ~paid, mdp.state_start[:-1])
    return ended


def check_ends(mdp: MDP, sure: Flags) -> Flags:
    """Return the ends, or refuse a model in which a policy can stay away from them forever.

    ``sure`` is ``(E,)``: whether the entry is sure to have a probability above 0.
    """
    ends = ends_of(mdp)
    left = endless_states(mdp, sure)
    if left.any():
        _refuse(mdp, np.flatnonzero(left), ends)
    return ends


def endless_states(mdp: MDP, sure: Flags) -> Flags:
    """Return ``(S,)``: states in which some policy may never reach an end.

    Starts from all states that are not ends and removes those where every action has a sure
    successor outside the remaining states, until nothing changes. In the states that remain, a
    policy can choose actions that never leave them.
    """
    left = ~ends_of(mdp)
    while left.any():
        may_leave = np.add.reduceat((sure & ~left[mdp.successor]).astype(int), mdp.row_start[:-1])
        stays: Flags = np.logical_or.reduceat(may_leave == 0, mdp.state_start[:-1])
        if np.array_equal(left & stays, left):
            break
        left &= stays
    return left


def _refuse(mdp: MDP, states: NDArray[np.int64], ends: Flags) -> None:
    named = ", ".join(mdp.state_name(int(s)) for s in states[:NAMED])
    more = f" and {len(states) - NAMED} more" if len(states) > NAMED else ""
    plural, verb = ("s", "") if len(states) > 1 else ("", "s")
    none = "" if ends.any() else " The model has no end: no absorbing state without reward."
    raise ValueError(
        f"discount=1 without a horizon counts until the end, but state{plural} {named}{more} "
        f"lead{verb} to no end under some policies: actions can be chosen that never leave "
        f"{'them' if len(states) > 1 else 'it'}.{none} Give horizon= (the most steps that count), "
        "or a discount below 1."
    )


def expected_steps(mdp: MDP) -> Floats:
    """Return ``(S,)``: upper bounds on the expected steps to an end, for any policy; 0 at ends.

    Cached for as long as the model lives.
    """
    if mdp not in _expected:
        ends = check_ends(mdp, mdp.probability > 0)
        _expected[mdp] = _bound(mdp, ends)
    return _expected[mdp]


def _bound(mdp: MDP, ends: Flags) -> Floats:
    """Iterate ``w = 1 + max_a P_a w`` until no state rises by more than ``SETTLED`` steps.

    Then ``w - max P w >= 1 - change - rounding``, and dividing ``w`` by that makes it a bound.
    """
    share = mdp.probability / np.add.reduceat(mdp.probability, mdp.row_start[:-1])[mdp.entry_row]
    steps = np.zeros(mdp.num_states)
    longest = int(np.diff(mdp.row_start).max())
    for _ in range(MOST_SWEEPS):
        rows = 1.0 + np.add.reduceat(share * steps[mdp.successor], mdp.row_start[:-1])
        after = np.where(ends, 0.0, np.maximum.reduceat(rows, mdp.state_start[:-1]))
        change = float((after - steps).max())
        slack = 8 * (longest + 8) * float(np.finfo(np.float64).eps) * (1.0 + float(steps.max()))
        if change + slack <= SETTLED:
            return np.asarray(steps / (1.0 - change - slack) * (1 + 1e-12))
        steps = after
    raise ValueError(
        f"discount=1 without a horizon counts until the end, which takes more than "
        f"{MOST_SWEEPS:,} steps here. Give horizon= (the most steps that count), or a discount "
        "below 1."
    )
