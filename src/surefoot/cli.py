"""The command line: parse, call, print.

Exit codes are listed in docs/command-line.md and in `ExitCode`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from surefoot._version import __version__
from surefoot.commands import (
    checking,
    decide,
    doctor,
    export,
    plan,
    reproducing,
    solving,
    studying,
    what_if,
)
from surefoot.commands.command import Debug, Json, Quiet, command, examples, run_app
from surefoot.commands.console import Output, table

PLAIN: dict[str, Any] = {"rich_markup_mode": None, "pretty_exceptions_enable": False}
"""Without these two the help takes three times as long."""

app = typer.Typer(
    name="surefoot",
    help="From a log of decisions to a policy and a certified lower bound on its return.",
    epilog="Start with 'surefoot demo', then 'surefoot solve --help'.\n\nExit codes: 0 fine, 1 bad "
    "input, 2 wrong usage, 3 something does not hold, 4 stopped early (with --strict), 70 a bug, "
    "130 interrupted.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    **PLAIN,
)
domains = typer.Typer(help="The benchmark domains.", no_args_is_help=True, **PLAIN)
app.add_typer(domains, name="domains")


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
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    context.obj = Output(json=json, quiet=quiet, debug=debug)


solving.register(app)
checking.register(app)
decide.register(app)
what_if.register(app)
plan.register(app)
export.register(app)
studying.register(app)
reproducing.register(app)
doctor.register(app)


@command(domains, "list", epilog=examples("surefoot domains list"))
def list_domains(output: Output) -> None:
    """List the domains."""
    from surefoot.domains.catalogue import DOMAINS

    facts = []
    for name, (make, about) in DOMAINS.items():
        try:
            mdp = make().mdp
        except ImportError as problem:  # a domain of an extra that is not installed
            output.note(str(problem))
            continue
        size = {"states": mdp.num_states, "actions": mdp.num_actions, "entries": mdp.num_entries}
        facts.append({"name": name, **size, "discount": mdp.discount, "about": about})
    output.result(facts, table(tuple(facts[0]), [tuple(fact.values()) for fact in facts]))


@command(domains, "export", epilog=examples("surefoot domains export machine machine.csv"))
def export_domain(
    output: Output,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="One of those that 'domains list' shows.")
    ],
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="A file ending in .csv, .csv.gz or .npz.")
    ],
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write the true model of a domain to a file."""
    from surefoot.domains.catalogue import make_domain
    from surefoot.model.files import write_mdp

    if path.exists() and not force:
        raise ValueError(f"{path} exists already. Choose another name, or replace it with --force.")
    mdp = make_domain(name).mdp
    write_mdp(mdp, path)
    output.result(
        {"name": name, "path": str(path), "discount": mdp.discount},
        f"Wrote {name} to {path}. Its discount is {mdp.discount:g}; the first state is uniform.",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return int(run_app(app, arguments))
