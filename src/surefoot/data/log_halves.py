"""The SQL that counts transitions in an early and a late part of a log."""

from typing import NamedTuple

from surefoot.data.columns import Layout
from surefoot.data.count_queries import CUT, GAP, LEFT_OUT, names, transitions


def hashed(columns: list[str]) -> str:
    """Return the SQL of one hash for several columns."""
    return f"hash({', '.join(columns)})"


def row_hash(layout: Layout) -> str:
    """Return the SQL of one hash for state and action."""
    return hashed(names(layout, "s") + names(layout, "a"))


def counted_moves(
    layout: Layout, drop_missing: bool, *, rows: bool, following: bool = False
) -> str:
    """Return the SQL of the transitions that are counted.

    ``rows`` adds their position in the log, ``following`` the episode's next row (`transitions`).
    """
    moves = transitions(layout, drop_missing=drop_missing, rows=rows, following=following)
    return f"SELECT * FROM ({moves}) WHERE flag NOT IN ({_skipped(drop_missing)})"


def _skipped(drop_missing: bool) -> str:
    # With missing="drop", rows before a gap were left out: the following row is not their next.
    return f"{CUT}, {LEFT_OUT}, {GAP}" if drop_missing else f"{CUT}, {LEFT_OUT}"


class Sides(NamedTuple):
    """Two parts of a log: the SQL of pair, after, n, and either side or early.

    ``side`` is true for the late part; ``early`` is how many of the ``n`` are in the early part.
    ``first`` is the number of rows of the early part; None where it is half of the log.
    """

    query: str
    first: int | None = None


def _pair_and_after(layout: Layout) -> str:
    after = hashed([*names(layout, "t"), "z"])
    return f"{row_hash(layout)} AS pair, {after} AS after"


def halves(layout: Layout, drop_missing: bool, rows: int) -> Sides:
    """Scan the log again and tell its halves apart by row number."""
    moves = counted_moves(layout, drop_missing, rows=True)
    return Sides(
        f'SELECT {_pair_and_after(layout)}, "row number" > {rows // 2} AS side, count(*) AS n '
        f"FROM ({moves}) GROUP BY ALL",
    )


def halves_of_groups(layout: Layout, drop_missing: bool) -> Sides:
    """Take the halves from the table ``groups``."""
    return Sides(
        f"SELECT {_pair_and_after(layout)}, early, n FROM groups "
        f"WHERE flag NOT IN ({_skipped(drop_missing)})",
    )


def first_rows(layout: Layout, drop_missing: bool, first: int) -> Sides:
    """Read the first rows again; the late part is the table ``groups`` minus these rows.

    Numbering all rows of a text file would read it on one thread, and parse it twice.
    """
    columns = _pair_and_after(layout)
    moves = counted_moves(layout, drop_missing, rows=False)
    whole = (
        f"SELECT {columns}, sum(n) AS n FROM groups "
        f"WHERE flag NOT IN ({_skipped(drop_missing)}) GROUP BY ALL"
    )
    early = (
        f"SELECT {columns}, count(*) AS n FROM (SELECT * FROM ({moves}) LIMIT {first}) GROUP BY ALL"
    )
    both = (
        f"SELECT pair, after, w.n AS n, coalesce(e.n, 0) AS early FROM ({whole}) AS w "
        f"LEFT JOIN ({early}) AS e USING (pair, after)"
    )
    return Sides(
        f"WITH both_parts AS ({both}) "
        "SELECT pair, after, false AS side, early AS n FROM both_parts WHERE early > 0 UNION ALL "
        "SELECT pair, after, true AS side, n - early AS n FROM both_parts WHERE early < n",
        first,
    )
