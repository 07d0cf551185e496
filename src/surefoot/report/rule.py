"""The rule in words, and compared with what was done so far."""

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot._display import number_of
from surefoot.data.counts import Counts
from surefoot.data.side_files import label_text
from surefoot.data.step_layers import step_of, without_step
from surefoot.model.mdp import MDP
from surefoot.model.policies import AnyPolicy, check_policy
from surefoot.model.step_policy import StepPolicy
from surefoot.report.margins import qualities
from surefoot.report.tables import LineKey, PolicyLine, _label
from surefoot.solvers.evaluation.visits import transition_matrix, visits_of
from surefoot.solvers.solver import evaluate

LONGEST = 130
"""A rule that takes more characters than this is shown as a table."""
LARGEST = 3000
"""With more states than this the gain is not divided among states: it would take too long."""

MOST_VALUES = 2**24
"""The most values (steps times states) that are held; beyond, no gain over a horizon is given."""


ActionShares = tuple[tuple[str, float], ...]
"""The share of each action in a state of the log, most frequent first."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """The rule compared with what was done so far, in one state.

    Attributes
    ----------
    shares
        The share of each action in the log, most frequent first; empty if the log never was there.
    each
        What the rule gains per visit over what was done so far, on average, by the model. None if
        there are too many steps and states to compute it.
    total
        This state's part of the gain over what was done so far, by the model; the parts of all
        states add up to the whole. None in large models.
    """

    shares: ActionShares
    each: float | None
    total: float | None

    @property
    def habit(self) -> str:
        """The action that was taken most often."""
        return self.shares[0][0] if self.shares else ""


def changes(
    mdp: MDP, counts: Counts, policy: AnyPolicy, behaviour: NDArray[np.float64], *,
    by_step: bool = False,
) -> dict[LineKey, Change]:  # fmt: skip
    """Return the rule compared with past behaviour, by the keys of its lines (state, first step).

    Let ``Q`` be the value of taking an action once and following the rule afterwards. The rule
    gains ``Q(s, rule) - Q(s, behaviour)`` at each visit of state ``s``; weighted with the visits
    under behaviour, these gains add up to the difference of the two returns. Over a horizon, a line
    of the rule sums the gains of all its steps. ``by_step``: the states carry their step.

    Examples
    --------
    >>> from surefoot import behaviour_policy, riverswim
    >>> counts = riverswim().simulate(50, np.random.default_rng(0))
    >>> mdp = counts.to_mdp(discount=0.99, prior=1.0)
    >>> right, before = np.ones(6, dtype=int), behaviour_policy(counts, mdp)
    >>> found = changes(mdp, counts, right, before)
    >>> gain = evaluate(mdp, right).return_lower - evaluate(mdp, before).return_lower
    >>> bool(abs(sum(change.total for change in found.values()) - gain) < 1e-3)
    True
    """
    if mdp.horizon is not None:
        found = _changes_by_step(mdp, counts, policy, behaviour, mdp.horizon)
        if not by_step:
            return found
        return {(without_step(s), step_of(s) or 0): one for (s, _), one in found.items()}
    rule = np.asarray(policy)
    quality = qualities(mdp, evaluate(mdp, rule).value)
    each = _of_states(mdp, rule, quality) - _of_states(mdp, behaviour, quality)
    met = visits_of(mdp, check_policy(mdp, behaviour)) if mdp.num_states <= LARGEST else None
    return {
        (_label(mdp.state_labels, state), 0): Change(
            shares=_shares(mdp, counts, state),
            each=float(each[state]),
            total=None if met is None else float(met[state] * each[state]),
        )
        for state in range(mdp.num_states)
    }


def _changes_by_step(
    mdp: MDP, counts: Counts, policy: AnyPolicy, behaviour: NDArray[np.float64], horizon: int
) -> dict[LineKey, Change]:
    """Return the changes over a horizon, summed over the steps of each line."""
    ranges = policy if isinstance(policy, StepPolicy) else None
    size = mdp.num_states if ranges is None else len(ranges.action)
    total, met = np.zeros(size), np.zeros(size)
    known = horizon * mdp.num_states <= MOST_VALUES
    gains = _gains(mdp, policy, behaviour, horizon) if known else None
    visits = np.asarray(mdp.initial, dtype=np.float64)
    step_on = mdp.discount * transition_matrix(mdp, check_policy(mdp, behaviour)).T.tocsr()
    place = np.arange(mdp.num_states)
    for step in range(0 if gains is None else horizon):
        if ranges is not None:
            here = (ranges.first_step <= step) & (step <= ranges.last_step)
            place = np.flatnonzero(here)
        total[place] += visits * (0.0 if gains is None else gains[step])
        met[place] += visits
        visits = step_on @ visits
    state = np.arange(mdp.num_states) if ranges is None else ranges.range_state
    first = np.zeros(size, dtype=np.int64) if ranges is None else ranges.first_step
    each = np.divide(total, met, out=np.zeros(size), where=met > 0)
    shares = [_shares(mdp, counts, s) for s in range(mdp.num_states)]
    return {
        (_label(mdp.state_labels, state[k]), int(first[k])): Change(
            shares=shares[state[k]],
            each=float(each[k]) if known else None,
            total=float(total[k]) if known else None,
        )
        for k in range(size)
    }


def _gains(
    mdp: MDP, policy: AnyPolicy, behaviour: NDArray[np.float64], horizon: int
) -> NDArray[np.float64]:
    """Return ``(horizon, S)``: what the rule gains at each step over past behaviour."""
    value = np.zeros(mdp.num_states) if mdp.final_reward is None else mdp.final_reward
    gains = np.empty((horizon, mdp.num_states))
    for step in reversed(range(horizon)):
        now = policy.actions_at(step) if isinstance(policy, StepPolicy) else policy
        quality = qualities(mdp, value)
        value = _of_states(mdp, now, quality)
        gains[step] = value - _of_states(mdp, behaviour, quality)
    return gains


def _of_states(mdp: MDP, policy: NDArray[Any], quality: NDArray[np.float64]) -> NDArray[np.float64]:
    rows = check_policy(mdp, policy)
    own = rows.rows.astype(np.int64)
    worth = np.bincount(mdp.row_state[own], rows.share * quality[own], mdp.num_states)
    return np.asarray(worth, dtype=np.float64)


def habits(
    mdp: MDP, counts: Counts, lines: Sequence[PolicyLine], *, by_step: bool = False
) -> dict[LineKey, ActionShares]:
    """Return the shares of actions in the log, by the keys of the lines of a policy."""
    known = {_label(mdp.state_labels, s): _shares(mdp, counts, s) for s in range(mdp.num_states)}
    if by_step:
        own = {(without_step(label), step_of(label) or 0): one for label, one in known.items()}
        return {line.key: own.get(line.key, ()) for line in lines}
    return {line.key: known.get(line.state, ()) for line in lines}


def _shares(mdp: MDP, counts: Counts, state: int) -> ActionShares:
    rows = np.arange(mdp.state_start[state], mdp.state_start[state + 1])
    tried = counts.visits[rows].astype(np.float64)
    if not tried.sum() > 0:
        return ()
    order = np.argsort(-tried, kind="stable")
    names = [label_text(_label(mdp.action_labels, mdp.row_action[rows[i]])) for i in order]
    shares = (tried / tried.sum())[order]
    return tuple((name, float(share)) for name, share in zip(names, shares, strict=True) if share)


def rule_words(
    lines: Sequence[PolicyLine], found: Mapping[LineKey, Change], columns: Sequence[str]
) -> str:
    """Return one sentence: the rule itself, or in how many states it differs from the past.

    Examples
    --------
    >>> def line(state, action):
    ...     return PolicyLine(state=state, action=action, probability=1.0, visits=9, margin=None)
    >>> lines = [*(line(f"wear {i}", "run") for i in range(4)), line("wear 4", "repair")]
    >>> rule_words(lines, {}, ["condition"])
    'Repair in wear 4; otherwise run.'
    """
    states = {line.state for line in lines}
    said = in_words(lines, columns)
    if 0 < len(said) <= LONGEST:
        return said
    taken = [line for line in lines if line.probability > 0.5]
    other = {
        line.state
        for line in taken
        if line.key in found and found[line.key].habit != label_text(line.action)
    } | (states - {line.state for line in taken})
    if not other:
        return "Follow the table below; it is what was mostly done already."
    return (
        "Follow the table below; it departs from past practice in "
        f"{len(other):,} of {number_of(len(states), 'state')}."
    )


def in_words(lines: Sequence[PolicyLine], columns: Sequence[str]) -> str:
    """Return a rule with one action per state as a sentence; "" for other rules."""
    one_each = len({line.state for line in lines}) == len(lines)
    if not one_each or any(line.first_step for line in lines):
        return ""
    groups: dict[str, list[Hashable]] = {}
    tried: dict[str, float] = {}
    for line in lines:
        action = label_text(line.action)
        groups.setdefault(action, []).append(line.state)
        tried[action] = tried.get(action, 0.0) + line.visits
    if len(groups) == 1:
        return f"Always {next(iter(groups))}."
    usual = max(groups, key=lambda action: tried[action])
    told = [
        f"{action} in {_states(states, columns)}"
        for action, states in groups.items()
        if action != usual
    ]
    text = "; ".join([*told, f"otherwise {usual}"])
    return f"{text[:1].upper()}{text[1:]}."


def _states(states: Sequence[Hashable], columns: Sequence[str]) -> str:
    """Return states as a list in words; consecutive numbers become "wear 2 to 5"."""
    parts: list[str] = []
    for names in _runs([_numbered(state, columns) for state in states]):
        first, last = names[0], names[-1]
        parts.append(first[2] if len(names) < 3 else f"{first[2]} to {last[2]}")
        parts += [last[2]] if len(names) == 2 else []
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


Named = tuple[str, int | None, str]


def _numbered(state: Hashable, columns: Sequence[str]) -> Named:
    """Return a label's text before its final number, that number, and the label in words."""
    text = label_text(state)
    if isinstance(state, tuple):
        return text, None, f"({text})"
    found = re.fullmatch(r"(.*?)(\d{1,9})", text)
    words = f"{columns[0]} {text}" if found and not found[1] else text
    return (found[1], int(found[2]), words) if found else (text, None, words)


def _follows(name: Named, before: Named) -> bool:
    (start, number, _), (other, last, _) = name, before
    return start == other and number is not None and last is not None and number == last + 1


def _runs(names: Sequence[Named]) -> list[list[Named]]:
    runs: list[list[Named]] = []
    for name in names:
        before = runs[-1][-1] if runs else None
        if before is not None and _follows(name, before):
            runs[-1].append(name)
        else:
            runs.append([name])
    return runs
