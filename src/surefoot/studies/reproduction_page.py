"""The reproduction as one self-contained HTML page: tables, figures, Example 1."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surefoot._atomic import replacing
from surefoot.report.svg import svg_text
from surefoot.studies.example_one import FIGURE_WORDS, draw_example, example_one
from surefoot.studies.reproduction import PublishedLine, Reproduction
from surefoot.studies.reproduction_tables import NO_GUARANTEE, TITLES, tables
from surefoot.studies.table import Table

COLOURS = {
    "published": "0.2", "paper": "tab:orange", "bernstein": "tab:brown", "valid": "tab:blue"
}  # fmt: skip
MARKS = {"published": "x", "paper": "o", "bernstein": "^", "valid": "s"}

TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Reproduction of the published tables</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2) { text-align: left; }
svg { display: block; width: 100%; max-width: 56rem; }
.warning { border-left: 4px solid #c60; padding: .3rem 1rem; background: #fff6ec; }
</style>
</head>
<body>
<h1>Reproduction of the published tables</h1>
<p>Behzadian, Russel, Petrik and Ho, <em>Optimizing Percentile Criterion using Robust MDPs</em>
(AISTATS 2021), beside our numbers over {{ seeds }} data sets.</p>
<p class="warning">The columns under the paper's rules come with {{ no_guarantee }}. Most published
columns with optimised weights, not all, are reproduced by sets whose weights differ from those
their budgets were computed with; such sets do not hold what is claimed.</p>
{% for title, svg in figures %}<h2>{{ title }}</h2>
{{ svg | safe }}
{% endfor %}
{% for title, head, rows, remarks in tables %}<h2>{{ title }}</h2>
<table><thead><tr>{% for name in head %}<th>{{ name }}</th>{% endfor %}</tr></thead>
<tbody>{% for row in rows %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table>
{% for remark in remarks %}<p>{{ remark }}</p>
{% endfor %}{% endfor %}
</body>
</html>
"""


def page(found: Reproduction, others: Sequence[Table] = ()) -> str:
    """Return the page; ``others`` are shown after the tables of the paper."""
    from jinja2 import Environment

    figures = [
        (
            name,
            svg_text(_domain_figure(found, name), name, f"Guaranteed returns of {name}, by method"),
        )
        for name in found.request.names
    ]
    example = draw_example(example_one(), 400, np.random.default_rng(0))
    figures.append((f"Example 1: {FIGURE_WORDS}", svg_text(example, "example", FIGURE_WORDS)))
    return (
        Environment(autoescape=True)
        .from_string(TEMPLATE)
        .render(
            seeds=found.request.seeds, no_guarantee=NO_GUARANTEE, figures=figures,
            tables=[*tables(found), *others],
        )
    )  # fmt: skip


def write_page(found: Reproduction, folder: Path, others: Sequence[Table] = ()) -> Path:
    """Write ``reproduction.html``; return its path."""
    path = folder / "reproduction.html"
    with replacing(path, "w", encoding="utf-8") as file:
        file.write(page(found, others))
    return path


def _domain_figure(found: Reproduction, domain: str) -> Any:
    """Return a figure with dots for every method and delta: published, and ours with spread."""
    from matplotlib.figure import Figure

    deltas = found.request.deltas
    figure = Figure(figsize=(9.0, 3.4), layout="constrained")
    panels = figure.subplots(1, len(deltas), sharex=True, sharey=True, squeeze=False)[0]
    for axes, delta in zip(panels, deltas, strict=True):
        lines = [ln for ln in found.lines if (ln.domain, ln.delta) == (domain, delta)]
        for shift, column in enumerate(found.columns):
            _draw_column(axes, lines, column, 0.2 * (shift - 1))
        axes.axvline(lines[0].nominal, color="0.7", linestyle=":")
        axes.set_yticks(range(len(lines)), [line.method.title for line in lines])
        axes.set_title(f"delta {delta:g}", fontsize="medium")
        axes.set_xlabel("guaranteed return (dotted: nominal)")
    panels[0].invert_yaxis()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, fontsize="small", loc="outside upper right", ncols=3)
    return figure


def _draw_column(axes: Any, lines: Sequence[PublishedLine], column: str, shift: float) -> None:
    places, means, spreads = [], [], []
    for i, line in enumerate(lines):
        mean = line.guarantee(column)
        if mean is not None:
            places.append(i + shift)
            means.append(mean)
            spreads.append(line.ours[column].sd if column in line.ours else 0.0)
    axes.errorbar(
        means, places, xerr=spreads, color=COLOURS[column], fmt=MARKS[column], markersize=4,
        label=TITLES[column],
    )  # fmt: skip
