"""Damaged files of counts: always one line, never a traceback."""

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surefoot import Counts
from surefoot.data.npz_files import _digest
from surefoot.data.transitions import read_transitions

LOG = {"state": [0, 0, 1, 1], "action": [0, 0, 1, 0], "reward": [0.1, 0.2, 1.0, 1.0],
       "next_state": [1, 1, 0, 1], "e": [0, 0, 0, 1], "k": [0, 1, 2, 0]}  # fmt: skip

ODD: tuple[Any, ...] = (None, -1, 10**30, 0.5, "x", [], {}, [[1]], True)


def stored(tmp_path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    read_transitions(LOG, episode="e", step="k").save(tmp_path / "counts.npz")
    with np.load(tmp_path / "counts.npz") as file:
        arrays = {name: file[name] for name in file.files}
    arrays.pop("digest")
    return json.loads(str(arrays.pop("about"))), arrays


def refusal(path: Path) -> str | None:
    """Return why a file was refused; any error but a ValueError fails the test."""
    try:
        Counts.load(path).summary()
    except ValueError as problem:
        return str(problem)
    return None


def damages(about: dict[str, Any], arrays: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    for name, array in arrays.items():
        rest = {other: value for other, value in arrays.items() if other != name}
        yield about, rest
        for wrong in (
            array[:-1], array.reshape(1, -1), array.astype("U"), array * 1j, np.array(3),
            np.full_like(array, -5) if array.dtype != np.bool_ else array.astype(np.int8),
            np.full(array.shape, np.inf),
        ):  # fmt: skip
            yield about, {**rest, name: wrong}
    for name in about:
        yield {key: value for key, value in about.items() if key != name}, arrays
        for wrong in ODD:
            yield {**about, name: wrong}, arrays
    for wrong in ODD:
        yield wrong, arrays


def test_every_damage_is_one_line(tmp_path: Path) -> None:
    """The digest is put right, as if somebody had edited the file: what is inside must hold."""
    path, refused, tried = tmp_path / "damaged.npz", 0, 0
    for about, arrays in damages(*stored(tmp_path)):
        text = json.dumps(about)
        np.savez(path, about=np.array(text), digest=np.array(_digest(text, arrays)), **arrays)
        tried += 1
        message = refusal(path)
        if message is not None:
            assert re.fullmatch(r".*damaged\.npz: not a file of saved counts \(.*\)\.", message)
            refused += 1
    assert tried > 150
    assert (
        refused > 130
    )  # the rest are other counts that could exist: no labels, no log, other rewards


def test_a_changed_number_is_noticed(tmp_path: Path) -> None:
    about, arrays = stored(tmp_path)
    with np.load(tmp_path / "counts.npz") as file:
        digest = file["digest"]
    for name, changed in (("reward_var", arrays["reward_var"] / 2), ("count", arrays["count"] + 1)):
        text = np.array(json.dumps(about))
        np.savez(tmp_path / "x.npz", about=text, digest=digest, **{**arrays, name: changed})
        with pytest.raises(ValueError, match="does not match its digest"):
            Counts.load(tmp_path / "x.npz")


def test_bytes_cut_or_flipped(tmp_path: Path) -> None:
    stored(tmp_path)
    whole = (tmp_path / "counts.npz").read_bytes()
    rng = np.random.default_rng(0)
    for i in range(60):
        broken = bytearray(whole)
        if i % 2:
            broken[int(rng.integers(len(whole)))] ^= 1 << int(rng.integers(8))
        else:
            broken = broken[: int(rng.integers(len(whole)))]
        (tmp_path / "b.npz").write_bytes(bytes(broken))
        assert "\n" not in (refusal(tmp_path / "b.npz") or "")
    with zipfile.ZipFile(tmp_path / "z.npz", "w") as file:
        file.writestr("about.npy", "{")
    with pytest.raises(ValueError, match="not a file of saved counts"):
        Counts.load(tmp_path / "z.npz")
