"""Policies from a file, and the policy estimated from the log."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.data.counts import Counts
from surefoot.data.log_format import LogFormat
from surefoot.data.numerals import parse_number
from surefoot.data.side_files import LabelColumns, finder, read_side_file
from surefoot.data.step_layers import names_of, step_of
from surefoot.model.mdp import MDP
from surefoot.model.policies import AnyPolicy
from surefoot.model.step_policy import StepPolicy

Ints = NDArray[np.int64]
STEPS = ("first_step", "last_step")
"""The columns with the steps at which a line of a policy holds."""


class _FileLine(NamedTuple):
    """A line of a policy file, with its step columns as written."""

    place: str
    state: int
    action: int
    probability: float
    steps: tuple[str | None, ...]


def read_policy(
    path: str | os.PathLike[str],
    mdp: MDP,
    *,
    columns: LabelColumns | None = None,
    how: LogFormat | None = None,
    by_step: bool = False,
) -> AnyPolicy:
    r"""Read a policy from CSV: columns ``state``, ``action`` and, if randomised, ``probability``.

    States and actions are the model's labels, or ids if it has none. Every state with a choice
    needs a line. ``columns`` are the column names of the log, for files that use them; ``how`` says
    how the file is written, as for a log. With a horizon, the columns ``first_step`` and
    ``last_step`` may say at which steps (counted from 0) a line holds; every state then needs lines
    for all steps. ``by_step``: the states of the model include the step, and each line is about one
    state at some steps.

    Examples
    --------
    >>> import tempfile
    >>> from surefoot import riverswim
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "policy.csv")
    ...     lines = ["state,action", *(f"{s},right" for s in range(6))]
    ...     _ = file.write_text("\n".join(lines), encoding="utf-8")
    ...     read_policy(file, riverswim().mdp).tolist()
    [1, 1, 1, 1, 1, 1]
    """
    source = Path(path)
    own = columns or LabelColumns()
    labels = mdp.state_labels
    if by_step and labels is not None:
        labels = names_of(labels)[0]
    states = finder("state", own.state, labels, mdp.num_states)
    actions = finder("action", own.action, mdp.action_labels, mdp.num_actions)
    file = read_side_file(source, how)
    for one in (states, actions):
        one.check_given(file)
    given = states.given(file), actions.given(file)
    chance = own.own_name("probability")
    decimal = None if how is None else how.decimal
    named = [
        _FileLine(
            place=place,
            state=states.find(place, line, given[0]),
            action=actions.find(place, line, given[1]),
            probability=_probability(line.get(chance), place, decimal),
            steps=tuple(line.get(own.own_name(name)) for name in STEPS),
        )
        for place, line in file.lines
    ]
    if by_step:
        return _by_layer(source, mdp, named)
    if mdp.horizon is not None and set(map(own.own_name, STEPS)) <= set(file.header):
        return _by_step(source, mdp, named)
    return _for_all_steps(source, mdp, named)


def _for_all_steps(source: Path, mdp: MDP, named: list[_FileLine]) -> AnyPolicy:
    share = np.zeros((mdp.num_states, mdp.num_actions))
    listed = np.zeros_like(share, dtype=np.bool_)
    for line in named:
        s, a = line.state, line.action
        if listed[s, a]:
            raise ValueError(f"{line.place}: this state and action were listed before.")
        listed[s, a] = True
        share[s, a] = line.probability
    single = ~listed.any(axis=1) & (np.diff(mdp.state_start) == 1)
    share[single] = mdp.available[single]
    empty = np.flatnonzero(~listed.any(axis=1) & ~single)
    if len(empty):
        raise ValueError(
            f"{source}: state {mdp.state_name(int(empty[0]))} has no line ({len(empty)} of "
            f"{mdp.num_states} states). Every state needs an action."
        )
    if np.all((share == 0) | (share == 1)) and np.all(share.sum(axis=1) == 1):
        return np.asarray(share.argmax(axis=1), dtype=np.int64)
    return share


def _by_step(path: Path, mdp: MDP, named: list[_FileLine]) -> AnyPolicy:
    """Return a policy by step, or ``(S,)`` actions if it does the same at all steps."""
    horizon = mdp.horizon or 1
    known: list[tuple[int, int, int, int]] = []
    for line in named:
        if line.probability != 1.0:
            raise ValueError(
                f"{line.place}: a policy by step takes one action, so its probability must be 1."
            )
        known.append((line.state, *_step_range(line, horizon), line.action))
    listed = {s for s, *_ in known}
    for s in range(mdp.num_states):  # states without a choice need no line
        rows = mdp.row_action[mdp.state_start[s] : mdp.state_start[s + 1]]
        if s not in listed and len(rows) == 1:
            known.append((s, 0, horizon - 1, int(rows[0])))
    state, first, last, action = np.array(sorted(known), dtype=np.int64).reshape(-1, 4).T
    _check_ranges(path, mdp, state, first, last)
    if np.all(last - first == horizon - 1):
        return np.asarray(action)
    return StepPolicy.from_ranges(horizon, mdp.num_states, state, first, action)


def _by_layer(path: Path, mdp: MDP, named: list[_FileLine]) -> Ints:
    """Return the actions of a model whose states include the step; lines name states without it."""
    labels = mdp.state_labels or ()
    _, which = names_of(labels)
    step = [step_of(label) for label in labels]
    place = {(int(name), at): s for s, (name, at) in enumerate(zip(which, step, strict=True))}
    policy = mdp.row_action[mdp.state_start[:-1]].copy()
    listed = np.diff(mdp.state_start) == 1
    for line in named:
        first, last = _step_range(line, mdp.horizon or 1)
        for at in range(first, last + 1):
            state = place.get((line.state, at))
            if state is not None:
                policy[state], listed[state] = line.action, True
    empty = np.flatnonzero(~listed)
    if len(empty):
        raise ValueError(
            f"{path}: state {mdp.state_name(int(empty[0]))} has no line ({len(empty)} such states "
            "and steps). Every state needs an action at each step."
        )
    return np.asarray(policy)


def _step_range(line: _FileLine, horizon: int) -> tuple[int, int]:
    try:
        first, last = (int(text or "") for text in line.steps)
    except ValueError:
        raise ValueError(f"{line.place}: first_step and last_step must be whole numbers.") from None
    if not 0 <= first <= last < horizon:
        raise ValueError(
            f"{line.place}: steps {first} to {last}; steps count from 0 to {horizon - 1}."
        )
    return first, last


def _check_ranges(path: Path, mdp: MDP, state: Ints, first: Ints, last: Ints) -> None:
    """Refuse lines that miss a step of a state or name one twice."""
    expected = np.where(np.diff(state, prepend=-1) > 0, 0, np.roll(last, 1) + 1)
    ends = np.append(np.diff(state) > 0, True)[: len(state)]
    wrong = (first != expected) | (ends & (last != (mdp.horizon or 1) - 1))
    missing = np.setdiff1d(np.arange(mdp.num_states), state)
    bad = state[wrong][0] if wrong.any() else (missing[0] if len(missing) else None)
    if bad is not None:
        raise ValueError(
            f"{path}: the lines of state {mdp.state_name(int(bad))} must cover each step from 0 to "
            f"{(mdp.horizon or 1) - 1} once."
        )


def _probability(text: str | None, place: str, decimal: str | None) -> float:
    if text is None:
        return 1.0
    try:
        value = parse_number(text, decimal)
    except ValueError:
        raise ValueError(f"{place}: probability {text!r} is not a number.") from None
    if not 0 <= value <= 1:
        raise ValueError(f"{place}: probability {text} does not lie in [0, 1].")
    return value


def behaviour_policy(counts: Counts, mdp: MDP) -> NDArray[np.float64]:
    """Estimate the policy that made the log: how often each action was taken in each state.

    A state without any recorded action plays uniformly over its available actions.

    Examples
    --------
    >>> import numpy as np
    >>> from surefoot import Counts
    >>> seen = [[[3, 0], [0, 1]], [[0, 2], [0, 2]]]
    >>> counts = Counts.from_arrays(seen, support=np.ones((2, 2, 2)))
    >>> behaviour_policy(counts, counts.to_mdp(discount=0.9, rewards=np.zeros((2, 2)))).tolist()
    [[0.75, 0.25], [0.5, 0.5]]
    """
    placed = counts.on_support()
    visits = np.add.reduceat(placed.count.astype(np.float64), placed.row_start[:-1])
    share = np.zeros((mdp.num_states, mdp.num_actions))
    if not np.array_equal(placed.row_start, mdp.row_start):
        raise ValueError("counts and model have different rows; make both from the same log.")
    share[mdp.row_state, mdp.row_action] = visits
    total = share.sum(axis=1)
    never = total == 0
    share[never] = mdp.available[never]
    return np.asarray(share / share.sum(axis=1, keepdims=True))
