"""Finding states by name: value by column, as text or as the log's own labels."""

import difflib
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from surefoot._arguments import nearest
from surefoot._display import number_of
from surefoot.data.bins import Binning
from surefoot.data.counts import Counts
from surefoot.data.step_layers import names_of
from surefoot.pipeline.settings import Settings

NEAR = 3
"""How many similar names a hint lists."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StateNames:
    """The states of a log, found by the text of their values.

    Attributes
    ----------
    columns
        The state columns of the log.
    labels
        The label of each state, without the step that it may include; several columns make tuples.
    ids
        The state of each tuple of texts.
    loose
        The same with one spelling for equal numbers (3 and 3.0), if that is allowed and unique.
    bins
        Columns that were cut into bins: their states can also be found by a measurement.

    Examples
    --------
    >>> counts = Counts.from_arrays([[[3, 1]], [[0, 2]]])
    >>> names = StateNames.of(Settings(), counts)
    >>> names.columns, names.find(names.asked({"state": "1.0"})), names.find(("7",))
    (('state',), 1, None)
    """

    columns: tuple[str, ...]
    labels: tuple[Hashable, ...]
    ids: dict[tuple[str, ...], int]
    loose: dict[tuple[str, ...], int]
    bins: dict[str, Binning]

    @classmethod
    def of(cls, settings: Settings, counts: Counts, bins: Sequence[Binning] = ()) -> "StateNames":
        """Return the states of the counts, without states that surefoot added."""
        columns = settings.columns.state
        own = range(counts.num_states) if counts.state_labels is None else counts.state_labels
        labels: tuple[Hashable, ...] = tuple(own)
        unseen = None if counts.unseen is None else labels[counts.unseen]
        if settings.by_step:
            labels = names_of(labels)[0]
        ids = {
            tuple(map(str, parts)): i
            for i, label in enumerate(labels)
            if len(parts := _parts(label, len(columns))) == len(columns) and label != unseen
        }
        spelled = [tuple(map(_spelled, key)) for key in ids]
        often = Counter(spelled if settings.labels != "text" else ())
        loose = {key: i for key, i in zip(spelled, ids.values(), strict=True) if often[key] == 1}
        own_bins = {one.column: one for one in bins}
        return cls(columns=columns, labels=labels, ids=ids, loose=loose, bins=own_bins)

    def asked(self, given: Any) -> tuple[str, ...]:
        """Return the values of a state in the order of the columns, as text.

        ``given`` maps columns to values, or is one value, or a tuple in the order of the columns.
        """
        if not isinstance(given, Mapping):
            values = given if isinstance(given, tuple | list) else (given,)
            if len(values) != len(self.columns):
                raise ValueError(
                    f"a state of this run has {number_of(len(self.columns), 'column')} "
                    f"({', '.join(self.columns)}), {len(values)} given."
                )
            given = dict(zip(self.columns, values, strict=True))
        for name in given:
            if name not in self.columns:
                raise ValueError(
                    f"there is no state column {name!r}; this run has "
                    f"{', '.join(map(repr, self.columns))}.{nearest(name, self.columns)}"
                )
        missing = [name for name in self.columns if name not in given]
        if missing:
            raise ValueError(
                f"a state of this run has the columns {', '.join(self.columns)}; "
                f"{', '.join(missing)} was not given."
            )
        return tuple(self._text(name, given[name]) for name in self.columns)

    def _text(self, column: str, value: Any) -> str:
        """Return a value as text; a measurement becomes the name of its bin."""
        own = self.bins.get(column)
        plain = value.strip() if isinstance(value, str) else value
        return str(plain if own is None else own.label(plain))

    def find(self, texts: tuple[str, ...]) -> int | None:
        """Return the state with these values; None if the log never shows it."""
        found = self.ids.get(texts)
        return self.loose.get(tuple(map(_spelled, texts))) if found is None else found

    def label(self, state: int) -> Hashable:
        """Return the label of a state, by which policies are keyed."""
        return self.labels[state]

    def parts(self, state: int) -> tuple[Hashable, ...]:
        """Return the values of a state, by column."""
        return _parts(self.labels[state], len(self.columns))

    def hint(self, texts: tuple[str, ...]) -> str:
        """Return which values of an unknown state the log does not know, with similar ones."""
        known = [sorted({key[i] for key in self.ids}) for i in range(len(self.columns))]
        strange = [i for i, text in enumerate(texts) if text not in known[i]]
        if not strange and len(self.columns) > 1:
            return "It knows each of these values, but never together."
        told = []
        for i in strange:
            near = difflib.get_close_matches(texts[i], known[i], n=NEAR)
            own = f"{self.columns[i]} {texts[i]!r} is new to it"
            told.append(f"{own} (near: {', '.join(map(repr, near))})." if near else f"{own}.")
        return " ".join(told)


def _parts(label: Hashable, columns: int) -> tuple[Hashable, ...]:
    return label if columns > 1 and isinstance(label, tuple) else (label,)


def _spelled(text: str) -> str:
    """Return numbers in one spelling, and other text unchanged."""
    try:
        return repr(float(text))
    except ValueError:
        return text


def plain_label(label: Any) -> Any:
    """Convert a label to what JSON can hold: several columns become a list.

    Examples
    --------
    >>> plain_label(("old", 3))
    ['old', 3]
    """
    if isinstance(label, tuple):
        return [plain_label(part) for part in label]
    return label if isinstance(label, str | int | float | None) else str(label)
