"""Models as npz: the arrays of the MDP unchanged, labels as JSON, nothing pickled."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot._atomic import replacing
from surefoot._display import reason_of
from surefoot.model import checks
from surefoot.model.mdp import MDP, Label

VERSION = 1
ID_ARRAYS = ("state_start", "row_action", "row_start", "successor")
FLOAT_ARRAYS = ("probability", "reward", "initial")
FACTS = ("discount", "num_actions", "reward_per_entry", "state_labels", "action_labels")


def write_npz(mdp: MDP, path: Path) -> None:
    """Write a complete model."""
    arrays: dict[str, Any] = {name: getattr(mdp, name) for name in ID_ARRAYS + FLOAT_ARRAYS}
    facts = {
        "format": "surefoot.mdp",
        "version": VERSION,
        "discount": float(mdp.discount),
        "num_actions": int(mdp.num_actions),
        "reward_per_entry": bool(mdp.reward_per_entry),
        "horizon": None if mdp.horizon is None else int(mdp.horizon),
        "state_labels": plain_labels("state_labels", mdp.state_labels),
        "action_labels": plain_labels("action_labels", mdp.action_labels),
    }
    arrays["facts"] = np.frombuffer(json.dumps(facts, allow_nan=False).encode(), dtype=np.uint8)
    if mdp.final_reward is not None:
        arrays["final_reward"] = mdp.final_reward
    with replacing(path) as file:
        np.savez(file, **arrays)


def read_npz(path: Path, *, discount: float | None, initial: ArrayLike | None) -> MDP:
    """Read a model that ``write_npz`` wrote; ``discount`` and ``initial`` replace stored ones."""
    arrays, facts = _load(path)
    try:
        ids = {name: _as_integers(name, arrays[name]) for name in ID_ARRAYS}
        floats = {name: checks.as_float_array(name, arrays[name]) for name in FLOAT_ARRAYS}
        if initial is not None:
            floats["initial"] = checks.check_initial(initial, len(ids["state_start"]) - 1)
        return MDP(
            state_start=ids["state_start"],
            row_action=ids["row_action"],
            row_start=ids["row_start"],
            successor=ids["successor"].astype(np.int32),
            probability=floats["probability"],
            reward=floats["reward"],
            discount=checks.check_discount(facts["discount"] if discount is None else discount),
            initial=floats["initial"],
            num_actions=int(facts["num_actions"]),
            reward_per_entry=bool(facts["reward_per_entry"]),
            state_labels=labels_from_plain(facts["state_labels"]),
            action_labels=labels_from_plain(facts["action_labels"]),
            horizon=facts.get("horizon"),
            final_reward=arrays.get("final_reward"),
        )
    except (ValueError, TypeError, IndexError) as problem:
        raise ValueError(f"{path}: {problem}") from None


def _load(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the arrays and the JSON part, or raise an error that says what is wrong."""
    wanted = (*ID_ARRAYS, *FLOAT_ARRAYS, "facts")
    try:
        with np.load(path, allow_pickle=False) as stored:
            missing = [name for name in wanted if name not in stored.files]
            if missing:
                raise ValueError(
                    f"it lacks {', '.join(missing)}. Write model files with surefoot.write_mdp"
                )
            arrays = {name: stored[name] for name in wanted}
            if "final_reward" in stored.files:
                arrays["final_reward"] = stored["final_reward"]
        nested = [name for name in wanted if arrays[name].ndim != 1 or not arrays[name].size]
        if nested:
            raise ValueError(f"{nested[0]} must be a list, found shape {arrays[nested[0]].shape}")
        facts = json.loads(arrays.pop("facts").tobytes())
        if not isinstance(facts, dict) or facts.get("format") != "surefoot.mdp":
            raise ValueError("its facts do not describe a model")
        if facts.get("version") != VERSION:
            raise ValueError(
                f"it has format version {facts.get('version')}, this surefoot reads {VERSION}"
            )
        absent = [name for name in FACTS if name not in facts]
        if absent:
            raise ValueError(f"its facts lack {', '.join(absent)}")
    except Exception as problem:  # a damaged file can fail anywhere, in any way
        raise ValueError(f"{path} cannot be read as a model: {reason_of(problem)}.") from None
    return arrays, facts


def text_of(array: NDArray[Any]) -> str:
    """Return the text that an array of one string holds, or refuse it.

    NumPy takes any four bytes for a character, even where they are not Unicode; such a string
    fails wherever it is used.

    Examples
    --------
    >>> text_of(np.array("a text"))
    'a text'
    """
    if array.dtype.kind != "U" or array.ndim:
        raise ValueError(f"a text was expected, found {array.dtype} of shape {array.shape}")
    plain = array.astype(array.dtype.newbyteorder("<"))
    return plain.tobytes().decode("utf-32-le").rstrip("\0")


def _as_integers(name: str, array: NDArray[Any]) -> NDArray[np.int64]:
    if array.dtype.kind != "i":
        raise ValueError(f"{name} must hold signed integers, found {array.dtype}.")
    if name == "successor" and array.max() > checks.LARGEST_ID:  # 32-bit integers would wrap
        raise ValueError(f"successor {array.max()} is too large; ids are numbered from 0.")
    return array.astype(np.int64)


def plain_labels(name: str, labels: tuple[Label, ...] | None) -> list[Any] | None:
    """Return labels in a form that JSON can hold; tuples become lists."""
    return None if labels is None else [_plain(name, label) for label in labels]


def _plain(name: str, label: Any) -> Any:
    """Return one label in a form that JSON can hold; a tuple becomes a list."""
    if isinstance(label, np.generic):  # a NumPy scalar equals and hashes as its plain value
        label = label.item()
    if isinstance(label, tuple):
        return [_plain(name, part) for part in label]
    if label is None or isinstance(label, (str, bool, int)):
        return label
    if isinstance(label, float) and np.isfinite(label):
        return label
    raise ValueError(
        f"{name} holds {label!r}; a file can hold text, numbers, None and tuples of these."
    )


def labels_from_plain(labels: list[Any] | None) -> tuple[Label, ...] | None:
    """Undo :func:`plain_labels`."""
    return None if labels is None else tuple(_label_from_plain(label) for label in labels)


def _label_from_plain(label: Any) -> Label:
    """Undo ``_plain``: labels are hashable, so a list can only have been a tuple."""
    if isinstance(label, list):
        return tuple(_label_from_plain(part) for part in label)
    return label  # type: ignore[no-any-return]
