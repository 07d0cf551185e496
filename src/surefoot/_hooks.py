"""Functions that an early room calls and a later room implements.

``surefoot/__init__`` fills them in, so that the early room need not import the later one.
"""

from typing import Any, Protocol


class LeadToWorst(Protocol):
    """Point the unseen state of a model at the worst state of the counts behind it."""

    def __call__(self, mdp: Any, counts: Any) -> Any:
        """Return the model whose unseen state leads to that worst state."""


class Picture(Protocol):
    """Draw an object for its card in a notebook."""

    def __call__(self, shown: Any) -> str:
        """Return SVG text, or "" for an object without a picture."""


lead_to_worst: LeadToWorst
"""Needs a solver: `surefoot.solvers.unseen`."""
picture: Picture
"""Needs the figures: `surefoot.report.pictures`."""
