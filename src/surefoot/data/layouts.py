"""The types of a log's columns, and how their numbers and dates are read."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

import duckdb
import numpy as np

from surefoot.data.bins import Binning, at_quantiles
from surefoot.data.columns import Columns, Layout
from surefoot.data.dates import StepKind, learn_rhythm, step_kind
from surefoot.data.log_format import LogFormat
from surefoot.data.numerals import PLAIN, SPACES, Numerals, Spellings, decide
from surefoot.data.sources import Connection, Source, list_names, quote_name, scan
from surefoot.data.tables import family
from surefoot.model.csv_lines import open_csv

FIRST_ROWS = 1000
"""First rows of a comma-separated file, from which it is judged how numbers are written."""


def lay_out(
    connection: Connection, source: Source, columns: Columns, how: LogFormat | None = None
) -> Layout:
    """Check the types of the columns and return the layout for queries."""
    how = how or LogFormat()
    _check_bins(columns, how.bins)
    types = {name: source.types[name] for name in columns.used}
    steps = StepKind(type="" if columns.step is None else types[columns.step])
    numerals = PLAIN
    if source.kind == "csv":
        # A column that is also part of a label stays text, and is converted where it is a number.
        labels = (*columns.state, *columns.action, *(columns.next_state or ()))
        numbers = {n: "DOUBLE" for n in (columns.reward, columns.count) if n is not None}
        if columns.step is not None:
            steps = step_kind(connection, source, columns.step, how.date_format)
            if steps.format is None:
                numbers[columns.step] = steps.type
        numerals = _numerals(connection, source, [*_decimal(numbers), *_binned(columns, how)], how)
        types |= {
            name: kind
            for name, kind in numbers.items()
            if name not in labels and (numerals.plain or kind != "DOUBLE")
        }
    else:
        if columns.step is not None and how.date_format is not None:
            steps = _typed_dates(source, columns.step, how.date_format)
        _check_numbers(source, columns, text_steps=steps.format is not None)
    layout = Layout(
        source=source,
        columns=columns,
        types=types,
        step_type=steps.type,
        state_kinds=_state_kinds(source, columns, how),
        action_kinds=_key_kinds(source, columns.action, how),
        numerals=numerals,
        step_format=steps.format,
    )
    layout = replace(layout, bins=tuple(_resolved(connection, layout, one) for one in how.bins))
    if layout.derived and not layout.steps_are_numbers:
        return replace(layout, rhythm=learn_rhythm(connection, layout.select()))
    return layout


def _typed_dates(source: Source, step: str, asked: str) -> StepKind:
    """Return how to read the steps of a typed table: dates may be text or whole numbers."""
    kind = source.types[step]
    if family(kind) in ("text", "integer"):
        return StepKind(type="TIMESTAMP", format=asked)
    return StepKind(type=kind)


def _decimal(numbers: Mapping[str, str]) -> list[str]:
    return [name for name, kind in numbers.items() if kind == "DOUBLE"]


def _binned(columns: Columns, how: LogFormat) -> list[str]:
    """Return the columns that are cut into bins, and the next states of such columns."""
    asked = {one.column for one in how.bins}
    after = zip(columns.next_state or (), columns.state, strict=False)
    return [*asked, *(name for name, column in after if column in asked)]


def _check_bins(columns: Columns, bins: tuple[Binning, ...]) -> None:
    names = [one.column for one in bins]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"bins: the column {name!r} is named twice. Name it once.")
        if name not in (*columns.state, *columns.action):
            known = list_names((*columns.state, *columns.action))
            raise ValueError(
                f"bins: {name!r} is not a column of states or actions; these are {known}."
            )


def _numerals(
    connection: Connection, source: Source, names: Sequence[str], how: LogFormat
) -> Numerals:
    """Detect how the numbers of a text file are written."""
    if not names:
        return PLAIN
    commas = all(part.delimiter == "," for part in source.parts)
    if commas and how.decimal is None and _begins_bare(source, FIRST_ROWS):
        return PLAIN
    listed = dict.fromkeys(dict.fromkeys(names), "VARCHAR")
    shown = _shown(connection, source, listed, FIRST_ROWS if commas else None)
    if commas and (shown.comma or shown.unclear_comma or shown.grouped):
        shown = _shown(connection, source, listed, None)
    # Semicolons between fields suggest decimal commas: Excel writes such files.
    likely = any(part.delimiter == ";" for part in source.parts)
    found = decide(shown, asked=how.decimal, comma_likely=likely)
    if isinstance(found, str):
        raise ValueError(f"{source.name}: {' or '.join(listed)}: {found}.")
    return found


def _begins_bare(source: Source, number: int) -> bool:
    """Tell whether the first lines of a comma-separated log have no quotes and no spaces.

    Numbers in them then have neither decimal commas nor separated thousands, and a query with long
    patterns is not needed. False if a line has another number of fields than the header, or cannot
    be read: then the query decides.
    """
    left = number
    for part in source.parts:
        for path in part.read:
            try:
                with open_csv(path) as file:
                    first = list(islice(file, left + 1))[1:]  # without the header
            except (OSError, EOFError, zlib.error, UnicodeError):
                return False
            text = "".join(first)
            if any(mark in text for mark in (*SPACES, '"')):
                return False
            if any(line.count(",") != len(part.header) - 1 for line in first):
                return False
            left -= len(first)
            if left <= 0:
                return True
    return True


def _shown(
    connection: Connection, source: Source, names: Mapping[str, str], first: int | None
) -> Spellings:
    measures = ", ".join(Spellings.measures(f"trim({quote_name(name)})") for name in names)
    query = f"SELECT {measures} FROM ({scan(source, names, first=first)})"
    try:
        found = connection.execute(query).fetchall()[0]
    except duckdb.Error:  # the count itself will say where the file cannot be read
        return Spellings()
    shown = Spellings()
    size = len(Spellings._fields)
    for i in range(0, len(found), size):
        shown = shown.joined(Spellings(*found[i : i + size]))
    return shown


def _resolved(connection: Connection, layout: Layout, asked: Binning) -> Binning:
    """Return bins with their edges: as given, or at quantiles of the column."""
    if asked.edges:
        return asked
    number = layout._number(asked.column)
    rows = scan(layout.source, {asked.column: layout.types[asked.column]})
    number = f"TRY_CAST(({number}) AS DOUBLE)" if layout.source.kind != "csv" else number
    try:
        found = connection.execute(
            f"SELECT v, count(*) AS n FROM (SELECT {number} AS v FROM ({rows})) "
            "WHERE isfinite(v) GROUP BY v ORDER BY v"
        ).fetchnumpy()
    except duckdb.ConversionException as problem:
        reason = str(problem).splitlines()[0]
        raise ValueError(
            f"{layout.source.name}: {asked.column!r} is to be cut into bins but is not a column of "
            f"numbers ({reason})."
        ) from None
    values, often = np.asarray(found["v"], dtype=np.float64), np.asarray(found["n"])
    return at_quantiles(asked.column, asked.number, values, often)


def _state_kinds(source: Source, columns: Columns, how: LogFormat) -> tuple[str, ...]:
    kinds = _key_kinds(source, columns.state, how)
    for i, name in enumerate(columns.next_state or ()):
        if columns.state[i] in {one.column for one in how.bins}:
            continue
        kind = _key_kinds(source, (name,), how)[0]
        if kind != kinds[i] and {kind, kinds[i]} != {"integer", "float"}:
            raise ValueError(
                f"{source.name}: column {columns.state[i]!r} holds {_plural(kinds[i])} and "
                f"column {name!r} holds {_plural(kind)}; the same label must have one type. "
                "Convert one of them."
            )
        if kind == "float":  # whole numbers in a column with missing values arrive as decimals
            kinds = (*kinds[:i], kind, *kinds[i + 1 :])
    return kinds


def _plural(kind: str) -> str:
    names = {"integer": "whole numbers", "float": "decimals", "boolean": "true/false"}
    return names.get(kind, "text")


def _key_kinds(source: Source, names: tuple[str, ...], how: LogFormat) -> tuple[str, ...]:
    kinds = tuple(family(source.types[name]) for name in names)
    binned = {one.column for one in how.bins}
    for name, kind in zip(names, kinds, strict=True):
        if name in binned and source.kind != "csv" and kind not in ("integer", "float"):
            raise ValueError(
                f"{source.name}: column {name!r} has type {_short(source.types[name])}; only "
                "numbers are cut into bins."
            )
        if kind == "other" and source.types[name] != '"NULL"':
            raise ValueError(
                f"{source.name}: column {name!r} has type {source.types[name]}; states and actions "
                "are whole numbers or text. Convert it first."
            )
    return tuple(
        "text" if kind == "other" or name in binned else kind
        for name, kind in zip(names, kinds, strict=True)
    )


def _check_numbers(source: Source, columns: Columns, *, text_steps: bool) -> None:
    for name in (columns.reward, columns.count):
        if name is not None and family(source.types[name]) in ("text", "other"):
            raise ValueError(
                f"{source.name}: column {name!r} has type {_short(source.types[name])}; it must be "
                "numbers. Convert it first."
            )
    is_text = columns.step is not None and family(source.types[columns.step]) == "text"
    if is_text and not text_steps:
        raise ValueError(
            f"{source.name}: column {columns.step!r} is text; steps are numbers or times, so that "
            "10 comes after 9. Convert it first, or say how dates are written with date_format=."
        )
    if columns.terminal is not None and family(source.types[columns.terminal]) == "other":
        raise ValueError(
            f"{source.name}: column {columns.terminal!r} has type "
            f"{source.types[columns.terminal]}; it must be true/false or 1/0."
        )


def _short(duckdb_type: str) -> str:
    return "text" if family(duckdb_type) == "text" else duckdb_type
