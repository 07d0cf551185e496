"""The settings of a run: the same names on the command line, in TOML and in Python."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surefoot._display import Shown
from surefoot._version import __version__
from surefoot.pipeline.setting import (
    COLUMN,
    COMPUTING,
    FILE,
    MODEL,
    NUMBER,
    OWN,
    PROMISE,
    READING,
    SEARCH,
    WHOLE,
    WORD,
    check_value,
    converted,
    declared,
    kind_of,
    nearest,
    setting,
    toml_text,
)

if TYPE_CHECKING:
    from surefoot.data.reading import Reading
    from surefoot.data.side_files import LabelColumns

MADE = "made"
"""The table of a configuration that says how it came about; it is not read back."""
MOST_DRAWS = 10**8
"""More draws than this would take days, and more memory than machines have."""


def _is_level(value: float) -> bool:
    return 0 < value <= 0.5


@dataclass(frozen=True, kw_only=True, repr=False)
class Settings(Shown):
    """Everything a run depends on besides the contents of its files.

    ``surefoot solve --help`` and docs/command-line.md list the settings with what they mean; a new
    one is one line here. Column names and the log may be given as one name or several.

    Examples
    --------
    >>> Settings(log="log.csv", discount=0.95, delta=0.1)
    Settings(log=('log.csv',), discount=0.95, delta=0.1)
    >>> Settings.from_mapping({"discuont": 0.9}, "run.toml")
    Traceback (most recent call last):
    ...
    ValueError: run.toml: there is no setting 'discuont'. Did you mean 'discount'?
    """

    log: tuple[str, ...] = setting((), "", "Files, folders or globs with the log.", names="log")
    discount: float | None = setting(
        None, PROMISE, "What next step's reward is worth today, below 1.", metavar=NUMBER,
        holds=lambda value: 0 <= value < 1, rule="at least 0 and below 1", otherwise="no default",
    )  # fmt: skip
    delta: float = setting(
        0.05, PROMISE, "Failure probability of the promise.", metavar=NUMBER,
        holds=_is_level, rule="above 0 and at most 0.5",
    )  # fmt: skip
    eta: float = setting(
        0.001, PROMISE, "Failure probability of the Monte Carlo behind it.", metavar=NUMBER,
        holds=_is_level, rule="above 0 and at most 0.5",
    )  # fmt: skip
    state: tuple[str, ...] = setting(
        (), READING, "The state; repeat for several columns.", metavar=COLUMN, otherwise="state"
    )
    action: tuple[str, ...] = setting(
        (), READING, "The action; repeat for several columns.", metavar=COLUMN, otherwise="action"
    )
    next_state: tuple[str, ...] = setting(
        (), READING, "The next state; without it, episode and step say which row follows which.",
        metavar=COLUMN, otherwise="next_state, or the row after",
    )  # fmt: skip
    reward: str = setting("reward", READING, "The reward.", metavar=COLUMN)
    reward_table: str | None = setting(
        None, READING, "Rewards by state, action and perhaps next_state, instead of the column.",
        metavar=FILE, names="file",
    )  # fmt: skip
    episode: str | None = setting(None, READING, "Which rows belong together.", metavar=COLUMN)
    step: str | None = setting(
        None, READING, "The order of the rows of an episode.", metavar=COLUMN
    )
    terminal: str | None = setting(
        None, READING, "True where an episode ended by itself.", metavar=COLUMN
    )
    count: str | None = setting(
        None, READING, "How many transitions a row stands for.", metavar=COLUMN, otherwise="1"
    )
    labels: str = setting(
        "auto", READING, "Labels of a CSV: auto, or text to keep 01 apart from 1.", metavar=WORD,
        words=("auto", "text"),
    )  # fmt: skip
    decimal: str | None = setting(
        None, READING, "What stands before the decimals of numbers in text: point or comma.",
        metavar="MARK", words=(".", ","), otherwise="found out",
    )  # fmt: skip
    date_format: str | None = setting(
        None, READING, "How dates of steps are written, as in %d.%m.%Y.", metavar="FORMAT",
        otherwise="found out",
    )  # fmt: skip
    encoding: str | None = setting(
        None, READING, "How text files are encoded, as in cp1252.", metavar="NAME",
        otherwise="found out",
    )  # fmt: skip
    sheet: str | None = setting(
        None, READING, "The sheet of a spreadsheet.", metavar="NAME", otherwise="its only one"
    )
    table: str | None = setting(
        None, READING, "The table of a DuckDB or SQLite file.", metavar="NAME",
        otherwise="its only one",
    )  # fmt: skip
    query: str | None = setting(None, READING, "One SELECT in place of a table.", metavar="SQL")
    bins: tuple[str, ...] = setting(
        (), READING, "Cut a column of numbers into bins: age=4 (as many rows in each), or edges "
        "as in age=40,55; repeat for several columns.", metavar="COLUMN=BINS",
    )  # fmt: skip
    missing: str = setting(
        "error", READING, "Rows that lack a value: error or drop.", metavar=WORD,
        words=("error", "drop"),
    )  # fmt: skip
    rewards: str | None = setting(
        None, READING, "How sure mean rewards are: fixed, normal, bounded.", metavar=WORD,
        words=("fixed", "normal", "bounded"), otherwise="by the log",
    )  # fmt: skip
    reward_range: tuple[float, ...] = setting(
        (), READING, "Lowest, highest reward possible.", metavar="LOW HIGH", otherwise="as seen",
        holds=lambda value: len(value) in (0, 2), rule="two numbers: lowest, highest",
    )  # fmt: skip
    costs: bool = setting(
        False, READING, "The reward column holds costs: the promise is an upper bound on the cost."
    )
    unit: str | None = setting(
        None, PROMISE, "What rewards are counted in (euros, say), for sentences.", metavar="TEXT"
    )
    support: str | None = setting(
        None, MODEL,
        "Successors of a pair: learned, observed, action, all, unseen, or a file that lists them.",
        metavar="RULE", names="word or file", otherwise="learned, or unseen with --prior",
    )  # fmt: skip
    unseen: str | None = setting(
        None, MODEL, "What was never observed leads to the worst state of the log, or is absorbing "
        "at the lowest reward: worst, absorbing.", metavar=WORD,
        words=("worst", "absorbing"), otherwise="worst",
    )  # fmt: skip
    unvisited: str | None = setting(
        None, MODEL, "Pairs never tried: drop, or prior to offer them to the policy.",
        metavar=WORD, words=("drop", "prior"), otherwise="drop",
    )  # fmt: skip
    min_visits: int = setting(
        0, MODEL, "Do not offer pairs tried fewer times.", metavar=WHOLE,
        holds=lambda value: value >= 0, rule="0 or more",
    )  # fmt: skip
    initial: str | None = setting(
        None, MODEL, "First state: episodes, uniform, or a CSV (state, probability).",
        metavar="RULE", names="word or file", otherwise="by the log",
    )  # fmt: skip
    prior: float | None = setting(
        None, MODEL, "Dirichlet parameter of every successor.", metavar=NUMBER,
        holds=lambda value: 0 < value < math.inf, rule="a finite number above 0",
        otherwise="learned from the log",
    )  # fmt: skip
    allowed: str | None = setting(
        None, SEARCH, "CSV of the pairs (state, action) the policy may use.", metavar=FILE,
        names="file", otherwise="all",
    )  # fmt: skip
    forbidden: str | None = setting(
        None, SEARCH, "CSV of the pairs (state, action) the policy must not use; columns left out "
        "mean any.", metavar=FILE, names="file", otherwise="none",
    )  # fmt: skip
    order: str | None = setting(
        None, OWN, "CSV that lists labels, column by column, in the order to show them in.",
        metavar=FILE, names="file", otherwise="natural",
    )  # fmt: skip
    basis: str = setting(
        "bayesian", PROMISE, "bayesian (given the prior) or frequentist (no prior).",
        metavar=WORD, words=("bayesian", "frequentist"),
    )  # fmt: skip
    honest: bool = setting(
        False, PROMISE, "Choose on one part of the log and certify on the other."
    )
    norm: str = setting(
        "l1", PROMISE, "Norm of the robust set: l1 or linf.", metavar=WORD, words=("l1", "linf")
    )
    weights: str = setting(
        "uniform", PROMISE, "Weights of the robust set: uniform, analytic or socp.", metavar=WORD,
        words=("uniform", "analytic", "socp"),
    )  # fmt: skip
    kind: str | None = setting(
        None, PROMISE, "Frequentist set: clopper_pearson, weighted_l1, hoeffding_l1, "
        "hoeffding_linf, bernstein_l1 or kl.", metavar=WORD, otherwise="clopper_pearson",
        words=("clopper_pearson", "weighted_l1", "hoeffding_l1", "hoeffding_linf", "bernstein_l1",
               "kl"),
    )  # fmt: skip
    seed: int = setting(
        0, COMPUTING, "Seed of all random numbers.", metavar=WHOLE,
        holds=lambda value: value >= 0, rule="0 or more",
    )  # fmt: skip
    draws: int | None = setting(
        None, COMPUTING, "Posterior draws for each bound.", metavar=WHOLE, otherwise="chosen",
        holds=lambda value: 1 <= value <= MOST_DRAWS, rule=f"from 1 to {MOST_DRAWS}",
    )  # fmt: skip
    time_budget: float | None = setting(
        None, SEARCH, "Seconds for the whole command, the first compilation excluded.",
        metavar="SECONDS", otherwise="no limit",
        holds=lambda value: value >= 0, rule="seconds, 0 or more",
    )  # fmt: skip
    search_steps: int | None = setting(
        None, SEARCH, "Search steps to do, as a run with a time budget records them.",
        metavar=WHOLE, otherwise="all",
        holds=lambda value: value >= 0, rule="0 or more",
    )  # fmt: skip
    threads: int | None = setting(
        None, COMPUTING, "Use at most this many processors.", metavar=WHOLE, otherwise="all",
        holds=lambda value: value >= 1, rule="at least 1", matters=False,
    )  # fmt: skip
    strict: bool = setting(
        False, OWN, "Exit with code 4 if the search was stopped early or the backtest failed.",
        matters=False,
    )  # fmt: skip
    add: str | None = setting(
        None, OWN, "Add the log to the counts of this earlier run folder.", metavar="RUN",
        names="run",
    )  # fmt: skip

    def __post_init__(self) -> None:
        for name, (one, field) in declared(self).items():
            value = getattr(self, name)
            if kind_of(field) == "tuple[str, ...]":  # one is as good as a tuple of one
                alone = isinstance(value, str | os.PathLike)
                value = (str(value),) if alone else tuple(map(str, value))
                object.__setattr__(self, name, value)
            check_value(name, value, one)

    def check_complete(self) -> None:
        """Refuse what no run could use, before a long log is read."""
        _ = self.discounted
        _ = self.reading
        if not self.log:
            raise ValueError("no log was given: name a CSV or Parquet file, a folder or a glob.")
        if self.honest and self.basis != "bayesian":
            raise ValueError(
                "honest=True goes with basis='bayesian': frequentist sets hold for every policy, "
                "however it was chosen."
            )
        if self.basis == "bayesian":
            self._check_draws()

    def _check_draws(self) -> None:
        """Refuse levels that need more draws than given, or than anybody can make."""
        # A lower bound on the draws needed that cannot overflow; the exact rule follows.
        least = math.log(self.eta) / math.log1p(-self.delta)
        if not least <= MOST_DRAWS:
            raise ValueError(
                f"delta={self.delta:g} needs about {least:.2g} draws (and eta={self.eta:g}), more "
                f"than {MOST_DRAWS:,}. Accept a larger delta."
            )
        if self.draws is None:
            return
        from surefoot._order_statistics import draws_needed

        needed = draws_needed(self.delta, self.eta)
        if self.draws < needed:
            raise ValueError(
                f"draws={self.draws}; delta={self.delta:g} needs at least {needed} (and "
                f"eta={self.eta:g})."
            )

    @property
    def reading(self) -> Reading:
        """How the log and the files beside it are written."""
        from surefoot.data.reading import Reading  # --help has no use for it

        names = ("decimal", "date_format", "encoding", "sheet", "table", "query", "bins")
        return Reading.of(**{name: getattr(self, name) for name in names})

    @property
    def columns(self) -> LabelColumns:
        """The columns of states and actions in the log."""
        from surefoot.data.side_files import LabelColumns  # --help has no use for it

        own = LabelColumns()
        return LabelColumns(state=self.state or own.state, action=self.action or own.action)

    @property
    def discounted(self) -> float:
        """The discount, which must have been given."""
        if self.discount is None:
            raise ValueError(
                "no discount was given: it says how much next step's reward is worth today. "
                "Pass --discount 0.95, say."
            )
        return self.discount

    def _facts(self) -> list[tuple[str, str]]:
        return [(name, str(value)) for name, value in self._given()]

    def _headline(self) -> str:
        return "Settings"

    def _given(self) -> list[tuple[str, Any]]:
        values = [(field, getattr(self, field.name)) for field in fields(self)]
        return [(field.name, value) for field, value in values if value != field.default]

    def __repr__(self) -> str:
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in self._given())})"

    @classmethod
    def from_mapping(
        cls, values: Mapping[str, Any], place: str, base: Settings | None = None
    ) -> Settings:
        """Return settings from names and values; dashes and underscores are the same."""
        known = declared(cls)
        given: dict[str, Any] = {}
        for key, value in values.items():
            name = key.replace("-", "_")
            if name not in known:
                hint = nearest(name, known)
                raise ValueError(f"{place}: there is no setting {key!r}.{hint}")
            given[name] = converted(name, value, kind_of(known[name][1]), place)
        return replace(base or cls(), **given)

    @classmethod
    def from_toml(cls, path: str | Path, base: Settings | None = None) -> Settings:
        """Read a configuration file."""
        import tomllib  # --help has no use for it

        source = Path(path)
        if not source.is_file():
            raise FileNotFoundError(f"{source}: there is no such file.")
        try:
            content = tomllib.loads(source.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
            raise ValueError(f"{source}: not a TOML file ({problem}).") from None
        except RecursionError:
            raise ValueError(f"{source}: not a configuration (nested too deeply).") from None
        content.pop(MADE, None)
        return cls.from_mapping(content, str(source), base)

    def side_files(self) -> dict[str, Path]:
        """Return the files besides the log that the settings name, by setting."""
        return {
            name: Path(value)
            for name, (one, _) in declared(self).items()
            if (value := getattr(self, name)) is not None
            and (one.names == "file" or (one.names == "word or file" and Path(value).is_file()))
        }

    def in_full(self) -> Settings:
        """Return the same settings with the paths of files written out."""
        changes: dict[str, Any] = {
            name: str(path.absolute()) for name, path in self.side_files().items()
        }
        changes["log"] = tuple(str(Path(path).absolute()) for path in self.log)
        if self.add is not None:
            changes["add"] = str(Path(self.add).absolute())
        return replace(self, **changes)

    def to_toml(self, *, posterior: str | None = None) -> str:
        """Return the settings as a configuration file.

        ``posterior`` names what made a posterior of the user's own, which no file can hold.

        Examples
        --------
        >>> print(Settings(discount=0.9, state=("a", "b")).to_toml().splitlines()[1])
        discount = 0.9
        """
        again = "surefoot solve --config config.toml --out NEW_FOLDER"
        if posterior is not None:
            again = (
                f"run(Settings.from_toml(...), NEW_FOLDER, posterior=...) from Python: {posterior}"
            )
        lines = [f"# To repeat this run: {again}"]
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and value != ():
                lines.append(f"{field.name} = {toml_text(value)}")
        lines += ["", f"[{MADE}]", f"surefoot = {toml_text(__version__)}"]
        for name in self.log:
            lines += _stamps(name)
        return "\n".join(lines) + "\n"


def _stamps(name: str) -> list[str]:
    """Return how the files of the log looked, to tell whether they are still the same."""
    lines: list[str] = []
    for file in _files(name):
        about = file.stat()
        lines += [
            f"[[{MADE}.files]]",
            f"name = {toml_text(str(file))}",
            f"bytes = {about.st_size}",
            f"modified = {about.st_mtime_ns}",
        ]
    return lines


def _files(name: str) -> list[Path]:
    from surefoot.data.log_files import log_files  # --help has no use for it

    try:
        return [file.resolve() for file in log_files(name).files]
    except FileNotFoundError:
        return []


def log_files(settings: Settings) -> list[Path]:
    """Return the files of the log, in the order in which they are read."""
    return [file for name in settings.log for file in _files(name)]


def read_twice(settings: Settings, *, together: bool = False) -> list[str]:
    """Return files that would count twice: named twice, or read by the run that is added to.

    Files that are read ``together`` are read once, however often they are named.
    """
    files = [str(file) for file in log_files(settings)]
    files = list(dict.fromkeys(files)) if together else files
    earlier = set() if settings.add is None else _read_by(Path(settings.add))
    return sorted({file for file in files if file in earlier or files.count(file) > 1})


def _read_by(folder: Path) -> set[str]:
    """Return the files behind a run that still look as they did, and those it was added to."""
    import tomllib

    try:
        content = tomllib.loads((folder / "config.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    found = {
        str(Path(str(listed.get("name"))).resolve())
        for listed in content.get(MADE, {}).get("files", [])
        if _looks_like(Path(str(listed.get("name"))), listed)
    }
    before = content.get("add")
    return found | (_read_by(Path(before)) if isinstance(before, str) else set())


def _looks_like(file: Path, listed: Mapping[str, Any]) -> bool:
    if not file.is_file():
        return False
    about = file.stat()
    return (about.st_size, about.st_mtime_ns) == (listed.get("bytes"), listed.get("modified"))
