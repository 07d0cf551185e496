"""How many steps a model counts, discounted: what a reward of 1 at every step adds up to."""

import numpy as np

from surefoot.model.mdp import MDP


def counted_steps(mdp: MDP) -> float:
    """Return ``sum of discount^t`` over all steps that count.

    Examples
    --------
    >>> from surefoot.domains import riverswim
    >>> mdp = riverswim().mdp
    >>> round(counted_steps(mdp)), counted_steps(mdp.over(1)), round(counted_steps(mdp.over(10)), 2)
    (100, 1.0, 9.56)
    """
    discount, horizon = mdp.discount, mdp.horizon
    if horizon is None and discount == 1.0:
        raise ValueError(
            "discount=1 counts rewards without end. Give horizon= (the most steps that count) or a "
            "discount below 1."
        )
    if horizon is None:
        return 1.0 / (1.0 - discount)
    if discount == 1.0:
        return float(horizon)
    return float(-np.expm1(horizon * np.log(discount)) / (1.0 - discount)) if discount else 1.0


def largest_value(mdp: MDP) -> float:
    """Return the most that the size of a value can be."""
    final = 0.0 if mdp.final_reward is None else float(np.abs(mdp.final_reward).max())
    return float(np.abs(mdp.reward).max()) * counted_steps(mdp) + final
