"""A policy that depends on the step, stored as ranges of steps with the same action."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot._display import Shown, number_of
from surefoot._rows import Ints, freeze_fields


class Switches(NamedTuple):
    """The ranges sorted by their last step, as backward induction needs them.

    The ranges whose last step is ``t`` are ``which[start[t]:start[t+1]]``.
    """

    start: Ints
    which: Ints


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class StepPolicy(Shown):
    """An action for each state and step, stored as ranges of steps; read ``policy[step, state]``.

    Steps count from 0. It represents an array ``(horizon, S)`` of action ids, and
    ``np.asarray(policy)`` makes that array; only the ranges are stored, usually few.

    Attributes
    ----------
    horizon
        The number of steps.
    state_start
        ``(S+1,)``; the ranges of state ``s`` are ``state_start[s]:state_start[s+1]``.
    first_step
        ``(n,)``; the first step of each range, rising from 0 within each state.
    action
        ``(n,)``; the action id of each range.

    Examples
    --------
    >>> policy = StepPolicy.from_array([[0, 1], [0, 1], [0, 0]])
    >>> policy
    StepPolicy(3 steps, 2 states, 3 ranges)
    >>> policy.action_at(1, 2), policy[1].tolist(), np.asarray(policy).shape
    (0, [0, 1], (3, 2))
    """

    horizon: int
    state_start: Ints
    first_step: Ints
    action: Ints

    def __post_init__(self) -> None:
        freeze_fields(self)
        ranges = len(self.first_step)
        rises = np.diff(self.first_step) > 0
        if len(self.state_start) < 2 or not self.state_start[-1] == ranges == len(self.action):
            self._refuse()
        begins = self.state_start[:-1]
        if self.state_start[0] != 0 or np.any(np.diff(self.state_start) < 1):
            self._refuse()
        rises[begins[1:] - 1] = True
        inside = np.all((self.first_step >= 0) & (self.first_step < self.horizon))
        if not (rises.all() and inside and np.all(self.first_step[begins] == 0)):
            self._refuse()

    def _refuse(self) -> None:
        raise ValueError(
            "these are not valid ranges of steps: in every state, the first steps must begin at 0, "
            f"rise, and stay below the horizon {self.horizon}."
        )

    @classmethod
    def from_array(cls, actions: ArrayLike) -> StepPolicy:
        """Build the policy from an array ``(horizon, S)`` of action ids."""
        given = np.asarray(actions)
        if given.ndim != 2 or given.size == 0 or given.dtype.kind not in "iu":
            raise ValueError(
                f"a policy by step is an array (steps, states) of whole action ids; this one has "
                f"shape {given.shape} and type {given.dtype}."
            )
        begins = np.ones(given.shape, dtype=np.bool_)
        begins[1:] = given[1:] != given[:-1]
        state, step = np.nonzero(begins.T)
        return cls.from_ranges(len(given), given.shape[1], state, step, given[step, state])

    @classmethod
    def from_ranges(
        cls, horizon: int, states: int, state: Ints, first_step: Ints, action: Ints
    ) -> StepPolicy:
        """Build the policy from ranges in any order: state, first step and action of each."""
        order = np.lexsort((first_step, state))
        return cls(
            horizon=horizon,
            state_start=np.searchsorted(state[order], np.arange(states + 1)).astype(np.int64),
            first_step=first_step[order].astype(np.int64),
            action=action[order].astype(np.int64),
        )

    @classmethod
    def constant(cls, horizon: int, actions: Ints) -> StepPolicy:
        """Build the policy that plays ``actions[s]`` in state ``s`` at every step."""
        size = len(actions)
        return cls(
            horizon=horizon, state_start=np.arange(size + 1), first_step=np.zeros(size, np.int64),
            action=np.asarray(actions, dtype=np.int64),
        )  # fmt: skip

    @property
    def num_states(self) -> int:
        """The number of states."""
        return len(self.state_start) - 1

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the array it represents: ``(horizon, S)``."""
        return self.horizon, self.num_states

    @property
    def ndim(self) -> int:
        """The number of dimensions of that array: 2."""
        return 2

    @property
    def is_constant(self) -> bool:
        """Whether every state has the same action at all steps."""
        return len(self.first_step) == self.num_states

    @cached_property
    def range_state(self) -> Ints:
        """``(n,)``: the state of each range."""
        return np.repeat(np.arange(self.num_states), np.diff(self.state_start))

    @cached_property
    def last_step(self) -> Ints:
        """``(n,)``: the last step of each range."""
        ends = np.append(self.first_step[1:], 0) - 1
        ends[self.state_start[1:] - 1] = self.horizon - 1
        return np.asarray(ends)

    def action_at(self, state: int, step: int) -> int:
        """Return the action id at one state and step."""
        if not 0 <= step < self.horizon:
            raise ValueError(f"step={step}; steps go from 0 to {self.horizon - 1}.")
        if not 0 <= state < self.num_states:
            raise ValueError(f"unknown state {state}; ids go from 0 to {self.num_states - 1}.")
        first, last = self.state_start[state : state + 2]
        place = np.searchsorted(self.first_step[first:last], step, side="right") - 1
        return int(self.action[first + place])

    def actions_at(self, step: int) -> Ints:
        """Return the ``(S,)`` action ids of one step."""
        if not 0 <= step < self.horizon:
            raise ValueError(f"step={step}; steps go from 0 to {self.horizon - 1}.")
        here = (self.first_step <= step) & (step <= self.last_step)
        return np.asarray(self.action[here])

    @cached_property
    def switches(self) -> Switches:
        """The ranges sorted by their last step."""
        order = np.argsort(self.last_step, kind="stable")
        start = np.searchsorted(self.last_step[order], np.arange(self.horizon + 1))
        return Switches(start.astype(np.int64), order)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple) and len(key) == 2 and all(map(_is_whole, key)):
            return self.action_at(int(key[1]), self._step(int(key[0])))
        if _is_whole(key):
            return self.actions_at(self._step(int(key)))
        return np.asarray(self)[key]

    def _step(self, index: int) -> int:
        """Return the step of an index; negative ones count from the end."""
        if not -self.horizon <= index < self.horizon:
            raise IndexError(f"step {index} of a policy for {number_of(self.horizon, 'step')}.")
        return index % self.horizon

    def __len__(self) -> int:
        return self.horizon

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        lengths = self.last_step - self.first_step + 1
        by_state = np.repeat(self.action, lengths).reshape(self.num_states, self.horizon)
        return np.ascontiguousarray(by_state.T, dtype=dtype)

    def _headline(self) -> str:
        return repr(self)

    def __repr__(self) -> str:
        return (
            f"StepPolicy({number_of(self.horizon, 'step')}, {number_of(self.num_states, 'state')}, "
            f"{number_of(len(self.first_step), 'range')})"
        )


def _is_whole(key: Any) -> bool:
    return isinstance(key, (int, np.integer)) and not isinstance(key, bool)
