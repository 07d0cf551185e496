"""Counts in one npz file: arrays as they are, everything else as JSON text, no pickles."""

import json
import os
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from surefoot._findings import Finding, stated
from surefoot.data.checks import Check
from surefoot.data.counting import Counts
from surefoot.data.log import Log
from surefoot.data.rewards import GivenRewards
from surefoot.data.support import SupportReport

FORMAT = "surefoot counts 1"
ARRAYS = (
    "state_start", "row_action", "row_start", "successor", "count", "reward_mean", "reward_var",
    "reward_low", "reward_high", "starts", "terminal",
)  # fmt: skip


def save(counts: Counts, path: str | os.PathLike[str]) -> None:
    """Write counts with their labels, rewards, history and checks."""
    arrays = {name: getattr(counts, name) for name in ARRAYS if getattr(counts, name) is not None}
    given = counts.given
    if given is not None and given.function is not None:
        raise ValueError(
            "counts whose rewards are a function cannot be saved: a file holds no code. Give the "
            "rewards as a table or an array."
        )
    if given is not None and given.array is not None:
        arrays["given_array"] = given.array
    log = None if counts.log is None else counts.log.settled()
    about = {
        "format": FORMAT,
        "num_actions": counts.num_actions,
        "declared": counts.declared,
        "state_labels": _labels("state", counts.state_labels),
        "action_labels": _labels("action", counts.action_labels),
        "reward_model": counts.reward_model,
        "reward_range": counts.reward_range,
        "unseen": counts.unseen,
        "given_table": None if given is None or given.table is None else [
            [_labels("reward table", key), value] for key, value in given.table.items()
        ],
        "report": None if counts.report is None else asdict(counts.report),
        "log": None if log is None else {
            field.name: getattr(log, field.name)
            for field in fields(Log) if field.name not in ("pending", "checked")
        } | {
            "findings": [found.to_mapping() for found in log.findings],
            "checked": [
                asdict(check) | {"finding": check.finding.to_mapping()}
                for check in log.checked or ()
            ],
        },
    }  # fmt: skip
    with Path(path).open("wb") as file:
        np.savez_compressed(file, about=np.array(json.dumps(about)), **arrays)


def _labels(what: str, labels: Any) -> Any:
    """Return labels as JSON holds them: whole numbers, texts, and lists of them for tuples."""
    if labels is None:
        return None
    plain = []
    for label in labels:
        if isinstance(label, tuple):
            plain.append(_labels(what, label))
        elif isinstance(label, (bool, np.bool_)) or not isinstance(label, (int, str, np.integer)):
            raise ValueError(
                f"{what} label {label!r} is of type {type(label).__name__}; labels that are saved "
                "are whole numbers, text, or tuples of them."
            )
        else:
            plain.append(label if isinstance(label, str) else int(label))
    return plain


def _tuples(labels: Any) -> Any:
    if labels is None:
        return None
    return tuple(_tuples(label) if isinstance(label, list) else label for label in labels)


def load(path: str | os.PathLike[str]) -> Counts:
    """Read what :func:`save` wrote."""
    place = Path(path)
    if not place.exists():
        raise FileNotFoundError(f"{place}: there is no such file.")
    try:
        with np.load(place, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(str(arrays.pop("about")))
    except (BadZipFile, KeyError, ValueError, OSError, EOFError) as problem:
        raise ValueError(f"{place}: not a file of saved counts ({problem}).") from None
    if about.get("format") != FORMAT:
        raise ValueError(
            f"{place}: the format is {about.get('format')!r}; this version reads {FORMAT!r}."
        )
    given = None
    if about["given_table"] is not None:
        given = GivenRewards(table={_tuples(key): value for key, value in about["given_table"]})
    elif "given_array" in arrays:
        given = GivenRewards(array=arrays.pop("given_array"))
    bounds = about["reward_range"]
    return Counts(
        **arrays,
        num_actions=about["num_actions"],
        declared=about["declared"],
        state_labels=_tuples(about["state_labels"]),
        action_labels=_tuples(about["action_labels"]),
        reward_model=about["reward_model"],
        reward_range=None if bounds is None else (bounds[0], bounds[1]),
        unseen=about["unseen"],
        given=given,
        report=None if about["report"] is None else SupportReport(**about["report"]),
        log=_log(about["log"]),
    )


def _log(about: dict[str, Any] | None) -> Log | None:
    if about is None:
        return None
    checked = tuple(_check(check) for check in about.pop("checked"))
    # Version 0.1 kept sentences.
    notes = [stated(text, "warning") for text in about.pop("notes", ())]
    findings = [*notes, *map(Finding.from_mapping, about.pop("findings", ()))]
    lists = {name: _tuples(about.pop(name)) for name in ("names", "columns")}
    return Log(**about, **lists, findings=tuple(findings), checked=checked)


def _check(about: dict[str, Any]) -> Check:
    sentence, finding = about.pop("sentence", ""), about.pop("finding", None)
    if finding is not None:
        return Check(**about, finding=Finding.from_mapping(finding))
    check = Check(**about, finding=stated(sentence, "note"))
    return replace(check, finding=stated(sentence, "warning")) if check.warns else check
