"""One pass over a log, as arrays: the step between SQL and counts."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.data import faults, grouping, numbering
from surefoot.data.columns import Layout
from surefoot.data.rewards import range_per_action
from surefoot.data.sources import Connection

Floats = NDArray[np.float64]

ROUNDINGS = 64
"""Rewards that scatter by no more than this many roundings of their mean are equal."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Tally:
    """What a log holds, by id.

    Attributes
    ----------
    state, action, successor
        ``(E,)`` ids, sorted; a successor of -1 is an end without a named state.
    ends
        ``(E,)``: whether these transitions were terminal.
    count, mean, variance
        ``(E,)``: how many, and mean and sample variance of their rewards (NaN for one reward).
    lowest, highest
        ``(A,)``: the range of rewards under each action.
    state_labels, action_labels
        In order of the ids.
    starts
        ``(S,)`` episode starts, or None.
    rows, episodes, cut, zero_rows
        Rows read, episodes, rows that only end a cut episode, rows with count 0.
    dropped
        Rows left out on request, by the column they lacked.
    split
        After how many rows the table of groups has cut the log in two; None where it has not.
    """

    state: NDArray[np.int64]
    action: NDArray[np.int64]
    successor: NDArray[np.int64]
    ends: NDArray[np.bool_]
    count: NDArray[np.int64]
    mean: Floats | None
    variance: Floats | None
    lowest: Floats | None
    highest: Floats | None
    state_labels: tuple[Any, ...]
    action_labels: tuple[Any, ...]
    starts: NDArray[np.int64] | None
    rows: int
    episodes: int | None
    cut: int
    zero_rows: int
    dropped: dict[str, int]
    split: int | None


def tally(
    connection: Connection, layout: Layout, *, drop_missing: bool, text_labels: bool
) -> Tally:
    """Count a log: group its rows, look for faults among the groups, number the labels."""
    split = _split(connection, layout)
    grouping.group(connection, layout, drop_missing=drop_missing, split=split)
    faults.check_groups(connection, layout, drop_missing=drop_missing)
    numbering.collect_starts(connection, layout)
    states = numbering.number_labels(connection, layout, "state", text_labels=text_labels)
    actions = numbering.number_labels(connection, layout, "action", text_labels=text_labels)
    entries = numbering.fetch_entries(connection, layout)
    rewards = _rewards(connection, layout, entries, len(actions), drop_missing)
    dropped, gaps = {}, 0
    if drop_missing:
        dropped = faults.count_dropped(connection, layout)
        gaps = _lines(connection, grouping.LEFT_OUT)
    zero_rows = _zero_rows(connection, layout)
    return Tally(
        state=entries["s"],
        action=entries["a"],
        successor=entries["t"],
        ends=entries["z"].astype(np.bool_),
        count=entries["n"],
        **rewards,
        state_labels=states,
        action_labels=actions,
        starts=numbering.fetch_starts(connection, layout, len(states)),
        rows=_lines(connection) + zero_rows + sum(dropped.values()),
        episodes=_episodes(connection, layout),
        cut=_lines(connection, grouping.CUT),
        zero_rows=zero_rows,
        dropped=dropped | ({"a following step": gaps} if gaps else {}),
        split=split,
    )


def _split(connection: Connection, layout: Layout) -> int | None:
    """Return where to cut a log in two while it is counted: that saves the check a scan.

    Logs that are checked for memory too are scanned again anyway.
    """
    if not layout.source.numbered or layout.columns.count is not None or layout.ordered:
        return None
    query = f"SELECT count(*) FROM ({layout.select()})"  # the file knows
    return int(connection.execute(query).fetchall()[0][0]) // 2


def _rewards(
    connection: Connection,
    layout: Layout,
    entries: dict[str, NDArray[Any]],
    num_actions: int,
    drop_missing: bool,
) -> dict[str, Any]:
    """Return mean and variance of each entry, and the range of each action."""
    if layout.columns.reward is None:
        return dict.fromkeys(("mean", "variance", "lowest", "highest"))
    # Partial results are put together with rounded means: a few roundings are not variation.
    rounding = (ROUNDINGS * np.spacing(np.abs(entries["mean"]))) ** 2
    variance = np.where(entries["variance"] <= rounding, 0.0, entries["variance"])
    mean = _without_noise(entries | {"variance": variance})
    if grouping.one_pass(layout):
        lowest, _ = range_per_action(entries["a"], entries["lowest"], num_actions)
        _, highest = range_per_action(entries["a"], entries["highest"], num_actions)
    elif np.any(variance > 0):
        lowest, highest = numbering.fetch_ranges(
            connection, layout, num_actions, drop_missing=drop_missing
        )
    else:  # no transition showed two rewards, so the means are the rewards
        lowest, highest = range_per_action(entries["a"], mean, num_actions)
    variance = np.where(entries["n"] > 1, variance, np.nan)
    return {"mean": mean, "variance": variance, "lowest": lowest, "highest": highest}


def _lines(connection: Connection, flag: int | None = None) -> int:
    where = "" if flag is None else f" WHERE flag = {flag}"
    return int(
        connection.execute(f"SELECT coalesce(sum(lines), 0) FROM groups{where}").fetchall()[0][0]
    )


def _zero_rows(connection: Connection, layout: Layout) -> int:
    if layout.columns.count is None:
        return 0
    query = f"SELECT count(*) FROM ({layout.select()}) WHERE n = 0"
    return int(connection.execute(query).fetchall()[0][0])


def _episodes(connection: Connection, layout: Layout) -> int | None:
    if layout.columns.episode is None:
        return None
    if numbering.has_starts(layout):
        query = "SELECT coalesce(sum(n), 0) FROM starts"
    else:
        query = f"SELECT count(DISTINCT e) FROM ({layout.select()})"
    return int(connection.execute(query).fetchall()[0][0])


def _without_noise(entries: dict[str, NDArray[Any]]) -> Floats:
    """Return the means, without the noise of a long sum where all rewards were equal.

    A sum of n equal numbers may be off by n roundings. Where a decimal with few digits lies that
    close, so few that chance would bring one in less than one case of a thousand, it is the reward.
    """
    mean = entries["mean"].astype(np.float64)
    if "lowest" in entries:
        return np.where(entries["lowest"] == entries["highest"], entries["lowest"], mean)
    constant = np.flatnonzero((entries["n"] > 1) & (entries["variance"] == 0) & (mean != 0))
    size, value = entries["n"][constant].astype(np.float64), np.abs(mean[constant])
    slack = size * np.finfo(np.float64).eps
    digits = np.floor(-3 - np.log10(2 * slack)) - 1 - np.floor(np.log10(value))
    for places in range(23):  # powers of ten are exact up to 10**22
        here = np.flatnonzero(digits == places)
        rounded = np.round(mean[constant[here]], places)
        close = np.abs(np.abs(rounded) - value[here]) <= slack[here] * value[here]
        mean[constant[here[close]]] = rounded[close]
    return mean
