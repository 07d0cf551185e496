"""Policies that people bring: from a file, or read off the log."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from surefoot.data.counts import Counts
from surefoot.data.numerals import parse_number
from surefoot.data.reading import Reading
from surefoot.data.side_files import LabelColumns, finder, read_side_file
from surefoot.model.mdp import MDP


def read_policy(
    path: str | os.PathLike[str],
    mdp: MDP,
    *,
    columns: LabelColumns | None = None,
    how: Reading | None = None,
) -> NDArray[np.int64] | NDArray[np.float64]:
    r"""Read a policy from CSV: columns ``state``, ``action`` and, if randomised, ``probability``.

    States and actions are the model's labels, or ids where it has none. Every state with a choice
    needs a line. ``columns`` are the log's own, where the file has those; ``how`` says how the file
    is written, as for a log.

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
    states = finder("state", own.state, mdp.state_labels, mdp.num_states)
    actions = finder("action", own.action, mdp.action_labels, mdp.num_actions)
    file = read_side_file(source, how)
    for one in (states, actions):
        one.check_given(file)
    given = states.given(file), actions.given(file)
    chance = own.own_name("probability")
    decimal = None if how is None else how.decimal
    share = np.zeros((mdp.num_states, mdp.num_actions))
    listed = np.zeros_like(share, dtype=np.bool_)
    for place, line in file.lines:
        s = states.find(place, line, given[0])
        a = actions.find(place, line, given[1])
        if listed[s, a]:
            raise ValueError(f"{place}: this state and action were listed before.")
        listed[s, a] = True
        share[s, a] = _probability(line.get(chance), place, decimal)
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
