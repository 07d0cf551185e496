"""Lists of transitions given with the log: the possible successors, and known rewards."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from surefoot._rows import Ints, pack
from surefoot.data.columns import choose
from surefoot.data.count_arrays import CountArrays, Entries, Label, SomeCounts
from surefoot.data.found_sources import find
from surefoot.data.layouts import lay_out
from surefoot.data.packed_rows import label_of
from surefoot.data.rewards import GivenRewards
from surefoot.data.sources import Source, session
from surefoot.data.tally import Tally, tally


def read_support(source: Any, counts: SomeCounts) -> tuple[SomeCounts, Entries]:
    """Return the counts with the list's labels added, and the listed entries by id.

    The list has the columns of the log (state, action, next_state). Everything observed must be
    listed; states and actions that the log never showed are added.
    """
    found, seen, _ = _read(source, counts, reward=None)
    states = _matched(seen.state_labels, counts.state_labels, counts.num_states)
    actions = _matched(seen.action_labels, counts.action_labels, counts.num_actions)
    wider = _widened(counts, states, actions)
    state_id = _ids(states, wider.state_labels)
    action_id = _ids(actions, wider.action_labels)
    entries = Entries(state_id[seen.state], action_id[seen.action], state_id[seen.successor])
    _check_observed(wider, entries, found.name)
    return wider, entries


def read_rewards(source: Any, counts: CountArrays) -> GivenRewards:
    """Return rewards listed in a file or a table: state, action, reward, optionally next_state."""
    _, seen, named = _read(source, counts, reward="reward")
    states = _matched(seen.state_labels, counts.state_labels, counts.num_states)
    actions = _matched(seen.action_labels, counts.action_labels, counts.num_actions)
    if seen.rewards is None:  # the column was asked for
        raise ValueError("the reward table has no rewards.")
    unclear = np.flatnonzero(seen.rewards.lowest < seen.rewards.highest)
    if len(unclear):
        place = int(unclear[0])
        raise ValueError(
            f"the reward table gives state {states[seen.state[place]]!r}, action "
            f"{actions[seen.action[place]]!r} more than one reward. Each needs exactly one."
        )
    table: dict[tuple[Label, ...], float] = {}
    for s, a, t, value in zip(
        seen.state, seen.action, seen.successor, seen.rewards.lowest, strict=True
    ):
        after = (states[t],) if named else ()
        table[(states[s], actions[a], *after)] = float(value)
    return GivenRewards(table=table)


def is_listing(rewards: Any) -> bool:
    """Tell whether given rewards are a file or a table with columns, not a mapping or an array."""
    if isinstance(rewards, Mapping):
        return bool(rewards) and all(isinstance(key, str) for key in rewards)
    return isinstance(rewards, (str, os.PathLike)) or hasattr(rewards, "columns")


def _read(source: Any, counts: CountArrays, reward: str | None) -> tuple[Source, Tally, bool]:
    """Read a list with the column names of the log; also tell whether it names next states."""
    state, action, after = (
        (("state",), ("action",), ("next_state",)) if counts.log is None else counts.log.columns
    )
    after = after or tuple("next_state" if name == "state" else f"next_{name}" for name in state)
    with session() as connection:
        found = find(connection, source, {*state, *action, *after, *([reward] if reward else [])})
        # Rewards of state and action alone need no next state; the state stands in for it.
        named = reward is None or any(name in found.types for name in after)
        columns = choose(
            list(found.types), found.name, state=state, action=action,
            next_state=after if named else state, reward=reward,
            episode=None, step=None, terminal=None, count=None,
        )  # fmt: skip
        layout = lay_out(connection, found, columns)
        seen = tally(connection, layout, drop_missing=False, text_labels=False)
    return found, seen, named


def _matched(found: Sequence[Label], known: Sequence[Label] | None, size: int) -> tuple[Label, ...]:
    """Return the listed labels as the log spells them: 7 in a file may be '7' in the log."""
    own = dict.fromkeys(label_of(i, known) for i in range(size))
    spelled = {_spell(label): label for label in own}
    return tuple(label if label in own else spelled.get(_spell(label), label) for label in found)


def _spell(label: Label) -> Label:
    return tuple(map(_spell, label)) if isinstance(label, tuple) else str(label)


def _widened(
    counts: SomeCounts, states: tuple[Label, ...], actions: tuple[Label, ...]
) -> SomeCounts:
    """Return the counts with new states and actions appended to the known ones."""
    known = [label_of(i, counts.state_labels) for i in range(counts.num_states)]
    known_actions = [label_of(i, counts.action_labels) for i in range(counts.num_actions)]
    own, own_actions = set(known), set(known_actions)
    more = [label for label in states if label not in own]
    more_actions = [label for label in actions if label not in own_actions]
    num_states, num_actions = len(known) + len(more), len(known_actions) + len(more_actions)
    rows = pack(
        counts.entry_state, counts.entry_action, counts.successor.astype(np.int64),
        num_states, num_actions,
    )  # fmt: skip

    def padded(array: Any, size: int, filler: Any) -> Any:
        return None if array is None else np.append(array, np.full(size, filler, array.dtype))

    return replace(
        counts,
        **rows._asdict(),
        num_actions=num_actions,
        state_labels=(*known, *more),
        action_labels=(*known_actions, *more_actions),
        starts=padded(counts.starts, len(more), 0),
        terminal=padded(counts.terminal, len(more), False),
        reward_low=padded(counts.reward_low, len(more_actions), np.nan),
        reward_high=padded(counts.reward_high, len(more_actions), np.nan),
    )


def _ids(labels: Sequence[Label], target: Sequence[Label] | None) -> Ints:
    where = {label: i for i, label in enumerate(target or ())}
    return np.array([where[label] for label in labels], dtype=np.int64)


def _check_observed(counts: CountArrays, listed: Entries, name: str) -> None:
    """Refuse a list that lacks an observed transition."""

    def keys(entries: Entries) -> Ints:
        row = entries.state * counts.num_actions + entries.action
        return row * counts.num_states + entries.successor

    observed = Entries(
        counts.entry_state, counts.entry_action, counts.successor.astype(np.int64)
    ).where(counts.count > 0)
    outside = np.flatnonzero(~np.isin(keys(observed), keys(listed)))
    if len(outside):
        i = outside[0]
        state, action, after = (
            label_of(observed.state[i], counts.state_labels),
            label_of(observed.action[i], counts.action_labels),
            label_of(observed.successor[i], counts.state_labels),
        )
        raise ValueError(
            f"{name} does not list state {state!r}, action {action!r}, next state {after!r}, which "
            f"the log shows ({len(outside):,} such transitions). Add them to the list."
        )
