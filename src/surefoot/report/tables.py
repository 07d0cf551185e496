"""The policy as a table: what to do, how often it was tried, how clear the choice is."""

import csv
import json
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot._atomic import replacing
from surefoot.data.counts import Counts
from surefoot.model.mdp import MDP
from surefoot.solvers.solver import evaluate

POLICY_COLUMNS = ("state", "action", "probability", "visits", "margin")
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
    share
        How often the log took this action in this state; None where it never was there.
    """

    state: Hashable
    action: Hashable
    probability: float
    visits: float
    margin: float | None
    share: float | None = None


def policy_lines(
    mdp: MDP, counts: Counts, policy: NDArray[Any], passive: NDArray[np.bool_]
) -> list[PolicyLine]:
    """Return the policy state by state, without those in which there is nothing to decide.

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
    lines = []
    for state in sorted(np.flatnonzero(~passive), key=lambda s: _natural(mdp.state_labels, s)):
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
        writer.writerow(POLICY_COLUMNS)
        for line in lines:
            margin = "" if line.margin is None else f"{line.margin:.9g}"
            writer.writerow(
                (line.state, line.action, f"{line.probability:.17g}", line.visits, margin)
            )


def policy_content(lines: Sequence[PolicyLine]) -> dict[str, Any]:
    """Return what ``policy.json`` says about the policy itself."""
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
