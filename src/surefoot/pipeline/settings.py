"""The settings of a run: the same names on the command line, in TOML and in Python."""

import difflib
import math
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from surefoot._display import Shown
from surefoot._version import __version__
from surefoot.data.log_files import log_files

CHOICES: dict[str, tuple[str, ...]] = {
    "missing": ("error", "drop"),
    "unseen": ("worst", "absorbing"),
    "labels": ("auto", "text"),
    "rewards": ("fixed", "normal", "bounded"),
    "unvisited": ("drop", "prior"),
    "basis": ("bayesian", "frequentist"),
    "norm": ("l1", "linf"),
    "weights": ("uniform", "analytic", "socp"),
    "kind": (
        "clopper_pearson",
        "weighted_l1",
        "hoeffding_l1",
        "hoeffding_linf",
        "bernstein_l1",
        "kl",
    ),
}
"""Options that take one of a few words."""

PATHS = ("log", "reward_table", "allowed", "add")
"""Options that name files; stored in full, so that a run can be repeated from anywhere."""

MADE = "made"
"""The table of a configuration that says how it came about; it is not read back."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Settings(Shown):
    """Everything a run depends on besides the log itself.

    Attributes
    ----------
    log
        Files, folders or globs with the log.
    discount, delta, eta
        As for `surefoot.optimize`; the discount has no default.
    state, action, next_state
        Column names; several may form a state. Empty: the usual names.
    reward, episode, step, terminal, count, labels, missing, rewards, reward_range
        As for `surefoot.read_transitions`.
    reward_table
        A file of rewards by state, action and perhaps next_state, instead of the column.
    costs
        Whether the reward column holds costs.
    support, unseen, unvisited, min_visits, initial
        As for `surefoot.Counts.to_mdp`; support and initial may name files.
    prior
        Dirichlet parameter of every successor.
    allowed
        A file of the pairs (state, action) that the policy may use.
    basis
        ``"bayesian"`` or ``"frequentist"``.
    norm, weights
        Of the robust set shown beside the certificate.
    kind
        Of the frequentist set.
    seed, draws, time_budget, threads
        Of the computation.
    add
        An earlier run folder whose counts are added.

    Examples
    --------
    >>> Settings(log="log.csv", discount=0.95, delta=0.1)
    Settings(log=('log.csv',), discount=0.95, delta=0.1)
    >>> Settings.from_mapping({"discuont": 0.9}, "run.toml")
    Traceback (most recent call last):
    ...
    ValueError: run.toml: there is no setting 'discuont'. Did you mean 'discount'?
    """

    log: tuple[str, ...] = ()
    discount: float | None = None
    delta: float = 0.05
    eta: float = 0.001
    state: tuple[str, ...] = ()
    action: tuple[str, ...] = ()
    next_state: tuple[str, ...] = ()
    reward: str = "reward"
    reward_table: str | None = None
    episode: str | None = None
    step: str | None = None
    terminal: str | None = None
    count: str | None = None
    labels: str = "auto"
    missing: str = "error"
    rewards: str | None = None
    reward_range: tuple[float, ...] = ()
    costs: bool = False
    support: str | None = None
    unseen: str | None = None
    unvisited: str | None = None
    min_visits: int = 0
    initial: str | None = None
    prior: float = 1.0
    allowed: str | None = None
    basis: str = "bayesian"
    norm: str = "l1"
    weights: str = "uniform"
    kind: str | None = None
    seed: int = 0
    draws: int | None = None
    time_budget: float | None = None
    threads: int | None = None
    add: str | None = None

    def __post_init__(self) -> None:
        for name in ("log", "state", "action", "next_state"):
            value = getattr(self, name)
            if isinstance(value, str | os.PathLike):  # one is as good as a tuple of one
                object.__setattr__(self, name, (str(value),))
            else:
                object.__setattr__(self, name, tuple(map(str, value)))
        for name, allowed in CHOICES.items():
            value = getattr(self, name)
            if value is not None and value not in allowed:
                near = difflib.get_close_matches(str(value), allowed, n=1)
                hint = f" Did you mean {near[0]!r}?" if near else ""
                raise ValueError(f"{name}={value!r}; choose one of {', '.join(allowed)}.{hint}")
        _check_numbers(self)

    def check_complete(self) -> None:
        """Refuse what no run could use, before a long log is read."""
        _ = self.discounted
        if not self.log:
            raise ValueError("no log was given: name a CSV or Parquet file, a folder or a glob.")
        if self.basis == "bayesian" and self.draws is not None:
            from surefoot._order_statistics import draws_needed

            needed = draws_needed(self.delta, self.eta)
            if self.draws < needed:
                raise ValueError(
                    f"draws={self.draws}; delta={self.delta:g} needs at least {needed} (and "
                    f"eta={self.eta:g})."
                )

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
        cls, values: Mapping[str, Any], place: str, base: "Settings | None" = None
    ) -> "Settings":
        """Return settings from names and values; dashes and underscores are the same."""
        kinds = {field.name: _kind(field.type) for field in fields(cls)}
        given: dict[str, Any] = {}
        for key, value in values.items():
            name = key.replace("-", "_")
            if name not in kinds:
                near = difflib.get_close_matches(name, kinds, n=1)
                hint = f" Did you mean {near[0]!r}?" if near else ""
                raise ValueError(f"{place}: there is no setting {key!r}.{hint}")
            given[name] = _converted(name, value, kinds[name], place)
        return replace(base or cls(), **given)

    @classmethod
    def from_toml(cls, path: str | Path, base: "Settings | None" = None) -> "Settings":
        """Read a configuration file."""
        source = Path(path)
        if not source.is_file():
            raise FileNotFoundError(f"{source}: there is no such file.")
        try:
            content = tomllib.loads(source.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
            raise ValueError(f"{source}: not a TOML file ({problem}).") from None
        content.pop(MADE, None)
        return cls.from_mapping(content, str(source), base)

    def in_full(self) -> "Settings":
        """Return the same settings with the paths of files written out."""
        changes: dict[str, Any] = {}
        for name in PATHS:
            value = getattr(self, name)
            if isinstance(value, tuple):
                changes[name] = tuple(str(Path(path).absolute()) for path in value)
            elif value is not None:
                changes[name] = str(Path(value).absolute())
        for name in ("support", "initial"):
            value = getattr(self, name)
            if value is not None and Path(value).is_file():
                changes[name] = str(Path(value).absolute())
        return replace(self, **changes)

    def to_toml(self) -> str:
        """Return the settings as a configuration file.

        Examples
        --------
        >>> print(Settings(discount=0.9, state=("a", "b")).to_toml().splitlines()[1])
        discount = 0.9
        """
        lines = ["# To repeat this run: surefoot solve --config config.toml --out NEW_FOLDER"]
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and value != ():
                lines.append(f"{field.name} = {_toml(value)}")
        lines += ["", f"[{MADE}]", f"surefoot = {_toml(__version__)}"]
        for name in self.log:
            lines += _stamps(name)
        return "\n".join(lines) + "\n"


def _check_numbers(settings: Settings) -> None:
    rules: tuple[tuple[str, bool, str], ...] = (
        (
            "discount",
            settings.discount is None or 0 <= settings.discount < 1,
            "at least 0 and below 1",
        ),
        ("delta", 0 < settings.delta <= 0.5, "above 0 and at most 0.5"),
        ("eta", 0 < settings.eta <= 0.5, "above 0 and at most 0.5"),
        ("prior", 0 < settings.prior < math.inf, "a finite number above 0"),
        ("min_visits", settings.min_visits >= 0, "0 or more"),
        ("seed", settings.seed >= 0, "0 or more"),
        ("draws", settings.draws is None or settings.draws >= 1, "at least 1"),
        (
            "time_budget",
            settings.time_budget is None or settings.time_budget >= 0,
            "seconds, 0 or more",
        ),
        ("threads", settings.threads is None or settings.threads >= 1, "at least 1"),
        ("reward_range", len(settings.reward_range) in (0, 2), "two numbers: lowest, highest"),
    )
    for name, right, rule in rules:
        if not right:
            raise ValueError(f"{name}={getattr(settings, name)!r}; it must be {rule}.")


def _kind(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _converted(name: str, value: Any, kind: str, place: str) -> Any:
    """Return a value of the setting's type, or say what is wrong with it."""
    if kind.startswith("tuple"):
        parts = value if isinstance(value, list | tuple) else [value]
        inner = "float" if "float" in kind else "str"
        return tuple(_converted(name, part, inner, place) for part in parts)
    if kind.startswith("float") and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    wanted = {"float": float, "int": int, "str": str, "bool": bool}[kind.split(" ")[0]]
    if type(value) is not wanted:
        words = {"float": "a number", "int": "a whole number", "str": "text", "bool": "true/false"}
        raise ValueError(f"{place}: {name} = {value!r}; it must be {words[wanted.__name__]}.")
    return value


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped) + '"'
    return repr(value)


def _stamps(name: str) -> list[str]:
    """Return how the files of the log looked, to tell whether they are still the same."""
    lines: list[str] = []
    for file in _files(name):
        about = file.stat()
        lines += [
            f"[[{MADE}.files]]",
            f"name = {_toml(str(file))}",
            f"bytes = {about.st_size}",
            f"modified = {about.st_mtime_ns}",
        ]
    return lines


def _files(name: str) -> list[Path]:
    try:
        return [file.resolve() for file in log_files(name).files]
    except FileNotFoundError:
        return []


def read_twice(settings: Settings) -> list[str]:
    """Return files that would count twice: named twice, or read by the run that is added to."""
    files = [str(file) for name in settings.log for file in _files(name)]
    earlier = set() if settings.add is None else _read_by(Path(settings.add))
    return sorted({file for file in files if file in earlier or files.count(file) > 1})


def _read_by(folder: Path) -> set[str]:
    """Return the files behind a run that still look as they did, and those it was added to."""
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
