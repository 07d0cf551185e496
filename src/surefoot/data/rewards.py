"""Rewards of entries: what was seen, what was given, and what an unseen entry gets."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.data.layout import Ints, label_of

Label = Hashable
Floats = NDArray[np.float64]
RewardFunction = Callable[[Any, Any, Any], float]

REWARD_MODELS = ("fixed", "normal", "bounded")


class RewardStatistics(NamedTuple):
    """Mean, sample variance, lowest and highest reward of each entry; NaN where never seen."""

    mean: Floats
    variance: Floats
    lowest: Floats
    highest: Floats

    @classmethod
    def exactly(cls, reward: Floats) -> "RewardStatistics":
        """Return the statistics of rewards known without error."""
        known = np.array(reward, dtype=np.float64)
        return cls(known, np.where(np.isnan(known), np.nan, 0.0), known.copy(), known.copy())

    @classmethod
    def unseen(cls, size: int) -> "RewardStatistics":
        """Return the statistics of entries that were never seen."""
        return cls(*(np.full(size, np.nan) for _ in range(4)))


@dataclass(frozen=True, kw_only=True, eq=False)
class GivenRewards:
    """Rewards known beforehand, exact: a table by label, a dense array by id, or a function.

    Exactly one of the three is set. A table's keys are ``(state, action)`` or
    ``(state, action, next_state)`` labels; an array has shape ``(S, A)`` or ``(S, A, S)``, NaN
    where nothing is given.

    Examples
    --------
    >>> given = GivenRewards(table={("cold", "heat"): 1.0})
    >>> given.of(np.array([0]), np.array([0]), np.array([1]), ("cold", "warm"), ("heat",)).tolist()
    [1.0]
    """

    table: Mapping[tuple[Label, ...], float] | None = None
    array: Floats | None = None
    function: RewardFunction | None = None

    def values(self) -> Floats:
        """Return all rewards of a table or an array; none for a function."""
        if self.array is not None:
            return self.array.ravel()
        return np.array(list((self.table or {}).values()), dtype=np.float64)

    def of(
        self,
        state: Ints,
        action: Ints,
        successor: Ints,
        state_labels: Sequence[Label] | None,
        action_labels: Sequence[Label] | None,
    ) -> Floats:
        """Return the given reward of each entry, NaN where none is given."""
        if self.array is not None:
            return _from_array(self.array, state, action, successor)
        values = np.full(len(state), np.nan)
        for i, (s, a, t) in enumerate(
            zip(state.tolist(), action.tolist(), successor.tolist(), strict=True)
        ):
            names = (label_of(s, state_labels), label_of(a, action_labels))
            target = label_of(t, state_labels)
            if self.function is not None:
                values[i] = _called(self.function, *names, target)
            elif self.table is not None:
                values[i] = self.table.get((*names, target), self.table.get(names, np.nan))
        return values


def _from_array(array: Floats, state: Ints, action: Ints, successor: Ints) -> Floats:
    # A support may bring states that the array was not made for (the unseen state, say).
    known = (state < array.shape[0]) & (action < array.shape[1]) & (successor < array.shape[0])
    index = (state[known], action[known], successor[known])[: array.ndim]
    values = np.full(len(state), np.nan)
    values[known] = array[index]
    return values


def _called(function: RewardFunction, state: Label, action: Label, successor: Label) -> float:
    value = float(function(state, action, successor))
    if not np.isfinite(value):
        raise ValueError(
            f"the reward function returned {value} for state {state!r}, action {action!r}, next "
            f"state {successor!r}; rewards must be finite."
        )
    return value


def as_given(rewards: Any) -> GivenRewards:
    """Turn a table, an array or a function of labels into given rewards."""
    if isinstance(rewards, GivenRewards):
        return rewards
    if callable(rewards):
        return GivenRewards(function=rewards)
    if isinstance(rewards, Mapping):
        return GivenRewards(table={_key(k): _finite(k, v) for k, v in rewards.items()})
    try:
        array = np.array(rewards, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            "rewards must be an array (S, A) or (S, A, S), a mapping from (state, action) or "
            f"(state, action, next_state) to numbers, or a function, got {type(rewards).__name__}."
        ) from None
    if array.ndim not in (2, 3):
        raise ValueError(f"rewards has shape {array.shape}; it must be (S, A) or (S, A, S).")
    bad = np.argwhere(np.isinf(array))
    if len(bad):
        raise ValueError(f"rewards{list(map(int, bad[0]))} is infinite; rewards must be finite.")
    return GivenRewards(array=array)


def _key(key: Any) -> tuple[Label, ...]:
    if not isinstance(key, tuple) or len(key) not in (2, 3):
        raise ValueError(
            f"the reward table has the key {key!r}; keys are (state, action) or "
            "(state, action, next_state)."
        )
    return key


def _finite(key: Any, value: Any) -> float:
    number = float(value)
    if not np.isfinite(number):
        raise ValueError(f"the reward table holds {number} for {key!r}; rewards must be finite.")
    return number


def lowest_per_action(action: Ints, lowest: Floats, num_actions: int) -> Floats:
    """Return the lowest reward seen under each action; the overall lowest for one never seen."""
    result = np.full(num_actions, np.inf)
    seen = ~np.isnan(lowest)
    np.minimum.at(result, action[seen], lowest[seen])
    overall = result.min(initial=np.inf)
    return np.where(np.isfinite(result), result, overall)
