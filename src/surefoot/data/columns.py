"""The roles of a log's columns, and the SQL expression of each."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from surefoot.data.bins import Binning
from surefoot.data.dates import Rhythm
from surefoot.data.numerals import PLAIN, Numerals
from surefoot.data.sources import Source, list_names, quote_name, quote_text, scan
from surefoot.data.tables import family

TRUE = ("true", "t", "1", "yes", "y", "1.0")
FALSE = ("false", "f", "0", "no", "n", "0.0")
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
        """Return the column names to look for, before it is known which of them a log has."""
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
    numerals
        How numbers in text are written.
    step_format
        How dates in text are written; None for numbers, and for dates as DuckDB reads them.
    rhythm
        How far apart times usually are; None for numbers.
    bins
        Columns that are cut into bins, with their edges.
    """

    source: Source
    columns: Columns
    types: Mapping[str, str]
    step_type: str
    state_kinds: tuple[str, ...]
    action_kinds: tuple[str, ...]
    numerals: Numerals = PLAIN
    step_format: str | None = None
    rhythm: Rhythm | None = None
    bins: tuple[Binning, ...] = ()

    @property
    def derived(self) -> bool:
        """Whether next states come from the following row."""
        return self.columns.next_state is None

    def expressions(self) -> dict[str, str]:
        """Return the SQL of each quantity by its short name: s0, a0, t0, r, e, k, z, n."""
        columns = self.columns
        sql = {f"s{i}": self._label(name, name) for i, name in enumerate(columns.state)}
        sql |= {f"a{i}": self._label(name, name) for i, name in enumerate(columns.action)}
        for i, name in enumerate(columns.next_state or ()):
            sql[f"t{i}"] = self._label(name, columns.state[i])
        if columns.reward is not None:
            sql["r"] = f"{self._number(columns.reward)} + 0.0"  # -0.0 is 0.0
        if columns.episode is not None:
            sql["e"] = quote_name(columns.episode)
        if columns.step is not None:
            sql["k"] = self._step(columns.step)
        if columns.terminal is not None:
            sql["z"] = _truth(columns.terminal)
        if columns.count is not None:
            sql["n"] = self._number(columns.count)
        return sql

    def _label(self, name: str, column: str) -> str:
        """Return the SQL of a label, of its bin where the state or action ``column`` has bins."""
        binning = next((one for one in self.bins if one.column == column), None)
        if binning is None:
            return _key(name, self.types[name])
        return binning.sql(f"({self._number(name)})")

    def _number(self, name: str) -> str:
        if self.source.kind == "csv" and self.types[name] == "VARCHAR":
            return self.numerals.sql(quote_name(name))
        return f"{quote_name(name)}::DOUBLE"

    def _step(self, name: str) -> str:
        """Return the SQL of a step; NaN, which some tables use for a missing step, becomes NULL."""
        if self.step_format is not None:
            text = f"trim({quote_name(name)}::VARCHAR)"
            return f"try_strptime({text}, {quote_text(self.step_format)})"
        if self.types[name] == "VARCHAR" and self.step_type == "DOUBLE":
            return f"CASE WHEN isnan({self._number(name)}) THEN NULL ELSE {self._number(name)} END"
        read_as, kind = self.types[name], self.step_type
        column = quote_name(name) if read_as == kind else f"{quote_name(name)}::{kind}"
        if kind in ("FLOAT", "DOUBLE"):
            return f"CASE WHEN isnan({column}) THEN NULL ELSE {column} END"
        return column

    @property
    def text_numbers(self) -> tuple[str, ...]:
        """Columns of a CSV that are read as text but hold numbers."""
        if self.source.kind != "csv":
            return ()
        binned = {one.column for one in self.bins}
        after = zip(self.columns.next_state or (), self.columns.state, strict=False)
        names = [*binned, *(name for name, column in after if column in binned)]
        names += [self.columns.reward or "", self.columns.count or ""]
        if self.step_type == "DOUBLE":
            names.append(self.columns.step or "")
        return tuple(name for name in dict.fromkeys(names) if self.types.get(name) == "VARCHAR")

    @property
    def steps_are_numbers(self) -> bool:
        """Whether steps are numbers rather than times."""
        return family(self.step_type) in ("integer", "float")

    @property
    def ordered(self) -> bool:
        """Whether the log says how rows form episodes and in which order."""
        return self.columns.episode is not None and self.columns.step is not None

    def select(self, *, rows: bool = False, first: int | None = None) -> str:
        """Return the SQL of the log, or of its ``first`` rows, under short names.

        ``rows`` adds the row's position ("row number") and the text of its terminal mark
        ("spelled_end").
        """
        parts = [f"{sql} AS {name}" for name, sql in self.expressions().items()]
        if rows:
            parts.append('"row number"')
            mark = self.columns.terminal
            parts += [f"{quote_name(mark)}::VARCHAR AS spelled_end"] if mark is not None else []
        types = {name: self.types[name] for name in self.columns.used}
        inner = scan(self.source, types, rows=rows, first=first)
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
    """Return the columns in use, or raise an error that names a missing one and similar names."""
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
    """Return the next-state columns; by default those of several state columns start with next_."""
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
            hint += " Name it with reward=, or give a table of rewards (reward_table= of a run)."
        if role == "next_state":
            hint += " Without one, episode= and step= say which row follows which."
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
