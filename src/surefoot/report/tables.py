"""The policy as a table: what to do, how often it was tried, how clear the choice is."""

import csv
import json
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot._atomic import replacing
from surefoot.data.counts import Counts
from surefoot.model.mdp import MDP
from surefoot.model.policies import AnyPolicy, check_policy, rows_of_ranges
from surefoot.model.step_policy import StepPolicy
from surefoot.solvers.solver import evaluate

POLICY_COLUMNS = ("state", "action", "probability", "visits", "margin")
STEPS = ("first_step", "last_step")
"""Columns beside the state where there is a horizon."""
FORMAT = 1
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
        Of several steps it is the smallest.
    share
        How often the log took this action in this state; None where it never was there.
    first_step, last_step
        The steps at which it is done, counted from 0, where there is a horizon.
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
        """The steps for people: "0 to 3", or "" without a horizon."""
        if self.first_step is None or self.first_step == self.last_step:
            return "" if self.first_step is None else str(self.first_step)
        return f"{self.first_step} to {self.last_step}"


def policy_lines(
    mdp: MDP, counts: Counts, policy: AnyPolicy, passive: NDArray[np.bool_], *,
    by_step: bool = False,
) -> list[PolicyLine]:  # fmt: skip
    """Return the policy state by state, without those in which there is nothing to decide.

    ``by_step``: the states of the model carry their step, which is told as such.

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
        return [_with_own_step(line) for line in policy_lines(mdp, counts, policy, passive)]
    if isinstance(policy, StepPolicy):
        return _lines_by_step(mdp, counts, policy, passive)
    share = policy
    if policy.ndim == 1:
        share = np.zeros((mdp.num_states, mdp.num_actions))
        share[np.arange(mdp.num_states), policy] = 1.0
    margins = _rule_margins(mdp, policy)
    last = None if mdp.horizon is None else mdp.horizon - 1
    lines = []
    for state in sorted(np.flatnonzero(~passive), key=lambda s: _natural(mdp.state_labels, s)):
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
    """Return the line of a state that carries its step, its last component."""
    if not isinstance(line.state, tuple):
        return line
    *state, step = line.state
    name = state[0] if len(state) == 1 else tuple(state)
    return replace(line, state=name, first_step=int(step), last_step=int(step))


def _rule_margins(mdp: MDP, policy: NDArray[Any]) -> NDArray[np.float64]:
    """Return ``(R,)`` margins of a rule that is the same at all steps: the smallest of them."""
    if mdp.horizon is None:
        return _margins(mdp, _qualities(mdp, evaluate(mdp, policy).value))
    rows, share = check_policy(mdp, policy).rows.astype(np.int64), check_policy(mdp, policy).share
    smallest = np.full(mdp.num_rows, np.inf)
    value = np.zeros(mdp.num_states) if mdp.final_reward is None else mdp.final_reward
    for _ in range(mdp.horizon):
        quality = _qualities(mdp, value)
        smallest = np.minimum(smallest, _margins(mdp, quality))
        value = np.zeros(mdp.num_states)
        np.add.at(value, mdp.row_state[rows], share * quality[rows])
    return smallest


def _margins(mdp: MDP, quality: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``(R,)``: how much better each row is than the best other one of its state."""
    order = np.lexsort((-quality, mdp.row_state))
    first = mdp.state_start[:-1]
    second = np.minimum(first + 1, mdp.state_start[1:] - 1)
    best, runner_up = quality[order[first]], quality[order[second]]
    is_best = np.zeros(mdp.num_rows, dtype=np.bool_)
    is_best[order[first]] = True
    return quality - np.where(is_best, runner_up[mdp.row_state], best[mdp.row_state])


def _lines_by_step(
    mdp: MDP, counts: Counts, policy: StepPolicy, passive: NDArray[np.bool_]
) -> list[PolicyLine]:
    """Return a line for every range of steps in which a state does the same."""
    row = rows_of_ranges(mdp, policy)
    smallest = _range_margins(mdp, policy, row)
    lines = []
    for state in sorted(np.flatnonzero(~passive), key=lambda s: _natural(mdp.state_labels, s)):
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


def _range_margins(mdp: MDP, policy: StepPolicy, row: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the smallest margin of each range over its steps, by one walk back."""
    smallest = np.full(len(row), np.inf)
    value = np.zeros(mdp.num_states) if mdp.final_reward is None else mdp.final_reward
    now = np.zeros(mdp.num_states, dtype=np.int64)
    start, which = policy.switches
    for step in reversed(range(policy.horizon)):
        begun = which[start[step] : start[step + 1]]
        now[policy.range_state[begun]] = begun
        quality = _qualities(mdp, value)
        smallest[now] = np.minimum(smallest[now], _margins(mdp, quality)[row[now]])
        value = quality[row[now]]
    return smallest


def _qualities(mdp: MDP, value: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``(R,)``: what taking an action once is worth, with the policy's values after it."""
    reward = mdp.reward if mdp.reward_per_entry else mdp.reward[mdp.entry_row]
    gain = mdp.probability * (reward + mdp.discount * value[mdp.successor])
    return np.asarray(np.add.reduceat(gain, mdp.row_start[:-1]))


def _natural(labels: tuple[Hashable, ...] | None, number: Any) -> list[tuple[int, float, str]]:
    """Return a key that puts "wear 2" before "wear 10", and numbers before words."""
    parts = re.split(r"(\d+)", str(_label(labels, number)))
    return [(0, float(part), "") if part.isdecimal() else (1, 0.0, part) for part in parts if part]


def _label(labels: tuple[Hashable, ...] | None, number: Any) -> Hashable:
    return int(number) if labels is None else labels[number]


def _plain(value: Any) -> int | float:
    number = float(value)
    return int(number) if number.is_integer() else number


def write_policy(path: Path, lines: Sequence[PolicyLine]) -> None:
    """Write ``policy.csv``."""
    with replacing(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        by_steps = any(line.first_step is not None for line in lines)
        writer.writerow((*POLICY_COLUMNS[:1], *STEPS, *POLICY_COLUMNS[1:]) if by_steps else
                        POLICY_COLUMNS)  # fmt: skip
        for line in lines:
            margin = "" if line.margin is None else f"{line.margin:.9g}"
            steps = (line.first_step, line.last_step) if by_steps else ()
            writer.writerow(
                (line.state, *steps, line.action, f"{line.probability:.17g}", line.visits, margin)
            )


def policy_content(lines: Sequence[PolicyLine]) -> dict[str, Any]:
    """Return what ``policy.json`` says about the policy itself.

    Where it depends on the step, ``action`` is what to do first and ``steps`` has all ranges.
    """
    ranges: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        span = {"first_step": line.first_step, "last_step": line.last_step}
        ranges.setdefault(str(line.state), []).append({**span, "action": str(line.action)})
    if any(line.first_step for line in lines):
        return {"action": {s: part[0]["action"] for s, part in ranges.items()}, "steps": ranges}
    chance: dict[str, dict[str, float]] = {}
    for line in lines:
        chance.setdefault(str(line.state), {})[str(line.action)] = line.probability
    content: dict[str, Any] = {
        "action": {s: max(shares, key=lambda name: shares[name]) for s, shares in chance.items()}
    }
    if any(len(shares) > 1 for shares in chance.values()):
        content["probability"] = chance
    return content


def write_policy_json(path: Path, lines: Sequence[PolicyLine], about: dict[str, Any]) -> None:
    """Write ``policy.json``: ``content["action"][state]`` is what to do.

    Labels are text there; where a policy is randomised, the most probable action stands.
    """
    content = {"format": FORMAT, **about, **policy_content(lines)}
    with replacing(path, "w", encoding="utf-8") as file:
        file.write(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
