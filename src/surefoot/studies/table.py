"""Tables of the studies, for the terminal, Markdown and HTML pages."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

Row = tuple[str, ...]


class Table(NamedTuple):
    """A title, column titles, rows, and remarks below."""

    title: str
    head: Row
    rows: Sequence[Row]
    remarks: tuple[str, ...] = ()


def markdown_table(head: Row, rows: Sequence[Row], *, words: int | None = None) -> Iterator[str]:
    """Yield one table as Markdown; columns after the first ``words`` are aligned to the right.

    Examples
    --------
    >>> list(markdown_table(("a", "b"), [("1", "2")]))
    ['| a | b |', '|---|---|', '| 1 | 2 |']
    >>> list(markdown_table(("a", "b"), [("1", "2")], words=1))[1]
    '|---|---:|'
    """
    left = len(head) if words is None else words
    yield markdown_row(head)
    yield "|" + "---|" * left + "---:|" * (len(head) - left)
    for row in rows:
        yield markdown_row(row)


def markdown_row(row: Row) -> str:
    """Return one line of a Markdown table.

    Examples
    --------
    >>> markdown_row(("machine", "-42"))
    '| machine | -42 |'
    """
    return f"| {' | '.join(row)} |"


def markdown_section(table: Table, *, level: int = 2) -> Iterator[str]:
    """Yield a table with its title as a heading and its remarks below."""
    yield from ("", f"{'#' * level} {table.title}", "")
    yield from markdown_table(table.head, table.rows)
    for remark in table.remarks:
        yield from ("", remark)


def number_text(value: float | None) -> str:
    """Return a number as tables show it; ``-`` for None.

    Examples
    --------
    >>> number_text(63080.09), number_text(-16.8136), number_text(None)
    ('63080', '-16.81', '-')
    """
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
