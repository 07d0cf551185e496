"""A log that continues an earlier one: transitions across the boundary, and no false starts."""

from collections.abc import Hashable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot._findings import Finding
from surefoot.data.columns import Columns, Layout, choose
from surefoot.data.count_queries import names
from surefoot.data.counts import Counts
from surefoot.data.episode_ends import EpisodeEnds
from surefoot.data.episodes import hashed_label
from surefoot.data.found_sources import find
from surefoot.data.layouts import lay_out
from surefoot.data.log import Log
from surefoot.data.log_format import LogFormat
from surefoot.data.open_log import open_log
from surefoot.data.side_files import parts_of
from surefoot.data.sources import Connection, session
from surefoot.data.transitions import assemble


def read_ends(
    source: Any, counts: Counts, columns: dict[str, Any], how: LogFormat, *, seed: int
) -> EpisodeEnds:
    """Read where the episodes of a log begin and stop; ``counts`` were read from the same log."""
    if counts.log is not None:
        how = replace(how, bins=counts.log.bins)
    with session() as connection:
        found = find(connection, source, Columns.wanted(**columns), how)
        layout = lay_out(connection, found, choose(list(found.types), found.name, **columns), how)
        rows = _fetch(connection, layout, seed)
    states = _Labels(counts.state_labels or (), len(layout.state_kinds))
    actions = _Labels(counts.action_labels or (), len(layout.action_kinds))
    size = len(rows["id"])
    parts = {
        letter: list(zip(*(rows[f"{letter}{i}"] for i in range(width)), strict=True))
        for letter, width in (
            ("f", len(layout.state_kinds)), ("s", len(layout.state_kinds)),
            ("a", len(layout.action_kinds)),
        )
    }  # fmt: skip
    needed = layout.derived & ~rows["z"]
    first = tuple(states.of(key) for key in parts["f"])
    last = [states.of(key) for key in parts["s"]]
    done = [actions.of(key) for key in parts["a"]]
    state_ids, state_labels = _numbered(last)
    action_ids, action_labels = _numbered(done)
    return EpisodeEnds(
        seed=seed,
        identity=rows["id"],
        first_step=rows["first"],
        last_step=rows["last"],
        ended=rows["z"],
        state=np.where(needed, state_ids.reshape(size), -1),
        action=np.where(needed, action_ids.reshape(size), -1),
        reward=np.where(needed, rows["r"], np.nan),
        state_labels=state_labels,
        action_labels=action_labels,
        reach=_reach(layout, rows),
        working_days=layout.rhythm is not None and "working" in layout.rhythm.words,
        first=first,
    )


class _Labels:
    """Maps spellings to the labels of the counts; unknown spellings get the same types."""

    def __init__(self, labels: tuple[Hashable, ...], width: int) -> None:
        self.width = width
        self.known = {parts_of(label, width): label for label in labels}
        own = [label if width > 1 else (label,) for label in labels]
        self.whole = [
            all(isinstance(label[i], int) for label in own if isinstance(label, tuple))
            for i in range(width)
        ]

    def of(self, parts: tuple[Any, ...]) -> Hashable:
        """Return the label that is spelled in parts; None where a part is missing."""
        if any(part is None for part in parts):
            return None
        if parts in self.known:
            return self.known[parts]
        typed = tuple(
            int(part) if whole and str(part).lstrip("-").isdigit() else str(part)
            for part, whole in zip(parts, self.whole, strict=True)
        )
        return typed if self.width > 1 else typed[0]


def _numbered(labels: list[Hashable]) -> tuple[NDArray[np.int64], tuple[Hashable, ...]]:
    """Return an id for each label, -1 for None, and the labels in order of the ids."""
    where = {label: i for i, label in enumerate(dict.fromkeys(x for x in labels if x is not None))}
    ids = [-1 if label is None else where[label] for label in labels]
    return np.array(ids, dtype=np.int64), tuple(where)


def _reach(layout: Layout, rows: dict[str, NDArray[Any]]) -> float:
    if layout.steps_are_numbers:
        unit = (rows["last"] - rows["first"] == rows["n"] - 1) & (rows["n"] > 1)
        return 1.0 if unit.any() else np.inf  # steps may rise by any amount
    return np.inf if layout.rhythm is None else layout.rhythm.reach


def _fetch(connection: Connection, layout: Layout, seed: int) -> dict[str, NDArray[Any]]:
    """Return one line per episode: id, first and last step, first and last row."""
    step = "k::DOUBLE" if layout.steps_are_numbers else "epoch_us(k)::DOUBLE"
    reward = "r" if layout.columns.reward is not None else "NULL::DOUBLE"
    ended = "coalesce(z, false)" if layout.columns.terminal is not None else "false"
    listed = [*names(layout, "s"), *names(layout, "a")]
    spelled = ", ".join(f"{name} := {_spelled(layout, name)}" for name in listed)
    own = [f"start.{name} AS f{i}" for i, name in enumerate(names(layout, "s"))]
    own += [f"stop.{name} AS {name}" for name in listed]
    query = (
        f"SELECT id, first, last, n, stop.r AS r, stop.z AS z, {', '.join(own)} FROM ("
        f"SELECT {hashed_label(layout, seed)} AS id, min({step}) AS first, max({step}) AS last, "
        "count(*) AS n, "
        f"arg_min(struct_pack({spelled}), k) AS start, "
        f"arg_max(struct_pack({spelled}, r := {reward}, z := {ended}), k) AS stop "
        f"FROM ({layout.select()}) WHERE e IS NOT NULL AND k IS NOT NULL GROUP BY id) ORDER BY id"
    )
    found = connection.execute(query).fetchnumpy()
    filled = {
        name: np.ma.filled(column, np.nan) if column.dtype.kind == "f" else np.ma.getdata(column)
        for name, column in found.items()
    }
    return filled | {"z": filled["z"].astype(np.bool_)}


def _spelled(layout: Layout, name: str) -> str:
    kinds = layout.action_kinds if name[0] == "a" else layout.state_kinds
    return f"{name}::BIGINT::VARCHAR" if kinds[int(name[1:])] == "float" else f"{name}::VARCHAR"


def continued(new: Counts, here: EpisodeEnds, earlier: EpisodeEnds) -> Counts:
    """Return the counts of a new log as the continuation of an earlier one.

    Transitions from the last old row of an episode to its first new row are added; episodes that
    the earlier log had are not counted as starts.
    """
    meeting = meet(here, earlier, new)
    log = new.log
    if not meeting.known.any() or log is None:
        return new
    starts = None if new.starts is None else new.starts.copy()
    if starts is not None:
        ids = {label: i for i, label in enumerate(new.state_labels or ())}
        for i in np.flatnonzero(meeting.known):
            if here.first[i] in ids:
                starts[ids[here.first[i]]] -= 1
    episodes = None if log.episodes is None else log.episodes - int(meeting.known.sum())
    log = replace(log, findings=(*log.findings, *meeting.findings), episodes=episodes)
    fewer = replace(new, starts=starts, log=log)
    if not len(meeting.across):
        return fewer
    return replace(fewer + _moves(here, earlier, meeting, new), log=log)


def only_across(old: Counts, here: EpisodeEnds, earlier: EpisodeEnds, name: str) -> Counts | None:
    """Return old counts plus the transitions into a new log with a single row per episode.

    Such a log has no transitions of its own. None if no episode continues the earlier log either.
    """
    meeting = meet(here, earlier, old)
    if not len(meeting.across):
        return None
    rows = len(here.identity)
    fresh = np.flatnonzero(~meeting.known)
    log = Log(
        names=(name,), rows=rows, episodes=len(fresh), findings=meeting.findings, checked=(),
        ends=here,
        columns=old.log.columns if old.log is not None else (("state",), ("action",), ()),
        bins=() if old.log is None else old.log.bins,
    )  # fmt: skip
    both = old + replace(_moves(here, earlier, meeting, old), log=log)
    if both.starts is None:
        return both
    starts = both.starts.copy()
    ids = {label: i for i, label in enumerate(both.state_labels or ())}
    for i in fresh:
        if here.first[i] in ids:
            starts[ids[here.first[i]]] += 1
    return replace(both, starts=starts)


class Meeting(NamedTuple):
    """How two logs meet.

    ``known`` tells which new episodes the earlier log has and ``place`` where they are there;
    ``across`` lists those whose first new row directly follows the last old one.
    """

    known: NDArray[np.bool_]
    place: NDArray[np.int64]
    across: NDArray[np.int64]
    findings: tuple[Finding, ...]


def meet(here: EpisodeEnds, earlier: EpisodeEnds, like: Counts) -> Meeting:
    """Find the episodes of a new log that an earlier one has, and which continue without a gap."""
    place = np.searchsorted(earlier.identity, here.identity)
    place = np.minimum(place, max(len(earlier.identity) - 1, 0))
    if not len(earlier.identity):
        nothing = np.zeros(0, dtype=np.int64)
        return Meeting(np.zeros(len(here.identity), dtype=np.bool_), nothing, nothing, ())
    known = earlier.identity[place] == here.identity
    rule = here if np.isfinite(here.reach) else earlier
    before = earlier.last_step[place]
    again = known & (here.first_step <= before)
    able = (earlier.state[place] >= 0) & (earlier.action[place] >= 0) & ~earlier.ended[place]
    able &= ~np.isnan(earlier.reward[place]) | (like.given is not None) | (not like.has_rewards)
    able &= np.array([label is not None for label in here.first], dtype=np.bool_)
    across = np.flatnonzero(known & able & rule.follows(before, here.first_step))
    found: list[Finding] = []
    if known.any():
        numbers = {"episodes": int(known.sum()), "across": len(across)}
        found.append(Finding.of("episodes_go_on", **numbers))
    if again.any():
        found.append(Finding.of("steps_read_twice", episodes=int(again.sum())))
    return Meeting(known, place, across, tuple(found))


def _moves(here: EpisodeEnds, earlier: EpisodeEnds, meeting: Meeting, like: Counts) -> Counts:
    """Return the transitions across the boundary."""
    last = meeting.place[meeting.across]
    state = [earlier.state_labels[i] for i in earlier.state[last]]
    action = [earlier.action_labels[i] for i in earlier.action[last]]
    after = [here.first[i] for i in meeting.across]
    table: dict[str, Any] = {}
    roles: dict[str, Any] = {}
    for role, labels in (("state", state), ("action", action), ("next_state", after)):
        width = len(labels[0]) if isinstance(labels[0], tuple) else 1
        roles[role] = [f"{role}{i}" for i in range(width)]
        for i, name in enumerate(roles[role]):
            column = [label[i] if width > 1 else label for label in labels]
            table[name] = np.array(column, dtype=object)
    rewarded = like.has_rewards and like.given is None
    if rewarded:
        table["reward"] = np.array(earlier.reward[last], dtype=np.float64)
    roles |= {"reward": "reward" if rewarded else None}
    roles |= dict.fromkeys(("episode", "step", "terminal", "count"))
    with open_log(table, roles, drop_missing=False, text_labels=False) as opened:
        counted = assemble(opened.tally)
    if like.given is not None:
        counted = counted.with_rewards(like.given)
    return replace(
        counted, starts=None if like.starts is None else np.zeros(counted.num_states, np.int64),
        reward_model=like.reward_model, reward_range=like.reward_range,
    )  # fmt: skip
