"""The job behind ``surefoot demo``: a factory's log of machines that wear.

Forty filling machines, two years of weekly notes: how worn each machine is, whether it ran on or
was repaired, and the profit of the week in thousands. When should a machine be repaired? The log is
simulated from the machine-replacement domain (Delage and Mannor 2010) with a crew that repairs by
feel.
"""

import csv
import shlex
from importlib.resources import files
from pathlib import Path

import numpy as np

from surefoot.pipeline.settings import Settings

MACHINES, WEEKS, SEED = 40, 104, 20
COLUMNS = ("machine", "week", "condition", "decision", "profit")
EARNED = 10.0
"""Profit of a week without trouble, in thousands."""
CREW = (0.03, 0.03, 0.05, 0.1, 0.25, 0.5, 0.7, 0.9, 0.9, 0.05)
"""How often the crew repairs in each condition."""

CONDITIONS = (*(f"wear {i}" for i in range(7)), "worn out", "long repair", "short repair")
DECISIONS = ("run", "repair")

STORY = (
    "A factory has 40 filling machines. For two years somebody noted every week how worn each one "
    "was, whether it ran on or was repaired, and the week's profit in thousands. When should a "
    "machine be repaired, and what may the factory count on?"
)


def log_path() -> Path:
    """Return the path of the bundled log.

    Examples
    --------
    >>> with log_path().open(encoding="utf-8") as file:
    ...     next(file).strip()
    'machine,week,condition,decision,profit'
    """
    return Path(str(files("surefoot").joinpath("data_files", "machines.csv")))


def demo_settings() -> Settings:
    """Return the settings of the demo: the log's column names and a weekly discount.

    Examples
    --------
    >>> demo_settings().discount
    0.95
    """
    return Settings(
        log=(str(log_path()),),
        state=("condition",),
        action=("decision",),
        reward="profit",
        episode="machine",
        step="week",
        discount=0.95,
        delta=0.05,
    )


def as_command(settings: Settings, out: Path) -> str:
    """Return the command line that does the same job, ready to copy.

    Examples
    --------
    >>> as_command(demo_settings(), Path("run")).splitlines()[-1].strip()
    '--discount 0.95 --delta 0.05 --out run'
    """
    return " \\\n    ".join(
        (
            f"surefoot solve {shlex.quote(settings.log[0])}",
            "--state condition --action decision --reward profit",
            "--episode machine --step week",
            f"--discount {settings.discount:g} --delta {settings.delta:g} "
            f"--out {shlex.quote(str(out))}",
        )
    )


def make_log() -> list[tuple[str, int, str, str, str]]:
    """Simulate the rows of the bundled log again and return them.

    Examples
    --------
    >>> make_log()[0]
    ('filler 01', 1, 'wear 0', 'run', '10')
    """
    from surefoot.domains.machine import REPAIR, RUN, machine_replacement

    mdp = machine_replacement().mdp
    rng = np.random.default_rng(SEED)
    rows = []
    for machine in range(1, MACHINES + 1):
        state = 0
        for week in range(1, WEEKS + 1):
            action = REPAIR if rng.random() < CREW[state] else RUN
            row = mdp.row_of(state, action)
            entries = slice(mdp.row_start[row], mdp.row_start[row + 1])
            reached = np.cumsum(mdp.probability[entries])
            drawn = min(int(np.searchsorted(reached, rng.random())), len(reached) - 1)
            entry = int(entries.start) + drawn
            profit = EARNED + float(mdp.reward[entry])
            name = f"filler {machine:02d}"
            rows.append((name, week, CONDITIONS[state], DECISIONS[action], f"{profit:g}"))
            state = int(mdp.successor[entry])
    return rows


def write_log(path: Path) -> None:
    """Write the log as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(make_log())
