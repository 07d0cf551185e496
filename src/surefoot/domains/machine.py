"""Machine replacement: run a wearing machine, or repair it in time."""

from __future__ import annotations

import numpy as np

from surefoot.domains.domain import Domain
from surefoot.model.mdp import MDP

WORN_OUT, LONG_REPAIR, NORMAL_REPAIR = 7, 8, 9
RUN, REPAIR = 0, 1


def machine_replacement(*, discount: float = 0.95) -> Domain:
    """Return machine replacement with 10 states and 2 actions (Delage and Mannor 2010).

    States 0 to 7 are wear, 8 is a long repair and 9 a normal one. The reward depends on the state
    entered: -20 worn out, -10 in long repair, -2 in normal repair.

    Examples
    --------
    >>> machine_replacement().mdp
    MDP(10 states, 2 actions, 20 rows, 45 entries, discount 0.95)
    """
    p = np.zeros((10, 2, 10))
    for wear in range(WORN_OUT):
        p[wear, RUN, [wear, wear + 1]] = (0.2, 0.8)
        p[wear, REPAIR, [wear + 1, NORMAL_REPAIR, LONG_REPAIR]] = (0.3, 0.6, 0.1)
    p[WORN_OUT, RUN, WORN_OUT] = 1.0
    p[WORN_OUT, REPAIR, [WORN_OUT, NORMAL_REPAIR, LONG_REPAIR]] = (0.3, 0.6, 0.1)
    p[LONG_REPAIR, RUN, LONG_REPAIR] = 1.0
    p[LONG_REPAIR, REPAIR, [NORMAL_REPAIR, LONG_REPAIR]] = (0.6, 0.4)
    p[NORMAL_REPAIR, RUN, [NORMAL_REPAIR, 0]] = (0.2, 0.8)
    p[NORMAL_REPAIR, REPAIR, NORMAL_REPAIR] = 1.0
    entered = np.zeros(10)
    entered[[WORN_OUT, LONG_REPAIR, NORMAL_REPAIR]] = (-20.0, -10.0, -2.0)
    mdp = MDP.from_arrays(
        p,
        np.broadcast_to(entered, (10, 2, 10)),
        discount=discount,
        state_labels=(*(f"wear {i}" for i in range(8)), "long repair", "normal repair"),
        action_labels=("run", "repair"),
    )
    return Domain(name="machine", mdp=mdp)
