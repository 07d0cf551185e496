"""Costs are negative rewards: negated here, and turned back by ``mirrored``."""

from dataclasses import replace

from surefoot.model.mdp import MDP


def as_rewards(mdp: MDP, objective: str) -> MDP:
    """Return the model in rewards; costs (``"min"``) are negated.

    Examples
    --------
    >>> from surefoot import riverswim
    >>> mdp = riverswim().mdp
    >>> as_rewards(mdp, "max") is mdp, float(as_rewards(mdp, "min").reward.max())
    (True, 0.0)
    """
    if objective == "max":
        return mdp
    final = None if mdp.final_reward is None else 0.0 - mdp.final_reward
    return replace(mdp, reward=0.0 - mdp.reward, final_reward=final)
