"""``surefoot domains``: the benchmark domains, listed or written to a file."""

from pathlib import Path
from typing import Annotated

import typer

from surefoot.commands.command import check_new, command, examples
from surefoot.commands.console import Output, table
from surefoot.commands.group import PLAIN
from surefoot.commands.options import Force


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="The benchmark domains.", no_args_is_help=True, **PLAIN)
    command(group, "list", epilog=examples("surefoot domains list"))(list_domains)
    command(
        group, "export", epilog=examples("surefoot domains export machine machine.csv")
    )(export_domain)  # fmt: skip
    app.add_typer(group, name="domains")


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


def export_domain(
    output: Output,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="One of those that 'domains list' shows.")
    ],
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="A file ending in .csv, .csv.gz or .npz.")
    ],
    force: Force = False,
) -> None:
    """Write the true model of a domain to a file."""
    from surefoot.domains.catalogue import make_domain
    from surefoot.model.files import write_mdp

    check_new(path, force=force)
    mdp = make_domain(name).mdp
    write_mdp(mdp, path)
    output.result(
        {"name": name, "path": str(path), "discount": mdp.discount},
        f"Wrote {name} to {path}. Its discount is {mdp.discount:g}; the first state is uniform.",
    )
