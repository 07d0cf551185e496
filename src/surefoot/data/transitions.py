"""Read a log of transitions and count it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from surefoot._findings import Finding
from surefoot._rows import Ints, pack
from surefoot.data.check import Check
from surefoot.data.checks import check_assumptions
from surefoot.data.columns import Layout
from surefoot.data.counts import Counts
from surefoot.data.log import CHECK_AT_ONCE, Log, Pending
from surefoot.data.log_format import LogFormat
from surefoot.data.merge import TERMINAL_LABEL
from surefoot.data.open_log import OpenLog, open_log
from surefoot.data.packed_rows import REWARD_MODELS, label_of
from surefoot.data.reward_sums import reward_fields
from surefoot.data.shards import count_in_shards
from surefoot.data.support import free_label
from surefoot.data.tables import StepColumns
from surefoot.data.tally import Tally

DEFAULT_REWARD_MODEL = "bounded"
"""How mean rewards are treated where one transition shows several: the cautious model."""

EPISODE_NAMES = ("episode", "episode_id", "trajectory", "trajectory_id")
"""Names of columns that most likely identify episodes."""
END_NAMES = ("terminal", "terminated", "terminals", "done", "is_terminal")
"""Names of columns that are mentioned if they are present but not used."""

DECIMAL = r"[+-]?[0-9]+[.,][0-9]+"
SEVERAL_DECIMALS, MANY_NUMBERS, FEW_ROWS = 10, 50, 10
"""Ten decimals, or fifty whole numbers with fewer than ten rows each, look like measurements."""

ColumnNames = str | Sequence[str]


def read_transitions(
    source: Any,
    *,
    state: ColumnNames = "state",
    action: ColumnNames = "action",
    next_state: ColumnNames | None = "next_state",
    reward: Any = "reward",
    episode: str | None = None,
    step: str | None = None,
    terminal: str | None = None,
    count: str | None = None,
    missing: Literal["error", "drop"] = "error",
    rewards: Literal["fixed", "normal", "bounded"] | None = None,
    reward_range: tuple[float, float] | None = None,
    labels: Literal["auto", "text"] = "auto",
    decimal: Literal[".", ","] | None = None,
    date_format: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    table: str | None = None,
    query: str | None = None,
    bins: Any = (),
) -> Counts:
    """Read a log and count its transitions.

    Parameters
    ----------
    source
        A CSV (.csv, .tsv, also .gz), Parquet or Excel file, a folder, glob or list of them, a
        DuckDB or SQLite database, a pandas, polars or Arrow table, or a dict of NumPy arrays.
        DuckDB reads and counts it, out of core.
    state, action, next_state
        Column names; several columns may form a state (the next state is then looked for in columns
        with ``next_`` before each name). Without a next-state column the following row of the
        episode supplies it: pass ``episode`` and ``step``.
    reward
        A column name; None for no rewards; or given rewards, as in :meth:`Counts.with_rewards`.
    episode, step
        Columns that say which rows belong together, and in which order. They show where episodes
        start and allow the check for memory.
    terminal
        A column that is true (1) where the episode ended by itself. Such transitions lead to an
        absorbing state without reward. A cut-off episode is not terminal.
    count
        A column that says how many transitions each row of an aggregated log stands for.
    missing
        ``"error"``, or ``"drop"``: rows that lack a value are left out, and their number is shown.
    rewards
        How uncertain mean rewards are: ``"fixed"``, ``"normal"`` or ``"bounded"``. None means fixed
        if no transition shows two different rewards and no range is given, else bounded.
    reward_range
        The lowest and highest reward possible, for ``"bounded"``: every mean reward is uncertain
        within it. None means the range seen, for transitions of actions whose rewards varied.
    labels
        ``"auto"``: a CSV column in which every label is a plain whole number (no leading zeros)
        gives integers, any other column gives exact text. ``"text"``: always text.
    decimal
        Decimal mark of numbers in text, ``"."`` or ``","``. None: detected.
    date_format
        How the dates of steps are written, as in ``"%d.%m.%Y"``. None: detected.
    encoding
        How text files are encoded, as in ``"cp1252"``. None: detected.
    sheet
        The sheet of a spreadsheet. None: its only one.
    table, query
        What to read from a database: a table, or one SELECT. None: its only table.
    bins
        Columns of numbers to cut into bins: ``"age=4"`` (four with about equally many rows),
        ``"age=40,55"`` (edges), or a list of such.

    Returns
    -------
    Counts
        Row-sparse counts with labels, rewards, episode starts and a description of the log.

    Examples
    --------
    >>> import numpy as np
    >>> log = {"state": ["up", "up", "down"], "action": np.zeros(3, int),
    ...        "reward": np.array([1.0, 0.0, 0.0]), "next_state": ["up", "down", "up"]}
    >>> counts = read_transitions(log)
    >>> counts
    Counts(3 transitions, 2 states, 1 action, 2 rows visited, 3 entries observed)
    >>> counts.state_labels
    ('down', 'up')
    """
    _check_switches(missing, rewards, reward_range, labels)
    if isinstance(source, StepColumns):
        episode, step, terminal = (
            role if given is None and role in source else given
            for role, given in zip(source.ROLES, (episode, step, terminal), strict=True)
        )
    column = reward if isinstance(reward, str) else None
    columns = {
        "state": state, "action": action, "next_state": next_state, "reward": column,
        "episode": episode, "step": step, "terminal": terminal, "count": count,
    }  # fmt: skip
    how = LogFormat.of(
        decimal=decimal, date_format=date_format, encoding=encoding, sheet=sheet, table=table,
        query=query, bins=bins,
    )  # fmt: skip
    options: dict[str, Any] = {
        "drop_missing": missing == "drop", "text_labels": labels == "text", "how": how
    }  # fmt: skip
    if (shared := count_in_shards(source, columns, **options)) is not None:
        layout, seen = shared
        counts = replace(assemble(seen), log=_history(layout, seen, options["drop_missing"], None))
    else:
        with open_log(source, columns, **options) as opened:
            layout, seen = opened.layout, opened.tally
            checked = _checked(opened)
            log = _history(layout, seen, opened.drop_missing, checked)
            counts = replace(assemble(seen), log=log)
    _check_size(counts, layout)
    if reward is not None and column is None:
        counts = counts.with_rewards(reward)
    return _with_model(counts, rewards, reward_range)


def _check_size(counts: Counts, layout: Layout) -> None:
    if counts.num_states < 2:
        only = label_of(0, counts.state_labels)
        raise ValueError(
            f"{layout.source.name}: there is one state only ({only!r}), so actions have nowhere to "
            f"lead. Check the column {layout.columns.state[0]!r}."
        )


def _check_switches(
    missing: Any, rewards: Any, reward_range: tuple[float, float] | None, labels: Any
) -> None:
    for name, value, allowed in (
        ("missing", missing, ("error", "drop")),
        ("rewards", rewards, (*REWARD_MODELS, None)),
        ("labels", labels, ("auto", "text")),
    ):
        if value not in allowed:
            listed = ", ".join(map(repr, allowed))
            raise ValueError(f"{name}={value!r}; it must be one of {listed}.")
    if reward_range is not None and not (
        len(reward_range) == 2
        and np.all(np.isfinite(reward_range))
        and reward_range[0] <= reward_range[1]
    ):
        raise ValueError(f"reward_range={reward_range!r}; it must be (lowest, highest).")


def _with_model(
    counts: Counts, model: str | None, reward_range: tuple[float, float] | None
) -> Counts:
    """Record how uncertain the mean rewards are, and check a given range."""
    if not counts.has_rewards:
        return counts
    doubtful = counts.rewards_vary or reward_range is not None
    chosen = model or (DEFAULT_REWARD_MODEL if doubtful else "fixed")
    if reward_range is not None and counts.reward_low is not None:
        low, high = float(np.nanmin(counts.reward_low)), float(np.nanmax(counts.reward_high))  # type: ignore[arg-type]
        if low < reward_range[0] or high > reward_range[1]:
            raise ValueError(
                f"reward_range={reward_range!r}, but the log holds rewards from {low:g} to "
                f"{high:g}. Widen the range."
            )
    bounds = None if reward_range is None else (float(reward_range[0]), float(reward_range[1]))
    return replace(counts, reward_model=chosen, reward_range=bounds)


def _checked(opened: OpenLog) -> tuple[Check, ...] | None:
    """Check the log, unless that takes long and can wait."""
    layout, seen = opened.layout, opened.tally
    source = layout.source
    # A table in memory has no size on disk. Without steps a check costs little more than the count.
    if source.size <= CHECK_AT_ONCE or not layout.ordered or not source.lasting:
        return check_assumptions(
            opened.connection,
            layout,
            drop_missing=opened.drop_missing,
            rows=seen.rows,
            split=seen.split,
            grouped=True,
        )
    return None


def _history(layout: Layout, seen: Tally, drop: bool, checked: tuple[Check, ...] | None) -> Log:
    source, columns = layout.source, layout.columns
    return Log(
        names=(source.name,),
        rows=seen.rows,
        episodes=seen.episodes,
        cut=seen.cut,
        zero_rows=seen.zero_rows,
        dropped=seen.dropped,
        findings=_findings(layout, seen),
        columns=(columns.state, columns.action, columns.next_state or ()),
        bins=layout.bins,
        checked=checked,
        pending=None if checked else Pending.of(layout, drop_missing=drop, rows=seen.rows),
    )


def _findings(layout: Layout, seen: Tally) -> tuple[Finding, ...]:
    found = [*layout.source.findings, *seen.findings]
    found += [
        Finding.of("end_column_unused", column=name)
        for name in layout.source.types
        if name.lower() in END_NAMES and layout.columns.terminal is None
    ]
    if layout.columns.episode is None and layout.columns.count is None:
        names = [name for name in layout.source.types if name.lower() in EPISODE_NAMES]
        free = [name for name in names if name not in _used(layout)]
        found += [Finding.of("episode_column_unused", column=name) for name in free[:1]]
    found += _continuous(layout, seen)
    for what, labels in (("state", seen.state_labels), ("action", seen.action_labels)):
        text = [label for label in labels if isinstance(label, str)]
        odd = [label for label in text if not _is_integer(label)]
        if layout.source.kind == "csv" and 0 < len(odd) <= len(text) // 10:
            numbers = {"whole": len(text) - len(odd), "odd": len(odd)}
            found.append(Finding.of("labels_mixed", what=what, example=odd[0], **numbers))
    return tuple(found)


def _used(layout: Layout) -> set[str]:
    columns = layout.columns
    return {*columns.state, *columns.action, *(columns.next_state or ())}


def _continuous(layout: Layout, seen: Tally) -> list[Finding]:
    """Return findings about columns that look like measurements: decimals, or many rare numbers."""
    spared = {layout.columns.step, *(one.column for one in layout.bins)}
    found = []
    for names, labels in (
        (layout.columns.state, seen.state_labels), (layout.columns.action, seen.action_labels),
    ):  # fmt: skip
        for i, name in enumerate(names):
            own = {label[i] if len(names) > 1 else label for label in labels}
            text = [str(label) for label in own if not isinstance(label, int)]
            decimals = sum(bool(re.fullmatch(DECIMAL, label)) for label in text)
            numbers = len(own) - len(text) + decimals + sum(map(_is_integer, text))
            few = seen.rows < FEW_ROWS * len(own) and len(own) >= MANY_NUMBERS
            several = decimals > 0 and len(own) >= SEVERAL_DECIMALS
            if name not in spared and numbers == len(own) and (several or few):
                found.append(Finding.of("looks_continuous", column=name, labels=len(own)))
    return found


def _is_integer(text: str) -> bool:
    return text.isascii() and text.lstrip("-").isdigit()


def assemble(seen: Tally) -> Counts:
    """Return the counts of a tally: terminal transitions lead to an absorbing state."""
    successor, state_labels, terminal = _place_ends(seen)
    num_states, num_actions = len(state_labels), len(seen.action_labels)
    key = (seen.state * num_actions + seen.action) * num_states + successor
    distinct, first, entry = np.unique(key, return_index=True, return_inverse=True)
    size = len(distinct)
    fields: dict[str, Any] = {}
    if seen.rewards is not None:
        fields = reward_fields(seen.rewards.grouped(entry, size), seen.action[first], num_actions)
    count = np.zeros(size, dtype=np.int64)
    np.add.at(count, entry, seen.count)
    rows = pack(seen.state[first], seen.action[first], successor[first], num_states, num_actions)
    starts = seen.starts
    if starts is not None:
        starts = np.pad(starts, (0, num_states - len(starts)))
    return Counts(
        **rows._asdict(),
        **fields,
        count=count,
        num_actions=num_actions,
        state_labels=state_labels,
        action_labels=seen.action_labels,
        starts=starts,
        terminal=terminal if terminal.any() else None,
    )


def _place_ends(seen: Tally) -> tuple[Ints, tuple[Any, ...], Any]:
    """Return successors, labels and which states are terminal.

    A state that is only ever entered by terminal transitions, and never acted in, is terminal
    itself and keeps its name. An end in any other state (or without a name) goes to one extra
    terminal state: the state itself is not terminal in other episodes.
    """
    size = len(seen.state_labels)
    ended = np.zeros(size, dtype=np.bool_)
    ended[seen.successor[seen.ends & (seen.successor >= 0)]] = True
    ended[seen.state] = False
    ended[seen.successor[~seen.ends]] = False
    if seen.starts is not None:
        ended[seen.starts > 0] = False
    extra = seen.ends & ((seen.successor < 0) | ~ended[seen.successor])
    if not extra.any():
        return seen.successor, seen.state_labels, ended
    labels = (*seen.state_labels, free_label(TERMINAL_LABEL, seen.state_labels))
    return np.where(extra, size, seen.successor), labels, np.append(ended, True)
