"""Rules that an early room applies and a later room owns.

``surefoot/__init__`` fills them in, so that the early room need not know the later one.
"""

from typing import Any, Protocol


class LeadToWorst(Protocol):
    """Point the unseen state of a model at the worst state of the counts behind it."""

    def __call__(self, mdp: Any, counts: Any) -> Any:
        """Return the model with its unseen state led on."""


lead_to_worst: LeadToWorst
"""Needs a solver: `surefoot.solvers.unseen`."""
