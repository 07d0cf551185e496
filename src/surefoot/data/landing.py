"""Where the unseen leads: on to the worst state of the log, or nowhere."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from surefoot._rows import Ints

if TYPE_CHECKING:
    from surefoot.data.counts import Counts
    from surefoot.model.mdp import MDP

WORST, ABSORBING = "worst", "absorbing"
MOST_ROUNDS = 100
"""Rounds of looking for the worst state; each one lowers its value, so few are needed."""
PRECISION = 1e-8
"""How exactly values are known when states are compared, as a share of the largest there can be."""


def lead_on(mdp: "MDP", counts: "Counts", unseen: str) -> "MDP":
    """Let the unseen state of a model lead where ``unseen`` says.

    In the model the unseen state is absorbing at the lowest reward. ``"worst"`` lets it lead, after
    one step at that reward, to the state of the log with the smallest value.
    """
    if unseen not in (WORST, ABSORBING):
        raise ValueError(f"unseen={unseen!r}; choose {WORST!r} or {ABSORBING!r}.")
    known = known_states(counts)
    if counts.unseen is None or unseen == ABSORBING or len(known) == 0:
        return mdp
    return _towards_worst(mdp, counts.unseen, known)


def known_states(counts: "Counts") -> Ints:
    """Return the states of which the log says something: left at least once, or terminal."""
    left = np.zeros(counts.num_states, dtype=np.bool_)
    left[counts.row_state[counts.visits > 0]] = True
    return np.flatnonzero(left | counts.is_terminal)


def _towards_worst(mdp: "MDP", unseen: int, known: Ints) -> "MDP":
    """Point the unseen state at the worst known one, under the best policy against just that.

    Each round lets the policy answer, then looks for a worse state: Hoffman and Karp's strategy
    iteration for the side that chooses where the unseen leads.
    """
    from surefoot.solvers.solver import solve

    entry = mdp.row_start[mdp.state_start[unseen]]
    largest = float(np.abs(mdp.reward).max()) / (1 - mdp.discount)
    target = unseen
    for _ in range(MOST_ROUNDS):
        value = solve(mdp, tolerance=max(PRECISION * largest, 1e-300)).value
        worst = int(known[np.argmin(value[known])])
        current = value[target] if target != unseen else np.inf
        if value[worst] >= current - 4 * PRECISION * largest:
            break
        target = worst
        successor = mdp.successor.copy()
        successor[entry] = target
        mdp = replace(mdp, successor=successor)
    return mdp


def landing_of(mdp: "MDP", unseen: int) -> int:
    """Return the state that the unseen one leads to; itself where it is absorbing."""
    return int(mdp.successor[mdp.row_start[mdp.state_start[unseen]]])
