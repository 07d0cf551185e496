"""The reproduction as tables for the terminal, Markdown and CSV."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from surefoot._atomic import replacing
from surefoot.studies.data_set import RELATIVE_TOLERANCE
from surefoot.studies.published import (
    IMPROVEMENT,
    NOMINAL,
    NORM_TITLES,
    NORMS,
    SUMMARY_DELTA,
    SUMMARY_METHODS,
    Method,
)
from surefoot.studies.reproduction import PublishedLine, Reproduction, Spread
from surefoot.studies.table import Row, Table, markdown_section, number_text

NO_GUARANTEE = "no guarantee"
TITLES = {
    "published": "published",
    "paper": f"paper's rules ({NO_GUARANTEE})",
    "bernstein": f"paper's rules, Bernstein ({NO_GUARANTEE})",
    "valid": "valid rules",
}
SUMMARY_TITLES = {"printed": "tables 1 and 2", **TITLES, "published": "from the appendix"}
"""Published losses come in two versions, which do not always agree."""


def tables(found: Reproduction) -> list[Table]:
    """Return all tables: guarantees, normalised losses, improvements, gains, times."""
    made = [guarantees(found), losses(found), improvements(found), gains(found), times(found)]
    return [table for table in made if table.rows]


def guarantees(found: Reproduction) -> Table:
    """Return the guaranteed returns of every domain, method and delta."""
    head = ("domain", "method", "delta", *(TITLES[column] for column in found.columns))
    rows = []
    for line in found.lines:
        ours = [_spread(line.ours.get(name)) for name in found.columns[1:]]
        place = (line.domain, line.method.title, f"{line.delta:g}")
        rows.append((*place, number_text(line.published), *ours))
    title = f"Guaranteed returns, mean ± sd over {found.request.seeds} data sets"
    return Table(title, head, rows)


def losses(found: Reproduction) -> Table:
    """Return the losses of tables 1 and 2: as printed, as the appendix implies, and ours."""
    columns = ("printed", *found.columns)
    head = ("domain", "method", *(SUMMARY_TITLES[column] for column in columns))
    rows = []
    for basis in found.request.bases:
        for domain in found.request.names:
            for norm, weights in SUMMARY_METHODS:
                line = found.line(domain, Method(basis, norm, weights))
                if line is not None:
                    numbers = (_decimal(line.loss(column)) for column in columns)
                    rows.append((domain, line.method.title, *numbers))
    title = f"Normalised losses (nominal - guarantee)/|nominal|, delta {found.delta:g}"
    return Table(title, head, rows)


def improvements(found: Reproduction) -> Table:
    """Return our geometric means next to the two that the paper prints."""
    columns = ("printed", *found.columns)
    head = ("basis", "norms", "printed", *(SUMMARY_TITLES[column] for column in columns))
    as_printed = set(found.request.names) == set(NOMINAL) and found.delta == SUMMARY_DELTA
    rows = []
    for basis in found.request.bases:
        for norms in (*((norm,) for norm in NORMS), NORMS):
            ratios = [_decimal(found.improvement(column, basis, norms)) for column in columns]
            # The two numbers of the paper are those of its L1 rows, over its five domains.
            printed = f"{IMPROVEMENT[basis]:g}" if as_printed and norms == ("l1",) else ""
            title = "both" if len(norms) > 1 else NORM_TITLES[norms[0]]
            rows.append((basis, title, printed, *ratios))
    names = ", ".join(found.request.names)
    title = f"Geometric mean of loss(uniform) / loss(analytic) over {names}, delta {found.delta:g}"
    return Table(title, head, rows)


def gains(found: Reproduction) -> Table:
    """Return by how much analytic weights change guarantees, with remarks on the extremes."""
    head = ("domain", "sets", *(TITLES[column] for column in found.columns))
    rows: list[Row] = []
    remarks: list[str] = []
    for basis in found.request.bases:
        by_column = {column: _gains(found, column, basis) for column in found.columns}
        for place in dict.fromkeys(place for own in by_column.values() for place in own):
            rows.append((*place, *(_percent(own.get(place)) for own in by_column.values())))
        remarks += [
            _extremes(f"{TITLES[column]}, {basis}", own) for column, own in by_column.items() if own
        ]
    title = f"What analytic weights change, in % of the uniform guarantee, delta {found.delta:g}"
    return Table(title, head, rows, tuple(remarks))


def _gains(found: Reproduction, column: str, basis: str) -> dict[Row, float]:
    """Return the gains of one column, by domain and sets."""
    return {
        (domain, Method(basis, norm, "").sets): gain
        for domain in found.request.names
        for norm in NORMS
        if (gain := found.gain(column, domain, basis, norm)) is not None
    }


def _extremes(what: str, gain: dict[Row, float]) -> str:
    low, high = min(gain, key=gain.__getitem__), max(gain, key=gain.__getitem__)
    ends = (f"{_percent(gain[place])} ({', '.join(place)})" for place in (low, high))
    return f"{what}: analytic weights change guarantees by {' to '.join(ends)}."


def times(found: Reproduction) -> Table:
    """Return the seconds by stage."""
    stages = ("data", "draws", "set", "solve")
    rows = [
        (domain, setting, *(f"{seconds.get(stage, 0.0):.2f}" for stage in stages))
        for (domain, setting), seconds in found.seconds.items()
    ]
    return Table("Seconds by stage, all data sets together", ("domain", "setting", *stages), rows)


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{round(100 * share):+d}%"


def _spread(spread: Spread | None) -> str:
    if spread is None:
        return "-"
    rounding = RELATIVE_TOLERANCE * abs(spread.mean)  # the solver's tolerance
    spread_sd = spread.sd if spread.sd > rounding else 0.0
    sd = f"{spread_sd:.0f}" if abs(spread.mean) >= 1000 else f"{spread_sd:.2g}"
    mean = number_text(spread.mean)
    return f"{mean} ± {sd}" if spread.data_sets > 1 else mean


def markdown_lines(found: Reproduction, others: Sequence[Table] = ()) -> Iterator[str]:
    """Yield the tables as Markdown, followed by ``others``."""
    yield "# Reproduction of the published tables"
    yield ""
    yield (
        f"Columns under the paper's rules come with {NO_GUARANTEE}: with 20 draws its order "
        "statistic is the largest of them, whatever delta is."
    )
    for table in (*tables(found), *others):
        yield from markdown_section(table)


CSV_COLUMNS = (
    "domain", "basis", "norm", "weights", "delta", "column", "guaranteed", "nominal", "mean", "sd",
    "data_sets", "normalised_loss",
)  # fmt: skip


def csv_rows(found: Reproduction) -> Iterator[tuple[object, ...]]:
    """Yield one row per domain, method, delta and column, with all digits."""
    for line in found.lines:
        if (printed := line.loss("printed")) is not None:  # table 1 or 2 prints only a loss
            yield (
                line.domain, *line.method, line.delta, "printed", "no", None, None, None, None,
                printed,
            )  # fmt: skip
        for column in found.columns:
            spread = _column(line, column)
            if spread is not None:
                yield (
                    line.domain, *line.method, line.delta, column,
                    "yes" if column == "valid" else "no", line.nominal, spread.mean, spread.sd,
                    spread.data_sets, line.loss(column),
                )  # fmt: skip


def _column(line: PublishedLine, column: str) -> Spread | None:
    if column != "published":
        return line.ours.get(column)
    if line.published is None:
        return None
    return Spread(mean=line.published, sd=0.0, data_sets=1)


def write_tables(found: Reproduction, folder: Path, others: Sequence[Table] = ()) -> list[Path]:
    """Write ``reproduction.csv`` and ``reproduction.md``; return their paths."""
    comma, text = folder / "reproduction.csv", folder / "reproduction.md"
    with replacing(comma, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(CSV_COLUMNS)
        writer.writerows(csv_rows(found))
    with replacing(text, "w", encoding="utf-8") as file:
        file.write("\n".join(markdown_lines(found, others)) + "\n")
    return [comma, text]
