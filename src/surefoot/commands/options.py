"""The options that commands share; their names are those of `Settings`."""

import inspect
from collections.abc import Callable
from dataclasses import Field
from pathlib import Path
from typing import Annotated, Any

import typer

from surefoot.pipeline.setting import (
    COMPUTING,
    FILE,
    MODEL,
    OWN,
    PROMISE,
    READING,
    SEARCH,
    WORD,
    Setting,
    declared,
    kind_of,
)
from surefoot.pipeline.settings import Settings

SECTIONS = (OWN, PROMISE, READING, MODEL, SEARCH, COMPUTING)
"""Groups of options, in the order of the help."""

LogPath = Annotated[
    list[str] | None,
    typer.Argument(metavar="LOG", help="CSV or Parquet: a file, several, a folder or a glob."),
]
LogOrRun = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="LOG", help="A log, or a run folder whose counts and settings are used."
    ),
]
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")]
Config = Annotated[
    str | None,
    typer.Option("--config", metavar=FILE, help="TOML file of options, under the same names."),
]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", metavar="WHERE", help=declared(Settings)["cluster"][0].text),
]
Device = Annotated[
    str | None,
    typer.Option("--device", metavar=WORD, help=declared(Settings)["device"][0].text),
]
Force = Annotated[bool, typer.Option("--force", help="Replace what already exists.")]


def with_options(*sections: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Replace the ``**given`` of a command's signature by the options of some groups.

    Examples
    --------
    >>> @with_options(SEARCH)
    ... def search(output, **given): ...
    >>> list(inspect.signature(search).parameters)
    ['output', 'least_tries', 'allowed', 'forbidden', 'time_budget', 'search_steps']
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        keyword = inspect.Parameter.KEYWORD_ONLY
        own = list(inspect.signature(function).parameters.values())[:-1]
        added = [
            inspect.Parameter(name, keyword, default=None, annotation=_annotation(one, field))
            for section in SECTIONS
            if section in sections
            for name, (one, field) in declared(Settings).items()
            if one.section == section
        ]
        signature = inspect.Signature([*(p.replace(kind=keyword) for p in own), *added])
        function.__signature__ = signature  # type: ignore[attr-defined]
        return function

    return decorate


KINDS: dict[str, Any] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "tuple[str, ...]": list[str],
    "tuple[float, ...]": tuple[float, float],
}
"""The types of settings, as typer needs them."""


def _annotation(one: Setting, field: Field[Any]) -> Any:
    flag = f"--{field.name.replace('_', '-')}"
    kind = kind_of(field).removesuffix(" | None")
    if kind == "bool":
        flag = f"{flag}/--no-{field.name.replace('_', '-')}"
    default = default_text(one, field)
    return Annotated[
        KINDS[kind] | None,
        typer.Option(
            flag,
            help=f"{one.text} [{default}]" if default else one.text,
            metavar=one.metavar or None,
            show_default=False,
            rich_help_panel=None if one.section == OWN else one.section,
            autocompletion=_completion(one.words) if one.words else None,
        ),
    ]


def default_text(one: Setting, field: Field[Any]) -> str:
    """Return a default as shown in the help, or "" if there is nothing to show."""
    if one.otherwise or field.default in (None, (), False):
        return one.otherwise
    return f"{field.default:g}" if isinstance(field.default, float) else str(field.default)


def settings_table() -> str:
    """Return the table of docs/command-line.md: all options that are settings."""
    lines = ["| option | default | meaning |", "|---|---|---|"]
    for section in (*SECTIONS[1:], OWN):
        lines.append(f"| **{section}** | | |")
        lines += [
            f"| `--{name.replace('_', '-')}{f' {one.metavar}' if one.metavar else ''}` "
            f"| {default_text(one, field)} | {one.text} |"
            for name, (one, field) in declared(Settings).items()
            if one.section == section
        ]
    return "\n".join(lines) + "\n"


def _completion(words: tuple[str, ...]) -> Callable[[str], list[str]]:
    """Return a function that completes one of a few words in the shell."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


def settings_from(
    log: list[str] | None, config: str | None, given: dict[str, Any], base: str | None = None
) -> Settings:
    """Return the settings: defaults, overridden by an earlier run, the config file, the options."""
    from surefoot.pipeline.manifest import CONFIG, check_brought, settings_of, with_copies

    settings = Settings()
    if base is not None:
        settings = Settings.from_mapping({"log": []}, base, settings_of(Path(base)))
    if config is not None:
        settings = with_copies(Settings.from_toml(config, settings), Path(config))
        if Path(config).name == CONFIG:
            how = "repeat it from Python with surefoot.run(..., posterior=...)"
            check_brought(Path(config).parent, brought=False, how=how)
    options = {name: value for name, value in given.items() if value not in (None, [], ())}
    if log:
        options["log"] = log
    return Settings.from_mapping(options, "options", settings)
