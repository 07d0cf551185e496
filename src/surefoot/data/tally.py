"""Count a log in SQL and fetch the result as arrays, from which counts are made."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import duckdb
import numpy as np
from numpy.typing import NDArray

from surefoot._findings import Finding
from surefoot.data import count_queries, faults, label_ids
from surefoot.data.columns import Layout
from surefoot.data.reward_sums import RewardSums, digits_for, zeros
from surefoot.data.sources import Connection, quote_name, scan

FIRST_ROWS = 20_000
"""First rows, used to guess whether transitions show several rewards before all are counted."""


class Scale(NamedTuple):
    """How rewards were rounded, and the unit of their sums: see `RewardSums`."""

    digits: int
    decimals: int


class FirstRewards(NamedTuple):
    """Rewards of the first rows: a guess that the full count confirms or not.

    ``far`` are their largest distances from rewards with 0, 1, ... decimals; None if not known.
    """

    vary: bool
    largest: float
    far: list[float | None] | None

    def decimals(self, digits: int) -> int | None:
        """Return how many decimals these rewards have; None if many, or unknown."""
        if self.far is None or not 0 <= digits <= count_queries.MOST_DIGITS:
            return None
        for decimals, far in enumerate(self.far[: digits + 1]):
            if far is not None and far <= float(count_queries.near(digits, decimals)):
                return decimals
        return None


@dataclass(frozen=True, kw_only=True, eq=False)
class Tally:
    """The counted transitions of a log, by id.

    Attributes
    ----------
    state, action, successor
        ``(E,)`` ids, sorted; a successor of -1 is an end without a named state.
    ends
        ``(E,)``: whether these transitions were terminal.
    count
        ``(E,)``: how often each happened.
    rewards
        Exact sums of their rewards; None without a column of rewards.
    state_labels, action_labels
        The labels in order of the ids.
    starts
        ``(S,)`` episode starts, or None.
    rows, episodes, cut, zero_rows
        Rows read, episodes, rows that only end a cut episode, rows with count 0.
    dropped
        Rows left out on request, by the column they lacked.
    split
        The number of rows in the first half, where the table of groups counts it; else None.
    findings
        What was found about numbers, dates and labels.
    """

    state: NDArray[np.int64]
    action: NDArray[np.int64]
    successor: NDArray[np.int64]
    ends: NDArray[np.bool_]
    count: NDArray[np.int64]
    rewards: RewardSums | None
    state_labels: tuple[Any, ...]
    action_labels: tuple[Any, ...]
    starts: NDArray[np.int64] | None
    rows: int
    episodes: int | None
    cut: int
    zero_rows: int
    dropped: dict[str, int]
    split: int | None
    findings: tuple[Finding, ...]


def tally(
    connection: Connection,
    layout: Layout,
    *,
    drop_missing: bool,
    text_labels: bool,
    digits: int | None = None,
) -> Tally:
    """Count a log: group its rows, look for faults in the groups, number the labels.

    ``digits`` limits the scale of rewards to what other parts of the log need.
    """
    faults.check_joined_digits(connection, layout)
    faults.check_texts(connection, layout)
    split = _split(connection, layout)
    scale = _group(connection, layout, drop_missing=drop_missing, split=split, most=digits)
    faults.check_groups(connection, layout, drop_missing=drop_missing)
    label_ids.collect_starts(connection, layout)
    states = label_ids.number_labels(connection, layout, "state", text_labels=text_labels)
    actions = label_ids.number_labels(connection, layout, "action", text_labels=text_labels)
    entries = label_ids.fetch_entries(connection, layout)
    dropped = faults.count_dropped(connection, layout) if drop_missing else {}
    gaps = _lines(connection, count_queries.LEFT_OUT)
    zero_rows = _zero_rows(connection, layout)
    rows = _lines(connection) + zero_rows + sum(dropped.values())
    if layout.source.rows is not None and rows != layout.source.rows:
        raise ValueError(
            f"{layout.source.name}: {layout.source.rows:,} rows were written in UTF-8 and {rows:,} "
            "read. Save the file as CSV in UTF-8, and report this."
        )
    if layout.rhythm is None and gaps:
        dropped |= {"a following step": gaps}
    return Tally(
        state=entries["s"],
        action=entries["a"],
        successor=entries["t"],
        ends=entries["z"].astype(np.bool_),
        count=entries["n"],
        rewards=_rewards(layout, entries, scale),
        state_labels=states,
        action_labels=actions,
        starts=label_ids.fetch_starts(connection, layout, len(states)),
        rows=rows,
        episodes=_episodes(connection, layout),
        cut=_lines(connection, count_queries.CUT),
        zero_rows=zero_rows,
        dropped=dropped,
        split=split,
        findings=(
            *_about_text(layout, gaps), *_findings(connection, layout, states, actions)
        ),
    )  # fmt: skip


def _about_text(layout: Layout, gaps: int) -> list[Finding]:
    """Return findings on how numbers and dates were read, where that had to be detected."""
    found = []
    style = layout.numerals
    if not style.plain and layout.text_numbers:
        mark = "point" if style.decimal == "." else "comma"
        found.append(Finding.of("numbers_read", mark=mark, example=style.example))
    if layout.step_format is not None:
        step = str(layout.columns.step)
        found.append(Finding.of("dates_read", column=step, written=layout.step_format))
    about = None if layout.rhythm is None else layout.rhythm.finding(gaps)
    return found if about is None else [*found, about]


def _findings(
    connection: Connection, layout: Layout, states: tuple[Any, ...], actions: tuple[Any, ...]
) -> tuple[Finding, ...]:
    """Return findings about labels that were written in two ways and read as one."""
    found = []
    for what, labels, kinds in (
        ("state", states, layout.state_kinds), ("action", actions, layout.action_kinds),
    ):  # fmt: skip
        for i, kind in enumerate(kinds):
            part = labels[0][i] if len(kinds) > 1 else labels[0]
            twin = None
            if kind == "text" and isinstance(part, int):
                twin = label_ids.written_twice(connection, what, f"{what[0]}{i}")
            if twin is not None:
                found.append(Finding.of("labels_written_twice", what=what, example=twin))
    return tuple(found)


def _split(connection: Connection, layout: Layout) -> int | None:
    """Return the row after which to split a log while counting, which saves the drift check a scan.

    None where row numbers are not stored, and for ordered logs, which the memory check scans again
    anyway.
    """
    if not layout.source.numbered or layout.columns.count is not None or layout.ordered:
        return None
    query = f"SELECT count(*) FROM ({layout.select()})"  # from the metadata of the file
    return int(connection.execute(query).fetchall()[0][0]) // 2


def _group(
    connection: Connection, layout: Layout, *, drop_missing: bool, split: int | None,
    most: int | None,
) -> Scale:  # fmt: skip
    """Create the table ``groups`` and return the scale of its sums of rewards.

    Sums cost as much as all the rest. Where no transition shows two rewards, as the range of its
    rewards shows, they follow from the counts. Where rewards have few decimals, floating-point sums
    are exact. The scale follows from the largest reward, which is certain only once the groups
    exist. If the first guess at any of these was wrong, a second pass is needed.
    """
    options: dict[str, Any] = {"drop_missing": drop_missing, "split": split}
    if layout.columns.reward is None:
        _create_groups(connection, layout, None, options)
        return Scale(0, 0)
    first = _first_rewards(connection, layout)
    if not first.vary:
        _create_groups(connection, layout, None, options)
        right = _right_digits(connection, most)
        if not _rewards_vary(connection):
            connection.execute(count_queries.equal_query(right))
            return Scale(right, right)
        guess = right
    else:
        guess = digits_for(_largest(connection, layout, first.largest))
        decimals = first.decimals(guess)
        if decimals is not None:
            scale = Scale(guess, decimals)
            if _add_decimals(connection, layout, scale, most, options):
                return scale
    _create_groups(connection, layout, guess, options)
    right = _right_digits(connection, most)
    if right != guess:
        _create_groups(connection, layout, right, options)
    return Scale(right, right)


def _add_decimals(
    connection: Connection, layout: Layout, scale: Scale, most: int | None, options: dict[str, Any]
) -> bool:
    """Sum rewards of few decimals as floating-point numbers; tell whether all sums are exact."""
    digits, decimals = scale
    query = count_queries.group_query(layout, digits=digits, decimals=decimals, **options)
    try:
        faults.execute(connection, layout, query)
        exact = connection.execute(count_queries.are_exact_query()).fetchall()[0][0]
    except duckdb.OutOfRangeException:
        return False
    return bool(exact) and _right_digits(connection, most) == digits


def _create_groups(
    connection: Connection, layout: Layout, digits: int | None, options: dict[str, Any]
) -> None:
    try:
        query = count_queries.group_query(layout, digits=digits, **options)
        faults.execute(connection, layout, query)
    except duckdb.OutOfRangeException:  # more than 10**8 rows in one group
        query = count_queries.group_query(layout, digits=digits, wide=True, **options)
        faults.execute(connection, layout, query)


def _first_rewards(connection: Connection, layout: Layout) -> FirstRewards:
    """Return statistics of the first rewards; with derived next states they count as varying."""
    query = count_queries.first_rewards_query(layout, FIRST_ROWS)
    try:
        vary, largest, *far = connection.execute(query).fetchall()[0]
    except duckdb.Error:  # the count itself will say where the file cannot be read
        return FirstRewards(True, 0.0, None)
    if layout.columns.count is not None:
        return FirstRewards(True, largest or 0.0, None)
    return FirstRewards(vary or layout.derived, largest or 0.0, far)


def _largest(connection: Connection, layout: Layout, first: float) -> float:
    """Return a guess at the largest absolute reward: of all Parquet files, or of the first rows."""
    if layout.source.kind != "parquet" or layout.columns.reward is None:
        return first
    name = quote_name(layout.columns.reward)
    rows = scan(layout.source, {layout.columns.reward: "DOUBLE"})
    try:
        query = f"SELECT min({name})::DOUBLE, max({name})::DOUBLE FROM ({rows})"
        ends = connection.execute(query).fetchall()[0]
    except duckdb.Error:  # not a column of numbers
        return first
    return max([first, *(abs(float(end)) for end in ends if end is not None and np.isfinite(end))])


def _rewards_vary(connection: Connection) -> bool:
    query = "SELECT coalesce(bool_or(lowest < highest), false) FROM groups"
    return bool(connection.execute(query).fetchall()[0][0])


def _right_digits(connection: Connection, most: int | None) -> int:
    lowest, highest = connection.execute(
        "SELECT min(lowest) FILTER (WHERE isfinite(lowest)), "
        "max(highest) FILTER (WHERE isfinite(highest)) "
        f"FROM groups WHERE flag IN ({count_queries.MOVE}, {count_queries.GAP})"
    ).fetchall()[0]
    own = digits_for(max(abs(lowest or 0.0), abs(highest or 0.0)))
    return own if most is None else min(own, most)


def _rewards(layout: Layout, entries: dict[str, NDArray[Any]], scale: Scale) -> RewardSums | None:
    if layout.columns.reward is None:
        return None
    digits, decimals = scale
    if "multiple" in entries:
        spare = max(0, min(digits, zeros(entries["multiple"])))
        decimals -= spare
        multiple = (entries["multiple"] // 10**spare).astype(object)
        total = multiple * entries["n"].astype(object)
        square = total * multiple
    elif "total" in entries:
        total, square = entries["total"], entries["square0"]
    else:
        total = _whole(entries, "total")
        parts = [f"square{i}" for i in range(3) if f"square{i}_low" in entries]
        square = sum(
            _whole(entries, name) << (count_queries.PART * i) for i, name in enumerate(parts)
        )
    return RewardSums(
        digits=digits, decimals=decimals, count=entries["n"], total=np.asarray(total),
        square=np.asarray(square), lowest=entries["lowest"], highest=entries["highest"],
    ).reduced()  # fmt: skip


def _whole(entries: dict[str, NDArray[Any]], name: str) -> NDArray[Any]:
    """Return integers that were fetched in halves as Python integers."""
    high, low = entries[f"{name}_high"], entries[f"{name}_low"]
    if np.all((high == 0) | (high == -1)):  # 64 bits are enough
        return np.asarray(low + (high << label_ids.HALF_BITS)).astype(object)
    return np.asarray((high.astype(object) << label_ids.HALF_BITS) + low.astype(object))


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
    if label_ids.has_starts(layout):
        query = "SELECT coalesce(sum(n), 0) FROM starts"
    else:
        query = f"SELECT count(DISTINCT e) FROM ({layout.select()})"
    return int(connection.execute(query).fetchall()[0][0])
