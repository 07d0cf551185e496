"""A support listed in a file: state, action, next_state."""

from typing import Any

from surefoot.data.counting import Counts
from surefoot.data.layout import Ints


def read_support(source: Any, counts: Counts) -> tuple[Counts, tuple[Ints, Ints, Ints]]:
    """Return the counts with the file's labels added, and the listed entries by id."""
    raise ValueError(f"support={source!r} cannot be read yet for {counts!r}.")
