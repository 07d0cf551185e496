"""Which columns of a log mean what, and how each is spelled in SQL."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import duckdb

from surefoot.data.sources import Connection, Source, list_names, quote_name, scan
from surefoot.data.tables import family

TRUE = ("true", "t", "1", "yes", "y", "1.0")
FALSE = ("false", "f", "0", "no", "n", "0.0")
EXACT = 2.0**53
"""Whole numbers up to this are exact as decimals."""
DEFAULT_NEXT_STATE = "next_state"


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The names of the columns in use.

    ``next_state`` is None where the following row of the episode supplies it, ``reward`` where
    rewards are not read from the log.
    """

    state: tuple[str, ...]
    action: tuple[str, ...]
    next_state: tuple[str, ...] | None
    reward: str | None = None
    episode: str | None = None
    step: str | None = None
    terminal: str | None = None
    count: str | None = None

    @staticmethod
    def wanted(
        *, state: str | Sequence[str], action: str | Sequence[str],
        next_state: str | Sequence[str] | None, **single: str | None,
    ) -> set[str]:  # fmt: skip
        """Return the names to look for in a log, before it is known which of them it has."""
        names = {*as_names("state", state), *as_names("action", action)}
        names |= {*(next_names(state, next_state) or ())}
        return names | {name for name in single.values() if name is not None}

    @property
    def used(self) -> tuple[str, ...]:
        """All names, each once."""
        single = (self.reward, self.episode, self.step, self.terminal, self.count)
        names = (*self.state, *self.action, *(self.next_state or ()), *single)
        return tuple(dict.fromkeys(name for name in names if name is not None))


@dataclass(frozen=True, kw_only=True, eq=False)
class Layout:
    """A log with its columns: everything a query needs.

    Attributes
    ----------
    source, columns
        The log and its columns.
    types
        The DuckDB type each used column is read as.
    step_type
        The DuckDB type of steps.
    state_kinds, action_kinds
        Per component: ``"integer"``, ``"float"``, ``"text"`` or ``"boolean"``.
    """

    source: Source
    columns: Columns
    types: Mapping[str, str]
    step_type: str
    state_kinds: tuple[str, ...]
    action_kinds: tuple[str, ...]

    @property
    def derived(self) -> bool:
        """Whether next states come from the following row."""
        return self.columns.next_state is None

    def expressions(self) -> dict[str, str]:
        """Return the SQL of each quantity by its short name: s0, a0, t0, r, e, k, z, n."""
        columns = self.columns
        sql = {f"s{i}": _key(name, self.types[name]) for i, name in enumerate(columns.state)}
        sql |= {f"a{i}": _key(name, self.types[name]) for i, name in enumerate(columns.action)}
        for i, name in enumerate(columns.next_state or ()):
            sql[f"t{i}"] = _key(name, self.types[name])
        if columns.reward is not None:
            sql["r"] = f"{quote_name(columns.reward)}::DOUBLE + 0.0"  # -0.0 is 0.0
        if columns.episode is not None:
            sql["e"] = quote_name(columns.episode)
        if columns.step is not None:
            sql["k"] = _step(columns.step, self.types[columns.step], self.step_type)
        if columns.terminal is not None:
            sql["z"] = _truth(columns.terminal)
        if columns.count is not None:
            sql["n"] = f"{quote_name(columns.count)}::DOUBLE"
        return sql

    @property
    def steps_are_numbers(self) -> bool:
        """Whether steps are numbers rather than times."""
        return family(self.step_type) in ("integer", "float")

    @property
    def ordered(self) -> bool:
        """Whether the log says in which order the rows of an episode come."""
        return self.columns.episode is not None and self.columns.step is not None

    def select(self, *, rows: bool = False) -> str:
        """Return the SQL of the log under short names.

        ``rows`` adds the place ("row number") and how a terminal mark is spelled ("spelled_end").
        """
        parts = [f"{sql} AS {name}" for name, sql in self.expressions().items()]
        if rows:
            parts.append('"row number"')
            mark = self.columns.terminal
            parts += [f"{quote_name(mark)}::VARCHAR AS spelled_end"] if mark is not None else []
        inner = scan(self.source, {name: self.types[name] for name in self.columns.used}, rows=rows)
        return f"SELECT {', '.join(parts)} FROM ({inner})"


def choose(
    known: Collection[str],
    place: str,
    *,
    state: str | Sequence[str],
    action: str | Sequence[str],
    next_state: str | Sequence[str] | None,
    reward: str | None,
    episode: str | None,
    step: str | None,
    terminal: str | None,
    count: str | None,
) -> Columns:
    """Return the columns in use, or say which one is missing and what it may be called."""
    states, actions = as_names("state", state), as_names("action", action)
    following = next_names(state, next_state)
    derive = following is None or (
        next_state == DEFAULT_NEXT_STATE
        and episode is not None
        and not any(name in known for name in following)
    )
    if not derive and following is not None and len(following) != len(states):
        raise ValueError(
            f"state has {len(states)} columns and next_state {len(following)}; they must match."
        )
    columns = Columns(
        state=states, action=actions, next_state=None if derive else following, reward=reward,
        episode=episode, step=step, terminal=terminal, count=count,
    )  # fmt: skip
    _check_present(columns, known, place)
    _check_sense(columns)
    return columns


def as_names(argument: str, value: str | Sequence[str]) -> tuple[str, ...]:
    """Return one or several column names as a tuple."""
    names = (value,) if isinstance(value, str) else tuple(value)
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{argument}={value!r}; it must be a column name or a list of them.")
    return names


def next_names(
    state: str | Sequence[str], next_state: str | Sequence[str] | None
) -> tuple[str, ...] | None:
    """Return the next-state columns; states in several columns have next_ before each name."""
    if next_state is None:
        return None
    if next_state == DEFAULT_NEXT_STATE and not isinstance(state, str):
        return tuple(f"next_{name}" for name in state)
    return as_names("next_state", next_state)


def _check_present(columns: Columns, known: Collection[str], place: str) -> None:
    roles = {
        **dict.fromkeys(columns.state, "state"),
        **dict.fromkeys(columns.action, "action"),
        **dict.fromkeys(columns.next_state or (), "next_state"),
    }
    for role in ("reward", "episode", "step", "terminal", "count"):
        if (name := getattr(columns, role)) is not None:
            roles.setdefault(name, role)
    for name, role in roles.items():
        if name in known:
            continue
        free = [other for other in known if other not in roles]
        near = [other for other in free if other.lower() == name.lower()]
        near = near or get_close_matches(name, free, n=1, cutoff=0.5)
        hint = f" Did you mean {role}={near[0]!r}?" if near else ""
        if role == "reward":
            hint += " Without rewards pass reward=None, or a table or function of rewards."
        if role == "next_state":
            hint += " Without one pass episode= and step=: following rows then supply it."
        listed = list_names(known)
        raise ValueError(f"{place}: there is no column {name!r}; the columns are {listed}.{hint}")


def _check_sense(columns: Columns) -> None:
    if columns.next_state is None and (columns.episode is None or columns.step is None):
        raise ValueError(
            "without a next_state column the following row supplies the next state: pass episode= "
            "and step=, the columns that say which rows follow each other."
        )
    if columns.count is not None and (columns.episode or columns.step):
        raise ValueError(
            "count= is for logs that are already aggregated; they have no episode and step."
        )
    roles = {name: getattr(columns, name) for name in ("reward", "step", "terminal", "count")}
    given = [column for column in roles.values() if column is not None]
    twice = next((column for column in given if given.count(column) > 1), None)
    if twice is not None:
        named = " and ".join(f"{name}=" for name, column in roles.items() if column == twice)
        raise ValueError(f"the column {twice!r} is named for {named}; copy it under another name.")


def lay_out(connection: Connection, source: Source, columns: Columns) -> Layout:
    """Check the types of the columns and return the layout for queries."""
    types = {name: source.types[name] for name in columns.used}
    step_type = "" if columns.step is None else types[columns.step]
    if source.kind == "csv":
        # A column that is part of a label too stays text, and is converted where it is a number.
        labels = (*columns.state, *columns.action, *(columns.next_state or ()))
        numbers = {n: "DOUBLE" for n in (columns.reward, columns.count) if n is not None}
        if columns.step is not None:
            step_type = _csv_step_type(connection, source, columns.step)
            numbers[columns.step] = step_type
        types |= {name: kind for name, kind in numbers.items() if name not in labels}
    else:
        _check_numbers(source, columns)
    state_kinds = _key_kinds(source, columns.state)
    for i, name in enumerate(columns.next_state or ()):
        kind = _key_kinds(source, (name,))[0]
        if kind != state_kinds[i] and {kind, state_kinds[i]} != {"integer", "float"}:
            raise ValueError(
                f"{source.name}: column {columns.state[i]!r} holds {_plural(state_kinds[i])} and "
                f"column {name!r} holds {_plural(kind)}; the same label must have one type. "
                "Convert one of them."
            )
        if kind == "float":  # whole numbers with a missing value among them arrive as decimals
            state_kinds = (*state_kinds[:i], kind, *state_kinds[i + 1 :])
    return Layout(
        source=source,
        columns=columns,
        types=types,
        step_type=step_type,
        state_kinds=state_kinds,
        action_kinds=_key_kinds(source, columns.action),
    )


def _plural(kind: str) -> str:
    names = {"integer": "whole numbers", "float": "decimals", "boolean": "true/false"}
    return names.get(kind, "text")


def _key_kinds(source: Source, names: tuple[str, ...]) -> tuple[str, ...]:
    kinds = tuple(family(source.types[name]) for name in names)
    for name, kind in zip(names, kinds, strict=True):
        if kind == "other" and source.types[name] != '"NULL"':
            raise ValueError(
                f"{source.name}: column {name!r} has type {source.types[name]}; states and actions "
                "are whole numbers or text. Convert it first."
            )
    return tuple("text" if kind == "other" else kind for kind in kinds)


def _check_numbers(source: Source, columns: Columns) -> None:
    for name in (columns.reward, columns.count):
        if name is not None and family(source.types[name]) in ("text", "other"):
            raise ValueError(
                f"{source.name}: column {name!r} has type {_short(source.types[name])}; it must be "
                "numbers. Convert it first."
            )
    if columns.step is not None and family(source.types[columns.step]) == "text":
        raise ValueError(
            f"{source.name}: column {columns.step!r} is text; steps are numbers or times, so that "
            "10 comes after 9. Convert it first."
        )
    if columns.terminal is not None and family(source.types[columns.terminal]) == "other":
        raise ValueError(
            f"{source.name}: column {columns.terminal!r} has type "
            f"{source.types[columns.terminal]}; it must be true/false or 1/0."
        )


def _short(duckdb_type: str) -> str:
    return "text" if family(duckdb_type) == "text" else duckdb_type


def _csv_step_type(connection: Connection, source: Source, step: str) -> str:
    """Return DOUBLE, HUGEINT for whole numbers beyond 2**53, or TIMESTAMP for times.

    The first steps of the file decide.
    """
    name = quote_name(step)
    query = (
        f"SELECT bool_and(TRY_CAST({name} AS DOUBLE) IS NOT NULL), "
        f"bool_and(TRY_CAST({name} AS TIMESTAMP) IS NOT NULL), "
        f"bool_and(regexp_full_match({name}, '-?[0-9]+')), max(abs(TRY_CAST({name} AS DOUBLE))) "
        f"FROM (SELECT {name} FROM ({scan(source, {step: 'VARCHAR'})}) "
        f"WHERE {name} IS NOT NULL LIMIT 100)"
    )
    try:
        numbers, times, whole, largest = connection.execute(query).fetchall()[0]
    except duckdb.Error:  # the count itself will say where the file cannot be read
        return "DOUBLE"
    if whole and largest >= EXACT:
        return "HUGEINT"
    return "TIMESTAMP" if times and not numbers else "DOUBLE"


def _step(name: str, read_as: str, kind: str) -> str:
    """Return the SQL of a step; NaN is how some tables write a missing one."""
    column = quote_name(name) if read_as == kind else f"{quote_name(name)}::{kind}"
    if kind in ("FLOAT", "DOUBLE"):
        return f"CASE WHEN isnan({column}) THEN NULL ELSE {column} END"
    return column


def _key(name: str, duckdb_type: str) -> str:
    column = quote_name(name)
    if duckdb_type in ("FLOAT", "DOUBLE"):
        return f"CASE WHEN isnan({column}) THEN NULL ELSE {column}::DOUBLE END"
    if duckdb_type.startswith("DECIMAL"):
        return f"{column}::DOUBLE"
    return column if family(duckdb_type) in ("integer",) else f"{column}::VARCHAR"


def _truth(name: str) -> str:
    """Return SQL that is true, false, or NULL for anything else."""
    text = f"lower(trim({quote_name(name)}::VARCHAR))"
    yes = ", ".join(f"'{word}'" for word in TRUE)
    no = ", ".join(f"'{word}'" for word in FALSE)
    return f"CASE WHEN {text} IN ({yes}) THEN true WHEN {text} IN ({no}) THEN false END"
