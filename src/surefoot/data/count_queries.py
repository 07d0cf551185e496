"""The SQL that counts a log: one pass over its rows; everything after uses the groups."""

from surefoot.data.columns import Layout
from surefoot.data.reward_sums import KEPT

MOVE, CUT, AFTER_END, REPEATED, GAP, LEFT_OUT = range(6)
"""Kinds of rows: a transition, the end of a cut episode, or a row that cannot be counted."""
WINDOW = "WINDOW w AS (PARTITION BY e ORDER BY k)"
NEIGHBOURS = "lead(k) OVER w AS after, lag(1) OVER w IS NULL AS opens"
"""The step of the episode's next row, and whether a row is the episode's first."""
PART = 25
"""Multiples of up to 50 bits are split into two parts of this many bits if squares overflow."""


def names(layout: Layout, letter: str) -> list[str]:
    """Return s0, s1, ... (or a, t) for the components of a state (an action, a next state)."""
    size = len(layout.action_kinds if letter == "a" else layout.state_kinds)
    return [f"{letter}{i}" for i in range(size)]


def keys(layout: Layout) -> list[str]:
    """Return the columns to group by; columns that are the same in every row are left out."""
    ended = ["z"] if layout.columns.terminal is not None else []
    flag = ["flag"] if layout.derived else []
    return [*names(layout, "s"), *names(layout, "a"), *names(layout, "t"), *ended, *flag]


def transitions(
    layout: Layout, *, drop_missing: bool, rows: bool = False, following: bool = False
) -> str:
    """Return the SQL of the log with its next states: s, a, t, z (terminal), flag, r, n, e, k.

    ``following`` adds the step of the episode's next row (``after``) and whether a row is the first
    (``opens``); rows that are not counted are included in both.
    """
    listed = flagged(layout, placed_only=drop_missing, rows=rows, following=following)
    if not drop_missing:
        return listed
    complete = " AND ".join(f"NOT ({condition})" for condition in missing(layout).values())
    return f"SELECT * FROM ({listed}) WHERE flag = {CUT} OR ({complete})"


def flagged(
    layout: Layout, *, placed_only: bool, rows: bool = False, following: bool = False
) -> str:
    """Return the SQL of all rows with their next state and flag.

    ``placed_only`` leaves out rows without episode or step before rows are put in order; ``rows``
    adds their position in the log, ``following`` the same columns as in `transitions`.
    """
    ended = "" if layout.columns.terminal is not None else ", false AS z"
    listed = f"SELECT *{ended} FROM ({layout.select(rows=rows)})"
    if layout.derived:
        return _followed(layout, listed, placed_only)
    if not following:
        return f"SELECT *, {MOVE} AS flag FROM ({listed})"
    return f"SELECT *, {MOVE} AS flag, {NEIGHBOURS} FROM ({listed}) {WINDOW}"


def _followed(layout: Layout, rows: str, placed_only: bool) -> str:
    """Take each next state from the following row of the episode."""
    known = " WHERE e IS NOT NULL AND k IS NOT NULL" if placed_only else ""
    pairs = zip(names(layout, "s"), names(layout, "t"), strict=True)
    following = ", ".join(f"lead({s}) OVER w AS {t}" for s, t in pairs)
    # Whole steps of 1 can have gaps, and so can times with a usual distance.
    gap = f"WHEN after - k <> 1 THEN {GAP} " if layout.steps_are_numbers else ""
    if layout.rhythm is not None and layout.rhythm.gap:
        gap = f"WHEN {layout.rhythm.gap} THEN {LEFT_OUT} "
    return (
        f"SELECT * EXCLUDE (last), CASE WHEN last AND NOT z THEN {CUT} "
        f"WHEN NOT last AND z THEN {AFTER_END} WHEN after = k THEN {REPEATED} {gap}"
        f"ELSE {MOVE} END AS flag FROM (SELECT *, {following}, {NEIGHBOURS}, "
        f"lead(1) OVER w IS NULL AS last FROM ({rows}){known} {WINDOW})"
    )


def missing(layout: Layout) -> dict[str, str]:
    """Return, by column name, the SQL condition that a transition lacks that column."""
    columns = layout.columns
    lacks = {
        column: f"{name} IS NULL"
        for letter, names_of in (("s", columns.state), ("a", columns.action))
        for column, name in zip(names_of, names(layout, letter), strict=True)
    }
    for column, name in (("episode", "e"), ("step", "k"), ("count", "n")):
        if (given := getattr(columns, column)) is not None:
            lacks[given] = f"{name} IS NULL"
    if columns.terminal is not None:
        lacks[columns.terminal] = "z IS NULL"
    after = columns.next_state or tuple(f"the next {name}" for name in columns.state)
    lives = " AND NOT coalesce(z, false)" if columns.terminal is not None else ""
    for column, name in zip(after, names(layout, "t"), strict=True):
        lacks[column] = f"{name} IS NULL{lives}"
    if columns.reward is not None:
        lacks[columns.reward] = "r IS NULL OR isnan(r)"
    return lacks


def group_query(
    layout: Layout, *, drop_missing: bool, digits: int | None = None, split: int | None = None,
    wide: bool = False, decimals: int | None = None,
) -> str:  # fmt: skip
    """Return the SQL that creates ``groups``: a line per (state, action, next state, end, flag).

    ``digits`` is the scale to which rewards are rounded before they are summed; None means that
    only their range is wanted. With ``split`` the table also counts how many lines are among the
    first ``split`` rows (``early``). ``wide`` keeps sums of squares in three parts, for weights and
    for very long logs. ``decimals`` is a guess: if no reward has more, the sums are exact as
    floating-point numbers, in units of the last decimal (`are_exact_query` checks that).
    """
    constant = {"z": "false AS z", "flag": f"{MOVE} AS flag"}
    grouped = keys(layout)
    measures = [sql for name, sql in constant.items() if name not in grouped]
    measures.append("count(*) AS lines")
    if split is not None:
        measures.append(f'count(*) FILTER (WHERE "row number" <= {split}) AS early')
    measures += ["count(e) AS placed"] if layout.columns.episode is not None else []
    measures += ["count(k) AS ordered"] if layout.columns.step is not None else []
    where = ""
    if layout.columns.count is None:
        measures += ["count(*) AS n"]
    else:
        where = " WHERE n <> 0 OR n IS NULL"
        measures += [
            "sum(n) AS n", "min(n) AS fewest", "bool_and(n = floor(n)) AS whole",
            "count(n) AS counted",
        ]  # fmt: skip
    rows = transitions(layout, drop_missing=drop_missing, rows=split is not None)
    if layout.columns.reward is not None:
        measures += ["count(r) AS rewarded", "min(r) AS lowest", "max(r) AS highest"]
    if digits is not None and decimals is not None:
        measures += _floating_sums(digits, decimals)
    elif digits is not None:
        rows = f"SELECT *, {_multiple('r', digits)} AS q FROM ({rows})"
        measures += _reward_sums(layout.columns.count is not None, wide)
    return (
        f"CREATE OR REPLACE TEMP TABLE groups AS SELECT {', '.join(grouped + measures)} "
        f"FROM ({rows}){where} GROUP BY {', '.join(grouped)}"
    )


def equal_query(digits: int) -> str:
    """Return the SQL that adds each group's reward as a multiple; its rewards must be equal."""
    return (
        "CREATE OR REPLACE TEMP TABLE groups AS "
        f"SELECT *, {_multiple('lowest', digits)} AS multiple FROM groups"
    )


def _multiple(reward: str, digits: int) -> str:
    """Return the SQL of a reward as a multiple of the scale; NULL where it is too large for it."""
    scaled = f"{reward} * 1e{digits}" if digits >= 0 else f"{reward} / 1e{-digits}"
    # File statistics ignore NaN, so the condition alone would let it through.
    return f"CASE WHEN abs({reward}) <= 1e{KEPT - digits} THEN TRY_CAST({scaled} AS BIGINT) END"


HALFWAY = "6755399441055744.0::DOUBLE"
"""1.5 * 2**52: adding and subtracting it rounds to a whole number, halves to even."""
LARGEST_EXACT = 2**53
"""Whole numbers up to this are exact as floating-point numbers."""
MOST_DECIMALS, MOST_DIGITS = 6, 22
"""The most decimals that are guessed, and the largest power of ten exact in floating point."""


def _rounded(digits: int) -> str:
    return f"((r * 1e{digits} + {HALFWAY}) - {HALFWAY})"


def _distance(decimals: int) -> str:
    """Return the SQL of a reward's distance from its rounding, in units of the last decimal."""
    return f"abs(r * 1e{decimals} - {_rounded(decimals)})"


def near(digits: int, decimals: int) -> str:
    """Return, as SQL, the largest `_distance` of a reward that has no more than ``decimals``.

    Products are off by at most 0.111 units of the scale ``digits``, and so is the floating-point
    number nearest to a decimal one: it passes, and whatever passes is rounded to the same multiple.
    """
    return f"0.25e{decimals - digits}"


def _floating_sums(digits: int, decimals: int) -> list[str]:
    """Return sums as floating-point numbers: half the work of wide integers.

    Partial sums of whole numbers are exact as long as the sum of squares is below 2**53, in any
    order. A reward with more decimals makes the sum of squares enormous.
    """
    whole = _rounded(decimals)
    more = f"{_distance(decimals)} > {near(digits, decimals)}"
    square = f"CASE WHEN {more} THEN 1e300 ELSE {whole} * {whole} END"
    return [f"sum({whole}) AS total", f"sum({square}) AS square0"]


def first_rewards_query(layout: Layout, rows: int) -> str:
    """Return the SQL of statistics of the rewards in the first rows.

    These are: whether a transition has two rewards, the largest absolute reward, and the largest
    distance from rewards with 0, 1, ... `MOST_DECIMALS` decimals. Where next states come from
    following rows, or rows have weights, all rows are treated as one transition.
    """
    keyed = not layout.derived and layout.columns.count is None
    listed = ", ".join(keys(layout)) if keyed else "1"
    far = ", ".join(f"max({_distance(d)})" for d in range(MOST_DECIMALS + 1))
    return (
        f"WITH first_rows AS MATERIALIZED ({layout.select(first=rows)}) SELECT * FROM "
        "(SELECT coalesce(bool_or(least < most), true), max(greatest(-least, most)) FROM "
        "(SELECT min(r) AS least, max(r) AS most FROM first_rows "
        f"WHERE isfinite(r) GROUP BY {listed})), (SELECT {far} FROM first_rows)"
    )


def are_exact_query() -> str:
    """Return the SQL that tells whether floating-point sums of ``groups`` are exact."""
    return (
        f"SELECT coalesce(bool_and(square0 < {LARGEST_EXACT}), true) FROM groups "
        f"WHERE flag IN ({MOVE}, {GAP})"
    )


def _reward_sums(weighted: bool, wide: bool) -> list[str]:
    """Return sums of multiples and of their squares as wide integers, exact in any order."""
    weight = "(CASE WHEN abs(n) < 9e15 THEN n ELSE 0 END)::BIGINT::HUGEINT * " if weighted else ""
    total = f"sum({weight}q) AS total"
    if not (weighted or wide):
        return [total, "sum(q::HUGEINT * q) AS square0"]
    high, low = f"(q >> {PART})", f"(q & {2**PART - 1})"
    products = (f"{low} * {low}", f"2 * {high} * {low}", f"{high} * {high}")
    return [total, *(f"sum({weight}({p})) AS square{i}" for i, p in enumerate(products))]
