"""The settings of a run: the same names on the command line, in TOML and in Python."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surefoot._arguments import nearest
from surefoot._display import Shown
from surefoot._version import __version__
from surefoot.pipeline.declarations import MOST_DRAWS, Declarations
from surefoot.pipeline.log_stamps import MADE, toml_stamps
from surefoot.pipeline.setting import (
    check_value,
    converted,
    declared,
    kind_of,
    toml_text,
)

if TYPE_CHECKING:
    from surefoot.data.log_format import LogFormat
    from surefoot.data.side_files import LabelColumns


@dataclass(frozen=True, kw_only=True, repr=False)
class Settings(Declarations, Shown):
    """Everything a run depends on, except the contents of its files.

    ``surefoot solve --help`` and docs/command-line.md list the settings and their meaning; a new
    one needs only a declaration in `surefoot.pipeline.declarations`. Column names and the log may
    be given as one name or several.

    Examples
    --------
    >>> Settings(log="log.csv", discount=0.95, delta=0.1)
    Settings(log=('log.csv',), discount=0.95, delta=0.1)
    >>> Settings.from_mapping({"discuont": 0.9}, "run.toml")
    Traceback (most recent call last):
    ...
    ValueError: run.toml: there is no setting 'discuont'. Did you mean 'discount'?
    """

    def __post_init__(self) -> None:
        for name, (one, field) in declared(self).items():
            value = getattr(self, name)
            if kind_of(field) == "tuple[str, ...]":  # a single name becomes a tuple of one
                alone = isinstance(value, str | os.PathLike)
                value = (str(value),) if alone else tuple(map(str, value))
                object.__setattr__(self, name, value)
            check_value(name, value, one)

    def check_complete(self) -> None:
        """Refuse settings that no run could use, before a long log is read."""
        _ = self.discounted
        _ = self.log_format
        _check_steps(self)
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
        """Refuse levels that need more draws than were given, or than can be made."""
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
    def log_format(self) -> LogFormat:
        """How the log and its side files are written."""
        from surefoot.data.log_format import LogFormat  # not needed for --help

        names = ("decimal", "date_format", "encoding", "sheet", "table", "query", "bins")
        return LogFormat.of(**{name: getattr(self, name) for name in names})

    @property
    def columns(self) -> LabelColumns:
        """The columns of states and actions in the log."""
        from surefoot.data.side_files import LabelColumns  # not needed for --help

        own = LabelColumns()
        return LabelColumns(state=self.state or own.state, action=self.action or own.action)

    @property
    def one_rule(self) -> bool:
        """Whether the policy is one action per state, as with states that include the step."""
        return self.stationary or self.by_step

    @property
    def discounted(self) -> float:
        """The discount; if none was given, 1 with a horizon and an error without one."""
        if self.discount is None and self.horizon is not None:
            return 1.0
        if self.discount is None:
            raise ValueError(
                "no discount was given: it says how much next step's reward is worth today. "
                "Pass --discount 0.95, for instance, or --horizon 12 to count 12 steps equally."
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
        """Return settings from names and values; dashes and underscores are equivalent."""
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
        import tomllib  # not needed for --help

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
        """Return the files that the settings name, except the log, by setting."""
        return {
            name: Path(value)
            for name, (one, _) in declared(self).items()
            if (value := getattr(self, name)) is not None
            and (one.names == "file" or (one.names == "word or file" and Path(value).is_file()))
        }

    def in_full(self) -> Settings:
        """Return the same settings with absolute paths."""
        changes: dict[str, Any] = {
            name: str(path.absolute()) for name, path in self.side_files().items()
        }
        changes["log"] = tuple(str(Path(path).absolute()) for path in self.log)
        if self.add is not None:
            changes["add"] = str(Path(self.add).absolute())
        return replace(self, **changes)

    def to_toml(self, *, posterior: str | None = None) -> str:
        """Return the settings as a configuration file.

        ``posterior`` names what made the user's own posterior, which no file can hold.

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
            if value is not None and value != () and field.metadata["setting"].recorded:
                lines.append(f"{field.name} = {toml_text(value)}")
        lines += ["", f"[{MADE}]", f"surefoot = {toml_text(__version__)}"]
        for name in self.log:
            lines += toml_stamps(name)
        return "\n".join(lines) + "\n"


def _check_steps(settings: Settings) -> None:
    """Refuse settings that need a horizon without one, and settings that contradict ``by_step``."""
    for name in ("final_reward", "stationary", "by_step"):
        if settings.horizon is None and getattr(settings, name):
            value = getattr(settings, name)
            raise ValueError(
                f"{name}={value!r} goes with a horizon: say with horizon= how many steps count."
            )
    if settings.by_step and settings.stationary:
        raise ValueError("by_step=True and stationary=True contradict each other: choose one.")
    if settings.by_step and (settings.episode is None or settings.step is None):
        raise ValueError("by_step=True needs episode= and step=, to know the step of each row.")
    if settings.by_step and (settings.count is not None or settings.add is not None):
        raise ValueError("by_step=True needs every row of the log: no count=, no add=.")
    if settings.by_step and settings.bins:
        raise ValueError("by_step=True and bins= do not go together: cut the columns beforehand.")
    if settings.by_step and settings.reward_table is not None:
        raise ValueError("by_step=True takes rewards from the log: leave out reward_table=.")
