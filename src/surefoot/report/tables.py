"""The policy as a table: what to do, how often it was tried, and its margin."""

import csv
import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot._atomic import replacing
from surefoot.certificates.policies import STEPS
from surefoot.data.counts import Counts
from surefoot.data.label_order import LabelOrder
from surefoot.data.side_files import LabelColumns, label_text, parts_of
from surefoot.data.step_layers import step_of, without_step
from surefoot.model.mdp import MDP
from surefoot.model.policies import AnyPolicy, rows_of_ranges
from surefoot.model.step_policy import StepPolicy
from surefoot.report.margins import range_margins, rule_margins

OWN_COLUMNS = ("probability", "visits", "margin")
"""The columns that ``policy.csv`` adds to those of the log."""
FORMAT = 2
"""Version of the layout of policy.json."""


LineKey = tuple[Hashable, int]
"""The key of a line of a policy: the state, and the first step."""


@dataclass(frozen=True, kw_only=True)
class PolicyLine:
    """What to do in one state.

    Attributes
    ----------
    state, action
        Labels.
    probability
        Probability of the action: 1 unless the policy is randomised.
    visits
        How often the log shows this action in this state.
    margin
        How much better the action is, in the nominal model, than taking the best other action this
        once. A negative margin is the price of caution. None if there is no other action. For
        several steps, the smallest of their margins.
    share
        The share of this action in this state of the log; None if the log never was there.
    first_step, last_step
        The steps of the line, counted from 0; None without a horizon.
    """

    state: Hashable
    action: Hashable
    probability: float
    visits: float
    margin: float | None
    share: float | None = None
    first_step: int | None = None
    last_step: int | None = None

    @property
    def steps(self) -> str:
        """The steps as text: "0 to 3", or "" without a horizon."""
        if self.first_step is None or self.first_step == self.last_step:
            return "" if self.first_step is None else str(self.first_step)
        return f"{self.first_step} to {self.last_step}"

    @property
    def key(self) -> LineKey:
        """The state and the first step."""
        return self.state, self.first_step or 0

    @property
    def state_text(self) -> str:
        """The state as text, the parts of several columns side by side."""
        return label_text(self.state)

    @property
    def action_text(self) -> str:
        """The action as text."""
        return label_text(self.action)


def policy_lines(
    mdp: MDP,
    counts: Counts,
    policy: AnyPolicy,
    passive: NDArray[np.bool_],
    order: LabelOrder | None = None,
    *,
    by_step: bool = False,
) -> list[PolicyLine]:
    """Return the policy state by state, without ``passive`` states, where nothing is decided.

    States come in the given order, or in natural order. ``by_step``: the states of the model carry
    their step, which becomes the step of the line.

    Examples
    --------
    >>> from surefoot.domains import riverswim
    >>> counts = riverswim().simulate(50, np.random.default_rng(0))
    >>> mdp = counts.to_mdp(discount=0.99, prior=1.0)
    >>> lines = policy_lines(mdp, counts, np.ones(6, dtype=int), np.zeros(6, dtype=bool))
    >>> lines[0].state, lines[0].action, lines[0].visits, lines[0].margin > 0
    (0, 'right', 50, True)
    """
    if by_step:
        lines = policy_lines(mdp, counts, policy, passive, order)
        return _in_order([_with_own_step(line) for line in lines])
    key = (order or LabelOrder()).state_key
    states = sorted(np.flatnonzero(~passive), key=lambda s: key(_label(mdp.state_labels, s)))
    if isinstance(policy, StepPolicy):
        return _lines_by_step(mdp, counts, policy, states)
    share = policy
    if policy.ndim == 1:
        share = np.zeros((mdp.num_states, mdp.num_actions))
        share[np.arange(mdp.num_states), policy] = 1.0
    margins = rule_margins(mdp, policy)
    last = None if mdp.horizon is None else mdp.horizon - 1
    lines = []
    for state in states:
        rows = np.arange(mdp.state_start[state], mdp.state_start[state + 1])
        tried = float(counts.visits[rows].sum())
        for row in rows:
            action = mdp.row_action[row]
            if share[state, action] > 0:
                lines.append(
                    PolicyLine(
                        state=_label(mdp.state_labels, state),
                        action=_label(mdp.action_labels, action),
                        probability=float(share[state, action]),
                        visits=_plain(counts.visits[row]),
                        margin=float(margins[row]) if len(rows) > 1 else None,
                        share=float(counts.visits[row]) / tried if tried else None,
                        first_step=None if last is None else 0,
                        last_step=last,
                    )
                )
    return lines


def _with_own_step(line: PolicyLine) -> PolicyLine:
    """Return the line with the step taken out of its state and put into the steps."""
    step = step_of(line.state)
    return replace(line, state=without_step(line.state), first_step=step, last_step=step)


def _in_order(lines: Sequence[PolicyLine]) -> list[PolicyLine]:
    """Return the lines of each state together, step by step."""
    place = {state: i for i, state in enumerate(dict.fromkeys(line.state for line in lines))}
    return sorted(lines, key=lambda line: (place[line.state], line.first_step or 0))


def _lines_by_step(
    mdp: MDP, counts: Counts, policy: StepPolicy, states: Sequence[Any]
) -> list[PolicyLine]:
    """Return a line for every range of steps in which a state takes the same action."""
    row = rows_of_ranges(mdp, policy)
    smallest = range_margins(mdp, policy, row)
    lines = []
    for state in states:
        own = slice(*mdp.state_start[state : state + 2])
        tried = float(counts.visits[own].sum())
        for k in range(*policy.state_start[state : state + 2]):
            lines.append(
                PolicyLine(
                    state=_label(mdp.state_labels, state),
                    action=_label(mdp.action_labels, policy.action[k]),
                    probability=1.0,
                    visits=_plain(counts.visits[row[k]]),
                    margin=float(smallest[k]) if own.stop - own.start > 1 else None,
                    share=float(counts.visits[row[k]]) / tried if tried else None,
                    first_step=int(policy.first_step[k]),
                    last_step=int(policy.last_step[k]),
                )
            )
    return lines


def _label(labels: tuple[Hashable, ...] | None, number: Any) -> Hashable:
    return int(number) if labels is None else labels[number]


def _plain(value: Any) -> int | float:
    number = float(value)
    return int(number) if number.is_integer() else number


def action_words(lines: Sequence[PolicyLine]) -> dict[Hashable, str]:
    """Return what to do in each state, in words: the most probable action, or that of all steps.

    Examples
    --------
    >>> def line(action, first, last):
    ...     return PolicyLine(state="worn", action=action, probability=1.0, visits=1, margin=None,
    ...                       first_step=first, last_step=last)
    >>> action_words([line("repair", 0, 3), line("run", 4, 4)])
    {'worn': 'repair (steps 0 to 3), run (step 4)'}
    """
    told: dict[Hashable, list[PolicyLine]] = {}
    for line in lines:
        own = told.setdefault(line.state, [])
        if own and not line.first_step:  # randomised
            own[:] = [max(own[0], line, key=lambda one: one.probability)]
        else:
            own.append(line)
    return {
        state: own[0].action_text
        if len(own) == 1
        else ", ".join(
            f"{one.action_text} (step{'s' if ' ' in one.steps else ''} {one.steps})" for one in own
        )
        for state, own in told.items()
    }


def policy_header(columns: LabelColumns, *, by_steps: bool = False) -> list[str]:
    """Return the header of ``policy.csv``: the columns of the log, and ours."""
    steps = map(columns.own_name, STEPS) if by_steps else ()
    return [*columns.state, *steps, *columns.action, *map(columns.own_name, OWN_COLUMNS)]


def policy_record(line: PolicyLine, columns: LabelColumns) -> list[Any]:
    """Return one line of ``policy.csv``, in the order of the header."""
    margin = "" if line.margin is None else f"{line.margin:.9g}"
    steps = () if line.first_step is None else (line.first_step, line.last_step)
    return [
        *parts_of(line.state, len(columns.state)),
        *steps,
        *parts_of(line.action, len(columns.action)),
        f"{line.probability:.17g}",
        line.visits,
        margin,
    ]


def write_policy(
    path: Path, lines: Sequence[PolicyLine], columns: LabelColumns | None = None
) -> None:
    """Write ``policy.csv``."""
    own = columns or LabelColumns()
    with replacing(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        by_steps = any(line.first_step is not None for line in lines)
        writer.writerow(policy_header(own, by_steps=by_steps))
        writer.writerows(policy_record(line, own) for line in lines)


def policy_content(
    lines: Sequence[PolicyLine], columns: LabelColumns | None = None
) -> dict[str, Any]:
    """Return the part of ``policy.json`` that describes the policy itself.

    ``content["action"]`` is keyed by the label of the state; if several columns make a state, by
    the label of the first, then of the second, and so on. An action of several columns is an object
    by column. If the policy depends on the step, ``action`` is what to do first and ``steps`` has
    all ranges of steps. If it is randomised, ``probability`` has the probabilities of all actions.
    """
    own = columns or LabelColumns()
    likely: dict[Hashable, PolicyLine] = {}
    for line in lines:
        best = likely.get(line.state)
        if best is None or line.probability > best.probability:
            likely[line.state] = line
    content: dict[str, Any] = {"columns": {"state": list(own.state), "action": list(own.action)}}
    content["action"] = _nested(
        [(line.state, _action(line.action, own)) for line in likely.values()], own
    )
    if any(line.first_step for line in lines):
        content["steps"] = _nested(list(_ranges(lines, own).items()), own)
    elif len(lines) > len(likely):
        chance: dict[Hashable, dict[str, float]] = {}
        for line in lines:
            chance.setdefault(line.state, {})[label_text(line.action)] = line.probability
        content["probability"] = _nested(list(chance.items()), own)
    return content


def _ranges(lines: Sequence[PolicyLine], columns: LabelColumns) -> dict[Hashable, list[Any]]:
    """Return the actions of each state by ranges of steps."""
    ranges: dict[Hashable, list[Any]] = {}
    for line in lines:
        span = dict(zip(STEPS, (line.first_step, line.last_step), strict=True))
        ranges.setdefault(line.state, []).append(span | {"action": _action(line.action, columns)})
    return ranges


def _nested(pairs: Sequence[tuple[Hashable, Any]], columns: LabelColumns) -> dict[str, Any]:
    """Return values in nested dictionaries, by the parts of their state."""
    content: dict[str, Any] = {}
    for state, value in pairs:
        *outer, last = parts_of(state, len(columns.state))
        place = content
        for part in outer:
            place = place.setdefault(part, {})
        place[last] = value
    return content


def _action(action: Hashable, columns: LabelColumns) -> Any:
    if len(columns.action) == 1:
        return str(action)
    return dict(zip(columns.action, parts_of(action, len(columns.action)), strict=True))


def write_policy_json(
    path: Path,
    lines: Sequence[PolicyLine],
    about: dict[str, Any],
    columns: LabelColumns | None = None,
) -> None:
    """Write ``policy.json``: ``content["action"][state]`` is what to do.

    Labels are text there; for a randomised policy it is the most probable action.
    """
    content = {"format": FORMAT, **about, **policy_content(lines, columns)}
    with replacing(path, "w", encoding="utf-8") as file:
        file.write(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
