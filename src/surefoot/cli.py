"""The command line: parse, call, print.

Exit codes are listed in docs/command-line.md and in `ExitCode`.
"""

from collections.abc import Sequence
from typing import Annotated

import typer

from surefoot._version import __version__
from surefoot.commands.catalogue import OPTIONS
from surefoot.commands.command import Debug, Json, Quiet, run_app
from surefoot.commands.console import Output
from surefoot.commands.group import PLAIN, LazyGroup

app = typer.Typer(
    name="surefoot",
    cls=LazyGroup,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    **PLAIN,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"surefoot {__version__}")
        raise typer.Exit


@app.callback()
def _shared(
    context: typer.Context,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
    version: Annotated[  # noqa: ARG001  (the callback answers it)
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help=OPTIONS["--version"]),
    ] = False,
) -> None:
    context.obj = Output(json=json, quiet=quiet, debug=debug)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return int(run_app(app, arguments))
