"""One setting: declared once, with its type, default, allowed words, rule and help.

The command line's options, the TOML file, `Settings` and the table in docs/command-line.md are
derived from the declaration.
"""

from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields
from typing import Any, Literal

from surefoot._arguments import nearest

PROMISE, READING, MODEL, SEARCH, COMPUTING, OWN = (
    "What is promised",
    "Columns of the log",
    "The model",
    "The search",
    "The computation",
    "Options",
)
"""Groups of options, with their titles in the help; the last one belongs to ``solve`` alone."""

COLUMN, FILE, WORD, NUMBER, WHOLE = "COLUMN", "FILE", "WORD", "NUMBER", "N"
"""How the help shows a value."""

Names = Literal["log", "file", "word or file", "run", ""]
"""What kind of file or word a value names."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """How a setting is declared; the field of `Settings` adds its name, type and default.

    Attributes
    ----------
    text
        What it means, in one sentence: the help of its option.
    section
        The group of options it belongs to; "" for none.
    metavar
        How the help shows its value.
    words
        The allowed words, if the value is one of a few.
    holds, rule
        A condition on the value (None is always valid), and the same in words.
    otherwise
        What the help shows in place of a default that is None or empty.
    names
        What the value names: files whose contents belong to the identity of a run.
    matters
        Whether the answer depends on it.
    recorded
        Whether the configuration of a run keeps it: an address has no meaning elsewhere.
    """

    text: str
    section: str
    metavar: str = ""
    words: tuple[str, ...] = ()
    holds: Callable[[Any], bool] | None = None
    rule: str = ""
    otherwise: str = ""
    names: Names = ""
    matters: bool = True
    recorded: bool = True


def setting(default: Any, section: str, text: str, **more: Any) -> Any:
    """Return a dataclass field of `Settings`; ``more`` are other attributes of `Setting`."""
    declared = Setting(text=text, section=section, **more)
    return field(default=default, metadata={"setting": declared})


def declared(settings: Any) -> dict[str, tuple[Setting, Field[Any]]]:
    """Return every setting of a class or an object by name, with its field."""
    return {one.name: (one.metadata["setting"], one) for one in fields(settings)}


def check_value(name: str, value: Any, one: Setting) -> None:
    """Refuse a value that is not one of the words, is empty, or breaks the rule."""
    if value is None:
        return
    if one.words and value not in one.words:
        hint = nearest(str(value), one.words)
        raise ValueError(f"{name}={value!r}; choose one of {', '.join(one.words)}.{hint}")
    texts = value if isinstance(value, tuple) else (value,)
    if any(text == "" for text in texts):
        raise ValueError(f"{name}={value!r}; it must not be empty.")
    if one.holds is not None and not one.holds(value):
        raise ValueError(f"{name}={value!r}; it must be {one.rule}.")


def converted(name: str, value: Any, kind: str, place: str) -> Any:
    """Convert a value to the type in ``kind`` ("float | None"); ValueError if it does not fit."""
    if kind.startswith("tuple"):
        parts = value if isinstance(value, list | tuple) else [value]
        inner = "float" if "float" in kind else "str"
        return tuple(converted(name, part, inner, place) for part in parts)
    if kind.startswith("float") and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    wanted = {"float": float, "int": int, "str": str, "bool": bool}[kind.split(" ")[0]]
    if type(value) is not wanted:
        words = {"float": "a number", "int": "a whole number", "str": "text", "bool": "true/false"}
        raise ValueError(f"{place}: {name} = {value!r}; it must be {words[wanted.__name__]}.")
    return value


def kind_of(one: Field[Any]) -> str:
    """Return the type of a field as it is written in the source."""
    return one.type.__name__ if isinstance(one.type, type) else str(one.type)


def toml_text(value: Any) -> str:
    r"""Return a value as TOML.

    Examples
    --------
    >>> print(toml_text(("a", 'b"')), toml_text(True))
    ["a", "b\""] true
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(map(toml_text, value))}]"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped) + '"'
    return repr(value)
