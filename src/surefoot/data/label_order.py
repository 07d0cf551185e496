"""The order in which labels are shown: from a file, in the order of bins, else natural order."""

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from surefoot.data.bins import Binning
from surefoot.data.log_format import LogFormat
from surefoot.data.side_files import LabelColumns, parts_of, read_side_file


def natural_key(text: str) -> list[tuple[int, float, str]]:
    """Return a key that puts "wear 2" before "wear 10", and numbers before words.

    Examples
    --------
    >>> sorted(["wear 10", "broken", "wear 2"], key=natural_key)
    ['broken', 'wear 2', 'wear 10']
    """
    if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text):
        return [(0, float(text), "")]
    parts = re.split(r"([0-9]+)", text)
    return [(0, float(part), "") if part.isdecimal() else (1, 0.0, part) for part in parts if part]


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelOrder:
    """The order of states and actions.

    Attributes
    ----------
    columns
        The columns of states and actions.
    ranks
        For each column that has a given order, the position of each label.

    Examples
    --------
    >>> order = LabelOrder(ranks={"state": {"new": 0, "worn": 1, "broken": 2}})
    >>> sorted(["broken", "worn", "new"], key=order.state_key)
    ['new', 'worn', 'broken']
    """

    columns: LabelColumns = LabelColumns()  # noqa: RUF009  (frozen)
    ranks: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def state_key(self, label: Hashable) -> list[Any]:
        """Return the sort key of a state's label."""
        return self._key(label, self.columns.state)

    def action_key(self, label: Hashable) -> list[Any]:
        """Return the sort key of an action's label."""
        return self._key(label, self.columns.action)

    def _key(self, label: Hashable, columns: tuple[str, ...]) -> list[Any]:
        key = []
        for name, part in zip(columns, parts_of(label, len(columns)), strict=True):
            ranks = self.ranks.get(name, {})
            key.append((ranks.get(part, len(ranks)), natural_key(part)))
        return key


def read_order(
    path: str | None, columns: LabelColumns, bins: Sequence[Binning],
    labels: Mapping[str, Sequence[Hashable]], how: LogFormat,
) -> LabelOrder:  # fmt: skip
    """Return the order of labels, from a file (if given) and from the bins.

    Each column of the file lists the labels of that column of the log, first to last. Labels that
    it does not list come after, in natural order. ``labels`` are those of "state" and "action".
    """
    ranks: dict[str, dict[str, int]] = {
        one.column: {label: i for i, label in enumerate(one.labels)} for one in bins
    }
    if path is None:
        return LabelOrder(columns=columns, ranks=ranks)
    file = read_side_file(Path(path), how)
    names = {"state": columns.state, "action": columns.action}
    for name in file.header:
        what = next((w for w, own in names.items() if name in own or own == (w,) == (name,)), None)
        if what is None:
            file.check_columns([name for own in names.values() for name in own])
            continue
        known = {
            parts_of(label, len(names[what]))[names[what].index(name)] for label in labels[what]
        }
        listed = [(place, line[name]) for place, line in file.lines if line[name] != ""]
        for place, label in listed:
            if label not in known:
                shown = ", ".join(sorted(known, key=natural_key)[:20])
                raise ValueError(f"{place}: unknown {name} {label!r}; the log has {shown}.")
        ranks[name] = {label: i for i, label in reversed(list(enumerate(t for _, t in listed)))}
    return LabelOrder(columns=columns, ranks=ranks)
