"""Files beside the log that a run names: pairs a policy may or must not use, first states."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from surefoot.data.counts import Counts
from surefoot.data.numerals import parse_number
from surefoot.data.side_files import LabelFinder, SideFile, finder, read_side_file
from surefoot.model.checks import name_of
from surefoot.model.mdp import MDP
from surefoot.pipeline.settings import Settings

Floats = NDArray[np.float64]


def read_initial(settings: Settings, placed: Counts) -> Floats:
    """Read the distribution of the first state: the columns of the state, and probability."""
    path = str(settings.initial)
    if not Path(path).is_file():
        raise ValueError(
            f"initial={path!r}; it must be 'episodes', 'uniform' or a CSV file with the columns "
            "state and probability."
        )
    columns = settings.columns
    states = finder("state", columns.state, placed.state_labels, placed.num_states)
    chance = columns.own_name("probability")
    file = read_side_file(Path(path), settings.reading)
    states.check_given(file)
    file.check_columns([chance])
    initial = np.zeros(placed.num_states)
    for place, line in file.lines:
        state = states.find(place, line, states.given(file))
        try:
            initial[state] += parse_number(line[chance], settings.decimal)
        except ValueError:
            raise ValueError(f"{place}: {line[chance]!r} is not a number.") from None
    below = np.flatnonzero(~(initial >= 0))
    if len(below):
        raise ValueError(
            f"{path}: the probability of state {name_of(int(below[0]), placed.state_labels)} is "
            f"{initial[below[0]]:g}; probabilities are 0 or more."
        )
    if not abs(initial.sum() - 1.0) < 1e-6:
        raise ValueError(f"{path}: the probabilities sum to {initial.sum():g}; they must sum to 1.")
    return np.asarray(initial / initial.sum())


def read_allowed(
    settings: Settings, mdp: MDP, passive: NDArray[np.bool_]
) -> NDArray[np.bool_] | None:
    """Return ``(S, A)``: the pairs that are allowed and not forbidden; None for all.

    Columns that a file does not have mean any. Passive states need no line.
    """
    if settings.allowed is None and settings.forbidden is None:
        return None
    chosen = np.array(mdp.available)
    if settings.allowed is not None:
        chosen &= _pairs(settings.allowed, settings, mdp)
    if settings.forbidden is not None:
        chosen &= ~_pairs(settings.forbidden, settings, mdp)
    chosen[passive] = mdp.available[passive]
    empty = np.flatnonzero(~chosen.any(axis=1))
    if len(empty):
        raise ValueError(
            f"{settings.allowed or settings.forbidden}: state {mdp.state_name(int(empty[0]))} is "
            f"left without an action that the log supports ({len(empty)} such states). Every state "
            "needs one."
        )
    return chosen


def _pairs(path: str, settings: Settings, mdp: MDP) -> NDArray[np.bool_]:
    """Return ``(S, A)``: the pairs that a file names."""
    columns = settings.columns
    states = finder("state", columns.state, mdp.state_labels, mdp.num_states)
    actions = finder("action", columns.action, mdp.action_labels, mdp.num_actions)
    file = read_side_file(Path(path), settings.reading)
    given = states.given(file), actions.given(file)
    if given != (states.columns, actions.columns):
        _check_spelled(file, states, actions)
    found = np.zeros((mdp.num_states, mdp.num_actions), dtype=np.bool_)
    for place, line in file.lines:
        rows = states.matching(place, line, given[0])
        found |= np.outer(rows, actions.matching(place, line, given[1]))
    return found


def _check_spelled(file: SideFile, states: LabelFinder, actions: LabelFinder) -> None:
    """Refuse a file that lacks a column and has one that nobody knows: it may be misspelt."""
    given = (*states.given(file), *actions.given(file))
    unknown = [name for name in file.header if name not in given]
    if not actions.given(file) or unknown:
        whole = (states.what,) in (states.given(file), states.columns)
        file.check_columns([*(() if whole else states.columns), *actions.columns])
