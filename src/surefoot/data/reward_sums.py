"""Sums of rewards that do not depend on the order in which they are added.

Each reward is rounded once, to a whole multiple of ``10**-digits``, and the multiples are summed as
wide integers. The scale follows from the largest reward: at least 12 of its digits are kept. Means
and variances are then the correctly rounded quotients of exact sums, whatever the number of
threads, the order of the rows or their distribution over files; adding counts adds the sums. Where
all rewards of an entry are equal, the mean is that reward to the last bit.

Most logs have rewards of a few decimals. Trailing zeros that all sums share are dropped, and what
is left then fits into 64 bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd
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
"""The scale stops here: rewards that are all smaller than ``10**LEAST_TOP`` are as good as 0."""
KEPT = 15
"""Multiples have at most this many digits."""
LIMB = 32
"""Integers are stored in files as parts of this many bits."""
EXACT = 2.0**53
"""Whole numbers up to this are exact as floating-point numbers."""
MOST_SMALL = 7
"""Up to this many decimals, the square of one unit is exact too."""
MOST_ZEROS = 18
"""The number of zeros of the largest power of ten that fits into 64 bits."""
SOME = 64
"""How many sums are examined first, before all of them."""


def digits_for(largest: float) -> int:
    """Return the decimal places to which rewards are rounded, given the largest absolute reward.

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
    decimals
        Sums are in units of ``10**-decimals``; at most ``digits``.
    count
        ``(E,)``: the number of rewards.
    total, square
        ``(E,)`` integers, int64 or Python's: the sums of rewards, and of their squares in units of
        ``100**-decimals``.
    lowest, highest
        ``(E,)``: the range of the rewards, not rounded.

    Examples
    --------
    >>> one = np.array([1])
    >>> sums = RewardSums(digits=1, decimals=1, count=2 * one, total=4 * one, square=10 * one,
    ...     lowest=0.1 * one, highest=0.3 * one)
    >>> [part.tolist() for part in sums.statistics()]  # of 0.1 and 0.3
    [[0.2], [0.02]]
    """

    digits: int
    decimals: int
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
        small = self._small[varied]
        for part, quotient in ((varied[small], _quotient), (varied[~small], _scaled)):
            if len(part) == 0:
                continue
            size, total, square = (
                x[part] if quotient is _quotient else x[part].astype(object)
                for x in (self.count, self.total, self.square)
            )
            middle = quotient(total, size, self.decimals)
            mean[part] = np.clip(middle, self.lowest[part], self.highest[part])
            apart = size * square - total * total
            variance[part] = quotient(apart, size * (size - 1), 2 * self.decimals)
        return RewardStatistics(mean, variance)

    @property
    def _small(self) -> NDArray[np.bool_]:
        """``(E,)``: where numerators and denominators of mean and variance are exact as floats."""
        wide = self.total.dtype == object or self.square.dtype == object
        if wide or not 0 <= self.decimals <= MOST_SMALL:
            return np.zeros(len(self.count), dtype=np.bool_)
        size = self.count.astype(np.float64)
        unit = 10.0 ** (2 * self.decimals)
        return (size * self.square < EXACT) & (size * size * unit < EXACT)

    def grouped(self, group: Ints, size: int) -> "RewardSums":
        """Return the sums of groups of entries; ``group`` numbers the group of each entry."""
        if size == len(group) and np.array_equal(group, np.arange(size)):
            return self
        count = np.zeros(size, dtype=np.int64)
        np.add.at(count, group, self.count)
        total, square = np.zeros(size, dtype=object), np.zeros(size, dtype=object)
        np.add.at(total, group, self.total)
        np.add.at(square, group, self.square)
        lowest, highest = np.full(size, np.nan), np.full(size, np.nan)
        np.fmin.at(lowest, group, self.lowest)
        np.fmax.at(highest, group, self.highest)
        return RewardSums(
            digits=self.digits, decimals=self.decimals, count=count, total=total, square=square,
            lowest=lowest, highest=highest,
        ).reduced()  # fmt: skip

    def reduced(self) -> "RewardSums":
        """Return the same sums in the largest unit, up to 1, that all of them are multiples of.

        That depends on the sums alone, not on how they were added.
        """
        spare = min(self.decimals, zeros(self.total), zeros(self.square) // 2)
        total, square = self.total, self.square
        if spare > 0:
            total, square = total // 10**spare, square // 100**spare
        return replace(
            self, decimals=self.decimals - max(spare, 0), total=_in_64_bits(total),
            square=_in_64_bits(square),
        )  # fmt: skip

    def in_units(self, decimals: int) -> "RewardSums":
        """Return the same sums in a smaller unit; nothing is rounded."""
        if decimals == self.decimals:
            return self
        factor = 10 ** (decimals - self.decimals)
        total, square = (x.astype(object) for x in (self.total, self.square))
        return replace(
            self, decimals=decimals, total=total * factor, square=square * (factor * factor)
        )


def zeros(integers: Objects) -> int:
    """Return how many decimal zeros all integers end in; ``MOST_ZEROS`` if all are 0.

    Examples
    --------
    >>> zeros(np.array([1200, 50, 0]))
    1
    """
    common = gcd(*integers[:SOME].tolist())
    if common == 0 or common % 10 == 0:
        common = gcd(common, *integers[SOME:].tolist())
    return len(str(common)) - len(str(common).rstrip("0")) if common else MOST_ZEROS


def _in_64_bits(integers: Objects) -> Objects:
    """Return integers as int64 if they are small enough to be added up."""
    if integers.dtype == object and all(abs(x) < EXACT for x in integers):
        return integers.astype(np.int64)
    return integers


def join(parts: Sequence[RewardSums]) -> RewardSums:
    """Return the entries of all parts, one after the other, in the smallest of their units."""
    decimals = max(part.decimals for part in parts)
    alike = [part.in_units(decimals) for part in parts]
    return RewardSums(
        digits=max(part.digits for part in parts),
        decimals=decimals,
        **{
            name: np.concatenate([getattr(part, name) for part in alike])
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


def _quotient(numerator: Ints, denominator: Ints, digits: int) -> Floats:
    """Return the same for numbers below 2**53, whose floating-point quotient is rounded once."""
    return np.asarray(numerator / (denominator * 10.0**digits))


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
    """Return how many limbs the largest of some integers needs."""
    longest = max((int(value).bit_length() for value in integers), default=0)
    return longest // LIMB + 1
