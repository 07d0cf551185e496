"""The lowest and the highest reward of single steps, and the lowest return that follows."""

import numpy as np
from numpy.typing import NDArray

from surefoot.data.counts import Counts
from surefoot.pipeline.model import Model
from surefoot.solvers.steps import counted_steps, until_the_end

Floats = NDArray[np.float64]


def least_return(model: Model) -> float:
    """Return the return of earning the lowest reward of the model at every step."""
    mdp = model.mdp
    low = min(float(np.nanmin(reward_ends(model.placed)[0])), float(mdp.reward.min()))
    if model.placed.reward_model == "normal":  # a mean reward may lie below every reward seen
        return -np.inf
    if until_the_end(mdp):  # an episode may last arbitrarily long
        return -np.inf if low < 0 else 0.0
    last = 0.0 if mdp.final_reward is None else float(mdp.final_reward.min())
    return float(low * counted_steps(mdp) + mdp.discount ** float(mdp.horizon or 0) * last)


def reward_ends(counts: Counts) -> tuple[Floats, Floats]:
    """Return ``(E,)``: lowest and highest rewards of single steps; terminal states keep theirs."""
    reward = np.asarray(counts.reward_mean)
    ending = counts.is_terminal[counts.entry_state]
    if counts.reward_range is not None:
        low, high = counts.reward_range
        return np.where(ending, reward, low), np.where(ending, reward, high)
    if not counts.rewards_vary or counts.reward_low is None or counts.reward_high is None:
        return reward, reward
    least = np.fmin(counts.reward_low[counts.entry_action], reward)
    most = np.fmax(counts.reward_high[counts.entry_action], reward)
    return np.where(ending, reward, least), np.where(ending, reward, most)
