"""The list of commands: in which file each one is, and its line in the help.

The file of a command is imported when the command is called; the help needs this list only.
"""

import importlib
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

COMMANDS: dict[str, tuple[str, str]] = {
    "solve": ("solve", "From a log to a policy, a promise and a report."),
    "demo": ("solve", "A complete job on a bundled log."),
    "inspect": ("inspect_log", "What a log holds, and what to worry about."),
    "certify": ("certify", "What may be promised about a policy you bring."),
    "compare": ("certify", "How much better one policy is than another."),
    "verify": ("verify", "Check the promise of a run again."),
    "report": ("report", "Write the report of a run again, or compare several."),
    "decide": ("decide", "What to do in a state, by the policy of a run."),
    "what-if": ("what_if", "What a run would promise with one setting changed."),
    "plan": ("plan", "Where the doubt comes from, and what to measure next."),
    "export": ("export", "The policy of a run as SQL or as a spreadsheet."),
    "coverage": ("coverage", "How often sentences are broken where the truth is known."),
    "reproduce": ("reproduce", "The paper's tables again, beside the published numbers."),
    "doctor": ("doctor", "What this machine offers, and how large a model it can handle."),
    "domains": ("domains", "The benchmark domains."),
}
"""Name of a command: its file in ``commands/``, and its line in the help, in the order shown."""

PLAIN: dict[str, Any] = {"rich_markup_mode": None, "pretty_exceptions_enable": False}
"""Options of every `typer.Typer`: without these two the help takes three times as long."""


class Catalogue(TyperGroup):
    """A group of commands that are known by name until one is called."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name, (_, text) in COMMANDS.items():
            self.add_command(TyperCommand(name, short_help=text))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command by its name, and import it."""
        name, known, rest = super().resolve_command(ctx, args)
        return name, known and _imported(name), rest


def _imported(name: Any) -> Any:
    group = typer.Typer(**PLAIN)
    importlib.import_module(f"surefoot.commands.{COMMANDS[name][0]}").register(group)
    return get_group(group).commands[name]
