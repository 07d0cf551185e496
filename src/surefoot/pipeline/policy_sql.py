"""A policy as SQL: a CASE expression over the log's own columns."""

import textwrap
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from surefoot.report.tables import PolicyLine

UNKNOWN = "NULL"
"""What the expression gives for a state that the log never shows."""
WIDTH = 96
"""Longest line of a comment."""


@dataclass(frozen=True, kw_only=True)
class SqlColumns:
    """The columns that states and actions have in the log."""

    state: tuple[str, ...]
    action: tuple[str, ...]


def policy_sql(lines: Sequence[PolicyLine], columns: SqlColumns, remark: str = "") -> str:
    """Return a CASE for each action column, to stand in a SELECT; other states give NULL.

    Standard SQL: identifiers in double quotes, text in single ones. States with the same action are
    put together. ``remark`` becomes a comment.

    Examples
    --------
    >>> rule = [("new", "run"), ("old", "run"), ("worn", "mend")]
    >>> lines = [PolicyLine(state=s, action=a, probability=1, visits=3, margin=None)
    ...          for s, a in rule]
    >>> print(policy_sql(lines, SqlColumns(state=("wear",), action=("decision",))), end="")
    CASE
        WHEN "wear" IN ('new', 'old') THEN 'run'
        WHEN "wear" = 'worn' THEN 'mend'
        ELSE NULL
    END AS "decision"
    """
    if any(line.probability < 1 for line in lines):
        raise ValueError("the policy is randomised: SQL has no place for its probabilities.")
    said = [part for line in remark.splitlines() for part in textwrap.wrap(line, WIDTH)]
    comment = "".join(f"-- {line}\n" for line in said)
    cases = [
        _case(lines, columns.state, name, i if len(columns.action) > 1 else None)
        for i, name in enumerate(columns.action)
    ]
    return comment + ",\n".join(cases) + "\n"


def _case(lines: Sequence[PolicyLine], states: tuple[str, ...], name: str, part: int | None) -> str:
    """Return the expression of one action column."""
    groups: dict[Hashable, list[Hashable]] = {}
    for line in lines:
        action = line.action[part] if isinstance(line.action, tuple) and part is not None else (
            line.action
        )  # fmt: skip
        groups.setdefault(action, []).append(line.state)
    whens = [
        f"    WHEN {_condition(states, some)} THEN {_literal(action)}\n"
        for action, some in groups.items()
    ]
    return f"CASE\n{''.join(whens)}    ELSE {UNKNOWN}\nEND AS {_identifier(name)}"


def _condition(columns: tuple[str, ...], states: Sequence[Hashable]) -> str:
    if len(columns) == 1:
        values = [_literal(state) for state in states]
        name = _identifier(columns[0])
        return f"{name} = {values[0]}" if len(values) == 1 else f"{name} IN ({', '.join(values)})"
    each = [
        " AND ".join(
            f"{_identifier(name)} = {_literal(value)}"
            for name, value in zip(columns, _parts(state), strict=True)
        )
        for state in states
    ]
    return each[0] if len(each) == 1 else "(" + "\n        OR ".join(f"({e})" for e in each) + ")"


def _parts(state: Hashable) -> tuple[Hashable, ...]:
    return state if isinstance(state, tuple) else (state,)


def _literal(value: Hashable) -> str:
    """Return a label as SQL writes it.

    Examples
    --------
    >>> _literal("o'clock"), _literal(3), _literal(True)
    ("'o''clock'", '3', 'TRUE')
    """
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return repr(value)
    return "'" + str(value).replace("'", "''") + "'"


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
