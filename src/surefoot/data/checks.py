"""Check that a log fits the model: no memory beyond the state, no drift in time.

Both are tested in every row (state-action pair) with enough data, by Pearson's chi-square test of
independence: between the previous and the next state, and between the half of the log and the next
state. Rare categories are merged so that every expected count is at least 5.

Memory is tested twice: for the previous state, and for the previous state and action together.
Where actions are chosen at random, hidden types that respond differently to actions leave no trace
in the previous state alone.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import duckdb
import numpy as np
from numpy.typing import NDArray
from scipy import stats

from surefoot._findings import Finding
from surefoot._rows import name_of
from surefoot.data.check import ALARM, Check
from surefoot.data.columns import Layout
from surefoot.data.count_queries import names
from surefoot.data.label_ids import CANONICAL_INTEGER
from surefoot.data.log_halves import (
    Sides,
    counted_moves,
    first_rows,
    halves,
    halves_of_groups,
    hashed,
    row_hash,
)
from surefoot.data.sources import MEMORY_LIMIT, Connection

EXPECTED = 5.0
"""The smallest expected count of a cell (Cochran 1954)."""
LONG = 1_000_000
"""In longer logs without stored row numbers, drift is tested as the first rows against the rest."""
MOST_ROWS = 2_000_000
"""Longer logs are checked for memory on a sample of about this many rows."""
SPREAD = 4
"""Keys are made distinct without sorting if the largest is at most this many times their number."""
BLOCK = 1024
"""Long episodes are sampled in blocks of this many steps."""

WITH_ACTION = 1 / 3
"""The share of the memory check's level that the test with the previous action gets: it has many
more categories, and so less power where the previous state alone shows the memory."""

Codes = NDArray[np.int64]


class Outcomes(NamedTuple):
    """The codes of the findings that one test can end in."""

    untried: str
    fine: str
    alarming: str


DRIFT = Outcomes("drift_not_checked", "no_drift_seen", "drift_seen")
MEMORY = Outcomes("memory_not_checked", "no_memory_seen", "memory_seen")


class Evidence(NamedTuple):
    """The outcome of one test over all rows."""

    p_value: float
    tried: int
    worst_row: int
    worst_p: float


def independence(row: Codes, before: Codes, after: Codes, count: NDArray[Any]) -> Evidence:
    """Test, in every row, whether ``after`` is independent of ``before``.

    The p-value is twice the smaller of two: all rows together (sum of chi-squares), and the worst
    single row times the number of rows. Rows without two frequent categories on both sides are
    not tried.

    Examples
    --------
    >>> row, before, after = np.zeros((3, 4), dtype=int)
    >>> before[2:], after[1::2] = 1, 1
    >>> independence(row, before, after, np.array([50, 0, 0, 50])).p_value < 1e-9
    True
    >>> independence(row, before, after, np.array([25, 25, 25, 25])).p_value
    1.0
    """
    rows = int(row.max(initial=-1)) + 1
    total = np.bincount(row, count, rows)
    # Two frequent values need 2 sqrt(5 N) of the row's N transitions: at least 20.
    used = (count > 0) & (total >= 4 * EXPECTED)[row]
    row, before, after, count = row[used], before[used], after[used], count[used]
    before, left = _lumped(row, before, count)
    after, right = _lumped(row, after, count)
    cells, cell = np.unique(before * (int(after.max(initial=0)) + 1) + after, return_inverse=True)
    first = np.zeros(len(cells), dtype=np.int64)
    first[cell] = np.arange(len(cell))
    observed = np.bincount(cell, count, len(cells))
    share = observed**2 / (left[before[first]] * right[after[first]])
    spread = np.bincount(row[first], share, rows)
    statistic = np.maximum(total * (spread - 1), 0.0)
    freedom = np.maximum(_categories(row, before, rows) - 1, 0)
    freedom = freedom * np.maximum(_categories(row, after, rows) - 1, 0)
    tried = np.flatnonzero(freedom > 0)
    if len(tried) == 0:
        return Evidence(1.0, 0, -1, 1.0)
    p_rows = np.asarray(stats.chi2.sf(statistic[tried], freedom[tried]))
    together = float(stats.chi2.sf(statistic[tried].sum(), freedom[tried].sum()))
    worst = int(np.argmin(p_rows))
    p_value = min(1.0, 2 * min(together, len(tried) * float(p_rows[worst])))
    return Evidence(p_value, len(tried), int(tried[worst]), float(p_rows[worst]))


def _categories(row: Codes, group: Codes, rows: int) -> Codes:
    """Return the number of groups of each row; a group belongs to one row."""
    owner = np.full(int(group.max(initial=-1)) + 1, -1)
    owner[group] = row
    return np.bincount(owner[owner >= 0], minlength=rows)


def _distinct(keys: Codes) -> tuple[Codes, Codes]:
    """Return the distinct keys, sorted, and the index of each key among them.

    Keys that lie close together are marked in a table, which takes a fifth of the time of sorting.
    """
    largest = int(keys.max(initial=0))
    if largest > SPREAD * len(keys) or keys.min(initial=0) < 0:
        distinct, where = np.unique(keys, return_inverse=True)
        return distinct, where
    seen = np.zeros(largest + 1, dtype=np.bool_)
    seen[keys] = True
    return np.flatnonzero(seen), (np.cumsum(seen) - 1)[keys]


def _lumped(row: Codes, values: Codes, count: NDArray[Any]) -> tuple[Codes, NDArray[np.float64]]:
    """Merge the rare values of each row: those kept have at least sqrt(5 N) of its N transitions.

    Returns the group of each entry (groups belong to one row) and the size of every group. The
    product of two such sizes over N is at least 5. Only sizes are used, so the test stays valid. A
    remainder that is itself too rare joins the rarest value that was kept.
    """
    pairs, where = _distinct(row * (int(values.max(initial=0)) + 1) + values)
    size = np.bincount(where, count, len(pairs))
    owner = np.zeros(len(pairs), dtype=np.int64)
    owner[where] = row
    rows = int(row.max(initial=-1)) + 1
    needed = np.sqrt(EXPECTED * np.bincount(row, count, rows))
    rare = size < needed[owner]
    remainder = np.bincount(owner, size * rare, rows)
    # The rarest value kept in each row: the first of equals.
    stays = np.flatnonzero(~rare)
    least = np.full(rows, np.inf)
    np.minimum.at(least, owner[stays], size[stays])
    stays = stays[size[stays] == least[owner[stays]]]
    rarest = np.full(rows, -1)
    rarest[owner[stays[::-1]]] = stays[::-1]
    alone = rare & ((remainder >= needed)[owner] | (rarest[owner] < 0))
    group = np.arange(len(pairs))
    group[alone] = len(pairs) + owner[alone]
    joins = rare & ~alone
    group[joins] = rarest[owner[joins]]
    own = group[where]
    return own, np.bincount(own, count).astype(np.float64)


def compare(row: Codes, side: Codes, after: Codes, count: NDArray[Any]) -> tuple[Check, ...]:
    """Test whether next states differ between old (0) and new (1) data, row by row."""
    evidence = independence(row, side, after, count)
    if evidence.tried == 0:
        return ()
    code = "old_and_new_differ" if evidence.p_value < ALARM else "old_and_new_agree"
    finding = Finding.of(code, p_value=evidence.p_value, tried=evidence.tried)
    return (
        Check(
            name="old and new data",
            p_value=evidence.p_value,
            tried=evidence.tried,
            finding=finding,
        ),
    )


def not_possible(reason: str, limit: str | None = None) -> tuple[Check, ...]:
    """Return checks that could not be made; ``reason`` is one that the findings have words for."""
    why = {"reason": reason} if limit is None else {"reason": reason, "limit": limit}
    return tuple(
        Check(name=name, p_value=None, tried=0, finding=Finding.of(codes.untried, **why))
        for name, codes in (("memory", MEMORY), ("drift", DRIFT))
    )


def check_assumptions(
    connection: Connection, layout: Layout, *, drop_missing: bool, rows: int,
    split: int | None = None, grouped: bool = False,
) -> tuple[Check, ...]:  # fmt: skip
    """Test a log for memory and drift, from SQL aggregates.

    With ``split``, the table ``groups`` already counts the first half. Without, the first rows of a
    long log are compared with the rest if ``groups`` holds the whole log (``grouped``); any other
    log is scanned again, in halves.
    """
    if layout.columns.count is not None:
        return not_possible("aggregated")
    try:
        return _look(connection, layout, drop_missing, rows, split, grouped)
    except duckdb.Error as problem:  # checks are optional: report the failure, do not crash
        memory = isinstance(problem, duckdb.OutOfMemoryException)
        return not_possible("memory", MEMORY_LIMIT) if memory else not_possible("unreadable")


def _look(
    connection: Connection, layout: Layout, drop_missing: bool, rows: int,
    split: int | None, grouped: bool,
) -> tuple[Check, ...]:  # fmt: skip
    attempts = 2 if layout.ordered else 1
    if split is not None:
        side = halves_of_groups(layout, drop_missing)
    elif grouped and not layout.ordered and rows > LONG:
        side = first_rows(layout, drop_missing, max(LONG // 2, rows // 20))
    else:
        side = halves(layout, drop_missing, rows)
    drift = _drift(connection, layout, side, attempts)
    if layout.ordered:
        return _memory(connection, layout, drop_missing, rows, attempts), drift
    return not_possible("unordered")[0], drift


def _drift(connection: Connection, layout: Layout, sides: Sides, attempts: int) -> Check:
    found = connection.execute(sides.query).fetchnumpy()
    pairs, pair = np.unique(np.asarray(found["pair"]), return_inverse=True)
    _, after = np.unique(np.asarray(found["after"]), return_inverse=True)
    count = np.asarray(found["n"]).astype(np.int64)
    if "early" in found:
        early = np.asarray(found["early"]).astype(np.int64)
        side = np.repeat(np.arange(2), len(pair))
        pair, after = np.tile(pair, 2), np.tile(after, 2)
        count = np.concatenate((early, count - early))
    else:
        side = np.asarray(found["side"]).astype(np.int64)
    evidence = independence(pair, side, after, count)
    return _conclude(
        "drift", evidence, attempts, DRIFT, {"first_rows": sides.first},
        where=lambda row: _worst(connection, layout, int(pairs[row])),
    )  # fmt: skip


def _memory(
    connection: Connection, layout: Layout, drop_missing: bool, rows: int, attempts: int
) -> Check:
    moves, sample = _sampled(connection, layout, drop_missing, rows)
    past = {"p": names(layout, "s"), "q": names(layout, "a")}
    lags = [
        f"lag({name}) OVER w AS {mark}{i}"
        for mark, columns in past.items()
        for i, name in enumerate(columns)
    ]
    state, action = ([f"{mark}{i}" for i in range(len(past[mark]))] for mark in past)
    found = connection.execute(
        f"SELECT {row_hash(layout)} AS pair, {hashed(state)} AS before, "
        f"{hashed([*state, *action])} AS before_and_done, "
        f"{hashed([*names(layout, 't'), 'z'])} AS after, count(*) AS n FROM ("
        f"SELECT *, {', '.join(lags)} FROM ({moves}) WINDOW w AS "
        f"(PARTITION BY e, block ORDER BY k)) WHERE p0 IS NOT NULL GROUP BY ALL"
    ).fetchnumpy()
    pairs, pair = np.unique(np.asarray(found["pair"]), return_inverse=True)
    _, after = np.unique(np.asarray(found["after"]), return_inverse=True)

    def of(column: str) -> Evidence:
        _, before = np.unique(np.asarray(found[column]), return_inverse=True)
        return independence(pair, before, after, np.asarray(found["n"]))

    evidence = _stronger(of("before"), of("before_and_done"))
    return _conclude(
        "memory", evidence, attempts, MEMORY, {"sample": sample},
        where=lambda row: _worst(connection, layout, int(pairs[row])),
    )  # fmt: skip


def _stronger(state: Evidence, state_and_action: Evidence) -> Evidence:
    """Return the stronger of two tests that share a level, its p-value corrected for the sharing.

    A test that could try no row leaves the whole level to the other.
    """
    tests = [(state, 1 - WITH_ACTION), (state_and_action, WITH_ACTION)]
    tried = [(found, share) for found, share in tests if found.tried]
    if len(tried) < len(tests):
        return tried[0][0] if tried else state
    corrected = [found._replace(p_value=min(1.0, found.p_value / share)) for found, share in tried]
    return min(corrected, key=lambda found: found.p_value)


def _conclude(
    name: str,
    evidence: Evidence,
    attempts: int,
    codes: Outcomes,
    about: dict[str, int | None],
    *,
    where: Callable[[int], dict[str, str]],
) -> Check:
    """Return one test's outcome as a finding; p-values are corrected for the tests tried."""
    if evidence.tried == 0:
        untried = Finding.of(codes.untried, reason="few")
        return Check(name=name, p_value=None, tried=0, finding=untried)
    p_value = min(1.0, attempts * evidence.p_value)
    code, place = codes.fine, {}
    if p_value < ALARM:
        code, place = codes.alarming, where(evidence.worst_row)
    finding = Finding.of(code, p_value=p_value, tried=evidence.tried, **place, **about)
    return Check(name=name, p_value=p_value, tried=evidence.tried, finding=finding)


def _sampled(
    connection: Connection, layout: Layout, drop_missing: bool, rows: int
) -> tuple[str, int | None]:
    """Return the SQL of about two million rows, and how many rows each of them stands for.

    Whole episodes are sampled, or blocks of steps. Where neither is possible, these are the first
    rows, and None is returned instead of the number.
    """
    moves = counted_moves(layout, drop_missing, rows=False)
    if rows <= MOST_ROWS:
        return f"SELECT *, 0 AS block FROM ({moves})", 1
    share = int(-(-rows // MOST_ROWS))
    episodes = connection.execute(f"SELECT approx_count_distinct(e) FROM ({moves})").fetchall()[0][
        0
    ]
    if episodes >= 20 * share:
        return f"SELECT *, 0 AS block FROM ({moves}) WHERE hash(e) % {share} = 0", share
    if layout.steps_are_numbers:
        blocks = f"SELECT *, floor(k / {BLOCK}) AS block FROM ({moves})"
        return f"SELECT * FROM ({blocks}) WHERE hash(e, block) % {share} = 0", share
    return f"SELECT *, 0 AS block FROM ({moves}) LIMIT {MOST_ROWS}", None


def _worst(connection: Connection, layout: Layout, pair: int) -> dict[str, str]:
    """Return the names of the state and action of the row with the strongest evidence."""
    states, actions = names(layout, "s"), names(layout, "a")
    found = connection.execute(
        f"SELECT {', '.join(states + actions)} FROM ({layout.select()}) "
        f"WHERE {row_hash(layout)} = {pair} LIMIT 1"
    ).fetchall()[0]
    named = tuple(map(_shown, found))
    state, action = named[: len(states)], named[len(states) :]
    return {"state": name_of(0, (_joined(state),)), "action": name_of(0, (_joined(action),))}


def _joined(parts: tuple[Any, ...]) -> Any:
    return parts[0] if len(parts) == 1 else parts


def _shown(label: Any) -> Any:
    """Return a label as in the counts: the text of a plain whole number becomes an integer."""
    if isinstance(label, float):
        return int(label)
    plain = isinstance(label, str) and re.fullmatch(CANONICAL_INTEGER, label)
    return int(label) if plain else label
