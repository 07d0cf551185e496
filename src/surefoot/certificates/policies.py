"""Policies that people bring: from a file, or read off the log."""

import csv
import difflib
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from surefoot.data.counts import Counts
from surefoot.model.mdp import MDP
from surefoot.model.policies import AnyPolicy
from surefoot.model.step_policy import StepPolicy

Ints = NDArray[np.int64]

BEYOND = "beyond the last column"


def read_policy(path: str | os.PathLike[str], mdp: MDP, *, by_step: bool = False) -> AnyPolicy:
    r"""Read a policy from CSV: columns ``state``, ``action`` and, if randomised, ``probability``.

    States and actions are the model's labels, or ids where it has none. Every state with a choice
    needs a line. With a horizon, the columns ``first_step`` and ``last_step`` may say at which
    steps (counted from 0) a line holds; every state then needs lines for all steps. ``by_step``:
    the states of the model carry their step, and lines speak of one state at some steps.

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
    if by_step:
        return _read_layers(source, mdp)
    if mdp.horizon is not None and _has_steps(source):
        return _read_steps(source, mdp)
    states = _ids(mdp.state_labels, mdp.num_states)
    actions = _ids(mdp.action_labels, mdp.num_actions)
    share = np.zeros((mdp.num_states, mdp.num_actions))
    listed = np.zeros_like(share, dtype=np.bool_)
    for place, line in read_lines(source, ("state", "action")):
        s = _find(states, line["state"], "state", place)
        a = _find(actions, line["action"], "action", place)
        if listed[s, a]:
            raise ValueError(f"{place}: this state and action were listed before.")
        listed[s, a] = True
        share[s, a] = _probability(line.get("probability"), place)
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


def _has_steps(path: Path) -> bool:
    first = next(iter(read_lines(path, ("state", "action"))), None)
    return first is not None and "first_step" in first[1] and "last_step" in first[1]


def _read_steps(path: Path, mdp: MDP) -> AnyPolicy:
    """Read a policy by step; one that does the same at all steps comes back as ``(S,)`` actions."""
    horizon = mdp.horizon or 1
    states, actions = (
        _ids(mdp.state_labels, mdp.num_states),
        _ids(mdp.action_labels, mdp.num_actions),
    )
    known: list[tuple[int, int, int, int]] = []
    for place, line in read_lines(path, ("state", "action", "first_step", "last_step")):
        s = _find(states, line["state"], "state", place)
        a = _find(actions, line["action"], "action", place)
        if _probability(line.get("probability"), place) != 1.0:
            raise ValueError(f"{place}: a policy by step takes one action; its probability is 1.")
        known.append((s, *_step_range(line, horizon, place), a))
    listed = {s for s, *_ in known}
    for s in range(mdp.num_states):  # states without a choice need no line
        rows = mdp.row_action[mdp.state_start[s] : mdp.state_start[s + 1]]
        if s not in listed and len(rows) == 1:
            known.append((s, 0, horizon - 1, int(rows[0])))
    state, first, last, action = np.array(sorted(known), dtype=np.int64).T
    _check_ranges(path, mdp, state, first, last)
    if np.all(last - first == horizon - 1):
        return np.asarray(action)
    return StepPolicy.from_ranges(horizon, mdp.num_states, state, first, action)


def _read_layers(path: Path, mdp: MDP) -> NDArray[np.int64]:
    """Read a policy for states that carry their step as their last component."""
    actions = _ids(mdp.action_labels, mdp.num_actions)
    layers: dict[str, dict[int, int]] = {}
    for state, label in enumerate(mdp.state_labels or ()):
        if isinstance(label, tuple):
            *name, step = label
            shown = str(name[0] if len(name) == 1 else tuple(name))
            layers.setdefault(shown, {})[int(str(step))] = state
    policy = mdp.row_action[mdp.state_start[:-1]].copy()
    listed = np.diff(mdp.state_start) == 1
    for place, line in read_lines(path, ("state", "action", "first_step", "last_step")):
        _find(dict.fromkeys(layers, 0), line["state"], "state", place)
        action = _find(actions, line["action"], "action", place)
        first, last = _step_range(line, mdp.horizon or 1, place)
        for step in range(first, last + 1):
            if step in layers[line["state"]]:
                state = layers[line["state"]][step]
                policy[state], listed[state] = action, True
    empty = np.flatnonzero(~listed)
    if len(empty):
        raise ValueError(
            f"{path}: state {mdp.state_name(int(empty[0]))} has no line ({len(empty)} such states "
            "and steps). Every state needs an action at each step."
        )
    return np.asarray(policy)


def _step_range(line: dict[str, str], horizon: int, place: str) -> tuple[int, int]:
    try:
        first, last = int(line["first_step"]), int(line["last_step"])
    except ValueError:
        raise ValueError(f"{place}: first_step and last_step must be whole numbers.") from None
    if not 0 <= first <= last < horizon:
        raise ValueError(
            f"{place}: steps {first} to {last}; they count from 0 and go to {horizon - 1}."
        )
    return first, last


def _check_ranges(path: Path, mdp: MDP, state: Ints, first: Ints, last: Ints) -> None:
    """Refuse lines that leave out a step of a state, or name one twice."""
    expected = np.where(np.diff(state, prepend=-1) > 0, 0, np.roll(last, 1) + 1)
    ends = np.append(np.diff(state) > 0, True)
    wrong = (first != expected) | (ends & (last != (mdp.horizon or 1) - 1))
    missing = np.setdiff1d(np.arange(mdp.num_states), state)
    bad = state[wrong][0] if wrong.any() else (missing[0] if len(missing) else None)
    if bad is not None:
        raise ValueError(
            f"{path}: the lines of state {mdp.state_name(int(bad))} must cover each step from 0 to "
            f"{(mdp.horizon or 1) - 1} once."
        )


def read_lines(path: Path, wanted: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the lines of a small CSV file that must have some columns, with their places."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file.")
    try:
        text = path.read_bytes().decode("utf-8-sig")  # labels may hold line ends of any kind
    except UnicodeDecodeError:
        raise ValueError(f"{path}: the text is not UTF-8. Save the file as UTF-8.") from None
    reader = csv.DictReader(io.StringIO(text, newline=""), restkey=BEYOND)
    found = [name for name in reader.fieldnames or () if name]
    for name in wanted:
        if name not in found:
            near = difflib.get_close_matches(name, found, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            listed = ", ".join(map(repr, found)) or "none"
            raise ValueError(
                f"{path}: there is no column {name!r}; the columns are {listed}.{hint}"
            )
    try:
        for line in reader:
            place = f"{path}, line {reader.line_num}"
            if BEYOND in line or None in line.values():
                raise ValueError(
                    f"{place}: the line does not have {len(reader.fieldnames or ())} fields, as "
                    "the first one has. Quote fields that hold a comma."
                )
            yield place, line
    except csv.Error as problem:
        raise ValueError(f"{path}, line {reader.line_num}: {problem}.") from None


def _ids(labels: tuple[object, ...] | None, count: int) -> dict[str, int]:
    return {str(label): i for i, label in enumerate(labels or range(count))}


def _find(ids: dict[str, int], label: str, what: str, place: str) -> int:
    if label in ids:
        return ids[label]
    near = difflib.get_close_matches(label, ids, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"{place}: unknown {what} {label!r}.{hint}")


def _probability(text: str | None, place: str) -> float:
    if text is None:
        return 1.0
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{place}: probability {text!r} is not a number.") from None
    if not 0 <= value <= 1:
        raise ValueError(f"{place}: probability {text} does not lie in [0, 1].")
    return value


def behaviour_policy(counts: Counts, mdp: MDP) -> NDArray[np.float64]:
    """Estimate the policy that made the log: how often each state took each of the model's actions.

    A state that the log never left plays uniformly.

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
        raise ValueError("these counts have other rows than the model; make both from one log.")
    share[mdp.row_state, mdp.row_action] = visits
    total = share.sum(axis=1)
    never = total == 0
    share[never] = mdp.available[never]
    return np.asarray(share / share.sum(axis=1, keepdims=True))
