"""Read Stan's CSV files: comments, a header, one line per draw, one file per chain."""

import re
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SETTING = re.compile(r"^#\s*(\w+)\s*=\s*(\S+)")
COLUMN = re.compile(r"^(?P<name>.+?)(?P<indices>(?:\.\d+)*)$")


class StanFile(NamedTuple):
    """One chain: the sampler's settings, the header, and the draws after warm-up."""

    settings: dict[str, str]
    header: list[str]
    draws: Floats


def read_chains(
    files: str | PathLike[str] | Sequence[str | PathLike[str]], variable: str
) -> tuple[Floats, int | None]:
    """Return ``(chains, draws, ...)`` of one variable, and the number of divergences if known."""
    paths = [files] if isinstance(files, (str, PathLike)) else list(files)
    if not paths:
        raise ValueError("files is empty; pass the CSV files of Stan, one per chain.")
    chains, diverging = [], []
    for path in map(Path, paths):
        file = read_file(path)
        chains.append(_variable(file, variable, path))
        if "divergent__" in file.header:
            diverging.append(file.draws[:, file.header.index("divergent__")].sum())
    shapes = {str(path): chain.shape for path, chain in zip(paths, chains, strict=True)}
    if len(set(shapes.values())) > 1:
        raise ValueError(f"chains differ in length or shape: {shapes}.")
    return np.stack(chains), int(sum(diverging)) if diverging else None


def read_file(path: Path) -> StanFile:
    """Read one CSV file; saved warm-up draws are left out."""
    settings: dict[str, str] = {}
    header: list[str] | None = None
    lines: list[list[float]] = []
    with path.open(encoding="utf-8") as stream:
        for number, line in enumerate(stream, start=1):
            text = line.strip()
            if text.startswith("#"):
                if found := SETTING.match(text):
                    settings.setdefault(found[1], found[2])
            elif text and header is None:
                header = text.split(",")
            elif text and header is not None:
                lines.append(_numbers(text, len(header), path, number))
    if header is None or not lines:
        raise ValueError(f"{path}: there are no draws in this file. Is it Stan's CSV output?")
    draws = np.array(lines)[_saved_warmup(settings) :]
    if not len(draws):
        raise ValueError(f"{path}: all {len(lines)} draws belong to the warm-up.")
    return StanFile(settings, header, draws)


def _numbers(text: str, width: int, path: Path, number: int) -> list[float]:
    fields = text.split(",")
    if len(fields) != width:
        raise ValueError(
            f"{path}, line {number}: {len(fields)} fields, the header has {width}. The file may "
            "have been cut off: run the chain again."
        )
    try:
        return [float(field) for field in fields]
    except ValueError as problem:
        raise ValueError(f"{path}, line {number}: {problem}.") from None


def _saved_warmup(settings: dict[str, str]) -> int:
    """Return how many of the saved draws belong to the warm-up."""
    if settings.get("save_warmup", "0") not in ("1", "true"):
        return 0
    warmup, thin = int(settings.get("num_warmup", "1000")), int(settings.get("thin", "1"))
    return -(-warmup // thin)


def _variable(file: StanFile, variable: str, path: Path) -> Floats:
    """Collect the columns ``variable.i.j.k`` into an array."""
    places: dict[tuple[int, ...], int] = {}
    names = set()
    for column, title in enumerate(file.header):
        match = COLUMN.match(title.strip())
        name = match["name"] if match else title
        if not name.endswith("__"):
            names.add(name)
        if match and name == variable:
            places[tuple(int(i) - 1 for i in match["indices"].split(".")[1:])] = column
    if not places:
        listed = ", ".join(sorted(names)) or "none"
        raise ValueError(f"{path}: there is no variable {variable!r}; there are: {listed}.")
    shape = tuple(np.array(list(places)).max(axis=0) + 1) if () not in places else ()
    if len(places) != int(np.prod(shape)):
        raise ValueError(
            f"{path}: {variable!r} has {len(places)} columns, but its indices go to {shape}."
        )
    # Sorted by index, the columns are in C order.
    order = [places[index] for index in sorted(places)]
    return file.draws[:, order].reshape(len(file.draws), *shape)
