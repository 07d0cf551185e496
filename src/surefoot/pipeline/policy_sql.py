"""A policy as SQL: a CASE expression over the log's own columns."""

import textwrap
from collections.abc import Hashable, Mapping, Sequence

from surefoot.data.bins import Binning
from surefoot.data.side_files import LabelColumns
from surefoot.report.tables import PolicyLine

UNKNOWN = "NULL"
"""The value of the expression for a state that the log never shows."""
STEP = "step"
"""The column that a rule by step needs."""
WIDTH = 96
"""The longest line of a comment."""


def policy_sql(
    lines: Sequence[PolicyLine],
    columns: LabelColumns,
    bins: Sequence[Binning] = (),
    remark: str = "",
) -> str:
    """Return a CASE expression for each action column, for use in a SELECT; other states give NULL.

    Standard SQL: identifiers in double quotes, text in single quotes. States with the same action
    are grouped; a column that was cut into bins is compared with the edges of the bins. A rule by
    step needs a column ``"step"`` that counts from 0. ``remark`` becomes a comment.

    Examples
    --------
    >>> rule = [("new", "run"), ("old", "run"), ("worn", "mend")]
    >>> lines = [PolicyLine(state=s, action=a, probability=1, visits=3, margin=None)
    ...          for s, a in rule]
    >>> print(policy_sql(lines, LabelColumns(state=("wear",), action=("decision",))), end="")
    CASE
        WHEN "wear" IN ('new', 'old') THEN 'run'
        WHEN "wear" = 'worn' THEN 'mend'
        ELSE NULL
    END AS "decision"
    """
    if any(line.probability < 1 for line in lines):
        raise ValueError("the policy is randomised: SQL cannot express its probabilities.")
    if _by_step(lines):
        remark += f'\nThe rule depends on the step: "{STEP}" counts from 0 at the first decision.'
    said = [part for line in remark.splitlines() for part in textwrap.wrap(line, WIDTH)]
    comment = "".join(f"-- {line}\n" for line in said)
    test = _Test({one.column: one for one in bins})
    cases = [
        _case(lines, columns.state, name, i if len(columns.action) > 1 else None, test)
        for i, name in enumerate(columns.action)
    ]
    return comment + ",\n".join(cases) + "\n"


def _case(
    lines: Sequence[PolicyLine], states: tuple[str, ...], name: str, part: int | None, test: "_Test"
) -> str:
    """Return the expression of one action column."""
    groups: dict[tuple[Hashable, str], list[Hashable]] = {}
    by_step = _by_step(lines)
    for line in lines:
        whole = part is None or not isinstance(line.action, tuple)
        action = line.action if whole else line.action[part]  # type: ignore[index]
        groups.setdefault((action, _steps(line) if by_step else ""), []).append(line.state)
    whens = [
        f"    WHEN {_also(test.some(states, some), steps)} THEN {_literal(action)}\n"
        for (action, steps), some in groups.items()
    ]
    return f"CASE\n{''.join(whens)}    ELSE {UNKNOWN}\nEND AS {_identifier(name)}"


def _by_step(lines: Sequence[PolicyLine]) -> bool:
    """Return whether some state has different actions at different steps."""
    return len({line.state for line in lines}) < len(lines)


def _steps(line: PolicyLine) -> str:
    """Return the SQL test whether a step is in the range of a line."""
    return f"{_identifier(STEP)} BETWEEN {line.first_step} AND {line.last_step}"


def _also(state: str, steps: str) -> str:
    if not steps:
        return state
    return f"{steps} AND ({state})" if "\n" in state else f"{steps} AND {state}"


class _Test:
    """Writes SQL tests whether a row of a table is in a state."""

    def __init__(self, bins: Mapping[str, Binning]) -> None:
        self.bins = bins

    def some(self, columns: tuple[str, ...], states: Sequence[Hashable]) -> str:
        """Return the test for several states."""
        if len(columns) == 1 and len(states) > 1 and columns[0] not in self.bins:
            values = ", ".join(_literal(state) for state in states)
            return f"{_identifier(columns[0])} IN ({values})"
        each = [
            " AND ".join(
                self.one(name, value) for name, value in zip(columns, _parts(state), strict=True)
            )
            for state in states
        ]
        return each[0] if len(each) == 1 else "\n        OR ".join(f"({text})" for text in each)

    def one(self, column: str, value: Hashable) -> str:
        """Return the test for one column; a bin includes its lower edge and excludes its upper."""
        name, own = _identifier(column), self.bins.get(column)
        if own is None or value not in own.labels or not own.edges:
            return f"{name} = {_literal(value)}"
        place = own.labels.index(str(value))
        ends = []
        if place > 0:
            ends.append(f"{name} >= {own.edges[place - 1]!r}")
        if place < len(own.edges):
            ends.append(f"{name} < {own.edges[place]!r}")
        return " AND ".join(ends)


def _parts(state: Hashable) -> tuple[Hashable, ...]:
    return state if isinstance(state, tuple) else (state,)


def _literal(value: Hashable) -> str:
    """Return a label as an SQL literal.

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
