"""The choices under comparison: which successors a row has, and the prior of each."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefoot.data.conversions import ABSORBING, WORST
from surefoot.data.counts import Counts
from surefoot.posterior.dirichlet import prior_entries

Floats = NDArray[np.float64]
TRUE_SUPPORT = "true"
"""The reference that knows every successor; no log allows this choice."""


@dataclass(frozen=True, kw_only=True)
class SupportChoice:
    """A pair of support and prior.

    Attributes
    ----------
    support
        As in ``counts.on_support``, or ``"true"`` for the reference.
    prior
        Its name in tables.
    parameters
        Returns the Dirichlet prior of every entry, given the counts.
    unseen
        Where the unseen state leads, as in ``counts.to_mdp``.
    """

    support: str
    prior: str
    parameters: Callable[[Counts], Floats]
    unseen: str = ABSORBING


def per_entry(support: str, value: float = 1.0) -> SupportChoice:
    """Return the choice with the same parameter for every successor.

    Examples
    --------
    >>> per_entry("action").prior
    '1 each'
    """
    return SupportChoice(
        support=support,
        prior=f"{value:g} each",
        parameters=lambda counts: prior_entries(counts, value, value),
    )


def per_row(support: str, total: float = 1.0) -> SupportChoice:
    """Return the choice with the same total for every row, spread evenly over its successors.

    Examples
    --------
    >>> per_row("action").prior
    '1 in all'
    """

    def parameters(counts: Counts) -> Floats:
        return (total / np.diff(counts.row_start))[counts.entry_row]

    return SupportChoice(support=support, prior=f"{total:g} in all", parameters=parameters)


def with_unseen(mass: float, unseen: str = ABSORBING) -> SupportChoice:
    """Return the choice with 1 for every observed successor, and one unseen successor.

    Examples
    --------
    >>> with_unseen(0.5, "worst").prior
    '1 each, 0.5 unseen, worst'
    """
    return SupportChoice(
        support="unseen",
        prior=f"1 each, {mass:g} unseen, {unseen}",
        parameters=lambda counts: prior_entries(counts, 1.0, mass),
        unseen=unseen,
    )


CHOICES = (
    per_entry(TRUE_SUPPORT),
    per_entry("observed"),
    per_entry("action"),
    per_row("action"),
    per_entry("all"),
    per_row("all"),
    with_unseen(1.0),
    with_unseen(0.5),
    with_unseen(0.25),
    with_unseen(0.125),
    with_unseen(1.0, WORST),
    with_unseen(0.5, WORST),
    with_unseen(0.25, WORST),
)
