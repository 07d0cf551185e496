"""The options that commands share, once: their names are those of `Settings`."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from surefoot.pipeline.settings import CHOICES

if TYPE_CHECKING:
    from surefoot.pipeline.settings import Settings


class Option(NamedTuple):
    """An option of the command line; it is not given unless the user gives it."""

    name: str
    kind: Any
    metavar: str
    text: str


COLUMN, FILE, WORD, NUMBER, WHOLE = "COLUMN", "FILE", "WORD", "NUMBER", "N"

PROMISE: tuple[Option, ...] = (
    Option(
        "discount", float, NUMBER, "What next step's reward is worth today, below 1. [no default]"
    ),
    Option("delta", float, NUMBER, "Failure probability of the promise. [0.05]"),
    Option("eta", float, NUMBER, "Failure probability of the Monte Carlo. [0.001]"),
    Option("basis", str, WORD, "bayesian (given the prior) or frequentist (no prior). [bayesian]"),
    Option("norm", str, WORD, "Norm of the robust set: l1 or linf. [l1]"),
    Option("weights", str, WORD, "Weights of the robust set: uniform, analytic or socp. [uniform]"),
    Option(
        "kind",
        str,
        WORD,
        "Frequentist set: clopper_pearson, weighted_l1, hoeffding_l1, hoeffding_linf, bernstein_l1 "
        "or kl. [clopper_pearson]",
    ),
)
READING: tuple[Option, ...] = (
    Option("state", list[str], COLUMN, "The state; repeat for several columns. [state]"),
    Option("action", list[str], COLUMN, "The action; repeat for several columns. [action]"),
    Option("next_state", list[str], COLUMN, "The next state. [next_state, or the row after]"),
    Option("reward", str, COLUMN, "The reward. [reward]"),
    Option("costs", bool, "", "The reward column holds costs: less is better."),
    Option("reward_table", str, FILE, "Rewards by state, action and perhaps next_state."),
    Option("rewards", str, WORD, "How sure mean rewards are: fixed, normal, bounded. [by the log]"),
    Option(
        "reward_range",
        tuple[float, float],
        "LOW HIGH",
        "Lowest, highest reward possible. [as seen]",
    ),
    Option("episode", str, COLUMN, "Which rows belong together."),
    Option("step", str, COLUMN, "The order of the rows of an episode."),
    Option("terminal", str, COLUMN, "True where an episode ended by itself."),
    Option("count", str, COLUMN, "How many transitions a row stands for. [1]"),
    Option("missing", str, WORD, "Rows that lack a value: error or drop. [error]"),
    Option("labels", str, WORD, "Labels of a CSV: auto, or text to keep 01 apart from 1. [auto]"),
)
MODEL: tuple[Option, ...] = (
    Option(
        "support",
        str,
        "RULE",
        "Successors of a row: observed, action, all, unseen, or a file that lists them. [unseen]",
    ),
    Option(
        "unseen",
        str,
        WORD,
        "What was never observed leads to the worst state, or nowhere: worst, absorbing. [worst]",
    ),
    Option("unvisited", str, WORD, "Pairs never tried: drop, or prior to keep them. [drop]"),
    Option("min_visits", int, WHOLE, "Do not offer pairs tried fewer times. [0]"),
    Option(
        "initial",
        str,
        "RULE",
        "First state: episodes, uniform, or a CSV (state, probability). [by the log]",
    ),
    Option("prior", float, NUMBER, "Dirichlet parameter of every successor. [1]"),
)
SEARCH: tuple[Option, ...] = (
    Option("allowed", str, FILE, "CSV of the pairs (state, action) the policy may use. [all]"),
    Option("time_budget", float, "SECONDS", "Time for the search of a policy. [no limit]"),
)
COMPUTING: tuple[Option, ...] = (
    Option("draws", int, WHOLE, "Posterior draws for each bound. [chosen]"),
    Option("seed", int, WHOLE, "Seed of all random numbers. [0]"),
    Option("threads", int, WHOLE, "Use at most so many processors. [all]"),
)
GROUPS: dict[str, tuple[Option, ...]] = {
    "What is promised": PROMISE,
    "Columns of the log": READING,
    "The model": MODEL,
    "The search": SEARCH,
    "The computation": COMPUTING,
}
"""Sections of the help."""

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
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]


def with_options(
    *groups: tuple[Option, ...],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command that ends in ``**given`` the options of some groups.

    Examples
    --------
    >>> @with_options(SEARCH)
    ... def search(output, **given): ...
    >>> list(inspect.signature(search).parameters)
    ['output', 'allowed', 'time_budget']
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        keyword = inspect.Parameter.KEYWORD_ONLY
        own = list(inspect.signature(function).parameters.values())[:-1]
        added = [
            inspect.Parameter(
                option.name, keyword, default=None, annotation=_annotation(option, section)
            )
            for section, group in GROUPS.items()
            if group in groups
            for option in group
        ]
        signature = inspect.Signature([*(p.replace(kind=keyword) for p in own), *added])
        function.__signature__ = signature  # type: ignore[attr-defined]
        return function

    return decorate


def _annotation(option: Option, section: str) -> Any:
    flag = f"--{option.name.replace('_', '-')}"
    if option.kind is bool:
        flag = f"{flag}/--no-{option.name.replace('_', '-')}"
    words = CHOICES.get(option.name)
    return Annotated[
        option.kind | None,
        typer.Option(
            flag,
            help=option.text,
            metavar=option.metavar or None,
            show_default=False,
            rich_help_panel=section,
            autocompletion=None if words is None else _completion(words),
        ),
    ]


def _completion(words: tuple[str, ...]) -> Callable[[str], list[str]]:
    """Return what completes one of a few words in the shell."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


def settings_from(
    log: list[str] | None, config: str | None, given: dict[str, Any], base: str | None = None
) -> "Settings":
    """Return the settings: defaults, then an earlier run, the configuration file, the options."""
    from surefoot.pipeline.settings import Settings

    settings = Settings()
    if base is not None:
        settings = Settings.from_toml(Path(base) / "config.toml")
        settings = Settings.from_mapping({"log": []}, base, settings)
    if config is not None:
        settings = Settings.from_toml(config, settings)
    options = {name: value for name, value in given.items() if value not in (None, [], ())}
    if log:
        options["log"] = log
    return Settings.from_mapping(options, "options", settings)
