"""What a set promises and how it was made; stored in the set, and valid for that set only."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from surefoot._arguments import check_choice, check_inside
from surefoot._display import Shown
from surefoot._findings import LEVELS, Finding, texts_of
from surefoot._fingerprint import fingerprint

BASES = ("bayesian", "frequentist")
SHARED = {
    "all": "all rows",
    "uncertain": "the rows with several successors",
    "states": "the states: for one deterministic policy",
    "joint": "nothing: one promise for all rows together",
    "policy": "the rows of one policy",
}
"""What delta is shared over, in words."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Confidence(Shown):
    """The probability with which the true model lies in a set, and what that rests on.

    Bayesian: except with probability ``eta`` over the Monte Carlo draws (marginal rule: on average
    over them), the posterior probability of models outside the set is at most ``delta``.
    Frequentist: whatever the true model, the probability of data whose set does not contain it is
    at most ``delta``.

    Attributes
    ----------
    basis
        ``"bayesian"`` or ``"frequentist"``.
    delta
        The probability that the promise fails.
    kind
        The bound or norm from which the sizes were computed.
    union
        What delta is shared over: ``"all"``, ``"uncertain"`` rows, ``"states"`` (a promise for the
        rows of one deterministic policy only), ``"joint"`` or the rows of one ``"policy"``.
    eta
        The probability that the Monte Carlo itself fails; None where it is not used.
    rule
        ``"strict"`` or ``"marginal"``; None for frequentist sets.
    draws, shape_draws
        The number of posterior draws used for the sizes, and for the shapes.
    seed
        The seed of all draws.
    weights
        How the weights were chosen.
    scale
        How they are scaled: ``"one"`` (all 1), ``"unit"`` (2-norm 1 in every row), ``"given"``.
    support
        Where the reachable successors come from, as in `Counts.on_support`; "" where they are known
        without a log.
    reward_law
        What the intervals of uncertain mean rewards assume: ``"normal"``, ``"bounded"`` (within a
        given range), ``"seen"`` (within the range seen) or "" where rewards are certain.
    filled_low
        Whether rewards that were never seen are set to the lowest reward seen.
    findings
        What the promise assumes beyond the model itself.
    seal
        Fingerprint of the numbers of the set that this confidence belongs to.

    Examples
    --------
    >>> Confidence(basis="frequentist", delta=0.05, kind="kl", union="uncertain").delta
    0.05
    """

    basis: str
    delta: float
    kind: str
    union: str
    eta: float | None = None
    rule: str | None = None
    draws: int | None = None
    shape_draws: int = 0
    seed: int | None = None
    weights: str = "uniform"
    scale: str = "one"
    support: str = ""
    reward_law: str = ""
    filled_low: bool = False
    findings: tuple[Finding, ...] = ()
    seal: str = ""

    def __post_init__(self) -> None:
        check_choice("basis", self.basis, BASES)
        check_inside("delta", self.delta)

    def _facts(self) -> list[tuple[str, str]]:
        facts = [("delta shared over", SHARED.get(self.union, self.union))]
        if self.draws is not None:
            shape = f", {self.shape_draws:,} for the shapes" if self.shape_draws else ""
            facts.append(("posterior draws", f"{self.draws:,} for the sizes{shape}"))
        if self.eta is not None:
            facts.append(("Monte Carlo", f"fails with probability {self.eta:g}; {self.rule} rule"))
        return [*facts, ("weights", f"{self.weights}, scale {self.scale}")]

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The findings in sentences."""
        return texts_of(self.findings, *LEVELS)

    def _remarks(self) -> tuple[Finding, ...]:
        return self.findings

    def __repr__(self) -> str:
        return f"Confidence({self.basis}, {self.kind}, delta {self.delta:g})"


def seal_of(confidence: Confidence, *numbers: Any) -> str:
    """Return a fingerprint that changes with any number of a set or field of its confidence."""
    said = [
        f"{field.name}={getattr(confidence, field.name)!r}"
        for field in fields(confidence)
        if field.name != "seal"
    ]
    return fingerprint(";".join(said), *numbers)
