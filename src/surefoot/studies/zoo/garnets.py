"""Random models with rows of adjustable evenness."""

import numpy as np

from surefoot.model.mdp import MDP
from surefoot.studies.zoo.rewards import RewardLaw
from surefoot.studies.zoo.worlds import World


def dirichlet_garnet(
    name: str, *, states: int, actions: int, successors: int, concentration: float,
    rng: np.random.Generator, discount: float = 0.9, law: RewardLaw | None = None,
) -> World:  # fmt: skip
    """Return a model with ``successors`` random successors per row, from Dirichlet(concentration).

    Mean rewards r(s,a) are uniform on (0, 1); with catastrophes, the rewards of steps without one.

    Examples
    --------
    >>> dirichlet_garnet("g", states=6, actions=2, successors=3, concentration=0.3,
    ...                  rng=np.random.default_rng(0)).mdp
    MDP(6 states, 2 actions, 12 rows, 36 entries, discount 0.9)
    """
    if not 1 <= successors <= states:
        raise ValueError(f"successors={successors}; it must lie in 1..{states}.")
    law = law or RewardLaw()
    rows = states * actions
    picked = np.sort(np.argsort(rng.random((rows, states)), axis=1)[:, :successors], axis=1)
    reward = rng.random(rows)
    if law.kind == "catastrophe":
        reward = (1 - law.chance) * reward + law.chance * law.low
    mdp = MDP(
        state_start=np.arange(0, rows + 1, actions),
        row_action=np.tile(np.arange(actions), states),
        row_start=np.arange(0, rows * successors + 1, successors),
        successor=picked.astype(np.int32).ravel(),
        probability=rng.dirichlet(np.full(successors, concentration), size=rows).ravel(),
        reward=reward,
        discount=discount,
        initial=np.full(states, 1.0 / states),
        num_actions=actions,
        reward_per_entry=False,
    )
    return World(name=name, mdp=mdp, terminal=np.zeros(states, dtype=np.bool_), steps=50, law=law)
