"""Steps that are dates or times: how they are written, and how far apart they usually are."""

import math
from dataclasses import dataclass
from itertools import product

import duckdb

from surefoot._findings import Finding
from surefoot.data.sources import Connection, Source, quote_name, quote_text, scan

EXACT = 2.0**53
"""Whole numbers up to this are exact as floating-point numbers."""
SAMPLE = 100
"""How many steps are examined first."""
DATES = (
    "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y.%m.%d",
    "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%y-%m-%d", "%d-%b-%Y", "%d %b %Y", "%d %B %Y",
)  # fmt: skip
TIMES = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
MONTHS = ("%Y-%m", "%m.%Y", "%m/%Y", "%Y/%m")
FORMATS = (*MONTHS, *(date + time for date, time in product(DATES, TIMES)))
LEAST, SHARE, FACTOR = 3, 0.5, 1.5
"""A distance is usual if there are at least 3 and half share it; a gap is over 1.5 times longer."""
UNITS = (("day", 86_400_000_000), ("hour", 3_600_000_000), ("minute", 60_000_000),
         ("second", 1_000_000), ("microsecond", 1))  # fmt: skip
"""Units in microseconds: distances are rounded to the largest that fits their median."""


@dataclass(frozen=True, kw_only=True)
class StepKind:
    """How steps are read: as a DuckDB type and, for dates in text, by a format."""

    type: str
    format: str | None = None


def step_kind(connection: Connection, source: Source, step: str, asked: str | None) -> StepKind:
    """Return how to read the steps of a CSV, judged by the first of them or by a given format.

    DOUBLE for numbers, HUGEINT for whole numbers beyond 2**53, TIMESTAMP for times.
    """
    if asked is not None:
        return StepKind(type="TIMESTAMP", format=asked)
    name = quote_name(step)
    first = (
        f"SELECT {name} AS v FROM ({scan(source, {step: 'VARCHAR'})}) "
        f"WHERE {name} IS NOT NULL LIMIT {SAMPLE}"
    )
    try:
        numbers, times, whole, largest, months, days = connection.execute(
            "SELECT bool_and(TRY_CAST(v AS DOUBLE) IS NOT NULL), "
            "bool_and(TRY_CAST(v AS TIMESTAMP) IS NOT NULL), "
            "bool_and(regexp_full_match(v, '-?[0-9]+')), max(abs(TRY_CAST(v AS DOUBLE))), "
            "bool_and(regexp_full_match(v, '(0?[1-9]|1[0-2])[.](19|20)[0-9][0-9]')), "
            "bool_and(regexp_full_match(v, '(19|20)[0-9]{6}') "
            "AND try_strptime(v, '%Y%m%d') IS NOT NULL) "
            f"FROM ({first})"
        ).fetchall()[0]
        if numbers is None:  # there are no steps
            return StepKind(type="DOUBLE")
        if months:  # 01.2026 is a month; as numbers, 01.2027 would come before 02.2026
            return StepKind(type="TIMESTAMP", format="%m.%Y")
        if days:  # 20260131 is followed by 20260201
            return StepKind(type="TIMESTAMP", format="%Y%m%d")
        if whole and largest >= EXACT:
            return StepKind(type="HUGEINT")
        if times and not numbers:
            return StepKind(type="TIMESTAMP")
        found = None if numbers else _format(connection, source, step, first)
    except duckdb.Error:  # the count itself will say where the file cannot be read
        return StepKind(type="DOUBLE")
    return StepKind(type="DOUBLE") if found is None else StepKind(type="TIMESTAMP", format=found)


def _format(connection: Connection, source: Source, step: str, first: str) -> str | None:
    """Return the one format that fits all steps; None where none does."""
    fitting = [form for form in FORMATS if not _misfits(connection, first, [form])[0]]
    fitting = [form for form in fitting if not ("%Y" in form and _is_short(connection, first))]
    if len(fitting) < 2:
        return fitting[0] if fitting else None
    name = quote_name(step)
    every = f"SELECT {name} AS v FROM ({scan(source, {step: 'VARCHAR'})}) WHERE {name} IS NOT NULL"
    failures = _misfits(connection, every, fitting)
    best = [form for form, number in zip(fitting, failures, strict=True) if number == min(failures)]
    if len(best) > 1:
        example = connection.execute(f"SELECT min(v) FROM ({first})").fetchall()[0][0]
        meant = _meant(connection, example, best)
        raise ValueError(
            f"{source.name}: {step} is {example!r}, which may be {meant}. Say how dates "
            f"are written: date_format={best[0]!r} or date_format={best[1]!r}."
        )
    return best[0]


def _misfits(connection: Connection, rows: str, formats: list[str]) -> list[int]:
    counted = ", ".join(
        f"count(*) FILTER (WHERE try_strptime(trim(v), {quote_text(form)}) IS NULL)"
        for form in formats
    )
    return list(connection.execute(f"SELECT {counted} FROM ({rows})").fetchall()[0])


def _is_short(connection: Connection, rows: str) -> bool:
    """Tell whether years have two digits, which %Y would read as years of the first century."""
    query = f"SELECT coalesce(bool_and(NOT regexp_matches(v, '[0-9]{{4}}')), false) FROM ({rows})"
    return bool(connection.execute(query).fetchall()[0][0])


def _meant(connection: Connection, example: str, formats: list[str]) -> str:
    dates = [
        connection.execute("SELECT strptime(?, ?)", [example, form]).fetchall()[0][0]
        for form in formats[:2]
    ]
    return " or ".join(f"{date.day} {date:%B %Y}" for date in dates)


@dataclass(frozen=True, kw_only=True)
class Rhythm:
    """How far apart steps usually are.

    Attributes
    ----------
    gap
        The SQL condition on step ``k`` and the step ``after`` it that a step is missing between
        them; "" where steps have no usual distance.
    words
        The usual distance in words.
    reach
        The longest distance that is not a gap: in microseconds, or 1 working day.
    """

    gap: str = ""
    words: str = ""
    reach: float = math.inf

    def finding(self, rows: int) -> Finding | None:
        """Return the finding about the steps, if any; ``rows`` rows are followed by a gap."""
        if not self.gap:
            return Finding.of("steps_irregular")
        return Finding.of("gaps_left_out", rows=rows, usual=self.words) if rows else None


def learn_rhythm(connection: Connection, rows: str) -> Rhythm | None:
    """Learn how far apart times usually are, from the SQL of rows with e (episode) and k (step).

    None where there are too few to learn from.
    """
    apart = (
        "SELECT k, epoch_us(after) - epoch_us(k) AS d FROM (SELECT k, lead(k) OVER "
        f"(PARTITION BY e ORDER BY k) AS after FROM ({rows}) WHERE e IS NOT NULL AND k IS NOT NULL)"
    )
    try:
        connection.execute(f"CREATE OR REPLACE TEMP TABLE distances AS {apart}")
        total, middle, weekend = connection.execute(
            "SELECT count(*) FILTER (WHERE d > 0), median(d) FILTER (WHERE d > 0), "
            "bool_or(isodow(k) > 5) FROM distances"
        ).fetchall()[0]
        if total < LEAST:
            return None
        name, size = next((n, s) for n, s in UNITS if middle >= 0.9 * s or s == 1)
        usual, often = connection.execute(
            f"SELECT round(d / {size})::BIGINT AS m, count(*) AS n FROM distances WHERE d > 0 "
            "GROUP BY m ORDER BY n DESC, m LIMIT 1"
        ).fetchall()[0]
    except duckdb.Error:  # for example a time of day; the count itself will say what is wrong
        return None
    finally:
        connection.execute("DROP TABLE IF EXISTS distances")
    if often < SHARE * total or usual < 1:
        return Rhythm()
    if name == "day" and usual == 1 and not weekend:
        monday = "date_diff('day', date_trunc('week', k), date_trunc('week', after))"
        days = f"date_diff('day', k, after) - 2 * ({monday} // 7)"
        return Rhythm(gap=f"{days} > 1", words="1 working day", reach=1.0)
    plural = "" if usual == 1 else "s"
    return Rhythm(
        gap=f"epoch_us(after) - epoch_us(k) > {int(FACTOR * usual * size)}",
        words=f"{usual} {name}{plural}",
        reach=float(int(FACTOR * usual * size)),
    )
