"""A world: the true model, the distribution of its rewards, and the labels that a log shows."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from surefoot.model.mdp import MDP
from surefoot.studies.zoo.rewards import RewardLaw

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class World:
    """A Markov decision process with a known true model.

    Attributes
    ----------
    name
        Its name in the table.
    mdp
        The true model, with mean rewards.
    terminal
        ``(S,)``: states that end an episode: absorbing, without reward.
    steps
        Episodes are cut off after this many steps.
    law
        The distribution of rewards around their means.
    states
        ``(S,)`` labels that a log shows; a reader of the log cannot tell apart states that share a
        label. None: the labels of the model, or the numbers of the states.

    Examples
    --------
    >>> from surefoot.domains import riverswim
    >>> mdp = riverswim().mdp
    >>> world = World(name="river", mdp=mdp, terminal=np.zeros(6, dtype=bool), steps=50)
    >>> world.hidden, world.actions
    (False, ('left', 'right'))
    """

    name: str
    mdp: MDP
    terminal: NDArray[np.bool_]
    steps: int
    law: RewardLaw = field(default_factory=RewardLaw)
    states: tuple[Hashable, ...] | None = None

    def __post_init__(self) -> None:
        mdp = self.mdp
        if len(self.labels) != mdp.num_states or len(self.terminal) != mdp.num_states:
            raise ValueError(
                f"the world {self.name!r} has {mdp.num_states} states, but {len(self.labels)} "
                f"labels and {len(self.terminal)} terminal flags; it needs one of each per state."
            )
        ends = self.terminal[mdp.row_state]
        stays = (np.diff(mdp.row_start) == 1) & (mdp.successor[mdp.row_start[:-1]] == mdp.row_state)
        if np.any(ends & ~stays) or np.any(self.gain[ends] != 0):
            raise ValueError(
                f"the world {self.name!r} has a terminal state that leads elsewhere or pays; "
                "terminal states are absorbing, without reward."
            )

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """``(S,)``: the label of each state in a log."""
        return self.states or self.mdp.state_labels or tuple(range(self.mdp.num_states))

    @property
    def actions(self) -> tuple[Hashable, ...]:
        """``(A,)``: the label of each action in a log."""
        return self.mdp.action_labels or tuple(range(self.mdp.num_actions))

    @property
    def hidden(self) -> bool:
        """Whether some states share a label, so that a log is not Markov."""
        return len(set(self.labels)) < len(self.labels)

    @cached_property
    def reward(self) -> Floats:
        """``(E,)``: the mean reward of every entry."""
        return self.mdp.entry_reward

    @cached_property
    def transitions(self) -> sparse.csr_array:
        """``(R, S)``: the true rows, each divided by its sum."""
        mdp = self.mdp
        total = np.add.reduceat(mdp.probability, mdp.row_start[:-1])
        return sparse.csr_array(
            (mdp.probability / total[mdp.entry_row], mdp.successor, mdp.row_start),
            shape=(mdp.num_rows, mdp.num_states),
        )

    @cached_property
    def gain(self) -> Floats:
        """``(R,)``: the mean reward of every row."""
        return np.add.reduceat(self.transitions.data * self.reward, self.mdp.row_start[:-1])

    @cached_property
    def entries_at(self) -> Floats:
        """``(E,)``: cumulative probabilities, those of row ``r`` going from ``r`` to ``r + 1``."""
        mdp, share = self.mdp, self.transitions.data
        running = np.cumsum(share)
        before = np.concatenate(([0.0], running))[mdp.row_start[:-1]]
        return np.asarray(np.minimum(running - before[mdp.entry_row], 1.0) + mdp.entry_row)

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """The range of rewards that its owner would declare; None if unbounded."""
        acted = ~self.terminal[self.mdp.row_state[self.mdp.entry_row]]
        return self.law.range(self.reward[acted])
