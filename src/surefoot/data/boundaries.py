"""Where the episodes of a log begin and stop, so that the next log can go on from there.

What is kept of an episode is its hashed label, its last step and, where the following row would be
its next state, what was done last. A new month then continues the episodes of the old one: the
transition across the boundary is counted, and the first rows of the month are not starts.
"""

import json
import os
from collections.abc import Hashable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot._atomic import replacing
from surefoot._findings import Finding
from surefoot._rows import freeze_fields
from surefoot.data.columns import Columns, Layout, choose, lay_out
from surefoot.data.counts import Counts
from surefoot.data.episodes import hashed_label
from surefoot.data.groups import names
from surefoot.data.open_log import open_log
from surefoot.data.reading import Reading
from surefoot.data.side_files import parts_of
from surefoot.data.sources import Connection, find, session
from surefoot.data.transitions import assemble
from surefoot.model.npz_files import labels_from_plain, plain_labels

DAY = 86_400_000_000
ARRAYS = ("identity", "first_step", "last_step", "ended", "state", "action", "reward")


@dataclass(frozen=True, kw_only=True, eq=False)
class Boundaries:
    """The first and the last row of each episode.

    Attributes
    ----------
    seed
        What labels were hashed with.
    identity
        ``(N,)`` hashed labels, increasing.
    first_step, last_step
        ``(N,)``: numbers, or times in microseconds.
    ended
        ``(N,)``: whether the episode ended by itself.
    first
        ``(N,)`` labels of the first states; empty once the log is added.
    state, action, reward
        ``(N,)``: ids of what was done last, -1 (NaN) where it is not needed or not known.
    state_labels, action_labels
        What the ids stand for.
    reach
        How far the next step may be away: 1 for numbers, a time, or infinity where there is no
        usual distance.
    working_days
        Whether distances are counted in working days.
    """

    seed: int
    identity: NDArray[np.uint64]
    first_step: NDArray[np.float64]
    last_step: NDArray[np.float64]
    ended: NDArray[np.bool_]
    state: NDArray[np.int64]
    action: NDArray[np.int64]
    reward: NDArray[np.float64]
    state_labels: tuple[Hashable, ...]
    action_labels: tuple[Hashable, ...]
    reach: float
    working_days: bool = False
    first: tuple[Hashable, ...] = ()

    def __post_init__(self) -> None:
        freeze_fields(self)

    def follows(self, last: NDArray[np.float64], first: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Tell which first steps come next after last ones."""
        apart = first - last
        if self.working_days:
            weeks = np.floor((first / DAY + 3) / 7) - np.floor((last / DAY + 3) / 7)
            apart = np.round(apart / DAY) - 2 * weeks
        return np.asarray((apart > 0) & (apart <= self.reach))


def read_boundaries(
    source: Any, counts: Counts, columns: dict[str, Any], how: Reading, *, seed: int
) -> Boundaries:
    """Read where the episodes of a log begin and stop; ``counts`` were read from it."""
    if counts.log is not None:
        how = replace(how, bins=counts.log.bins)
    with session() as connection:
        found = find(connection, source, Columns.wanted(**columns), how)
        layout = lay_out(connection, found, choose(list(found.types), found.name, **columns), how)
        rows = _fetch(connection, layout, seed)
    states = {
        parts_of(label, len(layout.state_kinds)): label for label in counts.state_labels or ()
    }
    actions = {
        parts_of(label, len(layout.action_kinds)): i
        for i, label in enumerate(counts.action_labels or ())
    }
    ids = {label: i for i, label in enumerate(counts.state_labels or ())}
    size = len(rows["id"])
    parts = {
        letter: list(zip(*(rows[f"{letter}{i}"] for i in range(width)), strict=True))
        for letter, width in (
            ("f", len(layout.state_kinds)), ("s", len(layout.state_kinds)),
            ("a", len(layout.action_kinds)),
        )
    }  # fmt: skip
    needed = layout.derived & ~rows["z"]
    last = [ids.get(states.get(key, ""), -1) for key in parts["s"]]
    done = [actions.get(key, -1) for key in parts["a"]]
    return Boundaries(
        seed=seed,
        identity=rows["id"],
        first_step=rows["first"],
        last_step=rows["last"],
        ended=rows["z"],
        state=np.where(needed, np.array(last, dtype=np.int64).reshape(size), -1),
        action=np.where(needed, np.array(done, dtype=np.int64).reshape(size), -1),
        reward=np.where(needed, rows["r"], np.nan),
        state_labels=tuple(counts.state_labels or ()),
        action_labels=tuple(counts.action_labels or ()),
        reach=_reach(layout, rows),
        working_days=layout.rhythm is not None and "working" in layout.rhythm.words,
        first=tuple(states.get(key) for key in parts["f"]),
    )


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


def joined(old: Boundaries, new: Boundaries) -> Boundaries:
    """Return the boundaries of both logs together: of an episode in both, those of the new one."""
    ids = {label: i for i, label in enumerate(dict.fromkeys(old.state_labels + new.state_labels))}
    acts = {
        label: i for i, label in enumerate(dict.fromkeys(old.action_labels + new.action_labels))
    }
    fresh = ~np.isin(old.identity, new.identity)
    arrays: dict[str, Any] = {
        name: np.concatenate((getattr(old, name)[fresh], getattr(new, name))) for name in ARRAYS
    }
    for name, where in (("state", ids), ("action", acts)):
        moved = [
            np.append([where[label] for label in getattr(one, f"{name}_labels")], -1).astype(int)
            for one in (old, new)
        ]
        arrays[name] = np.concatenate(
            (moved[0][getattr(old, name)[fresh]], moved[1][getattr(new, name)])
        )
    order = np.argsort(arrays["identity"])
    return replace(
        new, **{name: array[order] for name, array in arrays.items()},
        state_labels=tuple(ids), action_labels=tuple(acts), first=(),
        reach=new.reach if np.isfinite(new.reach) else old.reach,
        working_days=new.working_days or (not np.isfinite(new.reach) and old.working_days),
    )  # fmt: skip


def continued(new: Counts, here: Boundaries, earlier: Boundaries) -> Counts:
    """Return the counts of a new log as what goes on from an earlier one.

    Transitions from the last row of an episode to its first new one are added; episodes that the
    earlier log had are no starts.
    """
    place = np.searchsorted(earlier.identity, here.identity)
    place = np.minimum(place, max(len(earlier.identity) - 1, 0))
    known = np.zeros(len(here.identity), dtype=np.bool_)
    if len(earlier.identity):
        known = earlier.identity[place] == here.identity
    log = new.log
    if not known.any() or log is None:
        return new
    rule = here if np.isfinite(here.reach) else earlier
    before = earlier.last_step[place]
    again = known & (here.first_step <= before)
    able = (earlier.state[place] >= 0) & (earlier.action[place] >= 0) & ~earlier.ended[place]
    able &= ~np.isnan(earlier.reward[place]) | (new.given is not None) | (not new.has_rewards)
    across = np.flatnonzero(known & able & rule.follows(before, here.first_step))
    across = np.array([i for i in across if here.first[i] is not None], dtype=np.int64)
    found = [Finding.of("episodes_go_on", episodes=int(known.sum()), across=len(across))]
    if again.any():
        found.append(Finding.of("steps_read_twice", episodes=int(again.sum())))
    starts = None if new.starts is None else new.starts.copy()
    if starts is not None:
        ids = {label: i for i, label in enumerate(new.state_labels or ())}
        for i in np.flatnonzero(known):
            if here.first[i] in ids:
                starts[ids[here.first[i]]] -= 1
    episodes = None if log.episodes is None else log.episodes - int(known.sum())
    log = replace(log, findings=(*log.findings, *found), episodes=episodes)
    fewer = replace(new, starts=starts, log=log)
    if not len(across):
        return fewer
    moves = _moves(here, earlier, across, place, new)
    return replace(fewer + moves, log=log)


def _moves(here: Boundaries, earlier: Boundaries, across: Any, place: Any, new: Counts) -> Counts:
    """Return the transitions across the boundary."""
    last = place[across]
    state = [earlier.state_labels[i] for i in earlier.state[last]]
    action = [earlier.action_labels[i] for i in earlier.action[last]]
    after = [here.first[i] for i in across]
    table: dict[str, Any] = {}
    roles: dict[str, Any] = {}
    for role, labels in (("state", state), ("action", action), ("next_state", after)):
        width = len(labels[0]) if isinstance(labels[0], tuple) else 1
        roles[role] = [f"{role}{i}" for i in range(width)]
        for i, name in enumerate(roles[role]):
            column = [label[i] if width > 1 else label for label in labels]
            table[name] = np.array(column, dtype=object)
    rewarded = new.has_rewards and new.given is None
    if rewarded:
        table["reward"] = np.array(earlier.reward[last], dtype=np.float64)
    roles |= {"reward": "reward" if rewarded else None}
    roles |= dict.fromkeys(("episode", "step", "terminal", "count"))
    with open_log(table, roles, drop_missing=False, text_labels=False) as opened:
        counted = assemble(opened.tally)
    if new.given is not None:
        counted = counted.with_rewards(new.given)
    return replace(
        counted, starts=None if new.starts is None else np.zeros(counted.num_states, np.int64),
        reward_model=new.reward_model, reward_range=new.reward_range,
    )  # fmt: skip


def save_boundaries(path: str | os.PathLike[str], ends: Boundaries) -> None:
    """Write ``episodes.npz``: hashed labels and what goes on from there."""
    arrays = {name: getattr(ends, name) for name in ARRAYS}
    about = {
        "format": 1, "seed": ends.seed, "reach": None if np.isinf(ends.reach) else ends.reach,
        "working_days": ends.working_days,
        "state_labels": plain_labels("state_labels", ends.state_labels),
        "action_labels": plain_labels("action_labels", ends.action_labels),
    }  # fmt: skip
    with replacing(path, "wb") as file:
        np.savez_compressed(file, about=np.array(json.dumps(about)), **arrays)


def load_boundaries(path: str | os.PathLike[str]) -> Boundaries:
    """Read what `save_boundaries` wrote."""
    try:
        with np.load(Path(path), allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            arrays: dict[str, Any] = {name: file[name] for name in ARRAYS}
        return Boundaries(
            **arrays, seed=int(about["seed"]), working_days=bool(about["working_days"]),
            reach=np.inf if about["reach"] is None else float(about["reach"]),
            state_labels=labels_from_plain(about["state_labels"]) or (),
            action_labels=labels_from_plain(about["action_labels"]) or (),
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise ValueError(f"{path}: these are not the episodes of a run ({problem}).") from None
