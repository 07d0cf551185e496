"""Small files that go with a log and use its columns: pairs, policies, orders, first states.

They may be written like the log: with semicolons, in another encoding, with decimal commas, as a
spreadsheet. Whole labels may also be in a column ``state`` or ``action``.
"""

import csv
import io
import tempfile
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from surefoot._arguments import nearest
from surefoot.data.csv_bytes import best_delimiter, encoding_of, inspect, is_marked
from surefoot.data.csv_copies import from_sheet, recoded
from surefoot.data.log_files import kind_of
from surefoot.data.log_format import LogFormat

BEYOND = "beyond the last column"
SideLine = dict[str, str]


@dataclass(frozen=True, kw_only=True)
class LabelColumns:
    """The columns of the log that hold states and actions."""

    state: tuple[str, ...] = ("state",)
    action: tuple[str, ...] = ("action",)

    def own_name(self, name: str) -> str:
        """Return a name for an added column, with an underscore where the log uses that name.

        Examples
        --------
        >>> LabelColumns(state=("visits", "age")).own_name("visits")
        'visits_'
        """
        while name in (*self.state, *self.action):
            name += "_"
        return name


@dataclass(frozen=True, kw_only=True, eq=False)
class SideFile:
    """A small file: the names of its columns, and its lines with their places for messages."""

    path: Path
    header: tuple[str, ...]
    lines: tuple[tuple[str, SideLine], ...]

    def check_columns(self, wanted: Sequence[str]) -> None:
        """Refuse a file that lacks a column."""
        for name in wanted:
            if name not in self.header:
                listed = ", ".join(map(repr, self.header)) or "none"
                raise ValueError(
                    f"{self.path}: there is no column {name!r}; the columns are {listed}."
                    f"{nearest(name, self.header)}"
                )


def read_side_file(path: Path, how: LogFormat | None = None) -> SideFile:
    """Read a small file completely."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file.")
    text = _text(path, how or LogFormat())
    delimiter = best_delimiter(text.split("\n", 1)[0])
    reader = csv.DictReader(io.StringIO(text, newline=""), restkey=BEYOND, delimiter=delimiter)
    header = tuple(name for name in reader.fieldnames or () if name)
    return SideFile(path=path, header=header, lines=tuple(_lines(path, reader)))


def _lines(path: Path, reader: "csv.DictReader[str]") -> Iterator[tuple[str, SideLine]]:
    try:
        for line in reader:
            place = f"{path}, line {reader.line_num}"
            if BEYOND in line or None in line.values():
                raise ValueError(
                    f"{place}: the line does not have {len(reader.fieldnames or ())} fields, as "
                    "the first one has. Quote fields that hold a comma."
                )
            yield place, line
    except csv.Error as problem:
        raise ValueError(f"{path}, line {reader.line_num}: {problem}.") from None


def _text(path: Path, how: LogFormat) -> str:
    """Return a file as text, decoded like the log; line breaks stay, since labels may hold them."""
    with tempfile.TemporaryDirectory(prefix="surefoot-") as folder:
        copy = Path(folder) / "copy.csv"
        if kind_of(path) == "sheet":
            from_sheet(path, None, copy)
            return copy.read_bytes().decode("utf-8")
        plain = not is_marked(path) and inspect(path).is_utf8
        encoding = None if plain else how.encoding or encoding_of(path)
        if encoding is not None:
            recoded(path, encoding, copy)
            return copy.read_bytes().decode("utf-8-sig")
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path}: the text is not UTF-8. Save the file as UTF-8.") from None


def parts_of(label: Hashable, size: int) -> tuple[str, ...]:
    """Return a label column by column; added labels, such as "terminal", have one part only.

    Examples
    --------
    >>> parts_of(("old", 3), 2), parts_of("terminal", 2)
    (('old', '3'), ('terminal', ''))
    """
    if size > 1 and isinstance(label, tuple) and len(label) == size:
        return tuple(map(str, label))
    return (str(label), *[""] * (size - 1))


def label_text(label: Hashable) -> str:
    """Return a label as text; the parts of one from several columns are joined by commas.

    Examples
    --------
    >>> label_text(("old", 3)), label_text("new")
    ('old, 3', 'new')
    """
    return ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelFinder:
    """Finds the states (or actions) that a line of a side file names.

    Attributes
    ----------
    what
        ``"state"`` or ``"action"``: also the name of a column that holds whole labels.
    columns
        The columns of the log.
    labels
        All labels, in order of the ids.
    """

    what: str
    columns: tuple[str, ...]
    labels: tuple[Hashable, ...]

    @cached_property
    def _parts(self) -> list[tuple[str, ...]]:
        return [parts_of(label, len(self.columns)) for label in self.labels]

    @cached_property
    def _whole(self) -> dict[str, int]:
        return {str(label): i for i, label in enumerate(self.labels)}

    @cached_property
    def _ids(self) -> dict[tuple[str, ...], int]:
        return {parts: i for i, parts in enumerate(self._parts)}

    def given(self, file: SideFile) -> tuple[str, ...]:
        """Return the columns of the log that a file has, or else its column of whole labels."""
        own = tuple(name for name in self.columns if name in file.header)
        return own or ((self.what,) if self.what in file.header else ())

    def check_given(self, file: SideFile) -> None:
        """Refuse a file that has neither all columns nor the column of whole labels."""
        if self.given(file) != (self.what,):
            file.check_columns(self.columns)

    def find(self, place: str, line: SideLine, given: tuple[str, ...]) -> int:
        """Return the id of the label that a line names in full."""
        key = tuple(line[name] for name in given)
        found = self._ids.get(key) if given == self.columns else self._whole.get(key[0])
        if found is not None:
            return found
        for i, name in enumerate(given):
            self._check_known(place, name, key[i], given)
        raise ValueError(f"{place}: the log has no {self.what} {', '.join(map(repr, key))}.")

    def matching(self, place: str, line: SideLine, given: tuple[str, ...]) -> NDArray[np.bool_]:
        """Return which labels a line matches; columns that the file lacks match anything."""
        if given == self.columns or given == (self.what,):
            chosen = np.zeros(len(self.labels), dtype=np.bool_)
            chosen[self.find(place, line, given)] = True
            return chosen
        fits = np.ones(len(self.labels), dtype=np.bool_)
        for name in given:
            self._check_known(place, name, line[name], given)
            i = self.columns.index(name)
            fits &= np.array([parts[i] == line[name] for parts in self._parts], dtype=np.bool_)
        return fits

    def _check_known(self, place: str, name: str, text: str, given: tuple[str, ...]) -> None:
        known: Mapping[str, object] = self._whole
        if name in self.columns and given != (self.what,):
            i = self.columns.index(name)
            known = dict.fromkeys(parts[i] for parts in self._parts)
        if text in known:
            return
        word = name if len(self.columns) > 1 else self.what
        raise ValueError(f"{place}: unknown {word} {text!r}.{nearest(text, known)}")


def finder(
    what: str, columns: tuple[str, ...], labels: tuple[Hashable, ...] | None, count: int
) -> LabelFinder:
    """Return a finder of states or actions; without labels, ids are used as labels."""
    return LabelFinder(what=what, columns=columns, labels=labels or tuple(range(count)))
