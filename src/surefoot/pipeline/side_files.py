"""Side files of a run: pairs that a policy may use, first states, final rewards."""

from collections.abc import Hashable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from surefoot.data.counts import Counts
from surefoot.data.numerals import parse_number
from surefoot.data.side_files import LabelFinder, SideFile, finder, read_side_file
from surefoot.data.step_layers import names_of, step_of
from surefoot.model.mdp import MDP
from surefoot.pipeline.settings import Settings

Floats = NDArray[np.float64]


def read_initial(settings: Settings, placed: Counts) -> Floats:
    """Read the distribution of the first state from the state columns and ``probability``."""
    path = str(settings.initial)
    if not Path(path).is_file():
        raise ValueError(
            f"initial={path!r}; it must be 'episodes', 'uniform' or a CSV file with the columns "
            "state and probability."
        )
    columns = settings.columns
    states, which = _states(settings, placed.state_labels, placed.num_states)
    chance = columns.own_name("probability")
    file = read_side_file(Path(path), settings.log_format)
    states.check_given(file)
    file.check_columns([chance])
    initial = np.zeros(placed.num_states)
    for place, line in file.lines:
        named = which == states.find(place, line, states.given(file))
        state = _first(settings, placed, named, place)
        try:
            initial[state] += parse_number(line[chance], settings.decimal)
        except ValueError:
            raise ValueError(f"{place}: {line[chance]!r} is not a number.") from None
    below = np.flatnonzero(~(initial >= 0))
    if len(below):
        raise ValueError(
            f"{path}: the probability of state {placed.state_name(below[0])} is "
            f"{initial[below[0]]:g}; probabilities are 0 or more."
        )
    if not abs(initial.sum() - 1.0) < 1e-6:
        raise ValueError(f"{path}: the probabilities sum to {initial.sum():g}; they must sum to 1.")
    return np.asarray(initial / initial.sum())


def _states(
    settings: Settings, labels: tuple[Hashable, ...] | None, count: int
) -> tuple[LabelFinder, NDArray[np.int64]]:
    """Return a finder of states by their names in files, and the index of each state's name.

    Files name states without the step that they may include.
    """
    which = np.arange(count)
    if settings.by_step and labels is not None:
        labels, which = names_of(labels)
    return finder("state", settings.columns.state, labels, count), which


def _first(settings: Settings, placed: Counts, named: NDArray[np.bool_], place: str) -> int:
    """Return the state, among those with one name, in which an episode can start."""
    states, labels = np.flatnonzero(named), placed.state_labels
    if settings.by_step and labels is not None:
        states = np.array([s for s in states if step_of(labels[s]) in (0, None)], dtype=np.int64)
        if len(states) == 0:
            raise ValueError(f"{place}: the log never shows this state at its first step.")
    return int(states[0])


def final_of(settings: Settings, counts: Counts) -> Floats | None:
    """Return ``(S,)``: the final rewards of states, as rewards; None if there are none.

    The unseen state gets the lowest of them.
    """
    if settings.final_reward is None:
        return None
    final = read_final(settings, counts)
    final = -final if settings.costs else final
    if counts.unseen is not None:
        final[counts.unseen] = final.min()
    return final


def read_final(settings: Settings, counts: Counts) -> Floats:
    """Read the final rewards of states from the state columns and ``reward``; others get 0."""
    columns = settings.columns
    states, which = _states(settings, counts.state_labels, counts.num_states)
    worth = columns.own_name("reward")
    file = read_side_file(Path(str(settings.final_reward)), settings.log_format)
    states.check_given(file)
    file.check_columns([worth])
    final = np.zeros(counts.num_states)
    for place, line in file.lines:
        state = which == states.find(place, line, states.given(file))
        try:
            final[state] = parse_number(line[worth], settings.decimal)
        except ValueError:
            raise ValueError(f"{place}: {line[worth]!r} is not a number.") from None
        if not np.isfinite(final[state]).all():
            raise ValueError(f"{place}: the final reward is {line[worth]}; it must be finite.")
    return final


def read_allowed(
    settings: Settings, mdp: MDP, passive: NDArray[np.bool_]
) -> NDArray[np.bool_] | None:
    """Return ``(S, A)``: the pairs that are allowed and not forbidden; None for all.

    A column that a file does not have matches any value. Passive states need no line.
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
    states, which = _states(settings, mdp.state_labels, mdp.num_states)
    actions = finder("action", columns.action, mdp.action_labels, mdp.num_actions)
    file = read_side_file(Path(path), settings.log_format)
    given = states.given(file), actions.given(file)
    if given != (states.columns, actions.columns):
        _check_spelled(file, states, actions)
    found = np.zeros((mdp.num_states, mdp.num_actions), dtype=np.bool_)
    for place, line in file.lines:
        rows = states.matching(place, line, given[0])[which]
        found |= np.outer(rows, actions.matching(place, line, given[1]))
    return found


def _check_spelled(file: SideFile, states: LabelFinder, actions: LabelFinder) -> None:
    """Refuse a file that lacks a column and has an unknown one, which may be misspelt."""
    given = (*states.given(file), *actions.given(file))
    unknown = [name for name in file.header if name not in given]
    if not actions.given(file) or unknown:
        whole = (states.what,) in (states.given(file), states.columns)
        file.check_columns([*(() if whole else states.columns), *actions.columns])
