"""The rewards of drawn models: certain rewards as given, uncertain ones drawn with each model."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.data.reward_uncertainty import model_uncertain_rewards, negated
from surefoot.model.mdp import MDP
from surefoot.posterior.mean_rewards import MeanRewards
from surefoot.posterior.of_counts import Key
from surefoot.posterior.protocol import Posterior, check_posterior

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Rewards:
    """The rewards of every entry, and which of them are uncertain means (with their counts).

    ``places`` are the indices of these entries in the counts; None if they are all entries, in
    order. ``final`` is the reward of each state after the last step, or None. ``each_row``: whether
    every row leans towards the low end of the range by itself (`MeanRewards`).
    """

    fixed: Floats
    counts: Any
    uncertain: NDArray[np.bool_]
    places: Ints | None = None
    final: Floats | None = None
    each_row: bool = True

    @cached_property
    def of_one_policy(self) -> "Rewards":
        """Rewards around the means that were seen, for the return of a single policy.

        Losses that the log may have missed are counted for the policy, not for every row by itself
        (`surefoot.solvers.evaluation.missed_losses`).
        """
        return replace(self, each_row=False) if self.each_row else self

    @property
    def may_have_missed(self) -> bool:
        """Whether rewards lie in a range, so that the log may have missed low ones."""
        return bool(
            self.counts is not None
            and self.counts.reward_model == "bounded"
            and self.uncertain.any()
        )

    def of(self, entries: Ints) -> "Rewards":
        """Return the rewards of some entries."""
        places = entries if self.places is None else self.places[entries]
        return Rewards(
            fixed=self.fixed[entries], counts=self.counts, uncertain=self.uncertain[entries],
            places=places, final=self.final, each_row=self.each_row,
        )  # fmt: skip

    def final_values(self, size: int) -> Floats:
        """Return ``(S,)``: the reward of each state after the last step."""
        return np.zeros(size) if self.final is None else np.array(self.final)

    def block(self, key: Key, first: int, last: int, entries: Ints) -> Floats:
        """Return rewards of draws ``first`` to ``last - 1``; one row if all are certain.

        The same key gives the same rewards, whichever entries and blocks are asked for.
        """
        uncertain = self.uncertain[entries]
        if not uncertain.any():
            return self.fixed[entries][None]
        places = entries if self.places is None else self.places[entries]
        drawn = self.means.draws(key, first, last, places)
        drawn[:, ~uncertain] = self.fixed[entries[~uncertain]]
        return drawn

    @cached_property
    def means(self) -> MeanRewards:
        """The posterior of the mean rewards."""
        return MeanRewards(self.counts, self.each_row)


def rewards_of(mdp: MDP, posterior: Posterior, *, objective: str) -> Rewards:
    """Return the model's rewards (costs negated), uncertain where the counts say so.

    A reward that the model does not take from the counts was given by the user and is certain.
    """
    fixed = mdp.entry_reward
    counts = check_posterior(posterior).counts
    uncertain = np.zeros(mdp.num_entries, dtype=np.bool_)
    if counts is not None:
        uncertain = model_uncertain_rewards(counts, mdp)
    if objective == "max":
        return Rewards(fixed=fixed, counts=counts, uncertain=uncertain, final=mdp.final_reward)
    # For costs the cautious side of an uncertain mean is the upper one: negate the counts' rewards.
    turned = counts if counts is None or not uncertain.any() else negated(counts)
    final = None if mdp.final_reward is None else -mdp.final_reward
    return Rewards(fixed=-fixed, counts=turned, uncertain=uncertain, final=final)
