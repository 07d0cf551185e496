"""The rule as lines of a table, with what was done so far and what each change gains."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from surefoot._rounding import column_texts
from surefoot.data.side_files import label_text
from surefoot.report.policy_plots import actions_of
from surefoot.report.rule import Change
from surefoot.report.svg import action_colours
from surefoot.report.tables import LineKey, PolicyLine

NOTHING = Change(shares=(), each=None, total=None)


@dataclass(frozen=True, kw_only=True)
class RuleRow:
    """One line: texts to show, and numbers to sort by.

    Attributes
    ----------
    state, order
        One text and one rank for each state column.
    steps
        The steps of the line, if the rule depends on them; "" otherwise.
    action, action_order, colour, chance
        What to do; its probability, if the rule is randomised.
    shares, share, habit
        What was done so far: action, percent and colour of each; the largest share; the most
        frequent action in words.
    gain, gain_order, lead, lead_order, visits
        The gain of the change, the margin of the action, how often it was tried.
    same
        Whether the action is the one that was taken most often.
    find
        The text that the page's search looks through.
    """

    state: tuple[str, ...]
    order: tuple[int, ...]
    steps: str
    action: str
    action_order: int
    colour: str
    chance: str
    shares: tuple[tuple[str, float, str], ...]
    share: float
    habit: str
    gain: str
    gain_order: float
    lead: str
    lead_order: float
    visits: float
    same: bool
    find: str


def rule_rows(
    lines: Sequence[PolicyLine], found: Mapping[LineKey, Change], width: int
) -> list[RuleRow]:
    """Return the lines of the table; states have ``width`` columns.

    Examples
    --------
    >>> line = PolicyLine(state="worn", action="repair", probability=1.0, visits=9, margin=1.5)
    >>> change = Change(shares=(("run", 0.75), ("repair", 0.25)), each=2.0, total=12.0)
    >>> made = rule_rows([line], {line.key: change}, 1)[0]
    >>> made.habit, made.gain, made.same
    ('run 75%', '12.00', False)
    """
    each = [found.get(line.key, NOTHING) for line in lines]
    gains = [change.each if change.total is None else change.total for change in each]
    gain_texts = column_texts(gains, 4)
    leads = column_texts([line.margin for line in lines], 4)
    names = {name for change in each for name, _ in change.shares}
    actions = actions_of(lines) + sorted(names - set(actions_of(lines)))
    colours = action_colours(actions)
    by_steps = any(line.first_step for line in lines)
    states = [_parts(line.state, width) for line in lines]
    ranks = [{text: i for i, text in enumerate(dict.fromkeys(one))} for one in zip(*states)]  # noqa: B905
    return [
        _row(
            line,
            change,
            states[i],
            line.steps if by_steps else "",
            ranks,
            actions,
            colours,
            gain_texts[i],
            gains[i],
            leads[i],
        )
        for i, (line, change) in enumerate(zip(lines, each, strict=True))
    ]


def _row(
    line: PolicyLine, change: Change, state: tuple[str, ...], steps: str,
    ranks: Sequence[Mapping[str, int]], actions: Sequence[str], colours: Mapping[str, str],
    gain: str, gained: float | None, lead: str,
) -> RuleRow:  # fmt: skip
    action = label_text(line.action)
    sure = line.probability >= 1
    return RuleRow(
        state=state,
        order=tuple(rank[text] for rank, text in zip(ranks, state, strict=True)),
        steps=steps,
        action=action,
        action_order=actions.index(action),
        colour=colours[action],
        chance="" if sure else f"({100 * line.probability:.0f}%)",
        shares=tuple((n, round(100 * share, 2), colours[n]) for n, share in change.shares),
        share=change.shares[0][1] if change.shares else 0.0,
        habit=f"{change.habit} {100 * change.shares[0][1]:.0f}%" if change.shares else "",
        gain=gain,
        gain_order=float("nan") if gained is None else gained,
        lead=lead,
        lead_order=float("nan") if line.margin is None else line.margin,
        visits=line.visits,
        same=change.habit == action,
        find=" ".join([*state, action]),
    )


def _parts(state: Hashable, width: int) -> tuple[str, ...]:
    if isinstance(state, tuple) and len(state) == width:
        return tuple(map(str, state))
    return (label_text(state), *[""] * (width - 1))
