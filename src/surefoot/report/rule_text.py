"""The rule for a terminal: a sentence, a short table, or its departures from past practice."""

from collections.abc import Mapping, Sequence

from surefoot._display import Grid, number_of
from surefoot.report.rule import LONGEST, ActionShares, in_words
from surefoot.report.tables import LineKey, PolicyLine

WHOLE = 12
"""A rule with at most this many lines is shown in full; of a longer one, this many departures."""
WIDTH = 78
"""Characters of a line; states get the space that the other columns leave."""
LABEL = 14
"""Longer names of actions are cut off."""


def rule_text(
    lines: Sequence[PolicyLine], habits: Mapping[LineKey, ActionShares], columns: Sequence[str],
    file: str,
) -> list[str]:  # fmt: skip
    """Return the rule as lines of at most 78 characters (a sentence may be longer).

    Parameters
    ----------
    lines
        The policy.
    habits
        The shares of actions in the log, most frequent first, by the keys of the lines.
    columns
        The columns of the state.
    file
        The file that has the whole rule.

    Examples
    --------
    >>> def line(state, action):
    ...     return PolicyLine(state=state, action=action, probability=1.0, visits=9, margin=None)
    >>> rule = [line(f"wear {i}", "run") for i in range(4)] + [line("wear 4", "repair")]
    >>> rule_text(rule, {}, ["condition"], "policy.csv")
    ['The rule: repair in wear 4; otherwise run.']
    >>> rule = [line((kind, f"bearings of wear {i}"), "run") for kind in "abc" for i in range(9)]
    >>> for i in (3, 6, 8, 13, 21):
    ...     rule[i] = line(rule[i].state, "mend")
    >>> often = {one.key: (("run", 0.9), ("mend", 0.1)) for one in rule}
    >>> for text in rule_text(rule, often, ["kind", "wear"], "policy.csv"):
    ...     print(text)
    The rule departs from what was mostly done in 5 of 27 states:
    state                  do    mostly done
    a, bearings of wear 3  mend  run (90%)
    a, bearings of wear 6  mend  run (90%)
    a, bearings of wear 8  mend  run (90%)
    b, bearings of wear 4  mend  run (90%)
    c, bearings of wear 3  mend  run (90%)
    In the other 22 it is what was mostly done. The whole rule: policy.csv
    """
    said = in_words(lines, columns)
    if 0 < len(said) <= LONGEST:
        return [f"The rule: {said[:1].lower()}{said[1:]}"]
    counted = ", steps counted from 0" if any(line.first_step for line in lines) else ""
    if len(lines) <= WHOLE:
        return [f"The rule ({file}{counted}):", *_table(lines, habits)]
    other = [line for line in lines if _departs(line, habits)]
    states, departing = {line.state for line in lines}, {line.state for line in other}
    if not other:
        return [f"The rule is what was mostly done, in all {len(states):,} states: {file}"]
    told = [
        f"The rule departs from what was mostly done in {len(departing):,} of "
        f"{number_of(len(states), 'state')}{counted}:",
        *_table(other[:WHOLE], habits),
    ]
    if len(other) > WHOLE:
        return [*told, f"... and {len(other) - WHOLE:,} more lines. The whole rule: {file}"]
    rest = len(states) - len(departing)
    same = f"In the other {rest:,} it is what was mostly done. " if rest else ""
    return [*told, f"{same}The whole rule: {file}"]


def _departs(line: PolicyLine, habits: Mapping[LineKey, ActionShares]) -> bool:
    shares = habits.get(line.key, ())
    return line.probability < 1 or not shares or shares[0][0] != line.action_text


def _table(lines: Sequence[PolicyLine], habits: Mapping[LineKey, ActionShares]) -> list[str]:
    """Return a table: state, steps (if the rule has any), what to do, what was mostly done."""
    steps = any(line.first_step is not None for line in lines)
    told = [_beside(line, habits.get(line.key, ()), steps=steps) for line in lines]
    head = [*(["steps"] if steps else []), "do", "mostly done"]
    widths = [max(map(len, column)) for column in zip(head, *told, strict=True)]
    left = WIDTH - sum(widths) - 2 * len(head)
    rows = [[_cut(line.state_text, left), *cells] for line, cells in zip(lines, told, strict=True)]
    return Grid(head=["state", *head], rows=rows, total=len(rows)).text().splitlines()


def _beside(line: PolicyLine, shares: ActionShares, *, steps: bool) -> list[str]:
    """Return the cells to the right of a state."""
    often = "" if line.probability == 1 else f" ({line.probability:.0%})"
    habit = f"{_cut(shares[0][0], LABEL)} ({shares[0][1]:.0%})" if shares else "never there"
    return [*([line.steps] if steps else []), f"{_cut(line.action_text, LABEL)}{often}", habit]


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
