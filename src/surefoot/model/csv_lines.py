"""Locate errors in a CSV file.

These functions run once a file is known to be faulty: they read it line by line, slowly, and raise
an error that names the line. The ``find_...`` functions return if they find nothing.
"""

import csv
import difflib
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TextIO

import numpy as np
from numpy.typing import NDArray

IDS = ("idstatefrom", "idaction", "idstateto")
COLUMNS = (*IDS, "probability", "reward")
LABELS = {
    "state": (("idstatefrom", "labelstatefrom"), ("idstateto", "labelstateto")),
    "action": (("idaction", "labelaction"),),
}
"""For states and actions: pairs of (column of ids, column of their labels)."""

Values = dict[str, NDArray[np.float64]]


class CsvHeader(NamedTuple):
    """The positions of the known columns in a file."""

    place: dict[str, int]
    width: int

    @property
    def numbers(self) -> set[int]:
        """The positions of the numeric columns."""
        return {self.place[name] for name in COLUMNS}

    def label_columns(self, noun: str) -> list[tuple[str, str]]:
        """Return the pairs (ids, labels) that the file has for ``noun``."""
        return [pair for pair in LABELS[noun] if pair[1] in self.place]


def read_header(path: Path) -> CsvHeader:
    """Return the positions of the columns, or say which are missing and suggest similar names."""
    try:
        with open_csv(path) as file:
            header = next(csv.reader(file), [])
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as problem:
        raise ValueError(f"{path} cannot be read: {problem}.") from None
    names = [name.strip().lower() for name in header]
    if not any(names):
        raise ValueError(f"{path}, line 1 is empty; it must be {','.join(COLUMNS)}.")
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise ValueError(
            f"{path}, line 1: {_missing_columns(missing, names)}. A model has the columns "
            f"{','.join(COLUMNS)}; this file has {','.join(names)}."
        )
    optional = [name for pairs in LABELS.values() for _, name in pairs]
    known = [name for name in (*COLUMNS, *optional) if name in names]
    for name in known:
        if names.count(name) > 1:
            raise ValueError(f"{path}, line 1: there are two columns {name}. Keep one.")
    return CsvHeader(place={name: names.index(name) for name in known}, width=len(names))


def _missing_columns(missing: list[str], names: list[str]) -> str:
    spare = [name for name in names if name not in COLUMNS]
    parts = []
    for name in missing:
        near = difflib.get_close_matches(name, spare, n=1, cutoff=0.5)
        parts.append(f"{name} (did you mean {near[0]!r}?)" if near else name)
    verb = "s are" if len(parts) > 1 else " is"
    return f"column{verb} missing: {', '.join(parts)}"


def check_values(path: Path, layout: CsvHeader, values: Values) -> None:
    """Check what would otherwise run out of memory, or fail later without a line number."""
    if not len(values["reward"]):
        raise ValueError(f"{path} has a header and no lines; a model needs at least one row.")
    for name in COLUMNS:
        column = values[name]
        rule = "a whole number, 0 or larger" if name in IDS else "a finite number"
        sound = np.isfinite(column)
        if name in IDS:
            sound &= (column >= 0) & (column == np.floor(column))
        if not sound.all():
            line, text = _nth_field(path, layout, name, int(np.argmin(sound)))
            found = repr(text) if text else "empty"
            raise ValueError(f"{path}, line {line}: {name} is {found}; it must be {rule}.")
    _check_states(path, layout, values)


def _check_states(path: Path, layout: CsvHeader, values: Values) -> None:
    """Check that every state has a line, before an array is allocated up to the largest id."""
    sources = values["idstatefrom"]
    count = int(sources.max()) + 1
    if count > len(sources):  # more states than lines: some state certainly has no line
        present = set(sources.tolist())
        gap = next(state for state in range(count) if state not in present)
    else:
        present_mask = np.zeros(count, dtype=np.bool_)
        present_mask[sources.astype(np.int64)] = True
        gap = int(np.argmin(present_mask)) if not present_mask.all() else count
    unknown = (values["idstateto"] >= count) | (values["idstateto"] == gap)
    if unknown.any():
        entry = int(np.argmax(unknown))
        line, text = _nth_field(path, layout, "idstateto", entry)
        raise ValueError(
            f"{path}, line {line}: state {text} is unknown, no line starts from it. Give it a "
            "line; a terminal state is an absorbing state with zero reward."
        )
    if gap < count:
        raise ValueError(
            f"{path}: no line starts from state {gap}, yet there is a state {count - 1}. States "
            "are numbered from 0 without gaps."
        )


def find_bad_entry(path: Path, layout: CsvHeader, values: Values) -> None:
    """Raise if an entry is listed twice or its probability lies outside [0, 1]."""
    keys = [values[name] for name in reversed(IDS)]
    order = np.lexsort(keys)  # stable: of equal entries the earlier line comes first
    same = np.all([key[order[1:]] == key[order[:-1]] for key in keys], axis=0)
    if same.any():
        i = int(np.argmax(same))
        first, _ = _nth_field(path, layout, "idaction", int(order[i]))
        second, _ = _nth_field(path, layout, "idaction", int(order[i + 1]))
        state, action, successor = (int(values[name][order[i]]) for name in IDS)
        raise ValueError(
            f"{path}, line {second}: state {state}, action {action}, successor {successor} is "
            f"listed already in line {first} ({np.count_nonzero(same)} such lines). Sum their "
            "probabilities first."
        )
    outside = ~((values["probability"] >= 0) & (values["probability"] <= 1))
    if outside.any():
        line, text = _nth_field(path, layout, "probability", int(np.argmax(outside)))
        raise ValueError(f"{path}, line {line}: probability is {text}; it must lie in [0, 1].")


def refuse_labels(path: Path, layout: CsvHeader, noun: str) -> NoReturn:
    """Raise at the first line whose label is empty or differs from an earlier one."""
    known: dict[int, tuple[str, int]] = {}
    pairs = layout.label_columns(noun)
    for line, fields in _lines(path):
        for ids, name in pairs:
            number, label = int(float(fields[layout.place[ids]])), fields[layout.place[name]]
            earlier, where = known.setdefault(number, (label, line))
            if label != earlier:
                raise ValueError(
                    f"{path}, line {line}: {noun} {number} is called {label!r}, but {earlier!r} "
                    f"in line {where}. Give it one label."
                )
    # Labels agree as text, so the difference is between an empty field and a quoted empty text.
    raise ValueError(f'{path}: a label of the {noun}s is empty. Fill it, or quote it as "".')


def find_unreadable_line(path: Path, layout: CsvHeader) -> None:
    """Raise at the first line with a wrong number of fields or with text instead of a number."""
    for line, fields in _lines(path):
        if len(fields) != layout.width:
            raise ValueError(
                f"{path}, line {line} has {len(fields)} fields; the header has {layout.width}."
            )
        for name in COLUMNS:
            text = fields[layout.place[name]]
            try:
                float(text or "nan")
            except ValueError:
                raise ValueError(
                    f"{path}, line {line}: {name} is {text!r}; it must be a number."
                ) from None


def _nth_field(path: Path, layout: CsvHeader, name: str, entry: int) -> tuple[int, str]:
    """Return the line number and the text of a field, given the entry's position."""
    for i, (line, fields) in enumerate(_lines(path)):
        if i == entry:
            return line, fields[layout.place[name]]
    raise ValueError(f"{path} changed while it was being read. Read it again.")


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line number of each record after the header, and its fields."""
    line = 1
    with open_csv(path) as file:
        reader = csv.reader(file, strict=True)
        try:
            for line, fields in numbered_records(reader):
                if line > 1 and fields:
                    yield line, fields
                line = reader.line_num + 1
        except UnicodeDecodeError:
            raise ValueError(f"{path}, line {line} or later is not UTF-8 text.") from None
        except (csv.Error, OSError, EOFError) as problem:
            raise ValueError(f"{path}, line {line} cannot be read: {problem}.") from None


def numbered_records(reader: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number at which each CSV record starts, and its fields; header first."""
    line = 1
    for fields in reader:
        yield line, fields
        line = reader.line_num + 1


def open_csv(path: Path, errors: str = "strict") -> TextIO:
    """Open a CSV file, compressed or not, for reading line by line."""
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", errors=errors, newline="")
    return path.open(encoding="utf-8-sig", errors=errors, newline="")
