"""A log of many Parquet files, counted by the workers of a cluster and added up.

Every worker counts some of the files with its own DuckDB. Counts and sums of rewards are exact
integers, so that their sum has the same bits as one pass. If the parts do not agree, or a worker
cannot read its files (which must lie where all workers see them), the log is counted in one pass in
this process.
"""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from surefoot._workers import all_parts, current
from surefoot.data.columns import Columns, Layout, choose
from surefoot.data.found_sources import find
from surefoot.data.layouts import lay_out
from surefoot.data.log_format import LogFormat
from surefoot.data.merge import sort_labels
from surefoot.data.reward_sums import join
from surefoot.data.sources import session
from surefoot.data.tally import Tally, tally

SHARED_BYTES = 64_000_000
"""Logs of at least this size are worth handing to the workers of a cluster."""
SHARDS_PER_WORKER = 2


def count_in_shards(
    source: Any, columns: dict[str, Any], *, drop_missing: bool, text_labels: bool,
    how: LogFormat | None = None,
) -> tuple[Layout, Tally] | None:  # fmt: skip
    """Count a log of several Parquet files on a cluster; None where one pass here must do it."""
    workers = current()
    if workers is None:
        return None
    with session() as connection:
        found = find(connection, source, Columns.wanted(**columns), how)
        if found.kind != "parquet" or len(found.files) < 2 or found.size < SHARED_BYTES:
            return None
        layout = lay_out(connection, found, choose(list(found.types), found.name, **columns), how)
    if layout.ordered or layout.derived or layout.columns.episode is not None:
        return None  # episodes may continue from file to file
    files = shares(found.files, SHARDS_PER_WORKER * workers.count)
    try:
        seen = _tallies(layout, files, (drop_missing, text_labels))
    except (ValueError, OSError, duckdb.Error):
        return None  # one pass here reports what is wrong, and where
    together = put_together(seen)
    return None if together is None else (layout, together)


def shares(files: tuple[Path, ...], number: int) -> list[tuple[Path, ...]]:
    """Return the files in order, cut into about equal shares of bytes."""
    sizes = np.cumsum([path.stat().st_size for path in files])
    cut = np.searchsorted(sizes, sizes[-1] * np.arange(1, number) / number) + 1
    ends = sorted({0, len(files), *(int(end) for end in cut if end < len(files))})
    return [files[a:b] for a, b in pairwise(ends)]


def _tallies(
    layout: Layout, files: list[tuple[Path, ...]], rules: tuple[bool, bool]
) -> list[Tally]:
    """Return the tally of each share, with all sums of rewards on the scale of the whole log."""
    seen: list[Tally] = all_parts(_count_files, (layout, rules, None), [(one,) for one in files])
    if seen[0].rewards is None:
        return seen
    digits = min(one.rewards.digits for one in seen if one.rewards is not None)
    again = [k for k, one in enumerate(seen) if one.rewards and one.rewards.digits != digits]
    parts = [(files[k],) for k in again]
    for k, one in zip(again, all_parts(_count_files, (layout, rules, digits), parts), strict=True):
        seen[k] = one
    return seen


def _count_files(
    layout: Layout, rules: tuple[bool, bool], digits: int | None, files: tuple[Path, ...]
) -> Tally:
    """Count some of the files; this runs on a worker."""
    own = replace(layout, source=replace(layout.source, files=files))
    drop_missing, text_labels = rules
    with session() as connection:
        return tally(
            connection, own, drop_missing=drop_missing, text_labels=text_labels, digits=digits
        )


def put_together(parts: list[Tally]) -> Tally | None:
    """Return the tally of all parts; None where they read the same labels in different ways."""
    states, actions = (
        _all_labels([getattr(part, name) for part in parts])
        for name in ("state_labels", "action_labels")
    )
    if states is None or actions is None or any(part.findings for part in parts):
        return None
    sums = [part.rewards for part in parts if part.rewards is not None]
    state_id, action_id = ({label: i for i, label in enumerate(all_)} for all_ in (states, actions))
    state, action, successor = [], [], []
    for part in parts:
        new = np.array([*(state_id[x] for x in part.state_labels), -1])  # -1 stays -1
        state.append(new[part.state])
        successor.append(new[part.successor])
        action.append(np.array([action_id[x] for x in part.action_labels])[part.action])
    return Tally(
        state=np.concatenate(state),
        action=np.concatenate(action),
        successor=np.concatenate(successor),
        ends=np.concatenate([part.ends for part in parts]),
        count=np.concatenate([part.count for part in parts]),
        rewards=join(sums) if sums else None,
        state_labels=states,
        action_labels=actions,
        starts=None,
        rows=sum(part.rows for part in parts),
        episodes=None,
        cut=sum(part.cut for part in parts),
        zero_rows=sum(part.zero_rows for part in parts),
        dropped={
            name: sum(part.dropped.get(name, 0) for part in parts)
            for name in dict.fromkeys(name for part in parts for name in part.dropped)
        },
        split=None,
        findings=(),
    )  # fmt: skip


def _all_labels(parts: list[tuple[Any, ...]]) -> tuple[Any, ...] | None:
    """Return all labels in order; None if a column is numbers in one part and text in another."""
    labels = dict.fromkeys(label for part in parts for label in part)
    kinds = {
        tuple(map(type, label)) if isinstance(label, tuple) else type(label) for label in labels
    }
    return sort_labels(list(labels)) if len(kinds) == 1 else None
