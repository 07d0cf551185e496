"""The policy as a table: what to do, how often it was tried, how clear the choice is."""

import csv
import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot._atomic import replacing
from surefoot.data.counts import Counts
from surefoot.data.label_order import LabelOrder
from surefoot.data.side_files import LabelColumns, label_text, parts_of
from surefoot.model.mdp import MDP
from surefoot.solvers.solver import evaluate

OWN_COLUMNS = ("probability", "visits", "margin")
"""What ``policy.csv`` adds to the log's own columns."""
FORMAT = 2
"""Version of the layout of policy.json."""


@dataclass(frozen=True, kw_only=True)
class PolicyLine:
    """What to do in one state.

    Attributes
    ----------
    state, action
        Labels.
    probability
        How often to do it: 1 unless the policy is randomised.
    visits
        How often the log shows this action in this state.
    margin
        How much better the action is than the best other one, if only this once the other one were
        taken, in the nominal model. Negative: caution has this price. None without another action.
    share
        How often the log took this action in this state; None where it never was there.
    """

    state: Hashable
    action: Hashable
    probability: float
    visits: float
    margin: float | None
    share: float | None = None

    @property
    def state_text(self) -> str:
        """The state for people: parts of several columns side by side."""
        return label_text(self.state)

    @property
    def action_text(self) -> str:
        """The action for people."""
        return label_text(self.action)


def policy_lines(
    mdp: MDP,
    counts: Counts,
    policy: NDArray[Any],
    passive: NDArray[np.bool_],
    order: LabelOrder | None = None,
) -> list[PolicyLine]:
    """Return the policy state by state, without those in which there is nothing to decide.

    States come in the given order, or in the natural one.

    Examples
    --------
    >>> from surefoot.domains import riverswim
    >>> counts = riverswim().simulate(50, np.random.default_rng(0))
    >>> mdp = counts.to_mdp(discount=0.99, prior=1.0)
    >>> lines = policy_lines(mdp, counts, np.ones(6, dtype=int), np.zeros(6, dtype=bool))
    >>> lines[0].state, lines[0].action, lines[0].visits, lines[0].margin > 0
    (0, 'right', 50, True)
    """
    share = policy
    if policy.ndim == 1:
        share = np.zeros((mdp.num_states, mdp.num_actions))
        share[np.arange(mdp.num_states), policy] = 1.0
    quality = _qualities(mdp, evaluate(mdp, policy).value)
    key = (order or LabelOrder()).state_key
    lines = []
    for state in sorted(np.flatnonzero(~passive), key=lambda s: key(_label(mdp.state_labels, s))):
        rows = np.arange(mdp.state_start[state], mdp.state_start[state + 1])
        tried = float(counts.visits[rows].sum())
        for row in rows:
            action = mdp.row_action[row]
            if share[state, action] > 0:
                others = quality[rows[rows != row]]
                lines.append(
                    PolicyLine(
                        state=_label(mdp.state_labels, state),
                        action=_label(mdp.action_labels, action),
                        probability=float(share[state, action]),
                        visits=_plain(counts.visits[row]),
                        margin=float(quality[row] - others.max()) if len(others) else None,
                        share=float(counts.visits[row]) / tried if tried else None,
                    )
                )
    return lines


def _qualities(mdp: MDP, value: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``(R,)``: what taking an action once is worth, with the policy's values after it."""
    reward = mdp.entry_reward
    gain = mdp.probability * (reward + mdp.discount * value[mdp.successor])
    return np.asarray(np.add.reduceat(gain, mdp.row_start[:-1]))


def _label(labels: tuple[Hashable, ...] | None, number: Any) -> Hashable:
    return int(number) if labels is None else labels[number]


def _plain(value: Any) -> int | float:
    number = float(value)
    return int(number) if number.is_integer() else number


def policy_header(columns: LabelColumns) -> list[str]:
    """Return the header of ``policy.csv``: the log's own columns, then ours."""
    return [*columns.state, *columns.action, *map(columns.own_name, OWN_COLUMNS)]


def policy_record(line: PolicyLine, columns: LabelColumns) -> list[Any]:
    """Return one line of ``policy.csv``, as the header has it."""
    margin = "" if line.margin is None else f"{line.margin:.9g}"
    return [
        *parts_of(line.state, len(columns.state)),
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
        writer.writerow(policy_header(own))
        writer.writerows(policy_record(line, own) for line in lines)


def policy_content(
    lines: Sequence[PolicyLine], columns: LabelColumns | None = None
) -> dict[str, Any]:
    """Return what ``policy.json`` says about the policy itself.

    ``content["action"]`` is keyed by the label of the state; where several columns make a state, by
    the label of the first, then of the second, and so on. An action of several columns is an object
    by column.
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
    if len(lines) > len(likely):
        chance: dict[Hashable, dict[str, float]] = {}
        for line in lines:
            chance.setdefault(line.state, {})[label_text(line.action)] = line.probability
        content["probability"] = _nested(list(chance.items()), own)
    return content


def _nested(pairs: Sequence[tuple[Hashable, Any]], columns: LabelColumns) -> dict[str, Any]:
    """Return values by the parts of their state, one inside the other."""
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

    Labels are text there; where a policy is randomised, the most probable action stands.
    """
    content = {"format": FORMAT, **about, **policy_content(lines, columns)}
    with replacing(path, "w", encoding="utf-8") as file:
        file.write(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
