"""``surefoot inspect``: what a log holds, and what to worry about."""

from typing import Any

import typer

from surefoot.commands.command import command, examples
from surefoot.commands.console import Output
from surefoot.commands.options import Config, LogPath, settings_from, with_options
from surefoot.pipeline.setting import MODEL, READING


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app, "inspect",
        epilog=examples("surefoot inspect log.csv", "surefoot inspect 'logs/*.parquet' --json"),
    )(inspect)  # fmt: skip


@with_options(READING, MODEL)
def inspect(output: Output, log: LogPath = None, config: Config = None, **given: Any) -> None:
    """Show what a log holds: sizes, visits, rewards, checks, warnings."""
    from surefoot.pipeline.model import place, read_log
    from surefoot.pipeline.option_text import log_words

    settings = settings_from(log, config, given)
    with output.stage("Reading the log"):
        counts = read_log(settings)
        placed = place(settings, counts)
    found = [finding.mirrored() if settings.costs else finding for finding in placed.findings]
    summary = log_words(placed, costs=settings.costs)
    facts = {
        "transitions": float(counts.count.sum()),
        "states": counts.num_states,
        "actions": counts.num_actions,
        "pairs_tried": int((counts.visits > 0).sum()),
        "least_visits": float(counts.visits[counts.visits > 0].min()),
        "episodes": None if counts.log is None else counts.log.episodes,
        "checks": [
            {"name": check.name, "p_value": check.p_value, "sentence": check.sentence}
            for check in counts.checks
        ],
        "findings": [finding.to_mapping() for finding in found],
        "warnings": [finding.text for finding in found if finding.level == "warning"],
        "summary": summary,
    }
    output.result(facts, summary)
