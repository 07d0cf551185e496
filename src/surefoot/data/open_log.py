"""A log that has been counted and is still open: its transitions by id, for further queries.

``read_transitions`` opens a log, counts it and closes it. Code that needs single transitions or
whole episodes (splitting by episode, returns per episode) queries the log before it is closed,
through one SQL relation that :meth:`OpenLog.moves` returns:

==========  ========  ============================================================================
column      type      meaning
==========  ========  ============================================================================
state       BIGINT    id of the state, as in ``OpenLog.counts``
action      BIGINT    id of the action
successor   BIGINT    id of the next state; ends are placed as in the counts
reward      DOUBLE    NULL where the log has no column of rewards
weight      DOUBLE    how many transitions the row stands for (1, or the column ``count``)
episode     the log's key of the episode; NULL where the log does not tell episodes apart
step        the log's position within the episode; NULL where unknown
terminal    BOOLEAN   whether the episode ended by itself here
truncated   BOOLEAN   whether the log stops here before the episode ended; NULL without steps
==========  ========  ============================================================================

It holds exactly the transitions that were counted: rows that were dropped, that only end a cut
episode or that precede a gap are not in it. The relation is a query; each use reads the log again,
which is cheap for Parquet and tables in memory. For several queries, or a text file,
:meth:`OpenLog.keep` stores the relation once as the temporary table ``moves`` (on disk beyond
DuckDB's memory). Everything is closed at the end of the ``with`` block.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot.data.columns import Columns, Layout, choose
from surefoot.data.count_queries import names
from surefoot.data.found_sources import find
from surefoot.data.layouts import lay_out
from surefoot.data.log_format import LogFormat
from surefoot.data.log_halves import counted_moves
from surefoot.data.sources import Connection, session
from surefoot.data.tally import Tally, tally

if TYPE_CHECKING:
    from surefoot.data.counts import Counts

ENDS = "end_states"
"""The table of terminal states that the log itself names."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OpenLog:
    """A counted log in an open session.

    Attributes
    ----------
    connection
        The session; ``groups``, ``state_ids`` and ``action_ids`` are tables in it.
    layout
        The log and its columns.
    drop_missing
        Whether incomplete rows were left out.
    tally
        The result of counting.
    """

    connection: Connection
    layout: Layout
    drop_missing: bool
    tally: Tally

    def moves(self, counts: "Counts") -> str:
        """Return the SQL of the transitions, with the ids of ``counts`` read from this log."""
        own = np.flatnonzero(counts.is_terminal)
        size = len(self.tally.state_labels)
        self.connection.register(ENDS, {"id": own[own < size].astype(np.int64)})
        used = self.layout.columns
        columns = {
            "state": "s.id", "action": "a.id",
            "successor": f"CASE WHEN l.z AND d.id IS NULL THEN {size} ELSE t.id END",
            "reward": "l.r" if used.reward is not None else "NULL::DOUBLE",
            "weight": "l.n" if used.count is not None else "1.0::DOUBLE",
            "episode": "l.e" if used.episode is not None else "NULL",
            "step": "l.k" if used.step is not None else "NULL",
            "terminal": "l.z", "truncated": self._truncated(),
        }  # fmt: skip
        listed = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
        rows = counted_moves(self.layout, self.drop_missing, rows=False)
        weighed = " WHERE l.n > 0" if used.count is not None else ""
        return (
            f"SELECT {listed} FROM ({rows}) AS l "
            f"JOIN state_ids AS s ON {self._same('s', 's')} "
            f"JOIN action_ids AS a ON {self._same('a', 'a')} "
            f"LEFT JOIN state_ids AS t ON {self._same('t', 't')} "
            f"LEFT JOIN {ENDS} AS d ON d.id = t.id{weighed}"
        )

    def keep(self, counts: "Counts") -> str:
        """Store the transitions once as the temporary table ``moves`` and return its name."""
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE moves AS {self.moves(counts)}")
        return "moves"

    def _same(self, letter: str, table: str) -> str:
        own = names(self.layout, "a" if letter == "a" else "s")
        return " AND ".join(f"l.{letter}{i} = {table}.{name}" for i, name in enumerate(own))

    def _truncated(self) -> str:
        if not self.layout.ordered:
            return "NULL::BOOLEAN"
        return "NOT l.z AND lead(1) OVER (PARTITION BY l.e ORDER BY l.k) IS NULL"


@contextmanager
def open_log(
    source: Any, columns: dict[str, Any], *, drop_missing: bool, text_labels: bool,
    how: LogFormat | None = None,
) -> Iterator[OpenLog]:  # fmt: skip
    """Open a log, check its columns and count it; it stays open inside the ``with`` block."""
    with session() as connection:
        found = find(connection, source, Columns.wanted(**columns), how)
        chosen = choose(list(found.types), found.name, **columns)
        layout = lay_out(connection, found, chosen, how)
        seen = tally(connection, layout, drop_missing=drop_missing, text_labels=text_labels)
        yield OpenLog(connection=connection, layout=layout, drop_missing=drop_missing, tally=seen)
