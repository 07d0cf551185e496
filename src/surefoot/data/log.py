"""The log that counts came from: files, rows, episodes, rows left out, and the checks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from surefoot._findings import Finding
from surefoot.data.bins import Binning
from surefoot.data.check import Check
from surefoot.data.episode_ends import EpisodeEnds, joined

if TYPE_CHECKING:
    from surefoot.data.columns import Layout

CHECK_AT_ONCE = 64_000_000
"""Logs up to this many bytes are checked when read; larger ones when the checks are first used."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pending:
    """A log that is still to be checked, with the size and time of its files when counted."""

    layout: Layout
    drop_missing: bool
    rows: int
    stamp: tuple[tuple[str, int, int], ...]

    @classmethod
    def of(cls, layout: Layout, *, drop_missing: bool, rows: int) -> Pending:
        """Record size and time of the files, to detect changes."""
        return cls(layout=layout, drop_missing=drop_missing, rows=rows, stamp=_stamp(layout))

    def run(self) -> tuple[Check, ...]:
        """Check the assumptions, if the log is still what was counted."""
        from surefoot.data import checks  # imports DuckDB, which saved counts do not need
        from surefoot.data.sources import session

        try:
            unchanged = _stamp(self.layout) == self.stamp
        except OSError:
            unchanged = False
        if not unchanged:
            return checks.not_possible("changed")
        with session() as connection:
            return checks.check_assumptions(
                connection, self.layout, drop_missing=self.drop_missing, rows=self.rows
            )


def _stamp(layout: Layout) -> tuple[tuple[str, int, int], ...]:
    return tuple(
        (str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in layout.source.files
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Log:
    """What is known about a log beyond its counts.

    Attributes
    ----------
    names
        The files or tables read.
    rows
        Rows read, whether or not they were used.
    episodes
        Episodes seen; None where the log does not tell them apart.
    cut
        Rows that only showed the last state of an episode that was cut off.
    zero_rows
        Rows of an aggregated log with count 0.
    dropped
        Rows left out on request, by the column they lacked.
    findings
        What was found while reading it.
    columns
        The names of the state, action and next-state columns.
    bins
        Columns that were cut into bins.
    ends
        Where episodes stopped, so that another log can continue them; None if not asked for.
    """

    names: tuple[str, ...]
    rows: int
    episodes: int | None = None
    cut: int = 0
    zero_rows: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    columns: tuple[tuple[str, ...], ...] = (("state",), ("action",), ("next_state",))
    bins: tuple[Binning, ...] = ()
    ends: EpisodeEnds | None = None
    checked: tuple[Check, ...] | None = None
    pending: Pending | None = None

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """The checks of the assumptions; a large log is checked on first use."""
        if self.checked is not None:
            return self.checked
        return () if self.pending is None else self.pending.run()

    def settled(self) -> Log:
        """Return the same log with its checks done, independent of the files."""
        return replace(self, checked=self.checks, pending=None)

    def __add__(self, other: Log) -> Log:
        """Return both logs as one."""
        known = None not in (self.episodes, other.episodes)
        dropped = dict(self.dropped)
        for what, rows in other.dropped.items():
            dropped[what] = dropped.get(what, 0) + rows
        return Log(
            names=self.names + other.names,
            rows=self.rows + other.rows,
            episodes=(self.episodes or 0) + (other.episodes or 0) if known else None,
            cut=self.cut + other.cut,
            zero_rows=self.zero_rows + other.zero_rows,
            dropped=dropped,
            findings=tuple(dict.fromkeys(self.findings + other.findings)),
            columns=self.columns,
            bins=self.bins,
            ends=_joined(self.ends, other.ends),
            checked=(*_told(self), *_told(other)),
        )

    @property
    def title(self) -> str:
        """A short name of the log for sentences."""
        names = [name if "\n" in name else Path(name).name for name in self.names]
        return ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")


def _joined(old: EpisodeEnds | None, new: EpisodeEnds | None) -> EpisodeEnds | None:
    return joined(old, new) if old is not None and new is not None else old or new


def _told(log: Log) -> tuple[Check, ...]:
    """Return the checks of a log, each naming its log, so that they can join those of others."""
    return tuple(
        check if "data" in check.finding.values or check.finding.code == "stated"
        else replace(check, finding=check.finding.about(log.title))
        for check in log.checks
    )  # fmt: skip
