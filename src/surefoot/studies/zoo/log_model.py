"""A log as version 0.1 read it: the input of methods that do not use the pipeline."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefoot.data.counts import Counts
from surefoot.data.transitions import read_transitions
from surefoot.model.mdp import MDP
from surefoot.model.policies import AnyPolicy
from surefoot.studies.zoo.claims import Facts
from surefoot.studies.zoo.logs import ColumnArrays
from surefoot.studies.zoo.truth import Choice, choice_of

PRIOR = 1.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Read:
    """A log as version 0.1 read it: counts on the assumed successors, and the model."""

    counts: Counts
    mdp: MDP

    def choice(self, policy: AnyPolicy) -> Choice:
        """Return a policy in terms of the log's labels; it has no action where the log has none."""
        return choice_of(policy, self.counts, self.mdp)

    @property
    def within_range_seen(self) -> bool:
        """Whether claims are limited to rewards within the range seen."""
        return self.counts.reward_model == "bounded" and self.counts.reward_range is None


def read_log(columns: ColumnArrays, facts: Facts, *, prior: float | None) -> Read:
    """Count a log and make its model, using the declared facts."""
    episode, step = ("episode", "step") if "episode" in columns else (None, None)
    counts = read_transitions(
        columns, episode=episode, step=step, terminal="terminal", reward_range=facts.reward_range
    )
    placed = counts.on_support(facts.support)
    mdp = placed.to_mdp(
        discount=facts.discount, prior=prior, initial=first_states(placed, facts)
    )  # fmt: skip
    return Read(counts=placed, mdp=mdp)


def first_states(counts: Counts, facts: Facts) -> NDArray[np.float64] | None:
    """Return the declared distribution of the first state, by counted state; None: as logged."""
    if facts.initial is None:
        return None
    found = np.array([facts.initial.get(label, 0.0) for label in counts.state_labels or ()])
    return np.asarray(found / found.sum())
