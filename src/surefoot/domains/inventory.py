"""Inventory: order stock against random demand."""

from __future__ import annotations

import numpy as np

from surefoot.domains.domain import Domain
from surefoot.model.mdp import MDP

CAPACITY = 30
LARGEST_ORDER = 10
DEMAND_MEAN, DEMAND_SD = 7.5, 5.0
PRICE, UNIT_COST, ORDER_COST, HOLDING_COST = 3.99, 2.49, 5.99, 0.03


def inventory(*, discount: float = 0.95) -> Domain:
    """Return the inventory problem with stocks 0 to 30 and orders 0 to 10.

    The order arrives first, then demand: proportional to the Normal(7.5, 5) density on 0..30.
    Unmet demand is lost. Orders that would overfill the store are not available. The reward is
    ``3.99 sold - 2.49 order - 5.99 [order > 0] - 0.03 stock left``.

    Examples
    --------
    >>> inventory().mdp
    MDP(31 states, 11 actions, 286 rows, 5,236 entries, discount 0.95)
    """
    units = np.arange(CAPACITY + 1)
    demand = np.exp(-0.5 * ((units - DEMAND_MEAN) / DEMAND_SD) ** 2)
    demand /= demand.sum()
    p = np.zeros((CAPACITY + 1, LARGEST_ORDER + 1, CAPACITY + 1))
    rewards = np.zeros_like(p)
    for stock in range(CAPACITY + 1):
        for order in range(min(LARGEST_ORDER, CAPACITY - stock) + 1):
            filled = stock + order
            left = units[: filled + 1]
            sold = filled - left
            p[stock, order, 1 : filled + 1] = demand[:filled][::-1]
            p[stock, order, 0] = demand[filled:].sum()
            gain = PRICE * sold - UNIT_COST * order - ORDER_COST * (order > 0)
            rewards[stock, order, : filled + 1] = gain - HOLDING_COST * left
    return Domain(name="inventory", mdp=MDP.from_arrays(p, rewards, discount=discount))
