"""Whether the promise of a run still agrees with data that came after it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.certificates.agreement import Agreement, weigh_steps
from surefoot.certificates.certificate import Certificate
from surefoot.data.open_log import open_log
from surefoot.data.side_files import parts_of
from surefoot.data.transitions import assemble
from surefoot.pipeline.loading import load_run
from surefoot.pipeline.model import WRITTEN, Model, column_roles, log_sources
from surefoot.pipeline.settings import Settings
from surefoot.solvers.solver import evaluate

Floats = NDArray[np.float64]


def agreement_with(folder: str | Path, log: str | Path | Sequence[str | Path]) -> Agreement:
    """Ask whether the promise of a run agrees with a new log, read with the run's settings.

    One may ask as often as one likes, each time of all data that came after the run: the
    probability of ever calling a promise into question that holds is at most 1%.

    Parameters
    ----------
    folder
        A run folder.
    log
        New data: files, folders or globs, in the columns of the run's log.
    """
    stored = load_run(folder)
    paths = (str(log),) if isinstance(log, str | Path) else tuple(map(str, log))
    settings = replace(stored.settings, log=paths, add=None)
    steps = new_steps(stored.model, settings)
    return weigh(stored.model, stored.certificate, steps)


def new_steps(model: Model, settings: Settings) -> dict[str, NDArray[Any]]:
    """Return the transitions of a new log by the ids of a model: s, a, t (-1 unknown), r, z, n."""
    roles = column_roles(settings)
    columns: dict[str, Any] = {"state": "state", "action": "action", "next_state": "next_state"}
    columns |= {name: value for name, value in roles.items() if name not in (*WRITTEN, "missing")}
    columns["count"] = settings.count
    reading = replace(settings.reading, bins=model.bins)
    parts: list[dict[str, NDArray[Any]]] = []
    for source in log_sources(settings):
        with open_log(
            source, columns, drop_missing=settings.missing == "drop",
            text_labels=settings.labels == "text", how=reading,
        ) as opened:  # fmt: skip
            counts = assemble(opened.tally)
            found = opened.connection.execute(
                "SELECT state AS s, action AS a, successor AS t, reward AS r, "
                f"sum(weight) AS n FROM ({opened.moves(counts)}) GROUP BY ALL"
            ).fetchnumpy()
        ends = np.asarray(counts.is_terminal)
        states = _renumbered(counts.state_labels, model.mdp.state_labels, settings.columns.state)
        actions = _renumbered(
            counts.action_labels, model.mdp.action_labels, settings.columns.action
        )
        after = np.asarray(found["t"])
        parts.append(
            {
                "s": states[np.asarray(found["s"])], "a": actions[np.asarray(found["a"])],
                "t": states[after], "z": ends[after], "n": np.asarray(found["n"]),
                "r": np.ma.filled(np.ma.asarray(found["r"]).astype(np.float64), np.nan),
            }
        )  # fmt: skip
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _renumbered(labels: Any, known: Any, columns: tuple[str, ...]) -> NDArray[np.int64]:
    """Return the model's id of each label of a new log; -1 for labels it does not have."""
    where = {parts_of(label, len(columns)): i for i, label in enumerate(known or ())}
    return np.array([where.get(parts_of(label, len(columns)), -1) for label in labels], np.int64)


def weigh(model: Model, certificate: Certificate, steps: dict[str, NDArray[Any]]) -> Agreement:
    """Weigh new steps against the promise; all in the rewards of the model."""
    mdp = model.mdp
    stored = model.shown(certificate)
    value = evaluate(mdp, stored.policy).value
    gain = mdp.probability * (mdp.entry_reward + mdp.discount * value[mdp.successor])
    quality = np.add.reduceat(gain, mdp.row_start[:-1])
    row = _policy_rows(model, stored.policy, steps["s"], steps["a"])
    used = row >= 0
    own, after, ends = row[used], steps["t"][used], steps["z"][used]
    reward = _rewards(model, own, after, steps["r"][used])
    worst = value.min() if model.placed.unseen is None else value[model.placed.unseen]
    following = np.where(after >= 0, value[after], np.where(ends, 0.0, worst))
    x = reward + mdp.discount * following - quality[own]
    ceiling = (_highest(model) + mdp.discount * _best_successor(model, value) - quality)[own]
    promised = float(stored.lower_bound)
    expected = float(mdp.initial @ value)
    return weigh_steps(
        x, np.maximum(ceiling, 0.0), steps["n"][used],
        bearable=(1 - mdp.discount) * (expected - promised),
        transitions=int(steps["n"].sum()), objective=certificate.objective,
    )  # fmt: skip


def _policy_rows(model: Model, policy: NDArray[Any], state: Any, action: Any) -> NDArray[np.int64]:
    """Return the row of each step that the policy may take; -1 for others."""
    mdp = model.mdp
    share = policy > 0 if policy.ndim == 2 else np.arange(mdp.num_actions) == policy[:, None]
    table = np.full((mdp.num_states, mdp.num_actions), -1, dtype=np.int64)
    table[mdp.row_state, mdp.row_action] = np.arange(mdp.num_rows)
    table[~share] = -1
    return np.where((state >= 0) & (action >= 0), table[state, action], -1)


def _rewards(model: Model, row: Any, after: Any, seen: Floats) -> Floats:
    """Return the reward of each step: as seen, or the model's where rewards were given."""
    if not np.isnan(seen).all() or not len(seen):
        return np.asarray(-seen if model.settings.costs else seen)
    mdp = model.mdp
    key = mdp.entry_row * mdp.num_states + mdp.successor
    place = np.minimum(np.searchsorted(key, row * mdp.num_states + after), len(key) - 1)
    listed = (key[place] == row * mdp.num_states + after) & (after >= 0)
    return np.asarray(np.where(listed, mdp.entry_reward[place], mdp.reward.min()))


def _highest(model: Model) -> Floats:
    """Return ``(R,)``: the highest reward that a step of each row can bring."""
    placed, mdp = model.placed, model.mdp
    top = np.maximum.reduceat(mdp.entry_reward, mdp.row_start[:-1])
    if placed.reward_range is not None:
        return np.asarray(np.maximum(top, placed.reward_range[1]))
    if placed.reward_high is None:
        return np.asarray(top, dtype=np.float64)
    return np.asarray(np.fmax(top, placed.reward_high[mdp.row_action]))


def _best_successor(model: Model, value: Floats) -> Floats:
    mdp = model.mdp
    return np.asarray(np.maximum.reduceat(value[mdp.successor], mdp.row_start[:-1]))
