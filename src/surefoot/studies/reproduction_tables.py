"""The reproduction as tables: for the terminal, Markdown and CSV."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from surefoot._atomic import replacing
from surefoot.studies.published import IMPROVEMENT, SUMMARY_METHODS, Method
from surefoot.studies.reproduction import Line, Reproduction, Spread

NO_GUARANTEE = "no guarantee"
TITLES = {
    "published": "published",
    "paper": f"paper's rules ({NO_GUARANTEE})",
    "valid": "valid rules",
}
Row = tuple[str, ...]
Table = tuple[str, Row, list[Row]]
"""A title, column titles, and rows."""


def tables(found: Reproduction) -> list[Table]:
    """Return all tables: guarantees, normalised losses, improvements, times."""
    made = [_guarantees(found), _losses(found), _improvements(found), _times(found)]
    return [table for table in made if table[2]]


def _guarantees(found: Reproduction) -> Table:
    settings = found.request.settings
    certified = any(line.certificate is not None for line in found.lines)
    head = ("domain", "method", "delta", *(TITLES[column] for column in found.columns))
    rows = []
    for line in found.lines:
        cells = [_number(line.published), *(_spread(line.ours.get(name)) for name in settings)]
        if certified:
            cells.append(_spread(line.certificate))
        rows.append((line.domain, line.method.title, f"{line.delta:g}", *cells))
    title = f"Guaranteed returns, mean ± sd over {found.request.seeds} data sets"
    return title, (*head, *(["certificate"] if certified else [])), rows


def _losses(found: Reproduction) -> Table:
    delta = min(found.request.deltas)
    by_place = {(ln.domain, ln.method): ln for ln in found.lines if ln.delta == delta}
    head = ("basis", "method", *(f"{d}: {c}" for d in found.request.domains for c in found.columns))
    rows = []
    for basis in found.request.bases:
        for norm, weights in SUMMARY_METHODS:
            method = Method(basis, norm, weights)
            lines = [by_place[domain, method] for domain in found.request.domains]
            losses = [_decimal(line.loss(column)) for line in lines for column in found.columns]
            rows.append((basis, method.title, *losses))
    return f"Normalised losses (nominal - guarantee)/|nominal|, delta {delta:g}", head, rows


def _improvements(found: Reproduction) -> Table:
    head = ("basis", "norms", "printed", *found.columns)
    rows = []
    for basis in found.request.bases:
        for title, norms in (("L1", ("l1",)), ("L-infinity", ("linf",)), ("both", ("l1", "linf"))):
            ratios = [_decimal(found.improvement(column, basis, norms)) for column in found.columns]
            printed = f"{IMPROVEMENT[basis]:g}" if title == "both" else ""
            rows.append((basis, title, printed, *ratios))
    names = ", ".join(found.request.domains)
    return f"Geometric mean of loss(uniform) / loss(analytic) over {names}", head, rows


def _times(found: Reproduction) -> Table:
    stages = ("data", "draws", "set", "solve")
    rows = [
        (domain, setting, *(f"{seconds.get(stage, 0.0):.2f}" for stage in stages))
        for (domain, setting), seconds in found.seconds.items()
    ]
    return "Seconds by stage, all data sets together", ("domain", "setting", *stages), rows


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _spread(spread: Spread | None) -> str:
    if spread is None:
        return "-"
    rounding = 1e-9 * abs(spread.mean)
    spread_sd = spread.sd if spread.sd > rounding else 0.0
    sd = f"{spread_sd:.0f}" if abs(spread.mean) >= 1000 else f"{spread_sd:.2g}"
    return f"{_number(spread.mean)} ± {sd}" if spread.data_sets > 1 else _number(spread.mean)


def markdown_lines(found: Reproduction) -> Iterator[str]:
    """Yield the tables as Markdown."""
    yield "# Reproduction of the published tables"
    yield ""
    yield (
        f"Columns under the paper's rules come with {NO_GUARANTEE}: with 20 draws its order "
        "statistic is the largest of them, whatever delta is."
    )
    for title, head, rows in tables(found):
        yield ""
        yield f"## {title}"
        yield ""
        yield from markdown_table(head, rows)


def markdown_table(head: Row, rows: Sequence[Row]) -> Iterator[str]:
    """Yield one table as Markdown.

    Examples
    --------
    >>> list(markdown_table(("a", "b"), [("1", "2")]))
    ['| a | b |', '|---|---|', '| 1 | 2 |']
    """
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield f"| {' | '.join(row)} |"


CSV_COLUMNS = (
    "domain", "basis", "norm", "weights", "delta", "column", "guaranteed", "nominal", "mean", "sd",
    "data_sets", "normalised_loss",
)  # fmt: skip


def csv_rows(found: Reproduction) -> Iterator[tuple[object, ...]]:
    """Yield one row per domain, method, delta and column, with all digits."""
    for line in found.lines:
        for column in found.columns:
            spread = _column(line, column)
            if spread is not None:
                yield (
                    line.domain, *line.method, line.delta, column,
                    "yes" if column == "valid" else "no", line.nominal, spread.mean, spread.sd,
                    spread.data_sets, line.loss(column),
                )  # fmt: skip


def _column(line: Line, column: str) -> Spread | None:
    if column != "published":
        return line.ours.get(column)
    if line.published is None:
        return None
    return Spread(mean=line.published, sd=0.0, data_sets=1)


def write_tables(found: Reproduction, folder: Path) -> list[Path]:
    """Write ``reproduction.csv`` and ``reproduction.md``; return their paths."""
    comma, text = folder / "reproduction.csv", folder / "reproduction.md"
    with replacing(comma, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(CSV_COLUMNS)
        writer.writerows(csv_rows(found))
    with replacing(text, "w", encoding="utf-8") as file:
        file.write("\n".join(markdown_lines(found)) + "\n")
    return [comma, text]
