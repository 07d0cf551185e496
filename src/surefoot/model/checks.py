"""Checks of a model's arrays: each error names the place, the rule, the value found and a fix."""

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot._rows import RowSparse

SUM_TOLERANCE = 1e-7
"""How far a row's sum may be from 1, per successor listed (enough for decimals and float32)."""


LARGEST_ID = 2**31 - 1
"""Successors are stored as 32-bit integers."""


class ModelArrays(RowSparse):
    """The fields of a model that are checked here; `surefoot.model.mdp.MDP` describes them."""

    probability: NDArray[np.float64]
    reward: NDArray[np.float64]
    discount: float
    initial: NDArray[np.float64]
    reward_per_entry: bool
    horizon: int | None
    final_reward: NDArray[np.float64] | None


def as_float_array(name: str, value: Any) -> NDArray[np.float64]:
    """Return a float64 array, or say which argument is not numeric."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise ValueError(f"{name} must be an array of numbers: {problem}.") from None


def as_ids(name: str, value: ArrayLike, count: int | None) -> NDArray[np.int64]:
    """Return ids as int64, all in ``0..count-1``."""
    raw = np.asarray(value)
    if raw.dtype.kind not in "iub" and not (
        raw.dtype.kind == "f" and np.all(np.isfinite(raw)) and np.all(raw == np.floor(raw))
    ):
        raise ValueError(f"{name} ids must be whole numbers, got {_first_odd(raw)!r}.")
    if raw.size and raw.max() >= LARGEST_ID:
        raise ValueError(f"{name} id {raw.max()} is too large; ids are numbered from 0.")
    ids = raw.astype(np.int64)
    wrong = np.flatnonzero((ids < 0) | (ids >= (np.inf if count is None else count)))
    if len(wrong):
        most = "" if count is None else f" to {count - 1}"
        raise ValueError(f"unknown {name} {ids[wrong[0]]} (entry {wrong[0]}); ids go from 0{most}.")
    return ids


def _first_odd(raw: NDArray[Any]) -> Any:
    if raw.dtype.kind == "f":
        return raw[~(np.isfinite(raw) & (raw == np.floor(raw)))][0]
    return raw.flat[0] if raw.size else raw


def check_discount(discount: float) -> float:
    """Return the discount as a float in [0, 1]."""
    if not isinstance(discount, (int, float, np.floating, np.integer)) or not 0 <= discount <= 1:
        raise ValueError(
            f"discount={discount!r}; it must be a number in [0, 1]. A problem without discount has "
            "discount=1 and a horizon (the most steps that count), or a model that always ends."
        )
    return float(discount)


def discount_text(discount: float) -> str:
    """Return a discount in few digits, but never round one below 1 to "1".

    Examples
    --------
    >>> discount_text(0.95), discount_text(0.9999999), discount_text(1.0)
    ('0.95', '0.9999999', '1')
    """
    short = f"{discount:g}"
    return repr(float(discount)) if short == "1" and discount < 1 else short


def check_horizon(horizon: Any) -> None:
    """Refuse a horizon that is neither None nor a whole number, 1 or more."""
    whole = isinstance(horizon, (int, np.integer)) and not isinstance(horizon, bool)
    if horizon is not None and not (whole and horizon >= 1):
        raise ValueError(f"horizon={horizon!r}; it must be a whole number of steps, 1 or more.")


def _check_final_reward(mdp: ModelArrays) -> None:
    final = mdp.final_reward
    if final is None:
        return
    if mdp.horizon is None:
        raise ValueError(
            "final_reward is the value of the state after the last step: give horizon= with it."
        )
    if final.shape != (mdp.num_states,):
        raise ValueError(
            f"final_reward has shape {final.shape}; it must be ({mdp.num_states},), one per state."
        )
    bad = np.flatnonzero(~np.isfinite(final))
    if len(bad):
        raise ValueError(
            f"the final reward of state {mdp.state_name(bad[0])} is {final[bad[0]]}; it must be "
            f"finite ({len(bad)} of {len(final)} fail)."
        )


def check_distribution(name: str, value: ArrayLike, length: int) -> NDArray[np.float64]:
    """Return a probability vector of the given length."""
    vector = as_float_array(name, value)
    if vector.shape != (length,):
        raise ValueError(f"{name} has shape {vector.shape}; it must be ({length},).")
    bad = np.flatnonzero(~((vector >= 0) & (vector <= 1 + SUM_TOLERANCE)))
    if len(bad):
        raise ValueError(f"{name}[{bad[0]}] is {vector[bad[0]]}; probabilities lie in [0, 1].")
    total = vector.sum()
    if not abs(total - 1) <= SUM_TOLERANCE * max(1, int(np.count_nonzero(vector))):
        raise ValueError(f"{name} sums to {total:.9g}; it must sum to 1.")
    return vector


def check_initial(initial: ArrayLike, num_states: int) -> NDArray[np.float64]:
    """Return the initial distribution."""
    return check_distribution("initial", initial, num_states)


def check_rewards_shape(
    rewards: ArrayLike, num_states: int, num_actions: int
) -> NDArray[np.float64]:
    """Return rewards as ``(S, A)`` or ``(S, A, S)``."""
    table = as_float_array("rewards", rewards)
    allowed = {(num_states, num_actions), (num_states, num_actions, num_states)}
    if table.shape not in allowed:
        raise ValueError(
            f"rewards has shape {table.shape}; it must be (states, actions) = "
            f"({num_states}, {num_actions}) or (states, actions, states) = "
            f"({num_states}, {num_actions}, {num_states})."
        )
    return table


def check_mdp(mdp: ModelArrays) -> None:
    """Check everything a solver relies on."""
    check_discount(mdp.discount)
    check_horizon(mdp.horizon)
    check_initial(mdp.initial, mdp.num_states)
    _check_labels("state_labels", mdp.state_labels, mdp.num_states)
    _check_labels("action_labels", mdp.action_labels, mdp.num_actions)
    _check_layout(mdp)
    _check_final_reward(mdp)
    _check_probabilities(mdp)
    bad = np.flatnonzero(~np.isfinite(mdp.reward))
    if len(bad):
        row = mdp.entry_row[bad[0]] if mdp.reward_per_entry else bad[0]
        target = (
            f", successor {mdp.state_name(mdp.successor[bad[0]])}" if mdp.reward_per_entry else ""
        )
        raise ValueError(
            f"the reward of {mdp.row_name(row)}{target} is {mdp.reward[bad[0]]}; rewards must be "
            f"finite ({len(bad)} of {len(mdp.reward)} fail)."
        )


def _check_labels(name: str, labels: tuple[Hashable, ...] | None, count: int) -> None:
    if labels is None:
        return
    if len(labels) != count:
        raise ValueError(f"{name} has {len(labels)} labels for {count} ids.")
    unhashable = [label for label in labels if not _is_hashable(label)]
    if unhashable:
        raise ValueError(f"{name} holds {unhashable[0]!r}; use text, numbers or tuples of these.")
    if len(set(labels)) != count:
        seen: set[Hashable] = set()
        twice = next(label for label in labels if label in seen or seen.add(label))  # type: ignore[func-returns-value]
        raise ValueError(f"{name} holds {twice!r} twice; labels must be distinct.")


def _is_hashable(label: Any) -> bool:
    try:
        hash(label)  # a tuple that holds a list is Hashable by type only
    except TypeError:
        return False
    return True


def _check_layout(mdp: ModelArrays) -> None:
    without = np.flatnonzero(np.diff(mdp.state_start) == 0)
    if len(without):
        raise ValueError(
            f"state {mdp.state_name(without[0])} has no actions ({len(without)} of "
            f"{mdp.num_states} states). Give it a row; a terminal state is an absorbing state with "
            "zero reward."
        )
    sizes = {
        "row_start": (len(mdp.row_start), mdp.num_rows + 1),
        "probability": (len(mdp.probability), mdp.num_entries),
        "reward": (len(mdp.reward), mdp.num_entries if mdp.reward_per_entry else mdp.num_rows),
    }
    for name, (found, needed) in sizes.items():
        if found != needed:
            raise ValueError(f"{name} has length {found}; it must be {needed}.")
    consistent = (
        mdp.state_start[0] == 0
        and mdp.state_start[-1] == mdp.num_rows
        and mdp.row_start[0] == 0
        and mdp.row_start[-1] == mdp.num_entries
        and bool(np.all(np.diff(mdp.state_start) > 0))
        and bool(np.all(np.diff(mdp.row_start) > 0))
    )
    if not consistent:
        raise ValueError(
            "state_start must rise from 0 to the number of rows, and row_start to that of entries."
        )
    for name, ids, count in (
        ("row_action", mdp.row_action, mdp.num_actions),
        ("successor", mdp.successor, mdp.num_states),
    ):
        if ids.min() < 0 or ids.max() >= count:
            raise ValueError(f"{name} must lie in 0..{count - 1}, found {ids.min()}..{ids.max()}.")
    _check_rising("row_action", mdp.row_action, mdp.state_start)
    _check_rising("successor", mdp.successor, mdp.row_start)


def _check_rising(name: str, ids: NDArray[Any], start: NDArray[np.int64]) -> None:
    rises = np.diff(ids) > 0
    rises[start[1:-1] - 1] = True
    if not rises.all():
        place = int(np.flatnonzero(~rises)[0])
        raise ValueError(f"{name} must rise within each block; places {place}, {place + 1} do not.")


def _check_probabilities(mdp: ModelArrays) -> None:
    p = mdp.probability
    bad = np.flatnonzero(~((p >= 0) & (p <= 1 + SUM_TOLERANCE)))
    if len(bad):
        row = mdp.entry_row[bad[0]]
        raise ValueError(
            f"the probability of {mdp.row_name(row)}, successor "
            f"{mdp.state_name(mdp.successor[bad[0]])} is {p[bad[0]]}; probabilities lie in [0, 1] "
            f"({len(bad)} of {len(p)} fail)."
        )
    sums = np.add.reduceat(p, mdp.row_start[:-1])
    off = np.flatnonzero(~(np.abs(sums - 1) <= SUM_TOLERANCE * np.diff(mdp.row_start)))
    if len(off):
        raise ValueError(
            f"probabilities of {mdp.row_name(off[0])} sum to {sums[off[0]]:.9g}; a row must sum "
            f"to 1 ({len(off)} of {mdp.num_rows} rows fail). Rescale the rows or add what is "
            "missing."
        )
