"""Whether the promise of a run still agrees with data collected after it."""

from collections.abc import Callable, Sequence
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
from surefoot.model.mdp import MDP
from surefoot.model.policies import AnyPolicy
from surefoot.model.step_policy import StepPolicy
from surefoot.pipeline.finished_runs import load_run
from surefoot.pipeline.model import WRITTEN, Model, log_sources, source_of
from surefoot.pipeline.settings import Settings
from surefoot.pipeline.step_values import StepValues, averaged, played
from surefoot.solvers.solver import evaluate
from surefoot.solvers.steps import counted_steps

Floats = NDArray[np.float64]


def agreement_with(folder: str | Path, log: str | Path | Sequence[str | Path]) -> Agreement:
    """Check whether the promise of a run agrees with a new log, read with the run's settings.

    Ask as often as you like, each time with all data since the run: the probability that a promise
    that holds is ever called into question is at most 1%.

    Parameters
    ----------
    folder
        A run folder.
    log
        New data: files, folders or globs, in the columns of the run's log.
    """
    stored = load_run(folder)
    _check_bounded(stored.model)
    paths = (str(log),) if isinstance(log, str | Path) else tuple(map(str, log))
    settings = replace(stored.settings, log=paths, add=None)
    steps = new_steps(stored.model, settings)
    return weigh(stored.model, stored.certificate, steps)


def _check_bounded(model: Model) -> None:
    if model.mdp.horizon is None and model.mdp.discount == 1.0:
        raise ValueError(
            "new data cannot be compared with a promise without discount and horizon: how much "
            "less a step may bring depends on the number of steps, which has no limit here. Solve "
            "with the new data (--add), and compare the promises."
        )


def new_steps(model: Model, settings: Settings) -> dict[str, NDArray[Any]]:
    """Return the transitions of a new log as arrays by name, with the ids of a model.

    ``s``, ``a`` and ``t`` are state, action and successor (-1 if the model does not know them),
    ``r`` the reward, ``z`` whether the successor is terminal, ``n`` how often it happened.
    """
    parts: list[dict[str, NDArray[Any]]] = []
    for log in log_sources(settings):
        source, roles = source_of(settings, log)
        columns: dict[str, Any] = {"state": "state", "action": "action", "next_state": "next_state"}
        columns |= {
            name: value for name, value in roles.items() if name not in (*WRITTEN, "missing")
        }
        columns["count"] = settings.count
        own = None if settings.by_step else replace(settings.log_format, bins=model.bins)
        with open_log(
            source, columns, drop_missing=settings.missing == "drop",
            text_labels=settings.labels == "text", how=own,
        ) as opened:  # fmt: skip
            counts = assemble(opened.tally)
            found = opened.connection.execute(
                "SELECT state AS s, action AS a, successor AS t, reward AS r, "
                f"sum(weight) AS n FROM ({opened.moves(counts)}) GROUP BY ALL"
            ).fetchnumpy()
        ends = np.asarray(counts.is_terminal)
        width = len(settings.columns.state) + settings.by_step
        states = _renumbered(counts.state_labels, model.mdp.state_labels, width)
        actions = _renumbered(
            counts.action_labels, model.mdp.action_labels, len(settings.columns.action)
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


def _renumbered(labels: Any, known: Any, width: int) -> NDArray[np.int64]:
    """Return the model's id of each label of a new log; -1 for labels the model does not have."""
    where = {parts_of(label, width): i for i, label in enumerate(known or ())}
    return np.array([where.get(parts_of(label, width), -1) for label in labels], np.int64)


def weigh(model: Model, certificate: Certificate, steps: dict[str, NDArray[Any]]) -> Agreement:
    """Test the promise against new steps; all amounts are in the rewards of the model."""
    mdp = model.mdp
    stored = model.shown(certificate)
    row = _policy_rows(model, stored.policy, steps["s"], steps["a"])
    used = row >= 0
    own, after, ends = row[used], steps["t"][used], steps["z"][used]

    def following(value: Floats) -> Floats:
        worst = value.min() if model.placed.unseen is None else value[model.placed.unseen]
        return np.where(after >= 0, value[after], np.where(ends, 0.0, worst))

    values = _step_values(mdp, stored.policy, own, following)
    reward = _rewards(model, own, after, steps["r"][used])
    x = reward + mdp.discount * values.after - values.quality[own]
    ceiling = np.maximum(_highest(model) + mdp.discount * values.best - values.quality, 0.0)
    every = _policy_rows(model, stored.policy, mdp.row_state, mdp.row_action)
    made = weigh_steps(
        x, ceiling[own], steps["n"][used], highest=float(ceiling[every[every >= 0]].max()),
        bearable=(values.expected - float(stored.lower_bound)) / counted_steps(mdp),
        transitions=int(steps["n"].sum()), objective=certificate.objective,
    )  # fmt: skip
    strange = (steps["s"] < 0) | (steps["a"] < 0)
    return replace(made, unknown=int(steps["n"][strange].sum()))


def _step_values(
    mdp: MDP, policy: AnyPolicy, row: NDArray[np.int64], following: Callable[[Floats], Floats]
) -> StepValues:
    """Return the policy's values of its steps; over a horizon, averaged over the steps."""
    if mdp.horizon is not None:
        return averaged(mdp, policy, row, following)
    value = evaluate(mdp, policy).value
    gain = mdp.probability * (mdp.entry_reward + mdp.discount * value[mdp.successor])
    first = mdp.row_start[:-1]
    best = np.maximum.reduceat(value[mdp.successor], first)
    return StepValues(
        np.add.reduceat(gain, first), following(value), best, float(mdp.initial @ value)
    )


def _policy_rows(model: Model, policy: AnyPolicy, state: Any, action: Any) -> NDArray[np.int64]:
    """Return the row of each step that the policy may take; -1 for other steps."""
    mdp = model.mdp
    table = np.full((mdp.num_states, mdp.num_actions), -1, dtype=np.int64)
    steps = range(policy.horizon) if isinstance(policy, StepPolicy) else (0,)
    taken = np.zeros(mdp.num_rows, dtype=np.bool_)
    for step in steps:
        taken |= played(mdp, policy, step) > 0
    own = np.flatnonzero(taken)
    table[mdp.row_state[own], mdp.row_action[own]] = own
    return np.where((state >= 0) & (action >= 0), table[state, action], -1)


def _rewards(model: Model, row: Any, after: Any, seen: Floats) -> Floats:
    """Return the reward of each step: as seen, or from the model if the new log has none."""
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
