"""All studies on one command line: ``python -m surefoot.studies NAME``."""

from collections.abc import Callable
from typing import Any

import typer

from surefoot.studies import (
    brackets,
    certificate_coverage,
    example_one,
    mismatch_tables,
    plans,
    promises,
    set_coverage,
    support,
    tightness,
)

STUDIES: dict[str, Callable[..., Any]] = {
    "brackets": brackets.command,
    "certificate-coverage": certificate_coverage.command,
    "example-one": example_one.command,
    "mismatch": mismatch_tables.command,
    "planning": plans.command,
    "promises": promises.command,
    "set-coverage": set_coverage.command,
    "support": support.command,
    "tightness": tightness.command,
}
"""The studies by name; the docstring of each is its help. A refuted claim makes the exit code 1."""

app = typer.Typer(
    name="python -m surefoot.studies", add_completion=False, no_args_is_help=True,
    help="Studies that support the defaults and the promises.", pretty_exceptions_enable=False,
)  # fmt: skip
for name, study in STUDIES.items():
    app.command(name)(study)

if __name__ == "__main__":
    app()
