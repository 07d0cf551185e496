"""The command line: parse, call, print.

Exit codes: 0 fine, 1 bad input, 2 wrong usage, 3 a certificate does not verify, 4 stopped early
with a valid result, 130 interrupted.
"""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surefoot._version import __version__
from surefoot.command import Debug, ExitCode, Json, Quiet, command, run_app
from surefoot.console import Output, table

if TYPE_CHECKING:
    from surefoot.solvers.solution import Solution

PLAIN: dict[str, Any] = {"rich_markup_mode": None, "pretty_exceptions_enable": False}
"""Without these two the help takes three times as long."""

app = typer.Typer(
    name="surefoot",
    help="From a log of decisions to a policy and a certified lower bound on its return.",
    epilog="Exit codes: 0 fine, 1 bad input, 2 wrong usage, 3 a certificate does not verify, "
    "4 stopped early with a valid result, 130 interrupted.",
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


@command(app)
def demo(output: Output) -> ExitCode:
    """Show on RiverSwim what doubt about the model costs, with certified bounds."""
    from surefoot._rounding import lower_text, upper_text
    from surefoot.demo import BUDGETS, solve_demo

    _announce_compiling(output)
    rows = []
    for budget in BUDGETS:
        with output.stage(f"RiverSwim, L1 budget {budget:g}") as stage:
            rows.append(solve_demo(budget, progress=stage.sweep))
    mdp = rows[0].mdp
    output.result(
        {
            "domain": "riverswim",
            "discount": mdp.discount,
            "rows": [
                {
                    "budget": row.budget,
                    "nominal_policy": _solution_facts(row.nominal),
                    "robust_policy": _solution_facts(row.robust),
                }
                for row in rows
            ],
        },
        f"RiverSwim: {mdp.num_states} states, discount {mdp.discount:g}. Nature may move half the "
        "budget of probability in each row.\n",
        table(
            (
                "\nbudget",
                "nominal policy\nat least",
                "robust policy\nat least",
                "any policy\nat most",
                "what the robust\npolicy does",
            ),
            [
                (
                    f"{row.budget:g}",
                    lower_text(row.nominal.return_lower),
                    lower_text(row.robust.return_lower),
                    upper_text(row.robust.return_upper),
                    _in_runs(_action_labels(row.robust)),
                )
                for row in rows
            ],
        ),
        "\nThe numbers are expected discounted returns in the worst model of the set. They are\n"
        "certified bounds: they hold however the solver went, rounding included.",
    )
    return _exit_code(*(s for row in rows for s in (row.nominal, row.robust)), output=output)


@command(domains, "list")
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


@command(domains, "export")
def export_domain(
    output: Output,
    name: Annotated[str, typer.Argument(help="One of those that 'domains list' shows.")],
    path: Annotated[Path, typer.Argument(help="A file ending in .csv, .csv.gz or .npz.")],
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


def _announce_compiling(output: Output) -> None:
    """Explain why the first run takes longer than those after it."""
    from surefoot._compile import cache_directory

    if not any(cache_directory().rglob("*.nbc")):  # what Numba calls compiled code
        output.note("First run: the numerical kernels are compiled now, once (half a minute).")


def _solution_facts(solution: "Solution") -> dict[str, Any]:
    return {
        "return_lower": solution.return_lower,
        "return_upper": solution.return_upper,
        "error_bound": solution.error_bound,
        "iterations": solution.iterations,
        "status": solution.status.name,
        "policy": _action_labels(solution),
    }


def _action_labels(solution: "Solution") -> list[Any]:
    """Return the action of each state, by its label where it has one."""
    labels = solution.mdp.action_labels
    return [int(a) if labels is None else labels[a] for a in solution.policy]


def _in_runs(actions: Sequence[Any]) -> str:
    """Return "left in 0-3, right in 4-5" for the actions of the states in order."""
    parts, first = [], 0
    for action, group in groupby(actions):
        last = first + len(list(group)) - 1
        parts.append(f"{action} in {first}" if first == last else f"{action} in {first}-{last}")
        first = last + 1
    return ", ".join(parts)


def _exit_code(*solutions: "Solution", output: Output) -> ExitCode:
    """Return 4, and say why, if any solve stopped before its tolerance."""
    for solution in solutions:
        if not solution.converged:
            output.note(solution.status.message)
            return ExitCode.STOPPED_EARLY
    return ExitCode.OK


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return int(run_app(app, arguments))
