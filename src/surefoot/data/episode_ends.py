"""Where the episodes of a log begin and stop, so that the next log can continue them.

Of an episode are kept its hashed label, its first and last step and, where the following row
supplies the next state, its last state, action and reward. The log of a new month then continues
the episodes of the old one: the transition across the boundary is counted, and the first rows of
the month are not starts.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot._rows import freeze_fields
from surefoot.model.npz_files import labels_from_plain, plain_labels

DAY = 86_400_000_000
ARRAYS = ("identity", "first_step", "last_step", "ended", "state", "action", "reward")


@dataclass(frozen=True, kw_only=True, eq=False)
class EpisodeEnds:
    """The first and the last row of each episode.

    Attributes
    ----------
    seed
        The seed that labels were hashed with.
    identity
        ``(N,)`` hashed labels, increasing.
    first_step, last_step
        ``(N,)``: numbers, or times in microseconds.
    ended
        ``(N,)``: whether the episode ended by itself.
    first
        ``(N,)`` labels of the first states; empty once the log is added.
    state, action, reward
        ``(N,)``: last state and action as ids, and last reward; -1 (NaN) where not needed or not
        known.
    state_labels, action_labels
        The labels of the ids.
    reach
        How far away the next step may be: 1 for numbers, a time, or infinity where there is no
        usual distance.
    working_days
        Whether distances are counted in working days.
    """

    seed: int
    identity: NDArray[np.uint64]
    first_step: NDArray[np.float64]
    last_step: NDArray[np.float64]
    ended: NDArray[np.bool_]
    state: NDArray[np.int64]
    action: NDArray[np.int64]
    reward: NDArray[np.float64]
    state_labels: tuple[Hashable, ...]
    action_labels: tuple[Hashable, ...]
    reach: float
    working_days: bool = False
    first: tuple[Hashable, ...] = ()

    def __post_init__(self) -> None:
        freeze_fields(self)

    def follows(self, last: NDArray[np.float64], first: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Tell which ``first`` steps directly follow the ``last`` ones."""
        apart = first - last
        if self.working_days:
            weeks = np.floor((first / DAY + 3) / 7) - np.floor((last / DAY + 3) / 7)
            apart = np.round(apart / DAY) - 2 * weeks
        return np.asarray((apart > 0) & (apart <= self.reach))


def joined(old: EpisodeEnds, new: EpisodeEnds) -> EpisodeEnds:
    """Return the ends of both logs; for an episode in both, those of the new one."""
    ids = {label: i for i, label in enumerate(dict.fromkeys(old.state_labels + new.state_labels))}
    acts = {
        label: i for i, label in enumerate(dict.fromkeys(old.action_labels + new.action_labels))
    }
    fresh = ~np.isin(old.identity, new.identity)
    arrays: dict[str, Any] = {
        name: np.concatenate((getattr(old, name)[fresh], getattr(new, name))) for name in ARRAYS
    }
    for name, where in (("state", ids), ("action", acts)):
        moved = [
            np.append([where[label] for label in getattr(one, f"{name}_labels")], -1).astype(int)
            for one in (old, new)
        ]
        arrays[name] = np.concatenate(
            (moved[0][getattr(old, name)[fresh]], moved[1][getattr(new, name)])
        )
    order = np.argsort(arrays["identity"])
    return replace(
        new, **{name: array[order] for name, array in arrays.items()},
        state_labels=tuple(ids), action_labels=tuple(acts), first=(),
        reach=new.reach if np.isfinite(new.reach) else old.reach,
        working_days=new.working_days or (not np.isfinite(new.reach) and old.working_days),
    )  # fmt: skip


def ends_to_plain(ends: EpisodeEnds) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the part to store as JSON, and the arrays."""
    about = {
        "seed": ends.seed, "reach": None if np.isinf(ends.reach) else ends.reach,
        "working_days": ends.working_days,
        "state_labels": plain_labels("state_labels", ends.state_labels),
        "action_labels": plain_labels("action_labels", ends.action_labels),
    }  # fmt: skip
    return about, {f"ends_{name}": getattr(ends, name) for name in ARRAYS}


def ends_from_plain(about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> EpisodeEnds:
    """Undo `ends_to_plain`."""
    parts: dict[str, Any] = {name: arrays[f"ends_{name}"] for name in ARRAYS}
    if len({len(part) for part in parts.values()}) > 1:
        raise ValueError("the arrays of episode ends differ in length")
    return EpisodeEnds(
        **parts, seed=int(about["seed"]), working_days=bool(about["working_days"]),
        reach=np.inf if about["reach"] is None else float(about["reach"]),
        state_labels=labels_from_plain(about["state_labels"]) or (),
        action_labels=labels_from_plain(about["action_labels"]) or (),
    )  # fmt: skip
