"""Add two counts: align their labels, and add counts and rewards."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot._rows import Ints, pack
from surefoot.data.checks import compare
from surefoot.data.conversions import with_rewards
from surefoot.data.count_arrays import CountArrays, Label, SomeCounts
from surefoot.data.log import Log
from surefoot.data.packed_rows import REWARD_MODELS, label_of
from surefoot.data.reward_sums import RewardSums, join, reward_fields
from surefoot.data.rewards import GivenRewards, RewardStatistics, pool
from surefoot.data.support import free_label

TERMINAL_LABEL = "terminal"
"""The label of the extra terminal state, for ends without a terminal state of their own."""


class Alignment(NamedTuple):
    """The labels of both logs (None for plain ids), and the new id of each id of either log."""

    labels: tuple[Label, ...] | None
    size: int
    old: Ints
    new: Ints


def add(old: SomeCounts, new: SomeCounts) -> SomeCounts:
    """Return the counts of both logs together.

    Examples
    --------
    >>> from surefoot import Counts
    >>> monday = Counts.from_arrays([[[3, 1]], [[0, 2]]], state_labels=("a", "b"))
    >>> tuesday = Counts.from_arrays([[[0, 1]], [[5, 0]]], state_labels=("b", "c"))
    >>> both = monday + tuesday
    >>> both.state_labels, int(both.count.sum())
    (('a', 'b', 'c'), 12)
    """
    if old.declared or new.declared:
        return _add_declared(old, new)
    if old.has_rewards != new.has_rewards:
        raise ValueError("one of the two counts has no rewards. Read both with rewards, or none.")
    states, terminal = align_states(old, new)
    actions = align_actions(old, new)
    columns = [
        (s[counts.entry_state], a[counts.entry_action], s[counts.successor])
        for counts, s, a in ((old, states.old, actions.old), (new, states.new, actions.new))
    ]
    state, action, successor = (np.concatenate(pair) for pair in zip(*columns, strict=True))
    key = (state * actions.size + action) * states.size + successor
    _, first, entry = np.unique(key, return_index=True, return_inverse=True)
    parts = np.concatenate((old.count, new.count))
    count = np.zeros(len(first), dtype=parts.dtype)
    np.add.at(count, entry, parts)
    rows = pack(state[first], action[first], successor[first], states.size, actions.size)
    merged = type(old)(
        **rows._asdict(),
        **_add_rewards(old, new, entry, parts, len(first), actions),
        count=count,
        num_actions=actions.size,
        state_labels=states.labels,
        action_labels=actions.labels,
        starts=_add_starts(old, new, states),
        terminal=terminal if terminal.any() else None,
    )
    if (given := _add_given(old, new)) is not None:
        merged = with_rewards(merged, given)
    side = np.repeat([0, 1], [old.num_entries, new.num_entries])
    compared = compare(
        merged.entry_row[entry], side, merged.successor[entry].astype(np.int64), parts
    )
    log = _add_logs(old, new)
    if new.log is not None:
        compared = tuple(
            replace(check, finding=check.finding.about(new.log.title)) for check in compared
        )
    return _settle_model(
        replace(merged, log=replace(log, checked=(*log.checks, *compared))), old, new
    )


def _add_declared(old: SomeCounts, new: SomeCounts) -> SomeCounts:
    same = (
        old.declared == new.declared
        and old.state_labels == new.state_labels
        and old.action_labels == new.action_labels
        and all(
            np.array_equal(getattr(old, name), getattr(new, name))
            for name in ("state_start", "row_action", "row_start", "successor")
        )
    )
    if not same:
        raise ValueError(
            "counts whose support is declared can only be added when they list the same states, "
            "actions and successors. Add the observed counts first, then choose the support."
        )
    if old.has_rewards != new.has_rewards or not all(
        np.array_equal(getattr(old, name), getattr(new, name), equal_nan=True)
        for name in ("reward_mean", "reward_var")
        if old.has_rewards
    ):
        raise ValueError(
            "these declared counts have different rewards. Add the observed counts first, then "
            "choose the support."
        )
    starts = None
    if old.starts is not None and new.starts is not None:
        starts = old.starts + new.starts
    log = None if old.log is None and new.log is None else _add_logs(old, new)
    return replace(old, count=old.count + new.count, starts=starts, log=log)


def _add_rewards(
    old: CountArrays,
    new: CountArrays,
    entry: Ints,
    count: NDArray[Any],
    size: int,
    actions: Alignment,
) -> dict[str, Any]:  # fmt: skip
    if not old.has_rewards:
        return {}
    if (sums := _add_sums(old, new, entry, size)) is not None:
        action = np.zeros(size, dtype=np.int64)
        action[entry] = np.concatenate(
            (actions.old[old.entry_action], actions.new[new.entry_action])
        )
        return reward_fields(sums, action, actions.size)
    mean, variance = (
        np.concatenate([getattr(counts, name) for counts in (old, new)])
        for name in ("reward_mean", "reward_var")
    )
    pooled = pool(entry, count, RewardStatistics(mean, variance), size)
    low, high = np.full(actions.size, np.nan), np.full(actions.size, np.nan)
    for counts, ids in ((old, actions.old), (new, actions.new)):
        if counts.reward_low is not None and counts.reward_high is not None:
            low[ids] = np.fmin(low[ids], counts.reward_low)
            high[ids] = np.fmax(high[ids], counts.reward_high)
    return {
        "reward_mean": pooled.mean, "reward_var": pooled.variance,
        "reward_low": low, "reward_high": high,
    }  # fmt: skip


def _add_sums(old: CountArrays, new: CountArrays, entry: Ints, size: int) -> RewardSums | None:
    """Return the exact sums of both; None if one of them does not come straight from a log."""
    first, second = old.reward_sums, new.reward_sums
    if first is None or second is None:
        return None
    if not (np.array_equal(first.count, old.count) and np.array_equal(second.count, new.count)):
        return None  # the counts were changed afterwards
    return join((first, second)).grouped(entry, size)


def _add_given(old: CountArrays, new: CountArrays) -> GivenRewards | None:
    """Return the given rewards of both counts, which must not contradict each other."""
    if old.given is None and new.given is None:
        return None
    if old.given is None or new.given is None:
        raise ValueError(
            "one of the two counts has given rewards, the other rewards of its log. Give the same "
            "rewards to both (with_rewards) before adding."
        )
    if old.given.function is not None and old.given.function is new.given.function:
        return old.given
    first = old.given.by_label(old.state_labels, old.action_labels)
    second = new.given.by_label(new.state_labels, new.action_labels)
    for key, value in second.items():
        if first.get(key, value) != value:
            raise ValueError(
                f"the given rewards differ for {key!r}: {first[key]:g} and {value:g}. Give the "
                "same rewards to both before adding."
            )
    return GivenRewards(table=first | second)


def _add_starts(old: CountArrays, new: CountArrays, states: Alignment) -> Ints | None:
    """Add the episode starts; None if one of the logs has none."""
    if old.starts is None or new.starts is None:
        return None
    starts = np.zeros(states.size, dtype=np.int64)
    np.add.at(starts, states.old, old.starts)
    np.add.at(starts, states.new, new.starts)
    return starts


def _add_logs(old: CountArrays, new: CountArrays) -> Log:
    first, second = (
        counts.log or Log(names=("an array",), rows=int(counts.count.sum()), checked=())
        for counts in (old, new)
    )
    return first + second


def _settle_model(merged: SomeCounts, old: CountArrays, new: CountArrays) -> SomeCounts:
    """Keep the more careful reward model of the two, and a range only where both gave one."""
    model = max(old.reward_model, new.reward_model, key=REWARD_MODELS.index)
    if model == "fixed" and merged.rewards_vary and not (old.rewards_vary or new.rewards_vary):
        model = "bounded"  # rewards vary only between the two logs
    bounds = None
    if old.reward_range is not None and new.reward_range is not None:
        ends = np.array([old.reward_range, new.reward_range])
        bounds = (float(ends[:, 0].min()), float(ends[:, 1].max()))
    return replace(merged, reward_model=model, reward_range=bounds)


def align_actions(old: CountArrays, new: CountArrays) -> Alignment:
    """Return one numbering of the actions of two logs."""
    names = [
        [label_of(i, counts.action_labels) for i in range(counts.num_actions)]
        for counts in (old, new)
    ]
    plain = old.action_labels is None and new.action_labels is None
    return _number("action", names[0], names[1], plain=plain)


def align_states(old: CountArrays, new: CountArrays) -> tuple[Alignment, NDArray[np.bool_]]:
    """Return one numbering of the states of two logs, and which states are terminal.

    A state that is terminal in one log but not in the other is not terminal in the sum: ends in it
    go to the extra terminal state, as if both logs had been read as one.
    """
    names = [_state_names(counts) for counts in (old, new)]
    lives = [
        {name for name, ends in zip(own, counts.is_terminal, strict=True) if not ends}
        for own, counts in zip(names, (old, new), strict=True)
    ]
    extra = free_label(TERMINAL_LABEL, tuple(lives[0] | lives[1]))
    moved = False
    for own, counts, other in zip(names, (old, new), reversed(lives), strict=True):
        for i in np.flatnonzero(counts.is_terminal):
            if own[i] in other:
                own[i], moved = extra, True
    plain = old.state_labels is None and new.state_labels is None and not moved
    aligned = _number("state", names[0], names[1], plain=plain)
    terminal = np.zeros(aligned.size, dtype=np.bool_)
    terminal[aligned.old[old.is_terminal]] = True
    terminal[aligned.new[new.is_terminal]] = True
    return aligned, terminal


def _state_names(counts: CountArrays) -> list[Label]:
    return [label_of(i, counts.state_labels) for i in range(counts.num_states)]


def _number(what: str, old: list[Label], new: list[Label], *, plain: bool) -> Alignment:
    if plain:
        size = max(len(old), len(new))
        return Alignment(None, size, np.arange(len(old)), np.arange(len(new)))
    distinct = list(dict.fromkeys((*old, *new)))
    _check_types(what, distinct)
    ordered = sort_labels(distinct)
    where = {label: i for i, label in enumerate(ordered)}
    old_ids, new_ids = (
        np.array([where[label] for label in labels], dtype=np.int64) for labels in (old, new)
    )
    return Alignment(ordered, len(ordered), old_ids, new_ids)


def _check_types(what: str, labels: list[Label]) -> None:
    """Refuse a label that is a number in one log and the same text in the other."""
    spelled = {str(label) for label in labels if isinstance(label, int)}
    spelled |= {f"{number}.0" for number in spelled}
    clash = next((x for x in labels if isinstance(x, str) and x in spelled), None)
    if clash is not None:
        raise ValueError(
            f"{what} {clash!r} is text in one log and a number in the other. Read both with "
            "labels='text', or convert one."
        )


def sort_labels(labels: Sequence[Label]) -> tuple[Label, ...]:
    """Return labels in order: numbers by value before texts before tuples.

    Examples
    --------
    >>> sort_labels([10, "terminal", 9])
    (9, 10, 'terminal')
    """

    def key(label: Label) -> tuple[object, ...]:
        if isinstance(label, tuple):
            return (2, *(key(part) for part in label))
        return (0, label) if isinstance(label, int) else (1, str(label))

    return tuple(sorted(labels, key=key))
