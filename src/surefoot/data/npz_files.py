"""Counts in one npz file: arrays unchanged, everything else as JSON text, no pickles.

The file holds a digest of its contents, so that damage is noticed. Format 1, which version 0.1
wrote, had neither the digest nor the exact sums of rewards; it can still be read.
"""

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot._atomic import replacing
from surefoot._display import printable, reason_of
from surefoot._findings import Finding, stated
from surefoot.data.bins import binning_from
from surefoot.data.check import Check
from surefoot.data.count_arrays import CountArrays, SomeCounts, SupportReport
from surefoot.data.episode_ends import ends_from_plain, ends_to_plain
from surefoot.data.log import Log
from surefoot.data.reward_sums import RewardSums, from_limbs, limbs_needed, to_limbs
from surefoot.data.rewards import GivenRewards
from surefoot.model.npz_files import labels_from_plain, plain_labels, text_of

FORMATS = ("surefoot counts 1", "surefoot counts 2")
ARRAYS = (
    "state_start", "row_action", "row_start", "successor", "count", "reward_mean", "reward_var",
    "reward_low", "reward_high", "starts", "terminal",
)  # fmt: skip
SUMS = ("count", "total", "square", "lowest", "highest")

NamedArrays = dict[str, NDArray[Any]]


def save(counts: CountArrays, path: str | os.PathLike[str]) -> None:
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
    if counts.reward_sums is not None:
        arrays |= _sums_to_arrays(counts.reward_sums)
    log = None if counts.log is None else counts.log.settled()
    ends = None
    if log is not None and log.ends is not None:
        ends, stopped = ends_to_plain(log.ends)
        arrays |= stopped
    about = {
        "format": FORMATS[-1],
        "num_actions": counts.num_actions,
        "declared": counts.declared,
        "state_labels": plain_labels("state_labels", counts.state_labels),
        "action_labels": plain_labels("action_labels", counts.action_labels),
        "reward_model": counts.reward_model,
        "reward_range": counts.reward_range,
        "reward_digits": None if counts.reward_sums is None else counts.reward_sums.digits,
        "reward_decimals": None if counts.reward_sums is None else counts.reward_sums.decimals,
        "unseen": counts.unseen,
        "given_table": None if given is None or given.table is None else [
            [plain_labels("the reward table", key), value] for key, value in given.table.items()
        ],
        "report": None if counts.report is None else asdict(counts.report),
        "log": None if log is None else {
            field.name: getattr(log, field.name)
            for field in fields(Log) if field.name not in ("pending", "checked", "ends")
        } | {
            "findings": [found.to_mapping() for found in log.findings],
            "bins": [one.to_mapping() for one in log.bins],
            "ends": ends,
            "checked": [
                asdict(check) | {"finding": check.finding.to_mapping()}
                for check in log.checked or ()
            ],
        },
    }  # fmt: skip
    text = json.dumps(about)
    with replacing(path) as file:
        np.savez_compressed(
            file, about=np.array(text), digest=np.array(_digest(text, arrays)), **arrays
        )


def _digest(about: str, arrays: Mapping[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256(about.encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _sums_to_arrays(sums: RewardSums) -> NamedArrays:
    arrays: NamedArrays = {f"sums_{name}": getattr(sums, name) for name in SUMS}
    for name in ("total", "square"):
        integers = getattr(sums, name)
        arrays[f"sums_{name}"] = to_limbs(integers, limbs_needed(integers))
    return arrays


def load(path: str | os.PathLike[str], make: Callable[..., SomeCounts]) -> SomeCounts:
    """Read what :func:`save` wrote; ``make`` builds the counts from their fields."""
    place = Path(path)
    if not place.exists():
        raise FileNotFoundError(f"{printable(place)}: there is no such file.")
    try:
        with place.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        text = text_of(arrays.pop("about"))
        about = json.loads(text)
        written = about["format"]
        if written not in FORMATS:
            raise ValueError(f"the format is {written!r}; this version reads {FORMATS[-1]!r}")
        digest = arrays.pop("digest", None)
        if written != FORMATS[0] and (digest is None or text_of(digest) != _digest(text, arrays)):
            raise ValueError("its content does not match its digest: the file was changed")
        return make(**_fields(about, arrays))
    except Exception as problem:  # a damaged file can fail anywhere, in any way
        reason = reason_of(problem)
        if isinstance(problem, KeyError):
            reason = f"it lacks {reason}"
        raise ValueError(
            f"{printable(place)}: not a file of saved counts ({printable(reason)[:300]})."
        ) from None


def _fields(about: dict[str, Any], arrays: NamedArrays) -> dict[str, Any]:
    found: dict[str, Any] = {name: arrays[name] for name in ARRAYS if name in arrays}
    given = None
    if about["given_table"] is not None:
        table = {labels_from_plain(key) or (): float(value) for key, value in about["given_table"]}
        given = GivenRewards(table=table)
    elif "given_array" in arrays:
        given = GivenRewards(array=arrays["given_array"])
    bounds = about["reward_range"]
    return found | {
        "num_actions": about["num_actions"],
        "declared": about["declared"],
        "state_labels": labels_from_plain(about["state_labels"]),
        "action_labels": labels_from_plain(about["action_labels"]),
        "reward_model": about["reward_model"],
        "reward_range": None if bounds is None else (float(bounds[0]), float(bounds[1])),
        "reward_sums": _sums(about, arrays),
        "unseen": about["unseen"],
        "given": given,
        "report": None if about["report"] is None else SupportReport(**about["report"]),
        "log": _log(about["log"], arrays),
    }


def _sums(about: dict[str, Any], arrays: NamedArrays) -> RewardSums | None:
    digits = about.get("reward_digits")
    if digits is None:
        return None
    decimals = about.get("reward_decimals", digits)  # older files kept trailing zeros
    parts = {name: arrays[f"sums_{name}"] for name in SUMS}
    for name, number in (("digits", digits), ("decimals", decimals)):
        if type(number) is not int or abs(number) > 400:
            raise ValueError(f"reward_{name} is {number!r}; it must be a whole number up to 400")
    for name, part in parts.items():
        limbs, floats = name in ("total", "square"), name in ("lowest", "highest")
        fits = part.ndim == (2 if limbs else 1) and part.dtype.kind == ("f" if floats else "i")
        if not fits or len(part) != len(arrays["count"]):
            raise ValueError(f"sums_{name} has type {part.dtype} and shape {part.shape}")
    if np.any(parts["count"] < 0) or np.any(np.isinf([parts["lowest"], parts["highest"]])):
        raise ValueError("the sums of rewards hold negative counts or infinite rewards")
    for name in ("total", "square"):
        parts[name] = from_limbs(parts[name])
    return RewardSums(digits=digits, decimals=decimals, **parts).reduced()


def _log(about: dict[str, Any] | None, arrays: NamedArrays) -> Log | None:
    if about is None:
        return None
    checked = tuple(_check(check) for check in about.pop("checked"))
    # Version 0.1 stored sentences.
    notes = [stated(text, "warning") for text in about.pop("notes", ())]
    findings = [*notes, *map(Finding.from_mapping, about.pop("findings", ()))]
    bins = tuple(map(binning_from, about.pop("bins", ())))
    stopped = about.pop("ends", None)
    ends = None if stopped is None else ends_from_plain(stopped, arrays)
    lists: Any = {name: labels_from_plain(about.pop(name)) for name in ("names", "columns")}
    return Log(**about, **lists, findings=tuple(findings), bins=bins, ends=ends, checked=checked)


def _check(about: dict[str, Any]) -> Check:
    sentence, finding = about.pop("sentence", ""), about.pop("finding", None)
    if finding is not None:
        return Check(**about, finding=Finding.from_mapping(finding))
    check = Check(**about, finding=stated(sentence, "note"))
    return replace(check, finding=stated(sentence, "warning")) if check.warns else check
