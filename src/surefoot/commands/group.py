"""The group of all commands; the file of a command is imported when the command is called."""

import importlib
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from surefoot.commands.catalogue import COMMANDS, top_help

PLAIN: dict[str, Any] = {"rich_markup_mode": None, "pretty_exceptions_enable": False}
"""Options of every `typer.Typer`: without these two the help takes three times as long."""


class LazyGroup(TyperGroup):
    """A group that knows its commands only by name until one is called."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name, (_, text) in COMMANDS.items():
            self.add_command(TyperCommand(name, short_help=text))

    def get_help(self, ctx: Any) -> str:  # noqa: ARG002  (the text is known without a context)
        """Return the same help that `surefoot.__main__` prints without loading the parser."""
        return top_help()

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command by its name, and import it."""
        name, known, rest = super().resolve_command(ctx, args)
        return name, known and _imported(name), rest


def _imported(name: Any) -> Any:
    group = typer.Typer(**PLAIN)
    importlib.import_module(f"surefoot.commands.{COMMANDS[name][0]}").register(group)
    return get_group(group).commands[name]
