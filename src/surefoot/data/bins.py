"""Columns of numbers cut into bins between edges, with readable labels."""

import json
import math
import os
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot._atomic import replacing
from surefoot.data.numerals import parse_number

FORMAT = 1
"""Version of the layout of bins.json."""
FINENESS = 20
"""Edges are rounded to about one part in this many of the column's range."""


@dataclass(frozen=True, kw_only=True)
class Binning:
    """A column and its bins; a bin includes its lower edge but not its upper one.

    Attributes
    ----------
    column
        The column of the log.
    edges
        The edges between bins, increasing; empty until they are computed from the log.
    number
        The number of bins with about equally many rows that was asked for; 0 where edges were
        given.

    Examples
    --------
    >>> age = as_binning("age=40,55")
    >>> age.labels
    ('age below 40', 'age 40-55', 'age 55 or more')
    >>> age.label(40), age.label("61.5")
    ('age 40-55', 'age 55 or more')
    """

    column: str
    edges: tuple[float, ...] = ()
    number: int = 0

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the bins, in order."""
        if not self.edges:
            return (self.column,)
        shown = _texts(self.edges)
        dash = " to " if self.edges[0] < 0 else "-"
        inner = [f"{low}{dash}{high}" for low, high in pairwise(shown)]
        names = [f"below {shown[0]}", *inner, f"{shown[-1]} or more"]
        return tuple(f"{self.column} {name}" for name in names)

    def label(self, value: Any) -> str:
        """Return the label of the bin of a number or its text; a bin's label is returned as is."""
        if value in self.labels:
            return str(value)
        try:
            number = parse_number(value) if isinstance(value, str) else float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise ValueError(f"{self.column} is {value!r}; it must be a number.")
        return self.labels[bisect_right(self.edges, number)]

    def sql(self, number: str) -> str:
        """Return the SQL of the bin label of a number; NULL stays NULL."""
        labels = ["'" + label.replace("'", "''") + "'" for label in self.labels]
        cases = " ".join(
            f"WHEN {number} < {edge!r} THEN {label}"
            for edge, label in zip(self.edges, labels, strict=False)
        )
        missing = f"WHEN {number} IS NULL OR isnan({number}) THEN NULL"
        return f"CASE {missing} {cases} ELSE {labels[-1]} END"

    def to_mapping(self) -> dict[str, Any]:
        """Return column, edges and labels for JSON."""
        return {"column": self.column, "edges": list(self.edges), "labels": list(self.labels)}


def binning_from(content: Mapping[str, Any]) -> Binning:
    """Return the bins that `Binning.to_mapping` described."""
    return Binning(column=str(content["column"]), edges=tuple(map(float, content["edges"])))


def as_binning(asked: Any) -> Binning:
    """Return the bins that ``"age=4"`` (quantiles) or ``"age=40,55"`` (edges) ask for.

    One edge alone is written with a comma after it: ``"age=65,"``.
    """
    if isinstance(asked, Binning):
        return asked
    column, equals, text = str(asked).rpartition("=")
    parts = [part.strip() for part in text.split(",") if part.strip()]
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = []
    if not (equals and column and numbers):
        raise ValueError(
            f"bins={asked!r}; write COLUMN=4 for four bins with about equally many rows, or "
            "COLUMN=18.5,25,30 for the edges between them."
        )
    if "," not in text:
        if not (numbers[0].is_integer() and 2 <= numbers[0] <= 1000):
            raise ValueError(
                f"bins={asked!r}; the number of bins is a whole number from 2 to 1000. One edge is "
                f"written with a comma after it: {column}={text},"
            )
        return Binning(column=column, number=int(numbers[0]))
    rising = all(a < b for a, b in pairwise(numbers))
    if not (rising and all(map(math.isfinite, numbers))):
        raise ValueError(f"bins={asked!r}; edges are finite numbers that rise.")
    return Binning(column=column, edges=tuple(numbers))


def at_quantiles(
    column: str, number: int, values: NDArray[np.float64], counts: NDArray[Any]
) -> Binning:
    """Return bins with about equally many rows, at edges that are easy to read.

    ``values`` are distinct and rise; ``counts`` says how often each occurs.

    Examples
    --------
    >>> at_quantiles("age", 4, np.arange(20.0, 80.0), np.ones(60)).edges
    (35.0, 50.0, 65.0)
    """
    if len(values) < 2:
        raise ValueError(f"bins={f'{column}={number}'!r}; the column holds one number only.")
    share = np.cumsum(counts) / np.sum(counts)
    wanted = np.arange(1, number) / number
    # The first value above each quantile: about that share of the log lies below it.
    exact = np.unique(values[np.minimum(np.searchsorted(share, wanted) + 1, len(values) - 1)])
    spread = float(values[-1] - values[0])
    unit = 10.0 ** math.floor(math.log10(spread / FINENESS))
    digits = max(0, -round(math.log10(unit)))
    for _ in range(17):
        rounded = np.unique(np.round(np.round(exact / unit) * unit, digits))
        inside = rounded[(rounded > values[0]) & (rounded <= values[-1])]
        if len(inside) == len(exact):
            return Binning(column=column, edges=tuple(map(float, inside)), number=number)
        unit, digits = unit / 10, digits + 1
    return Binning(column=column, edges=tuple(map(float, exact)), number=number)


def _texts(edges: Sequence[float]) -> list[str]:
    """Return numbers as short texts that read back exactly."""
    for digits in range(3, 18):
        shown = [_plain(edge, digits) for edge in edges]
        if all(float(text) == edge for text, edge in zip(shown, edges, strict=True)):
            return shown
    return [repr(edge) for edge in edges]


def _plain(edge: float, digits: int) -> str:
    return str(int(edge)) if edge.is_integer() and abs(edge) < 1e15 else f"{edge:.{digits}g}"


def raw_label(
    columns: Sequence[str], bins: Sequence[Binning], raw: Mapping[str, Any]
) -> tuple[Any, ...]:
    """Return the label, part by part, of raw measurements given by column.

    Columns that were cut into bins give the bin's label; others stay as they are.

    Examples
    --------
    >>> raw_label(["age", "ward"], [as_binning("age=40,55")], {"ward": "B", "age": 47})
    ('age 40-55', 'B')
    """
    own = {one.column: one for one in bins}
    missing = [name for name in columns if name not in raw]
    if missing:
        raise ValueError(f"{missing[0]} is missing; a state needs {', '.join(columns)}.")
    unknown = [name for name in raw if name not in columns]
    if unknown:
        raise ValueError(f"there is no column {unknown[0]!r}; a state has {', '.join(columns)}.")
    return tuple(own[name].label(raw[name]) if name in own else raw[name] for name in columns)


def write_bins(path: str | os.PathLike[str], bins: Sequence[Binning]) -> None:
    """Write ``bins.json``."""
    content = {"format": FORMAT, "bins": [one.to_mapping() for one in bins]}
    with replacing(Path(path), "w", encoding="utf-8") as file:
        file.write(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_bins(path: str | os.PathLike[str]) -> tuple[Binning, ...]:
    """Read what `write_bins` wrote."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        return tuple(map(binning_from, content["bins"]))
    except (KeyError, TypeError, ValueError) as problem:
        raise ValueError(f"{path}: these are not the bins of a run ({problem}).") from None
