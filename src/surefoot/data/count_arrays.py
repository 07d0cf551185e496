"""The arrays that counts store, by row and entry, and properties that follow directly from them.

The methods of `surefoot.data.counts.Counts` are implemented in other modules, which take these
arrays and so need not import `Counts`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from surefoot._rows import Ints, RowSparse, freeze_fields
from surefoot.data import rewards
from surefoot.data.packed_rows import check_counts
from surefoot.data.reward_sums import RewardSums

if TYPE_CHECKING:
    from surefoot.data.check import Check
    from surefoot.data.log import Log

Label = Hashable
Floats = NDArray[np.float64]

UNSEEN, LEARNED = "unseen", "learned"
"""Supports in which a state stands for successors never seen."""


@dataclass(frozen=True, kw_only=True)
class SupportReport:
    """What a choice of support did; shown in the summary.

    Attributes
    ----------
    support
        ``"observed"``, ``"action"``, ``"all"``, ``"unseen"``, ``"learned"``, or ``"listed"`` for a
        given one.
    unvisited, min_visits
        The options used.
    unvisited_rows
        State-action pairs never tried: not offered (``"drop"``) or left to the prior.
    thin_rows
        Rows tried fewer than ``min_visits`` times, not offered.
    stuck_states
        States without any row left, made absorbing at the lowest reward.
    filled_rewards
        Entries without a known reward, which got the lowest reward seen under their action.
    lowest_reward
        The reward of stuck and unseen states; None where the log has no rewards.
    lowered_rewards
        Whether patterns predicted rewards at their lower ends.
    """

    support: str
    unvisited: str
    min_visits: int
    unvisited_rows: int
    thin_rows: int
    stuck_states: int
    filled_rewards: int
    lowest_reward: float | None
    lowered_rewards: bool = False

    @property
    def filled_low(self) -> bool:
        """Whether something never seen got a reward that is low on purpose: kind to costs."""
        filled = self.stuck_states > 0 or self.filled_rewards > 0 or self.lowered_rewards
        return self.support in (UNSEEN, LEARNED) or filled


class Entries(NamedTuple):
    """Parallel arrays of (state, action, successor) ids."""

    state: Ints
    action: Ints
    successor: Ints

    def where(self, chosen: NDArray[np.bool_]) -> Entries:
        """Return the chosen entries."""
        return Entries(*(column[chosen] for column in self))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CountArrays(RowSparse):
    """The fields of `surefoot.data.counts.Counts`, which documents them."""

    state_start: Ints
    row_action: Ints
    row_start: Ints
    successor: NDArray[np.int32]
    count: NDArray[Any]
    num_actions: int
    declared: bool = False
    state_labels: tuple[Label, ...] | None = None
    action_labels: tuple[Label, ...] | None = None
    reward_mean: Floats | None = None
    reward_var: Floats | None = None
    reward_low: Floats | None = None
    reward_high: Floats | None = None
    reward_model: str = "fixed"
    reward_range: tuple[float, float] | None = None
    reward_sums: RewardSums | None = None
    given: rewards.GivenRewards | None = None
    starts: Ints | None = None
    terminal: NDArray[np.bool_] | None = None
    unseen: int | None = None
    report: SupportReport | None = None
    log: Log | None = None

    def __post_init__(self) -> None:
        freeze_fields(self)
        check_counts(self)

    @cached_property
    def visits(self) -> NDArray[Any]:
        """``(R,)``: how often each row was tried."""
        if self.num_rows == 0:
            return self.count[:0]
        return np.add.reduceat(self.count, self.row_start[:-1])

    @cached_property
    def is_terminal(self) -> NDArray[np.bool_]:
        """``(S,)``: which states end an episode."""
        return np.zeros(self.num_states, np.bool_) if self.terminal is None else self.terminal

    @property
    def has_rewards(self) -> bool:
        """Whether rewards were seen or given."""
        return self.reward_mean is not None

    @property
    def rewards_vary(self) -> bool:
        """Whether some entry showed more than one reward."""
        return self.reward_var is not None and bool(np.any(self.reward_var > 0))

    @cached_property
    def lowest_reward(self) -> float | None:
        """The lowest reward a step can bring; a terminal state brings 0. None without rewards."""
        return rewards.lowest(self)

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checks of the log's assumptions; empty for counts without a log."""
        return () if self.log is None else self.log.checks


SomeCounts = TypeVar("SomeCounts", bound=CountArrays)
"""A subclass of counts: functions that make new counts from old ones keep the class."""
