"""A database as a log: one table, or the rows of one query, read-only."""

from pathlib import Path
from typing import Any

import duckdb

from surefoot._display import printable
from surefoot.data.csv_copies import choose_name

SQLITE, DUCKDB = b"SQLite format 3\x00", b"DUCK"
OWN, VIEW = "stored", "surefoot_log"
"""The names of the attached database and of the view of its log."""


def engine_of(path: Path) -> str:
    """Return "sqlite" or "duckdb" by the first bytes of a file."""
    with path.open("rb") as file:
        start = file.read(16)
    if start == SQLITE:
        return "sqlite"
    if start[8:12] == DUCKDB:
        return "duckdb"
    raise ValueError(f"{printable(path)}: this is neither a DuckDB nor a SQLite database.")


def attach(
    connection: duckdb.DuckDBPyConnection, path: Path, table: str | None, query: str | None
) -> str:
    """Create the view of a table or a query of a DuckDB file; return its name for messages.

    From here on the session can access this file and its own temporary folder, and nothing else.
    """
    literal = str(path.absolute()).replace("'", "''")
    try:
        connection.execute(f"ATTACH '{literal}' AS {OWN} (READ_ONLY)")
        connection.execute("SET enable_external_access = false")
    except duckdb.Error as problem:
        raise ValueError(f"{printable(path)}: cannot be opened ({_line(problem)}).") from None
    name = "the query"
    if query is None:
        chosen = choose_name(path, "table", _tables(connection), table)
        name = f"table {chosen}"
        listed = ".".join('"' + part.replace('"', '""') + '"' for part in chosen.split("."))
        query = f"SELECT * FROM {OWN}.{listed}"
    else:
        _check_query(connection, query)
    try:
        connection.execute(f"USE {OWN}")
        connection.execute(f"CREATE TEMP VIEW {VIEW} AS {query.rstrip().rstrip(';')}")
        connection.execute(f"SELECT * FROM {VIEW} LIMIT 0")
    except duckdb.Error as problem:
        raise ValueError(f"{printable(path)}: cannot be read ({_line(problem)}).") from None
    return name


def _tables(connection: duckdb.DuckDBPyConnection) -> list[str]:
    found: list[Any] = connection.execute(
        "SELECT table_schema, table_name FROM information_schema.tables "
        f"WHERE table_catalog = '{OWN}' ORDER BY ALL"
    ).fetchall()
    return [name if schema == "main" else f"{schema}.{name}" for schema, name in found]


def _check_query(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    try:
        statements = connection.extract_statements(query)
    except duckdb.Error as problem:
        raise ValueError(f"query={query!r} cannot be understood ({_line(problem)}).") from None
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise ValueError(f"query={query!r}; it must be one SELECT.")


def _line(problem: duckdb.Error) -> str:
    return printable(str(problem).splitlines()[0])
