"""The result of checking one assumption about a log."""

from dataclasses import dataclass

from surefoot._findings import Finding

ALARM = 0.01
"""A corrected p-value below this becomes a warning."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One checked assumption.

    Attributes
    ----------
    name
        ``"memory"`` (Markov property), ``"drift"`` or ``"old and new data"``.
    p_value
        Corrected for the rows and the checks tried; None where it could not be checked.
    tried
        The number of rows with enough data.
    finding
        What was found.
    """

    name: str
    p_value: float | None
    tried: int
    finding: Finding

    @property
    def sentence(self) -> str:
        """What was found, as a sentence."""
        return self.finding.text

    @property
    def warns(self) -> bool:
        """Whether the assumption looks wrong."""
        return self.p_value is not None and self.p_value < ALARM
