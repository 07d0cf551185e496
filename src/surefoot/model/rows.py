"""Convert dense arrays, sparse matrices, Gymnasium tables and lists of entries to rows."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from surefoot._rows import pack
from surefoot.model import checks

GymTable = Mapping[int, Mapping[int, Sequence[tuple[float, int, float, bool]]]]


class ModelRows(NamedTuple):
    """The arrays of an MDP without its discount, initial distribution and labels."""

    state_start: NDArray[np.int64]
    row_action: NDArray[np.int64]
    row_start: NDArray[np.int64]
    successor: NDArray[np.int32]
    probability: NDArray[np.float64]
    reward: NDArray[np.float64]
    reward_per_entry: bool
    num_actions: int


def is_sparse_sequence(transitions: Any) -> bool:
    """Tell whether this is a sequence of SciPy sparse matrices."""
    return (
        isinstance(transitions, Sequence) and len(transitions) > 0 and sp.issparse(transitions[0])
    )


def rows_from_dense(transitions: Any, rewards: ArrayLike, support: ArrayLike | None) -> ModelRows:
    """Turn ``(S, A, S)`` transitions into rows; a row of zeros means the action is unavailable."""
    probabilities = checks.as_float_array("transitions", transitions)
    if probabilities.ndim != 3 or probabilities.shape[0] != probabilities.shape[2]:
        raise ValueError(
            f"transitions has shape {probabilities.shape}; it must be (states, actions, states)."
        )
    num_states, num_actions, _ = probabilities.shape
    if num_states == 0 or num_actions == 0:
        raise ValueError(f"transitions has shape {probabilities.shape}; there must be states.")
    table = checks.check_rewards_shape(rewards, num_states, num_actions)
    reachable = _support_mask(probabilities, support)
    if not reachable.any():
        raise ValueError("transitions are all zero: no state offers an action.")
    state, action, successor = np.nonzero(reachable)
    reward = table[state, action, successor] if table.ndim == 3 else None
    present = reachable.any(axis=2)
    return _pack(
        state,
        action,
        successor,
        probabilities[reachable],
        reward if reward is not None else table[present],
        per_entry=reward is not None,
        num_states=num_states,
        num_actions=num_actions,
    )


def _support_mask(
    probabilities: NDArray[np.float64], support: ArrayLike | None
) -> NDArray[np.bool_]:
    # "!= 0" keeps NaN and negative entries, so that the later checks find and name them.
    nonzero: NDArray[np.bool_] = probabilities != 0
    if support is None:
        return nonzero
    reachable = np.asarray(support)
    if reachable.shape != probabilities.shape:
        raise ValueError(
            f"support has shape {reachable.shape}; it must match transitions, "
            f"{probabilities.shape}."
        )
    reachable = reachable.astype(np.bool_)
    outside = np.argwhere(nonzero & ~reachable)
    if len(outside):
        s, a, t = outside[0]
        raise ValueError(
            f"support excludes successor {t} of state {s}, action {a}, whose probability is "
            f"{probabilities[s, a, t]:g} ({len(outside)} such entries). Enlarge the support or set "
            "the probability to 0."
        )
    return reachable


def rows_from_sparse(
    matrices: Sequence[Any], rewards: ArrayLike, support: ArrayLike | None
) -> ModelRows:
    """Turn one sparse ``(S, S)`` matrix per action into rows; stored entries are the support."""
    if support is not None:
        raise ValueError(
            "support is for dense transitions; with sparse matrices store the reachable entries "
            "explicitly (zeros included)."
        )
    num_states, num_actions = matrices[0].shape[0], len(matrices)
    parts = []
    for action, matrix in enumerate(matrices):
        if matrix.shape != (num_states, num_states):
            raise ValueError(
                f"transitions of action {action} have shape {matrix.shape}; "
                f"they must be ({num_states}, {num_states})."
            )
        entries = sp.coo_array(matrix, copy=True)
        entries.sum_duplicates()  # in SciPy an entry stored twice means the sum
        parts.append((entries.row, np.full(entries.nnz, action), entries.col, entries.data))
    state, action_ids, successor, probability = (
        np.concatenate([part[i] for part in parts]) for i in range(4)
    )
    table = checks.check_rewards_shape(rewards, num_states, num_actions)
    reward = table[state, action_ids, successor] if table.ndim == 3 else table[state, action_ids]
    return rows_from_entries(
        state,
        action_ids,
        successor,
        probability,
        reward,
        num_states,
        num_actions,
        per_entry=table.ndim == 3,
    )


def gymnasium_table(env: Any) -> tuple[GymTable, Any]:
    """Return an environment's table and its initial distribution, None if it has none."""
    if isinstance(env, Mapping):
        return env, None
    world = getattr(env, "unwrapped", env)
    table = getattr(world, "P", None)
    if not isinstance(table, Mapping):
        raise ValueError(
            f"env is {type(world).__name__}, which keeps no table P[state][action]: toy-text "
            "environments of Gymnasium do. Log others with surefoot.collect."
        )
    return table, getattr(world, "initial_state_distrib", None)


def rows_from_gymnasium(table: GymTable) -> ModelRows:
    """Turn a toy-text table into rows: duplicates summed, terminals absorbing at zero reward."""
    num_states = len(table)
    if num_states == 0:
        raise ValueError("the Gymnasium table has no states.")
    if sorted(table) != list(range(num_states)):
        raise ValueError(f"the Gymnasium table must have states 0..{num_states - 1}.")
    num_actions = 1 + max((action for actions in table.values() for action in actions), default=-1)
    terminal = _terminal_states(table)
    entries: dict[tuple[int, int, int], tuple[float, float]] = {}
    for state, actions in table.items():
        for action, row in actions.items():
            # Zero-probability lines (Gymnasium lists some) are not declared successors.
            listed = [(1.0, state, 0.0, True)] if state in terminal else row
            for probability, successor, reward, _ in listed:
                if probability == 0:
                    continue
                key = (state, action, int(successor))
                mass, gain = entries.get(key, (0.0, 0.0))
                entries[key] = (mass + probability, gain + probability * reward)
    keys = np.array(list(entries), dtype=np.int64).reshape(-1, 3)
    sums = np.array(list(entries.values()), dtype=np.float64).reshape(-1, 2)
    return rows_from_entries(
        keys[:, 0], keys[:, 1], keys[:, 2], sums[:, 0], sums[:, 1] / sums[:, 0],
        num_states, num_actions,
    )  # fmt: skip


def _terminal_states(table: GymTable) -> set[int]:
    """Return the states in which some possible transition terminates; check every line as well."""
    terminal = set()
    for state, actions in table.items():
        for action, row in actions.items():
            for line in row:
                if len(line) != 4 or not 0 <= line[0] <= 1:
                    raise ValueError(
                        f"the Gymnasium table lists {line} for state {state}, action {action}; it "
                        "must be (probability in [0, 1], successor, reward, terminated)."
                    )
                if line[0] > 0 and line[3]:
                    terminal.add(line[1])
    return terminal


def rows_from_entries(
    state: ArrayLike,
    action: ArrayLike,
    successor: ArrayLike,
    probability: ArrayLike,
    reward: ArrayLike,
    num_states: int | None,
    num_actions: int | None,
    *,
    per_entry: bool | None = None,
) -> ModelRows:
    """Sort entries into rows; rewards that are constant in every row are stored once per row."""
    columns = {
        "state": checks.as_ids("state", state, num_states),
        "action": checks.as_ids("action", action, num_actions),
        "successor": checks.as_ids("successor", successor, num_states),
    }
    values = {
        "probability": checks.as_float_array("probability", probability),
        "reward": checks.as_float_array("reward", reward),
    }
    lengths = {name: array.shape for name, array in (columns | values).items()}
    if len(set(lengths.values())) > 1 or values["reward"].ndim != 1:
        raise ValueError(f"entries must be five lists of equal length, got shapes {lengths}.")
    if len(values["reward"]) == 0:
        raise ValueError("there are no entries: a model needs at least one row.")
    known_states = num_states or 1 + int(max(columns["state"].max(), columns["successor"].max()))
    known_actions = num_actions or 1 + int(columns["action"].max())
    s, a, t = columns.values()
    p, r = values.values()
    if not _in_order(s, a, t):
        order = np.lexsort((t, a, s))
        s, a, t = (ids[order] for ids in (s, a, t))
        p, r = p[order], r[order]
    same = (s[1:] == s[:-1]) & (a[1:] == a[:-1])
    repeated = np.flatnonzero(same & (t[1:] == t[:-1]))
    if len(repeated):
        i = repeated[0]
        raise ValueError(
            f"state {s[i]}, action {a[i]}, successor {t[i]} is listed more than once "
            f"({len(repeated)} such entries). Sum their probabilities first."
        )
    first = np.concatenate(([True], ~same))
    by_successor = per_entry if per_entry is not None else not _constant_in_rows(r, first)
    return _pack(
        s, a, t, p, r if by_successor else r[first],
        per_entry=by_successor, num_states=known_states, num_actions=known_actions,
    )  # fmt: skip


def _in_order(state: NDArray[Any], action: NDArray[Any], successor: NDArray[Any]) -> bool:
    """Tell whether entries are sorted by state, action and successor; cheaper than sorting."""
    later = successor[1:] >= successor[:-1]
    for column in (action, state):
        later = (column[1:] > column[:-1]) | ((column[1:] == column[:-1]) & later)
    return bool(later.all())


def _constant_in_rows(reward: NDArray[np.float64], first: NDArray[np.bool_]) -> bool:
    return bool(np.all(first[1:] | (reward[1:] == reward[:-1])))


def _pack(
    state: NDArray[np.int64],
    action: NDArray[np.int64],
    successor: NDArray[np.int64],
    probability: NDArray[np.float64],
    reward: NDArray[np.float64],
    *,
    per_entry: bool,
    num_states: int,
    num_actions: int,
) -> ModelRows:
    """Pack sorted entries with their probabilities and rewards."""
    packed = pack(state, action, successor, num_states, num_actions)
    return ModelRows(
        **packed._asdict(),
        probability=probability.astype(np.float64),
        reward=reward.astype(np.float64),
        reward_per_entry=per_entry,
        num_actions=num_actions,
    )
