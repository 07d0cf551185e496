"""Sums of rewards that do not depend on the order in which they are added.

Each reward is rounded once, to a whole multiple of ``10**-digits``, and the multiples are summed as
wide integers. The scale follows from the largest reward: at least 12 of its digits are kept. Means
and variances are then the correctly rounded quotients of exact sums, whatever the number of
threads, the order of the rows or their distribution over files; adding counts adds the sums. Where
all rewards of an entry are equal, the mean is that reward to the last bit.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot._rows import Ints, freeze_fields
from surefoot.data.rewards import RewardStatistics, range_per_action

Floats = NDArray[np.float64]
Objects = NDArray[Any]

STEP = 3
"""Scales change with every factor of 1000 in the largest reward."""
UNIT_TOP = 2
"""One scale serves largest rewards above 0.1 and up to ``10**UNIT_TOP``; most logs use it."""
LEAST_TOP = -280
"""Rewards that are all smaller than ``10**LEAST_TOP`` are as good as 0."""
KEPT = 15
"""Multiples have at most this many digits."""
LIMB = 32
"""Integers are stored in files as parts of this many bits."""


def digits_for(largest: float) -> int:
    """Return the decimal places to which rewards are rounded, given the largest in size.

    Examples
    --------
    >>> digits_for(1.0), digits_for(100.0), digits_for(2500.0), digits_for(1e-5)
    (13, 13, 10, 19)
    """
    top = UNIT_TOP
    if largest > 0:
        while largest > float(f"1e{top}"):
            top += STEP
        while top > LEAST_TOP and largest <= float(f"1e{top - STEP}"):
            top -= STEP
    return KEPT - top


@dataclass(frozen=True, kw_only=True, eq=False)
class RewardSums:
    """Exact sums of the rewards of each entry.

    Attributes
    ----------
    digits
        Rewards were rounded to multiples of ``10**-digits``.
    count
        ``(E,)``: how many rewards.
    total, square
        ``(E,)`` Python integers: the sums of the multiples and of their squares.
    lowest, highest
        ``(E,)``: the range of the rewards, not rounded.

    Examples
    --------
    >>> one = np.array([1])
    >>> sums = RewardSums(digits=1, count=2 * one, total=np.array([4], object),
    ...     square=np.array([10], object), lowest=0.1 * one, highest=0.3 * one)
    >>> [part.tolist() for part in sums.statistics()]  # of 0.1 and 0.3
    [[0.2], [0.02]]
    """

    digits: int
    count: Ints
    total: Objects
    square: Objects
    lowest: Floats
    highest: Floats

    def __post_init__(self) -> None:
        freeze_fields(self)

    def statistics(self) -> RewardStatistics:
        """Return means and sample variances, each rounded once."""
        mean = np.array(self.lowest)
        variance = np.where(self.count > 1, 0.0, np.nan)
        varied = np.flatnonzero((self.lowest < self.highest) & (self.count > 0))
        if len(varied):
            size = self.count[varied].astype(object)
            total, square = self.total[varied], self.square[varied]
            middle = _scaled(total, size, self.digits)
            mean[varied] = np.clip(middle, self.lowest[varied], self.highest[varied])
            apart = size * square - total * total
            variance[varied] = _scaled(apart, size * (size - 1), 2 * self.digits)
        return RewardStatistics(mean, variance)

    def grouped(self, group: Ints, size: int) -> "RewardSums":
        """Return the sums of groups of entries; ``group`` numbers the group of each entry."""
        count = np.zeros(size, dtype=np.int64)
        np.add.at(count, group, self.count)
        total, square = np.zeros(size, dtype=object), np.zeros(size, dtype=object)
        np.add.at(total, group, self.total)
        np.add.at(square, group, self.square)
        lowest, highest = np.full(size, np.nan), np.full(size, np.nan)
        np.fmin.at(lowest, group, self.lowest)
        np.fmax.at(highest, group, self.highest)
        return RewardSums(
            digits=self.digits, count=count, total=total, square=square,
            lowest=lowest, highest=highest,
        )  # fmt: skip

    def at_scale(self, digits: int) -> "RewardSums":
        """Return the same sums as multiples of a finer scale; nothing is rounded."""
        factor = 10 ** (digits - self.digits)
        return RewardSums(
            digits=digits, count=self.count, total=self.total * factor,
            square=self.square * (factor * factor), lowest=self.lowest, highest=self.highest,
        )  # fmt: skip


def join(first: RewardSums, second: RewardSums) -> RewardSums:
    """Return the entries of both, one list after the other, on the finer of their scales."""
    digits = max(first.digits, second.digits)
    parts = (first.at_scale(digits), second.at_scale(digits))
    return RewardSums(
        digits=digits,
        **{
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in ("count", "total", "square", "lowest", "highest")
        },
    )


def reward_fields(sums: RewardSums, action: Ints, num_actions: int) -> dict[str, Any]:
    """Return the fields of counts that hold rewards; ``action`` is the action of each entry."""
    mean, variance = sums.statistics()
    lowest, _ = range_per_action(action, sums.lowest, num_actions)
    _, highest = range_per_action(action, sums.highest, num_actions)
    return {
        "reward_mean": mean, "reward_var": variance, "reward_low": lowest, "reward_high": highest,
        "reward_sums": sums,
    }  # fmt: skip


def _scaled(numerator: Objects, denominator: Objects, digits: int) -> Floats:
    """Return ``numerator / denominator / 10**digits``; Python rounds such a quotient once."""
    if digits >= 0:
        return np.asarray(numerator / (denominator * 10**digits), dtype=np.float64)
    return np.asarray(numerator * 10**-digits / denominator, dtype=np.float64)


def to_limbs(integers: Objects, limbs: int) -> Ints:
    """Return ``(E, limbs)`` parts of Python integers, lowest first; the last carries the sign."""
    parts, rest = [], integers
    for _ in range(limbs - 1):
        parts.append((rest & (2**LIMB - 1)).astype(np.int64))
        rest = rest >> LIMB
    return np.stack([*parts, rest.astype(np.int64)], axis=1).reshape(-1, limbs)


def from_limbs(parts: Ints) -> Objects:
    """Undo :func:`to_limbs`."""
    whole = np.zeros(len(parts), dtype=object)
    for column in reversed(range(parts.shape[1])):
        whole = whole * 2**LIMB + parts[:, column].astype(object)
    return whole


def limbs_needed(integers: Objects) -> int:
    """Return how many limbs the largest of some integers takes."""
    longest = max((int(value).bit_length() for value in integers), default=0)
    return longest // LIMB + 1
