"""Number the labels of states and actions, and fetch the groups by id."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.data import faults
from surefoot.data.columns import Layout
from surefoot.data.count_queries import CUT, GAP, MOVE, names
from surefoot.data.sources import Connection

CANONICAL_INTEGER = "0|-?[1-9][0-9]{0,17}"
"""Pattern of a plain whole number; '007', '+7' and '7.0' do not match, and stay text."""
WITH_POINT = f"({CANONICAL_INTEGER})(\\.0)?"
"""The same, optionally with '.0': pandas writes 1.0 where a column has missing values."""
HALF_BITS = 62
"""The bit at which integers of 128 bits are split in two."""


def number_labels(
    connection: Connection, layout: Layout, what: str, *, text_labels: bool
) -> tuple[Any, ...]:
    """Create the table ``state_ids`` or ``action_ids`` and return the labels in order."""
    keys = names(layout, what[0])
    kinds = layout.state_kinds if what == "state" else layout.action_kinds
    listed = ", ".join(keys)
    sources = [f"SELECT {listed} FROM groups WHERE flag IN ({MOVE}, {GAP})"]
    if what == "state":
        after = ", ".join(f"{t} AS {s}" for s, t in zip(keys, names(layout, "t"), strict=True))
        sources.append(f"SELECT {after} FROM groups WHERE t0 IS NOT NULL AND flag <> {CUT}")
        if has_starts(layout):
            sources.append(f"SELECT {listed} FROM starts")
    connection.execute(
        f"CREATE TEMP TABLE {what}_labels AS SELECT DISTINCT {listed} "
        f"FROM ({' UNION ALL '.join(sources)})"
    )
    shown = ", ".join(
        _label_sql(connection, layout, what, key, kind, text_labels)
        for key, kind in zip(keys, kinds, strict=True)
    )
    connection.execute(
        f"CREATE TEMP TABLE {what}_ids AS SELECT {listed}, "
        f"dense_rank() OVER (ORDER BY {shown}) - 1 AS id FROM {what}_labels"
    )
    # Only labels that are not integers can have two spellings.
    distinct = "" if set(kinds) == {"integer"} else "DISTINCT "
    found = connection.execute(
        f"SELECT {distinct}{shown} FROM {what}_labels ORDER BY {shown}"
    ).fetchall()
    return tuple(row[0] for row in found) if len(keys) == 1 else tuple(found)


def _label_sql(
    connection: Connection, layout: Layout, what: str, key: str, kind: str, text_labels: bool
) -> str:
    """Return the SQL of one component of a label: a whole number, or the exact text."""
    if kind == "float":
        check_whole(connection, layout, what, key)
        return f"{key}::BIGINT"
    if kind == "integer":
        check_range(connection, layout, what, key)
        return f"{key}::BIGINT"
    if text_labels:
        return key
    plain, pointed = connection.execute(
        f"SELECT bool_and(regexp_full_match({key}, '{CANONICAL_INTEGER}')), "
        f"bool_and(regexp_full_match({key}, '{WITH_POINT}')) FROM {what}_labels"
    ).fetchall()[0]
    if layout.source.kind == "csv" and plain:
        return f"{key}::BIGINT"
    twin = written_twice(connection, what, key)
    if twin is None:
        return key
    if layout.source.kind == "csv" and pointed:
        return f"split_part({key}, '.', 1)::BIGINT"
    raise ValueError(
        f"{layout.source.name}: {what} {twin!r} is also written '{twin}.0'. One {what} needs one "
        "spelling: write whole numbers without a decimal point, or pass labels='text' if these "
        f"are two {what}s."
    )


def written_twice(connection: Connection, what: str, key: str) -> str | None:
    """Return a label that is written both with and without ``.0``; None if there is none."""
    found = connection.execute(
        f"SELECT min(a.{key}) FROM {what}_labels AS a JOIN {what}_labels AS b "
        f"ON b.{key} = a.{key} || '.0' WHERE regexp_full_match(a.{key}, '{CANONICAL_INTEGER}')"
    ).fetchall()[0][0]
    return None if found is None else str(found)


def has_starts(layout: Layout) -> bool:
    """Tell whether the log says where episodes start."""
    return layout.columns.episode is not None and layout.columns.step is not None


def collect_starts(connection: Connection, layout: Layout) -> None:
    """Create the table ``starts``: how many episodes began in each state."""
    if not has_starts(layout):
        return
    packed = ", ".join(f"{name} := {name}" for name in names(layout, "s"))
    parts = ", ".join(f"start.{name} AS {name}" for name in names(layout, "s"))
    known = " AND ".join(f"{name} IS NOT NULL" for name in names(layout, "s"))
    connection.execute(
        f"CREATE TEMP TABLE starts AS SELECT *, count(*) AS n FROM (SELECT {parts} FROM ("
        f"SELECT arg_min(struct_pack({packed}), k) AS start FROM ({layout.select()}) "
        f"WHERE e IS NOT NULL AND k IS NOT NULL GROUP BY e)) WHERE {known} GROUP BY ALL"
    )


def fetch_starts(
    connection: Connection, layout: Layout, num_states: int
) -> NDArray[np.int64] | None:
    """Return how many episodes began in each state, by id."""
    if not has_starts(layout):
        return None
    same = " AND ".join(f"b.{name} = s.{name}" for name in names(layout, "s"))
    found = connection.execute(
        f"SELECT s.id, b.n FROM starts AS b JOIN state_ids AS s ON {same}"
    ).fetchnumpy()
    starts = np.zeros(num_states, dtype=np.int64)
    np.add.at(starts, np.asarray(found["id"]), np.asarray(found["n"]))
    return starts


def fetch_entries(connection: Connection, layout: Layout) -> dict[str, NDArray[Any]]:
    """Return the counted groups by id, sorted: s, a, t (-1: an unnamed end), z, n, sums."""
    rewarded = layout.columns.reward is not None
    measures = ["g.n::BIGINT AS n"] + (["g.lowest", "g.highest"] if rewarded else [])
    if rewarded:
        types = dict(row[:2] for row in connection.execute("DESCRIBE groups").fetchall())
        measures += ["g.multiple"] if "multiple" in types else []
        for name in (c for c in types if c == "total" or c.startswith("square")):
            if types[name] == "DOUBLE":  # exact, and small
                measures.append(f"g.{name}::BIGINT AS {name}")
                continue
            # NumPy has no integers of 128 bits, so they are fetched in two halves.
            measures.append(f"(g.{name} >> {HALF_BITS})::BIGINT AS {name}_high")
            measures.append(f"(g.{name} & {2**HALF_BITS - 1})::BIGINT AS {name}_low")

    def same(letter: str, table: str) -> str:
        own = names(layout, "a" if letter == "a" else "s")
        return " AND ".join(f"g.{letter}{i} = {table}.{name}" for i, name in enumerate(own))

    found = connection.execute(
        f"SELECT s.id AS s, a.id AS a, coalesce(t.id, -1) AS t, g.z, {', '.join(measures)} "
        f"FROM groups AS g JOIN state_ids AS s ON {same('s', 's')} "
        f"JOIN action_ids AS a ON {same('a', 'a')} "
        f"LEFT JOIN state_ids AS t ON {same('t', 't')} "
        f"WHERE g.flag IN ({MOVE}, {GAP}) ORDER BY 1, 2, 3, 4"
    ).fetchnumpy()
    return {
        name: np.ma.filled(column, np.nan) if column.dtype.kind == "f" else np.asarray(column)
        for name, column in found.items()
    }


def check_whole(connection: Connection, layout: Layout, what: str, key: str) -> None:
    """Raise where a label is a decimal number: continuous observations are not states."""
    found = connection.execute(
        f"SELECT {key} FROM {what}_labels WHERE {key} <> floor({key}) "
        f"OR abs({key}) > {faults.LARGEST} "
        f"ORDER BY {key} LIMIT 1"
    ).fetchall()
    if found:
        columns = layout.columns.state if what == "state" else layout.columns.action
        column = columns[int(key[1:])]
        raise ValueError(
            f"{layout.source.name}: column {column!r} (or its next state) holds {found[0][0]}; "
            f"{what}s are whole numbers or text. Cut measurements into bins with "
            f"bins='{column}=4'; observations of several numbers need discretize first."
        )


def check_range(connection: Connection, layout: Layout, what: str, key: str) -> None:
    """Raise where a label does not fit into 64 bits."""
    if faults.one_value(
        connection, f"SELECT count(*) FROM {what}_labels WHERE TRY_CAST({key} AS BIGINT) IS NULL"
    ):
        raise ValueError(
            f"{layout.source.name}: {what}s are whole numbers beyond 64 bits. Make them text."
        )
