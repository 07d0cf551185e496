"""Distributions of a world's rewards around their means."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

KINDS = ("fixed", "bernoulli", "normal", "lognormal", "catastrophe")
SHAPE = 1.0
"""The standard deviation of the logarithm of a log-normal reward."""


@dataclass(frozen=True, kw_only=True)
class RewardLaw:
    """The distribution of a reward, given its mean. The model of a world holds the means.

    Attributes
    ----------
    kind
        ``"fixed"``: the mean itself. ``"bernoulli"``: ``low`` or ``high``. ``"normal"``: standard
        deviation ``scale``. ``"lognormal"``: the mean minus a centred log-normal loss of mean
        ``|scale|`` before centring (for a negative ``scale``, plus such a gain).
        ``"catastrophe"``: ``low`` with probability ``chance``, otherwise the constant that gives
        the right mean.
    low, high, scale, chance
        Its parameters.

    Examples
    --------
    >>> law = RewardLaw(kind="bernoulli", low=0.0, high=1.0)
    >>> law.draw(np.full(4, 0.5), np.random.default_rng(0)).tolist()
    [0.0, 1.0, 1.0, 1.0]
    """

    kind: str = "fixed"
    low: float = 0.0
    high: float = 1.0
    scale: float = 1.0
    chance: float = 0.005

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind={self.kind!r}; choose one of {', '.join(map(repr, KINDS))}.")

    @property
    def bounded(self) -> bool:
        """Whether a range can be declared."""
        return self.kind not in ("normal", "lognormal")

    def range(self, means: Floats) -> tuple[float, float] | None:
        """Return the smallest range that contains all rewards; None if unbounded."""
        lowest, highest = float(means.min()), float(means.max())
        if self.kind == "fixed":
            return lowest, highest
        if self.kind == "bernoulli":
            return self.low, self.high
        if self.kind == "catastrophe":
            return self.low, float(self._usual(np.array(highest)))
        return None

    def draw(self, mean: Floats, rng: np.random.Generator) -> Floats:
        """Return a reward for each mean."""
        if self.kind == "bernoulli":
            chance = (mean - self.low) / (self.high - self.low)
            return np.where(rng.random(mean.shape) < chance, self.high, self.low)
        if self.kind == "normal":
            return mean + self.scale * rng.standard_normal(mean.shape)
        if self.kind == "lognormal":
            skewed = np.exp(SHAPE * rng.standard_normal(mean.shape) - SHAPE**2 / 2)
            return np.asarray(mean - self.scale * (skewed - 1.0))
        if self.kind == "catastrophe":
            struck = rng.random(mean.shape) < self.chance
            return np.where(struck, self.low, self._usual(mean))
        return np.array(mean, dtype=np.float64)

    def _usual(self, mean: Floats) -> Floats:
        """Return the reward of a step without catastrophe."""
        return np.asarray((mean - self.chance * self.low) / (1.0 - self.chance))
