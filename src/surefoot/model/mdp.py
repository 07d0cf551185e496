"""The Markov decision process: states, rows, successors.

A *row* is one available state-action pair with the successors it can reach. Rows are stored one
after another, sorted by state and then action, so that a block of states owns a contiguous block
of rows and a contiguous block of entries.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot._display import Shown, number_of
from surefoot._rows import freeze_fields
from surefoot.model import checks, rows

Label = Hashable
"""The label of a state or an action: usually a string or an integer."""


class DenseArrays(NamedTuple):
    """Dense transitions ``(S, A, S)`` and rewards ``(S, A)`` or ``(S, A, S)``."""

    transitions: NDArray[np.float64]
    rewards: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MDP(checks.ModelArrays, Shown):
    """A finite Markov decision process, stored row by row.

    The probabilities of a row are the stored numbers divided by their exact sum. A terminal state
    is an absorbing state with zero reward. A row that lists one successor is deterministic. With a
    horizon, at most that many steps count, and policies may depend on the step.

    Attributes
    ----------
    state_start
        ``(S+1,)``; the rows of state ``s`` are ``state_start[s]:state_start[s+1]``.
    row_action
        ``(R,)``; the action of each row, increasing within a state.
    row_start
        ``(R+1,)``; the entries of row ``r`` are ``row_start[r]:row_start[r+1]``.
    successor
        ``(E,)``; the state each entry leads to, increasing within a row.
    probability
        ``(E,)``; the nominal probability of each entry; zero is allowed.
    reward
        ``(R,)`` for rewards r(s,a) or ``(E,)`` for rewards r(s,a,s').
    discount
        In [0, 1]. 1 needs a horizon, or a model in which every policy ends.
    initial
        ``(S,)``; the distribution of the first state.
    num_actions
        The number of distinct action ids (some may be missing in some states).
    reward_per_entry
        Whether rewards depend on the successor.
    state_labels, action_labels
        Optional names, in order of the ids.
    horizon
        The number of steps that count at most; None for no limit.
    final_reward
        ``(S,)``; the value of the state reached after the last step; None means 0.

    Examples
    --------
    >>> import numpy as np
    >>> P = np.array([[[0.9, 0.1]], [[0.2, 0.8]]])
    >>> mdp = MDP.from_arrays(P, np.array([[0.0], [1.0]]), discount=0.9)
    >>> mdp
    MDP(2 states, 1 action, 2 rows, 4 entries, discount 0.9)
    """

    state_start: NDArray[np.int64]
    row_action: NDArray[np.int64]
    row_start: NDArray[np.int64]
    successor: NDArray[np.int32]
    probability: NDArray[np.float64]
    reward: NDArray[np.float64]
    discount: float
    initial: NDArray[np.float64]
    num_actions: int
    reward_per_entry: bool
    state_labels: tuple[Label, ...] | None = None
    action_labels: tuple[Label, ...] | None = None
    horizon: int | None = None
    final_reward: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        freeze_fields(self)
        checks.check_mdp(self)

    def over(self, horizon: int | None, final_reward: ArrayLike | None = None) -> MDP:
        """Return the same model with at most ``horizon`` steps; nothing large is copied.

        ``final_reward`` is ``(S,)``: the value of the state reached after the last step.

        Examples
        --------
        >>> mdp = MDP.from_arrays([[[0.5, 0.5]], [[0.0, 1.0]]], [[1.0], [0.0]], discount=1.0)
        >>> mdp.over(12)
        MDP(2 states, 1 action, 2 rows, 3 entries, discount 1, at most 12 steps)
        """
        final = None
        if final_reward is not None:
            final = checks.as_float_array("final_reward", final_reward).copy()
        return replace(self, horizon=horizon, final_reward=final)

    @classmethod
    def from_arrays(
        cls,
        transitions: Any,
        rewards: ArrayLike,
        *,
        discount: float,
        initial: ArrayLike | None = None,
        support: ArrayLike | None = None,
        state_labels: Sequence[Label] | None = None,
        action_labels: Sequence[Label] | None = None,
    ) -> MDP:
        """Build a model from dense arrays or from one SciPy sparse matrix per action.

        Parameters
        ----------
        transitions
            ``(S, A, S)`` probabilities, or a sequence of ``A`` sparse ``(S, S)`` matrices. A row of
            zeros (with no support) means that the action is not available in that state.
        rewards
            ``(S, A)`` or ``(S, A, S)``.
        discount
            In [0, 1]; 1 needs a horizon, or a model in which every policy ends.
        initial
            Distribution of the first state; None means uniform.
        support
            ``(S, A, S)`` booleans: which successors are reachable; None means the non-zero entries.
        state_labels, action_labels
            Optional names, in order of the ids.

        Examples
        --------
        >>> mdp = MDP.from_arrays([[[0.5, 0.5]], [[0.0, 1.0]]], [[1.0], [0.0]], discount=0.5)
        >>> mdp.successor.tolist(), mdp.initial.tolist()
        ([0, 1, 1], [0.5, 0.5])
        """
        if rows.is_sparse_sequence(transitions):
            parts = rows.rows_from_sparse(transitions, rewards, support)
        else:
            parts = rows.rows_from_dense(transitions, rewards, support)
        return cls._assemble(parts, discount, initial, state_labels, action_labels)

    @classmethod
    def from_gymnasium(
        cls,
        env: Any,
        *,
        discount: float,
        initial: ArrayLike | None = None,
    ) -> MDP:
        """Build a model from a Gymnasium toy-text environment, or from its table.

        Parameters
        ----------
        env
            An environment such as ``gymnasium.make("FrozenLake-v1")``, wrapped or not, which keeps
            its table as ``P`` and its initial distribution as ``initial_state_distrib``; or the
            table ``P[state][action]`` itself, lists of (probability, next state, reward,
            terminated).
        discount
            In [0, 1]; 1 needs a horizon, or a model in which every policy ends.
        initial
            Distribution of the first state. None means that of the environment, or uniform if it
            has none; for a table, uniform.

        Notes
        -----
        Duplicate successors are summed (their rewards averaged by probability). A state that any
        transition reaches with ``terminated=True`` becomes absorbing with zero reward.

        Examples
        --------
        >>> table = {
        ...     0: {0: [(0.5, 1, 1.0, True), (0.5, 0, 0.0, False)]},
        ...     1: {0: [(1.0, 1, 0.0, True)]},
        ... }
        >>> MDP.from_gymnasium(table, discount=0.9).probability.tolist()
        [0.5, 0.5, 1.0]
        """
        table, start = rows.gymnasium_table(env)
        parts = rows.rows_from_gymnasium(table)
        return cls._assemble(parts, discount, start if initial is None else initial, None, None)

    @classmethod
    def from_rows(
        cls,
        *,
        state: ArrayLike,
        action: ArrayLike,
        successor: ArrayLike,
        probability: ArrayLike,
        reward: ArrayLike,
        discount: float,
        num_states: int | None = None,
        num_actions: int | None = None,
        initial: ArrayLike | None = None,
        state_labels: Sequence[Label] | None = None,
        action_labels: Sequence[Label] | None = None,
    ) -> MDP:
        """Build a model from a list of entries: five parallel arrays, entries in any order.

        Examples
        --------
        >>> MDP.from_rows(state=[1, 0], action=[0, 0], successor=[1, 1], probability=[1, 1],
        ...               reward=[0, 5], discount=0.9)
        MDP(2 states, 1 action, 2 rows, 2 entries, discount 0.9)
        """
        parts = rows.rows_from_entries(
            state, action, successor, probability, reward, num_states, num_actions
        )
        return cls._assemble(parts, discount, initial, state_labels, action_labels)

    @classmethod
    def _assemble(
        cls,
        parts: rows.ModelRows,
        discount: float,
        initial: ArrayLike | None,
        state_labels: Sequence[Label] | None,
        action_labels: Sequence[Label] | None,
    ) -> MDP:
        num_states = len(parts.state_start) - 1
        start = np.full(num_states, 1.0 / num_states) if initial is None else initial
        return cls(
            state_start=parts.state_start,
            row_action=parts.row_action,
            row_start=parts.row_start,
            successor=parts.successor,
            probability=parts.probability,
            reward=parts.reward,
            discount=checks.check_discount(discount),
            initial=checks.check_initial(start, num_states),
            num_actions=parts.num_actions,
            reward_per_entry=parts.reward_per_entry,
            state_labels=None if state_labels is None else tuple(state_labels),
            action_labels=None if action_labels is None else tuple(action_labels),
        )

    @cached_property
    def available(self) -> NDArray[np.bool_]:
        """``(S, A)``: which actions each state offers."""
        offered = np.zeros((self.num_states, self.num_actions), dtype=np.bool_)
        offered[self.row_state, self.row_action] = True
        return offered

    @cached_property
    def uncertain_rows(self) -> NDArray[np.bool_]:
        """``(R,)``: which rows list more than one successor."""
        return np.diff(self.row_start) > 1

    @cached_property
    def support(self) -> NDArray[np.bool_]:
        """``(S, A, S)``: which successors are reachable (dense: for small models)."""
        return self.dense_support()

    def row_of(self, state: int, action: int) -> int:
        """Return the row of a state-action pair.

        Examples
        --------
        >>> mdp = MDP.from_arrays([[[1.0], [1.0]]], [[1.0, 2.0]], discount=0.5)
        >>> mdp.row_of(0, 1)
        1
        """
        if not 0 <= state < self.num_states:
            raise ValueError(f"unknown state {state}; ids go from 0 to {self.num_states - 1}.")
        first, last = self.state_start[state : state + 2]
        row = first + np.searchsorted(self.row_action[first:last], action)
        if row == last or self.row_action[row] != action:
            raise ValueError(
                f"action {self.action_name(action)} is not available in state "
                f"{self.state_name(state)}."
            )
        return int(row)

    def to_arrays(self) -> DenseArrays:
        """Return dense transitions ``(S, A, S)`` and rewards ``(S, A)`` or ``(S, A, S)``.

        Rows that are not available and entries that are not reachable are zero.

        Examples
        --------
        >>> mdp = MDP.from_arrays([[[1.0], [1.0]]], [[1.0, 2.0]], discount=0.5)
        >>> mdp.to_arrays().rewards.tolist()
        [[1.0, 2.0]]
        """
        shape = (self.num_states, self.num_actions, self.num_states)
        transitions = np.zeros(shape)
        transitions[self.dense_index] = self.probability
        if self.reward_per_entry:
            rewards = np.zeros(shape)
            rewards[self.dense_index] = self.reward
        else:
            rewards = np.zeros(shape[:2])
            rewards[self.row_state, self.row_action] = self.reward
        return DenseArrays(transitions, rewards)

    def _facts(self) -> list[tuple[str, str]]:
        per = "transition" if self.reward_per_entry else "state-action pair"
        first = np.flatnonzero(self.initial > 0)
        start = f"one of {len(first):,}"
        if len(first) == 1:
            start = self.state_name(int(first[0]))
        elif len(first) == self.num_states and np.ptp(self.initial) == 0:
            start = "uniform"
        return [
            ("rewards", f"{self.reward.min():g} to {self.reward.max():g}, one per {per}"),
            ("uncertain rows", f"{np.count_nonzero(self.uncertain_rows):,} (several successors)"),
            ("first state", start),
        ]

    @cached_property
    def entry_reward(self) -> NDArray[np.float64]:
        """``(E,)``: the reward of each entry, whether rewards are stored per entry or per row."""
        return self.reward if self.reward_per_entry else self.reward[self.entry_row]

    def __repr__(self) -> str:
        return (
            f"MDP({number_of(self.num_states, 'state')}, {number_of(self.num_actions, 'action')}, "
            f"{number_of(self.num_rows, 'row')}, "
            f"{number_of(self.num_entries, 'entry', 'entries')}, "
            f"discount {checks.discount_text(self.discount)}{self._steps_text()})"
        )

    def _steps_text(self) -> str:
        return "" if self.horizon is None else f", at most {number_of(self.horizon, 'step')}"
