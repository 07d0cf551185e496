"""Episodes of an earlier run that a new log continues: what they earned, and their parts."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot._rows import Ints
from surefoot.data.boundaries import meet
from surefoot.data.buckets import NUM_BUCKETS, BucketCounts, gather
from surefoot.data.counts import Counts
from surefoot.data.episode_ends import EpisodeEnds
from surefoot.data.episodes import nameless_end
from surefoot.data.packed_rows import label_of
from surefoot.data.returns import Begun, Returns
from surefoot.pipeline.added_log import ends_of
from surefoot.pipeline.manifest import COUNTS, EPISODES, PARTS, check_as_written
from surefoot.pipeline.settings import Settings


@dataclass(frozen=True, kw_only=True, eq=False)
class Carried:
    """What is known about the episodes of an earlier run.

    Attributes
    ----------
    known
        The hashed labels of all these episodes.
    begun
        What they earned up to the first row of the new log; None if that is not known.
    buckets
        Their transitions by part, including those across the boundary; None if not known.
    reason
        Why some or all returns are not known; "" if all are, or if there is no earlier run.
    """

    known: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    begun: Begun | None = None
    buckets: BucketCounts | None = None
    reason: str = ""

    @property
    def lost(self) -> NDArray[np.uint64]:
        """Hashed labels of the episodes whose returns are not known."""
        if self.begun is None:
            return self.known
        return self.known[~np.isin(self.known, self.begun.returns.identity)]


def carried(settings: Settings, counts: Counts) -> Carried:
    """Return what the earlier run knows about its episodes; ``counts`` are those of both logs."""
    folder = None if settings.add is None else Path(settings.add)
    if folder is None or not (folder / COUNTS).is_file():
        return Carried()
    earlier = Counts.load(folder / COUNTS)
    ends = None if earlier.log is None else earlier.log.ends
    if ends is None or ends.seed != settings.seed:
        return Carried(reason="episodes" if ends is None else "seed")
    if not (folder / EPISODES).is_file():
        return Carried(known=ends.identity, reason="folder")
    check_as_written(folder, EPISODES, PARTS)
    returns = Returns.load(folder / EPISODES)
    if returns.seed != settings.seed:
        return Carried(known=ends.identity, reason="seed")
    ids = _Ids(earlier, counts)
    parts = BucketCounts.load(folder / PARTS) if (folder / PARTS).is_file() else None
    here = ends_of(settings, counts, ends.seed)
    moves = _Moves.of(ends, here, ids)
    buckets = None if parts is None else ids.renumbered(parts) + moves.counted()
    other = _other(settings, returns)
    begun = None if other else _begun(returns.numbered(ids.states), ends, here, moves, ids)
    return Carried(
        known=ends.identity, begun=begun, buckets=buckets, reason=other or returns.lacking
    )


def _other(settings: Settings, returns: Returns) -> str:
    """Return why the returns of the earlier run do not fit these settings; "" if they do."""
    if returns.discount != settings.discounted:
        return "discount"
    return "horizon" if returns.horizon != settings.horizon else ""


class _Ids:
    """Maps the states, actions and entries of an earlier run to the ids of both logs together."""

    def __init__(self, old: Counts, new: Counts) -> None:
        self.old, self.new = old, new
        self.state = {label_of(i, new.state_labels): i for i in range(new.num_states)}
        self.action = {label_of(i, new.action_labels): i for i in range(new.num_actions)}
        end = nameless_end(new)
        states = [self.state.get(label_of(i, old.state_labels), end) for i in range(old.num_states)]
        ids = np.array(states, dtype=np.int64)
        # An end in a state that is not terminal in the new log becomes an end without a name.
        self.states = np.where(old.is_terminal & ~new.is_terminal[ids], end, ids)
        acts = [self.action[label_of(i, old.action_labels)] for i in range(old.num_actions)]
        self.actions = np.array(acts, dtype=np.int64)
        size = new.num_states
        self.keys = (new.entry_state * new.num_actions + new.entry_action) * size + new.successor

    def entry(self, state: Ints, action: Ints, successor: Ints) -> Ints:
        """Return the entry of each transition."""
        size = self.new.num_states
        wanted = (state * self.new.num_actions + action) * size + successor
        found = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        if not np.array_equal(self.keys[found], wanted):
            raise ValueError("the earlier run holds transitions that its counts do not have.")
        return np.asarray(found)

    def renumbered(self, parts: BucketCounts) -> BucketCounts:
        """Return the parts of the earlier log with the entry ids of both logs."""
        old = self.old
        entry = self.entry(
            self.states[old.entry_state], self.actions[old.entry_action],
            self.states[old.successor],
        )  # fmt: skip
        starts = None
        if parts.starts is not None:
            starts = np.zeros((NUM_BUCKETS, self.new.num_states), dtype=np.int64)
            for bucket in range(NUM_BUCKETS):
                np.add.at(starts[bucket], self.states, parts.starts[bucket])
        return replace(parts, entry=entry[parts.entry], starts=starts)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Moves:
    """Steps across the boundary, from the last old row of an episode to its first new row."""

    identity: NDArray[np.uint64]
    entry: Ints
    reward: NDArray[np.float64]
    successor: Ints
    num_states: int

    @classmethod
    def of(cls, ends: EpisodeEnds, here: EpisodeEnds | None, ids: _Ids) -> "_Moves":
        """Find the steps across the boundary."""
        last, after = np.zeros(0, dtype=np.int64), []
        if here is not None and here.first:
            meeting = meet(here, ends, ids.new)
            last = meeting.place[meeting.across]
            after = [here.first[i] for i in meeting.across]
        state = _numbers([ends.state_labels[i] for i in ends.state[last]], ids.state)
        action = _numbers([ends.action_labels[i] for i in ends.action[last]], ids.action)
        successor = _numbers(after, ids.state)
        entry = ids.entry(state, action, successor)
        reward = np.nan_to_num(ends.reward[last])
        if ids.new.given is not None and ids.new.reward_mean is not None:
            reward = ids.new.reward_mean[entry]
        return cls(
            identity=ends.identity[last], entry=entry, reward=reward, successor=successor,
            num_states=ids.new.num_states,
        )  # fmt: skip

    def counted(self) -> BucketCounts:
        """Return the counts of these steps by part of the log."""
        bucket = (self.identity % np.uint64(NUM_BUCKETS)).astype(np.int64)
        nothing = np.zeros((NUM_BUCKETS, self.num_states), dtype=np.int64)
        return gather(self.entry, bucket, self.reward).with_starts(nothing)


def _numbers(labels: Any, ids: dict[Any, int]) -> Ints:
    return np.array([ids[label] for label in labels], dtype=np.int64)


def _begun(
    returns: Returns, ends: EpisodeEnds, here: EpisodeEnds | None, moves: _Moves, ids: _Ids
) -> Begun:  # fmt: skip
    """Return what episodes earned up to their first new row, and which cannot be continued."""
    whole = _with_unfollowed(returns, ends, here)
    place = _among(ends.identity, whole.identity)[1]
    open_ = ~whole.ended & (whole.until == ends.last_step[place])
    stepped, move = _among(moves.identity, whole.identity)
    stepped &= open_
    arrays: dict[str, Any] = {
        name: getattr(whole, name).copy() for name in ("earned", "steps", "reached", "until")
    }
    goes_on = stepped.copy()
    if here is not None:
        new, row = _among(here.identity, whole.identity)
        goes_on |= new & open_ & _named_next(whole, ends, here, (place, row), ids)
        arrays["until"][stepped] = here.first_step[row[stepped]]
    power = np.cumprod(np.append(1.0, np.full(int(whole.steps.max(initial=0)), returns.discount)))
    arrays["earned"][stepped] += power[whole.steps[stepped]] * moves.reward[move[stepped]]
    arrays["steps"][stepped] += 1
    arrays["reached"][stepped] = moves.successor[move[stepped]]
    ended = whole.ended | (stepped & (arrays["steps"] == (returns.horizon or 0)))
    return Begun(replace(whole, ended=ended, **arrays), ended | ~goes_on)


def _among(known: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> tuple[Any, Ints]:
    """Return which wanted labels are known, and their places among the known ones."""
    order = np.argsort(known)
    place = np.minimum(np.searchsorted(known, wanted, sorter=order), max(len(known) - 1, 0))
    if not len(known):
        return np.zeros(len(wanted), dtype=np.bool_), place
    return known[order[place]] == wanted, order[place]


def _with_unfollowed(returns: Returns, ends: EpisodeEnds, here: EpisodeEnds | None) -> Returns:
    """Add the episodes in both logs that have no step so far: a single row, or none that counts."""
    if here is None:
        return returns
    more = np.isin(ends.identity, here.identity) & ~np.isin(ends.identity, returns.identity)
    size = int(more.sum())
    single = (ends.first_step[more] == ends.last_step[more]) & (not returns.lacking)
    added: dict[str, Any] = {
        "identity": ends.identity[more], "earned": np.zeros(size), "ended": np.zeros(size, bool),
        "steps": np.zeros(size, dtype=np.int64), "reached": np.full(size, -1),
        "until": np.where(single, ends.last_step[more], np.nan),
    }  # fmt: skip
    joined: dict[str, Any] = {
        name: np.concatenate((getattr(returns, name), own)) for name, own in added.items()
    }
    order = np.argsort(joined["identity"])
    return replace(returns, **{name: array[order] for name, array in joined.items()})


def _named_next(
    whole: Returns, ends: EpisodeEnds, here: EpisodeEnds, places: tuple[Ints, Ints], ids: _Ids
) -> NDArray[np.bool_]:
    """Return which episodes continue in the state that their last row named as the next state."""
    last, row = places
    if not here.first:  # the new log has several files that were not read together
        return np.zeros(len(whole), dtype=np.bool_)
    first = np.array([ids.state.get(label, -1) for label in here.first], dtype=np.int64)
    rule = here if np.isfinite(here.reach) else ends
    follows = rule.follows(ends.last_step[last], here.first_step[row])
    return np.asarray((ends.state[last] < 0) & follows & (first[row] == whole.reached))
