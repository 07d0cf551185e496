"""The options that commands share, once: their names are those of `Settings`."""

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from surefoot.pipeline.settings import Settings

Option = tuple[str, Any, str]
"""Name, type and help of an option; it is not given unless the user gives it."""

READING: tuple[Option, ...] = (
    ("state", list[str], "Column of the state; repeat for several columns. [state]"),
    ("action", list[str], "Column of the action; repeat for several columns. [action]"),
    ("next_state", list[str], "Column of the next state. [next_state, or the row that follows]"),
    ("reward", str, "Column of the reward. [reward]"),
    ("costs", bool, "The reward column holds costs: less is better."),
    ("reward_table", str, "File of rewards by state, action and perhaps next_state."),
    ("rewards", str, "How sure mean rewards are: fixed, normal or bounded. [by the log]"),
    ("reward_range", tuple[float, float], "Lowest and highest reward possible. [as seen]"),
    ("episode", str, "Column that says which rows belong together."),
    ("step", str, "Column that orders the rows of an episode."),
    ("terminal", str, "Column that is true where an episode ended by itself."),
    ("count", str, "Column that says how many transitions a row stands for."),
    ("missing", str, "Rows that lack a value: error or drop. [error]"),
    ("labels", str, "Labels of a CSV: auto, or text to keep 01 apart from 1. [auto]"),
)
MODEL: tuple[Option, ...] = (
    (
        "support",
        str,
        "Successors of a row: observed, action, all, unseen, or a file that lists them. [unseen]",
    ),
    ("unvisited", str, "Pairs never tried: drop them, or leave them to the prior. [drop]"),
    ("min_visits", int, "Do not offer pairs tried fewer times. [0]"),
    ("initial", str, "First state: episodes, uniform, or a CSV (state, probability)."),
    ("prior", float, "Dirichlet parameter of every successor. [1]"),
)
PROMISE: tuple[Option, ...] = (
    ("discount", float, "What next step's reward is worth today, in [0, 1)."),
    ("delta", float, "Failure probability of the promise. [0.05]"),
    ("eta", float, "Failure probability of the Monte Carlo. [0.001]"),
    ("basis", str, "bayesian (given the prior) or frequentist (no prior). [bayesian]"),
    ("kind", str, "Frequentist set: clopper_pearson, weighted_l1, kl, ... [clopper_pearson]"),
    ("norm", str, "Norm of the robust set: l1 or linf. [l1]"),
    ("weights", str, "Weights of the robust set: uniform, analytic or socp. [uniform]"),
    ("seed", int, "Seed of all random numbers. [0]"),
    ("draws", int, "Posterior draws for each bound. [chosen]"),
    ("threads", int, "Use at most so many processors. [all]"),
)
SEARCH: tuple[Option, ...] = (
    ("allowed", str, "CSV of the pairs (state, action) that the policy may use. [all]"),
    ("time_budget", float, "Seconds for the search of a policy. [no limit]"),
)

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
    str | None, typer.Option("--config", help="TOML file of options, under the same names.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]


def with_options(
    *groups: Sequence[Option],
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
            inspect.Parameter(name, keyword, default=None, annotation=_annotation(name, kind, text))
            for group in groups
            for name, kind, text in group
        ]
        signature = inspect.Signature([*(p.replace(kind=keyword) for p in own), *added])
        function.__signature__ = signature  # type: ignore[attr-defined]
        return function

    return decorate


def _annotation(name: str, kind: Any, text: str) -> Any:
    flag = f"--{name.replace('_', '-')}"
    if kind is bool:
        flag = f"{flag}/--no-{name.replace('_', '-')}"
    return Annotated[kind | None, typer.Option(flag, help=text, show_default=False)]


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
