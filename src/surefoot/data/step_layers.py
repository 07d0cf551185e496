"""A log whose states carry their step, so that different steps are counted separately."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.data.columns import as_names, choose, next_names
from surefoot.data.found_sources import find
from surefoot.data.layouts import lay_out
from surefoot.data.log_format import LogFormat
from surefoot.data.sources import session

STEP, NEXT_STEP, OVER = "step of the episode", "next step of the episode", "last step counted"
"""Names of the columns that are added; steps count from 0."""


def apart(
    source: Any, horizon: int, *, state: Any = "state", action: Any = "action",
    next_state: Any = "next_state", reward: str | None = "reward", episode: str | None = None,
    step: str | None = None, terminal: str | None = None, missing: str = "error", **how: Any,
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:  # fmt: skip
    """Return the first ``horizon`` steps of every episode as a table, and its columns by role.

    A state gets one more component, the step. The arguments are those of `read_transitions`.

    Examples
    --------
    >>> log = {"episode": [1, 1, 1], "step": [3, 4, 5], "state": ["a", "a", "b"],
    ...        "action": [0, 1, 0], "reward": [1.0, 4.0, 0.0]}
    >>> table, roles = apart(log, 2, episode="episode", step="step")
    >>> roles["state"], table[STEP].tolist()
    (['state', 'step of the episode'], [0, 1, 2])
    """
    wanted = {*as_names("state", state), *as_names("action", action), episode, step}
    wanted |= {*(next_names(state, next_state) or ()), reward, terminal}
    log_format = LogFormat.of(**how)
    with session() as connection:
        found = find(connection, source, {name for name in wanted if name is not None}, log_format)
        columns = choose(
            list(found.types), found.name, state=state, action=action, next_state=next_state,
            reward=reward, episode=episode, step=step, terminal=terminal, count=None,
        )  # fmt: skip
        layout = lay_out(connection, found, columns, log_format)
        # Where next states come from the next row, one more row shows where the last step led.
        last = horizon if layout.derived else horizon - 1
        numbered = (
            "SELECT *, row_number() OVER (PARTITION BY e ORDER BY k) - 1 AS v "
            f"FROM ({layout.select()}) WHERE e IS NOT NULL"
        )
        rows = connection.execute(f"SELECT * FROM ({numbered}) WHERE v <= {last}").fetchnumpy()
    table = {STEP: _plain(rows["v"]).astype(np.int64)}
    if columns.terminal is not None:
        ended = _plain(rows["z"])
        table[columns.terminal] = np.where(table[STEP] >= horizon, False, ended)
    for short, names in (("s", columns.state), ("a", columns.action), ("t", columns.next_state)):
        table |= {name: _plain(rows[f"{short}{i}"]) for i, name in enumerate(names or ())}
    for short, one in (("r", columns.reward), ("e", columns.episode), ("k", columns.step)):
        if one is not None:
            table.setdefault(one, _plain(rows[short]))
    roles: dict[str, Any] = {
        "state": [*columns.state, STEP], "action": list(columns.action), "next_state": None,
        "reward": columns.reward, "episode": episode, "step": step, "terminal": terminal,
        "missing": missing,
    }  # fmt: skip
    if columns.next_state is not None:
        table[NEXT_STEP] = table[STEP] + 1
        roles["next_state"] = [*columns.next_state, NEXT_STEP]
        # The last step that counts leads to an end.
        roles["terminal"] = columns.terminal or OVER
        ended = table.get(columns.terminal or OVER, np.zeros(len(table[STEP]), dtype=np.bool_))
        table[roles["terminal"]] = np.where(table[STEP] == horizon - 1, True, ended)
    return table, roles


def without_step(label: Any) -> Any:
    """Return the label of a state without the step that it carries.

    Examples
    --------
    >>> without_step(("mild", 3)), without_step(("mild", "old", 3)), without_step("unseen")
    ('mild', ('mild', 'old'), 'unseen')
    """
    if not isinstance(label, tuple):
        return label
    return label[0] if len(label) == 2 else label[:-1]


def step_of(label: Any) -> int | None:
    """Return the step that a label carries; None for added states, such as "unseen"."""
    return int(str(label[-1])) if isinstance(label, tuple) else None


def names_of(labels: Sequence[Hashable]) -> tuple[tuple[Hashable, ...], NDArray[np.int64]]:
    """Return the distinct labels without their steps, and the index of each state's label.

    Examples
    --------
    >>> names, which = names_of([("mild", 0), ("mild", 1), ("severe", 1), "unseen"])
    >>> names, which.tolist()
    (('mild', 'severe', 'unseen'), [0, 0, 1, 2])
    """
    plain = [without_step(label) for label in labels]
    names = {name: i for i, name in enumerate(dict.fromkeys(plain))}
    return tuple(names), np.array([names[name] for name in plain], dtype=np.int64)


def _plain(values: Any) -> NDArray[Any]:
    """Return a column without a mask: missing values become None."""
    if not np.ma.isMaskedArray(values) or not np.ma.getmaskarray(values).any():
        return np.asarray(np.ma.getdata(values))
    plain = np.ma.getdata(values).astype(object)
    plain[np.ma.getmaskarray(values)] = None
    return np.asarray(plain)
