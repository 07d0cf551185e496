"""Rewrites the settings in messages as options of the command line.

Every room writes a setting as ``name=value``, as in Python; the rest of a message is unchanged.
"""

import re
from dataclasses import fields
from typing import TYPE_CHECKING

from surefoot.pipeline.settings import Settings

if TYPE_CHECKING:
    from surefoot.data.counts import Counts

_SETTING = re.compile(
    rf"(?<![\w'\"-])({'|'.join(field.name for field in fields(Settings))})"
    r"=('[^']*'|\([^)]*\)|[\w.+-]*\w|(?![\w=]))"
)
"""A setting as messages write it: name=value, or name= if the user chooses the value."""


def as_options(text: str) -> str:
    """Return a message with the names of settings spelled as on the command line.

    Examples
    --------
    >>> as_options("there is no column 'x'. Did you mean state='y'?")
    "there is no column 'x'. Did you mean --state y?"
    >>> as_options("pass episode= and step=; reward_range=(0, 1) is given")
    'pass --episode and --step; --reward-range 0 1 is given'
    """
    return _SETTING.sub(_option, text)


def log_words(placed: "Counts", *, costs: bool) -> str:
    """Return the summary of a log; with ``costs``, the rewards of ``placed`` are negative costs."""
    return as_options(placed.summary(costs=costs))


def _option(found: re.Match[str]) -> str:
    name, value = found[1].replace("_", "-"), found[2] or ""
    if value.startswith("("):
        value = " ".join(value[1:-1].split(", "))
    elif re.fullmatch(r"'[\w./-]+'", value):
        value = value[1:-1]
    elif value == "True":  # a flag
        value = ""
    return f"--{name} {value}".rstrip()
