"""How a log is written, as far as the user says so."""

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from surefoot.data.bins import Binning, as_binning

DECIMALS = (".", ",")


@dataclass(frozen=True, kw_only=True)
class LogFormat:
    """How to read a log.

    Attributes
    ----------
    decimal
        ``"."`` or ``","``: the decimal mark of numbers; None: detected.
    date_format
        How the dates of steps are written, as in ``"%d.%m.%Y"``; None: detected.
    encoding
        How text files are encoded, as in ``"cp1252"``; None: detected.
    sheet
        The sheet of a spreadsheet; None: its only one.
    table, query
        What to read from a database: a table, or the rows of a SELECT; None: its only table.
    bins
        Columns of numbers that are cut into bins.

    Examples
    --------
    >>> LogFormat(decimal=";")
    Traceback (most recent call last):
    ...
    ValueError: decimal=';'; it must be '.' or ','.
    """

    decimal: str | None = None
    date_format: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    table: str | None = None
    query: str | None = None
    bins: tuple[Binning, ...] = ()

    def __post_init__(self) -> None:
        if self.decimal not in (None, *DECIMALS):
            raise ValueError(f"decimal={self.decimal!r}; it must be '.' or ','.")
        if self.date_format is not None and "%" not in self.date_format:
            raise ValueError(
                f"date_format={self.date_format!r}; write it with %d (day), %m (month), %Y (year), "
                "%H, %M and %S, as in '%d.%m.%Y'."
            )
        if self.encoding is not None:
            _check_encoding(self.encoding)
        if self.table is not None and self.query is not None:
            raise ValueError("table= and query= both say what to read from a database. Give one.")

    @classmethod
    def of(cls, *, bins: Any = (), **options: Any) -> "LogFormat":
        """Return the format that the options of a reader describe."""
        listed: Sequence[Any] = (bins,) if isinstance(bins, (str, Binning)) else tuple(bins)
        return cls(bins=tuple(map(as_binning, listed)), **options)


def _check_encoding(name: str) -> None:
    try:
        known = codecs.lookup(name)._is_text_encoding
    except LookupError:
        known = False
    if not known:
        raise ValueError(
            f"encoding={name!r} is not known. Common ones are 'utf-8', 'cp1252' (Windows), "
            "'utf-16' and 'latin-1'."
        )
