"""Rewards of entries: seen, given, or assumed for unseen entries."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot._rows import Ints
from surefoot.data.packed_rows import label_of

Label = Hashable
Floats = NDArray[np.float64]
RewardFunction = Callable[[Any, Any, Any], float]


class RewardStatistics(NamedTuple):
    """Mean and sample variance of each entry's rewards; NaN where unknown.

    The variance of rewards known beforehand is 0, that of an entry seen once is NaN.
    """

    mean: Floats
    variance: Floats

    @classmethod
    def exactly(cls, reward: Floats) -> "RewardStatistics":
        """Return the statistics of rewards known exactly (NaN means not known)."""
        known = np.array(reward, dtype=np.float64)
        return cls(known, np.where(np.isnan(known), np.nan, 0.0))

    @classmethod
    def unseen(cls, size: int) -> "RewardStatistics":
        """Return the statistics of entries that were never seen."""
        return cls(np.full(size, np.nan), np.full(size, np.nan))


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

    def by_label(
        self, state_labels: Sequence[Label] | None, action_labels: Sequence[Label] | None
    ) -> dict[tuple[Label, ...], float]:
        """Return the rewards as a table by label; a function has none."""
        if self.array is None and self.table is None:
            raise ValueError(
                "given rewards that are different functions cannot be compared. Give the same "
                "function, or tables, to both."
            )
        if self.array is None:
            return dict(self.table or {})
        table: dict[tuple[Label, ...], float] = {}
        for place in np.argwhere(~np.isnan(self.array)):
            state, *after = (label_of(i, state_labels) for i in (place[0], *place[2:]))
            table[(state, label_of(place[1], action_labels), *after)] = float(
                self.array[tuple(place)]
            )
        return table

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
    # A support may add states that the array does not cover (such as the unseen state).
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


def range_per_action(action: Ints, reward: Floats, num_actions: int) -> tuple[Floats, Floats]:
    """Return the lowest and highest reward of each action; NaN for an action without rewards.

    Examples
    --------
    >>> low, high = range_per_action(np.array([0, 0, 2]), np.array([1.0, 3.0, 5.0]), 3)
    >>> low.tolist(), high.tolist()
    ([1.0, nan, 5.0], [3.0, nan, 5.0])
    """
    low, high = np.full(num_actions, np.inf), np.full(num_actions, -np.inf)
    known = ~np.isnan(reward)
    np.minimum.at(low, action[known], reward[known])
    np.maximum.at(high, action[known], reward[known])
    return np.where(np.isinf(low), np.nan, low), np.where(np.isinf(high), np.nan, high)


def pool(
    group: Ints, count: NDArray[Any], statistics: RewardStatistics, size: int
) -> RewardStatistics:
    """Return the pooled statistics of groups of entries (Chan, Golub and LeVeque 1979).

    ``group`` numbers the group of each entry; entries with count 0 are ignored.

    Examples
    --------
    >>> parts = RewardStatistics(np.array([1.0, 4.0]), np.array([np.nan, 2.0]))
    >>> whole = pool(np.array([0, 0]), np.array([1, 2]), parts, 1)
    >>> whole.mean.tolist(), whole.variance.tolist()  # of 1, 3, 5
    ([3.0], [4.0])
    """
    used = (count > 0) & ~np.isnan(statistics.mean)
    group, count, mean = group[used], count[used].astype(np.float64), statistics.mean[used]
    within = np.where(count > 1, statistics.variance[used] * (count - 1), 0.0)
    total = np.bincount(group, count, size)
    weighted = np.bincount(group, count * mean, size)
    seen = total > 0
    pooled = np.divide(weighted, total, out=np.full(size, np.nan), where=seen)
    low, high = range_per_action(group, mean, size)
    pooled = np.where(low == high, low, pooled)  # no rounding where all means agree
    # Means of equal rewards may differ by the rounding of long sums: that is not variation.
    equal = high - low <= np.finfo(np.float64).eps * total * np.abs(pooled)
    apart = np.where(equal[group], 0.0, count * (mean - pooled[group]) ** 2)
    square = np.bincount(group, within + apart, size)
    variance = np.divide(square, total - 1, out=np.full(size, np.nan), where=total > 1)
    return RewardStatistics(pooled, variance)


def lowest(counts: Any) -> float | None:
    """Return the lowest reward a step can bring, as far as is known.

    A terminal state brings 0 forever: where rewards are positive, that is the worst case.
    """
    parts = [part for part in (counts.reward_low, counts.reward_range) if part is not None]
    if counts.given is not None:
        parts.append(counts.given.values())
    values = np.array([value for part in parts for value in part], dtype=np.float64)
    values = values[~np.isnan(values)]
    if len(values) == 0:
        return None
    return float(min(values.min(), 0.0) if counts.is_terminal.any() else values.min())


def range_declared(counts: Any) -> bool:
    """Tell whether a range is declared, which makes every mean reward uncertain unless given."""
    return counts.reward_model == "bounded" and counts.reward_range is not None
