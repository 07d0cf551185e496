"""Runs that differ from a given run in one setting, for "what if" questions."""

import csv
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.data.count_arrays import LEARNED
from surefoot.data.side_files import label_text, parts_of
from surefoot.pipeline.model import Model
from surefoot.pipeline.runs import Run
from surefoot.pipeline.settings import Settings

DELTAS = (0.01, 0.05, 0.1, 0.2)
PRIORS = (0.5, 1.0, 2.0)
MOST_ACTIONS = 6
"""How many actions are left out one by one: those that the policy takes in most states."""
DIGITS = 12
"""Digits that discounts are rounded to: 1 - (1 - .95) / 2 is .975, not .9749999999999999."""


@dataclass(frozen=True, kw_only=True)
class Variation:
    """One change of the settings.

    Attributes
    ----------
    setting
        The setting: "discount", "delta", "forbidden", "prior" or "unseen".
    value
        Its new value; for "forbidden" the label of an action that may no longer be used.
    """

    setting: str
    value: Hashable

    @property
    def words(self) -> str:
        """The change in a few words.

        Examples
        --------
        >>> Variation(setting="forbidden", value="repair").words
        'without repair'
        """
        value = f"{self.value:g}" if isinstance(self.value, float) else label_text(self.value)
        return f"without {value}" if self.setting == "forbidden" else f"{self.setting} {value}"


def usual_variations(run: Run) -> list[Variation]:
    """Return the usual variations of a run, setting by setting."""
    settings, chosen = run.settings, []
    rest = 1.0 - settings.discounted  # 0 without a discount: then there is none to vary
    discounts = [round(d, DIGITS) for d in (1.0 - 2.0 * rest, 1.0 - rest / 2.0) if 0 < d < 1]
    chosen += [Variation(setting="discount", value=value) for value in discounts]
    chosen += [Variation(setting="delta", value=d) for d in DELTAS if d != settings.delta]
    if not settings.by_step:
        chosen += [Variation(setting="forbidden", value=action) for action in _used(run)]
    if settings.basis == "bayesian":
        brought = run.model.own is not None  # the user's posterior has its own prior
        priors = [value for value in PRIORS if value != settings.prior and not brought]
        chosen += [Variation(setting="prior", value=value) for value in priors]
        if run.model.placed.unseen is not None:
            other = "worst" if settings.unseen == "absorbing" else "absorbing"
            chosen.append(Variation(setting="unseen", value=other))
    return chosen


def _used(run: Run) -> list[Hashable]:
    """Return the actions that the policy takes in states with a choice, most used first."""
    often = Counter(line.action for line in run.policy if line.margin is not None)
    return [action for action, _ in often.most_common(MOST_ACTIONS)]


def varied(model: Model, variation: Variation, scratch: Path) -> Settings:
    """Return the settings of a run with one change; files are written to a scratch folder."""
    settings, value = model.settings, variation.value
    if variation.setting == "forbidden":
        path = scratch / "allowed.csv"
        write_allowed(path, model, value)
        return replace(settings, allowed=str(path))
    changes: dict[str, Any] = {variation.setting: value}
    if variation.setting == "prior" and settings.support == LEARNED:
        changes["support"] = None  # learned successors need a learned prior
    return replace(settings, **changes)


def write_allowed(path: Path, model: Model, action: Hashable) -> None:
    """Write the allowed pairs without one action; states that have no other action keep it."""
    mdp, columns = model.mdp, model.settings.columns
    if model.settings.by_step:
        raise ValueError("with by_step=True no action can be left out: states differ by step.")
    labels: Sequence[Hashable] = mdp.action_labels or range(mdp.num_actions)
    texts = [label_text(label) for label in labels]
    if label_text(action) not in texts:
        raise ValueError(f"unknown action {label_text(action)!r}; the log has {', '.join(texts)}.")
    allowed = np.array(mdp.available if model.allowed is None else model.allowed)
    left = allowed.copy()
    left[:, texts.index(label_text(action))] = False
    kept = np.where(left.any(axis=1, keepdims=True), left, allowed)
    states: Sequence[Hashable] = mdp.state_labels or range(mdp.num_states)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow((*columns.state, *columns.action))
        writer.writerows(
            (*parts_of(states[s], len(columns.state)), *parts_of(labels[a], len(columns.action)))
            for s, a in np.argwhere(kept)
            if not model.passive[s]
        )
