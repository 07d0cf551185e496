"""The section of a report about what to measure next: shares of the doubt, by row."""

import numpy as np

from surefoot._rounding import near_text
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.headlines import amount_text
from surefoot.certificates.row_doubt import RowDoubt, row_doubt
from surefoot.data.side_files import label_text
from surefoot.pipeline.model import Model
from surefoot.pipeline.plan_lines import PlanLine, plan_lines
from surefoot.report.page import DoubtRow

SAMPLES, SHOWN = 100, 6
"""The number of samples to allocate, and the number of lines to show."""
MOST_ENTRIES = 200_000
"""Larger models are left out: no row of theirs has a share worth listing."""
LEAST_SHARE = 0.01
"""Rows with less of the doubt are not listed."""


def measure_next(model: Model, certificate: Certificate) -> tuple[str, list[DoubtRow]]:
    """Return how to read the shares, and the rows with the largest shares; empty if unknown."""
    if not model.bayesian or model.mdp.num_entries > MOST_ENTRIES:
        return "", []
    rng = np.random.default_rng([model.settings.seed, 14])
    doubt = row_doubt(model.posterior, model.mdp, certificate.policy, rng, delta=certificate.delta)
    lines = [one for one in plan_lines(model, doubt, SAMPLES) if one.share >= LEAST_SHARE]
    lines = sorted(lines, key=lambda one: -one.share)[:SHOWN]
    if not lines:
        return "", []
    largest = lines[0].share
    return _words(doubt), [_row(one, largest, certificate.unit) for one in lines]


def _words(doubt: RowDoubt) -> str:
    told = (
        "States and actions of the rule by their share of the doubt about its total, and how to "
        f"allocate {SAMPLES} more tries so that the promise gains most."
    )
    return " ".join((told, *(found.text for found in doubt.findings)))


def _row(line: PlanLine, largest: float, unit: str | None) -> DoubtRow:
    when = "" if line.step is None else f" at step {line.step}"
    off = amount_text(near_text(line.amount, 3), unit)
    tries = f"try it {line.tries} more times" if line.tries != 1 else "try it once more"
    return DoubtRow(
        words=f"{label_text(line.action)} in {label_text(line.state)}{when}",
        amount=f"{line.share:.0%}",
        width=round(100 * line.share / largest, 1),
        without=f"tried {line.visits:,.6g} times, moves the promise by {off}; "
        f"{tries if line.tries else 'no further tries yet'}",
    )
