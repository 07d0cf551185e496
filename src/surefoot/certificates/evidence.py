"""Facts that accompany a promise: how the log was divided, what choosing cost, what the log shows.

All amounts are in the units of the certificate they belong to; ``mirrored`` turns rewards into
costs. A gain and a backtest's advantage measure improvement: they have the same sign for both.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.certificates.json_fields import NOT_KEPT

BACKTEST_LEVEL = 0.01
"""A backtest fails if its p-value is below this level, which its tests share."""


@dataclass(frozen=True, kw_only=True)
class Split:
    """How the log was divided into a part that chose the policy and one that certified it.

    Attributes
    ----------
    by
        ``"episodes"``, ``"time"`` or ``"transitions"``.
    choosing, certifying
        How many of these each part has.
    seed
        The seed that assigned them to the parts; None for a division in time.
    """

    by: str
    choosing: int
    certifying: int
    seed: int | None = None


@dataclass(frozen=True, kw_only=True)
class Curse:
    """How much choosing on the same data flatters the policy; it is subtracted from the promise.

    Attributes
    ----------
    mean
        The mean difference between halves of the log, scaled to the size of the whole; at least 0.
    spread
        The standard error of ``mean``.
    differences
        ``(2 H,)``: ``v_X(pi_X) - v_Y(pi_X)``, two for each pair of halves; not stored in files.
    """

    mean: float
    spread: float
    differences: NDArray[np.float64] = field(
        default_factory=lambda: np.empty(0), compare=False, repr=False, metadata=NOT_KEPT
    )


@dataclass(frozen=True, kw_only=True)
class Earned:
    """What behaviour earned per episode, as the log shows it.

    Attributes
    ----------
    mean
        The mean of what was seen; None without episodes.
    lower, upper
        Bounds on the mean, each wrong with probability ``delta``; None if there is no interval.
    delta
        The failure probability of each bound.
    episodes, cut
        How many episodes there are, and how many of them did not reach a terminal state.
    slack
        How much wider the interval is because of what the cut episodes did not show.
    horizon
        None for whole returns; otherwise the bounds are about this many first steps.
    reason
        Why there is no interval; None if there is one.
    """

    mean: float | None
    lower: float | None
    upper: float | None
    delta: float
    episodes: int
    cut: int = 0
    slack: float = 0.0
    horizon: int | None = None
    reason: str | None = None

    def mirrored(self) -> "Earned":
        """Convert rewards to costs, or back."""
        mean, lower, upper = minus(self.mean), minus(self.upper), minus(self.lower)
        return replace(self, mean=mean, lower=lower, upper=upper)


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A mean with a lower and an upper bound.

    Examples
    --------
    >>> Interval(mean=2.0, lower=1.0, upper=4.0).mirrored()
    Interval(mean=-2.0, lower=-4.0, upper=-1.0)
    """

    mean: float
    lower: float
    upper: float

    def mirrored(self) -> "Interval":
        """Convert an interval of rewards into one of costs, or back."""
        return Interval(mean=0.0 - self.mean, lower=0.0 - self.upper, upper=0.0 - self.lower)


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """What the log's own decisions earned: by its episodes, and by the model."""

    log: Earned | None = None
    model: Interval | None = None

    def mirrored(self) -> "Behaviour":
        """Convert rewards to costs, or back."""
        return Behaviour(
            log=None if self.log is None else self.log.mirrored(),
            model=None if self.model is None else self.model.mirrored(),
        )


@dataclass(frozen=True, kw_only=True)
class Gain:
    """A lower bound on how much better the policy is than what was done in the log.

    Attributes
    ----------
    lower_bound
        The policy's lower bound minus behaviour's upper bound; None if nothing can be said.
    promise, behaviour
        These two bounds.
    delta_policy, delta_behaviour
        Their failure probabilities; the gain fails with probability at most their sum, however the
        two depend on each other.
    horizon
        None for whole returns; otherwise the gain over this many first steps.
    reason
        Why there is no number; None if there is one.
    """

    lower_bound: float | None
    promise: float | None
    behaviour: float | None
    delta_policy: float
    delta_behaviour: float
    horizon: int | None = None
    reason: str | None = None

    def mirrored(self) -> "Gain":
        """Convert rewards to costs, or back; the gain itself keeps its sign."""
        return replace(self, promise=minus(self.promise), behaviour=minus(self.behaviour))


@dataclass(frozen=True, kw_only=True)
class NewSuccessors:
    """How often the held-out part shows successors that the other part never saw.

    Attributes
    ----------
    seen, expected
        Held-out transitions to successors that the other part did not see in the row: how many, and
        how many its posterior expected.
    tried
        Held-out transitions in rows that the other part saw at all.
    p_value
        The probability of this many or more; small if the posterior leaves too little mass.
    """

    seen: int
    expected: float
    tried: int
    p_value: float


@dataclass(frozen=True, kw_only=True)
class Advantage:
    """What the held-out part says about the steps that the policy takes.

    Attributes
    ----------
    statistic
        How much better these steps were than the other part expected; negative if worse.
    error
        The standard error of ``statistic``.
    uncovered
        The share of the policy's visits that the held-out part cannot test.
    p_value
        One-sided: small if the steps were worse than expected. None if there are no such steps.
    """

    statistic: float
    error: float
    uncovered: float
    p_value: float | None


@dataclass(frozen=True, kw_only=True)
class HeldOutRewards:
    """What held-out steps brought, compared with the other part's distribution of mean rewards.

    Attributes
    ----------
    statistic
        How much more than expected a step brought on average; negative if less.
    error
        The standard deviation of the predictive distribution of ``statistic``.
    tried
        The number of held-out steps whose mean reward is uncertain.
    p_value
        One-sided: the probability of a result this low or lower.
    """

    statistic: float
    error: float
    tried: int
    p_value: float


@dataclass(frozen=True, kw_only=True)
class Backtest:
    """Up to three tests, on a held-out part of the log, of a policy chosen without that part.

    A failed test speaks against the promise; a passed one is no proof.

    Examples
    --------
    >>> few = NewSuccessors(seen=9, expected=2.0, tried=100, p_value=0.001)
    >>> Backtest(new_successors=few, advantage=None).failed
    True
    """

    new_successors: NewSuccessors | None
    advantage: Advantage | None
    rewards: HeldOutRewards | None = None
    level: float = BACKTEST_LEVEL

    @property
    def p_values(self) -> tuple[float, ...]:
        """The p-values of the tests that ran."""
        tests = (self.new_successors, self.advantage, self.rewards)
        found = (None if test is None else test.p_value for test in tests)
        return tuple(p for p in found if p is not None)

    @property
    def p_value(self) -> float | None:
        """The smallest p-value times the number of tests (Bonferroni); None if none ran."""
        return min(1.0, len(self.p_values) * min(self.p_values)) if self.p_values else None

    @property
    def failed(self) -> bool:
        """Whether the held-out part contradicts the model."""
        return self.p_value is not None and self.p_value < self.level

    def fails(self, test: NewSuccessors | Advantage | HeldOutRewards | None) -> bool:
        """Return whether one test failed at its share of the level."""
        p_value = None if test is None else test.p_value
        return p_value is not None and p_value < self.level / len(self.p_values)


@dataclass(frozen=True, kw_only=True)
class Cause:
    """One cause of doubt.

    Attributes
    ----------
    amount
        How far it moves the promise away from the averages; the amounts of all causes add up.
    error
        The standard error of the amount.
    promise_without
        What could be promised if this cause alone were removed.
    """

    amount: float
    error: float
    promise_without: float


CAUSES = ("transitions", "unseen", "rewards", "first_state", "choosing", "monte_carlo")
"""All causes of doubt, in the order in which tables list them."""


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """The distance between the averages of the log and the promise, by cause.

    Attributes
    ----------
    as_seen
        The policy's return if the averages of the log were exact: every row and reward as it was on
        average, and nothing else possible. This is neither a promise nor an unbiased estimate.
    draws
        The posterior draws behind the breakdown.
    transitions
        The probabilities of the successors that were seen.
    unseen
        What was never observed: how likely it is, and where it leads.
    rewards
        The mean rewards.
    first_state
        The distribution of the first state.
    choosing
        The luck of choosing on the same data that certify.
    monte_carlo
        The limited number of draws, of the promise and of this breakdown.

    Examples
    --------
    >>> cause = Cause(amount=2.0, error=0.1, promise_without=9.5)
    >>> doubt = Doubt(as_seen=10.0, draws=500, transitions=cause)
    >>> doubt.total, doubt.mirrored().as_seen, doubt.mirrored().transitions.promise_without
    (2.0, -10.0, -9.5)
    """

    as_seen: float
    draws: int
    transitions: Cause | None = None
    unseen: Cause | None = None
    rewards: Cause | None = None
    first_state: Cause | None = None
    choosing: Cause | None = None
    monte_carlo: Cause | None = None

    @property
    def causes(self) -> dict[str, Cause]:
        """The causes that are present, by name."""
        found = ((name, getattr(self, name)) for name in CAUSES)
        return {name: cause for name, cause in found if cause is not None}

    @property
    def total(self) -> float:
        """The sum of all amounts."""
        return sum(cause.amount for cause in self.causes.values())

    def mirrored(self) -> "Doubt":
        """Convert rewards to costs, or back; the amounts keep their sign."""
        turned: dict[str, Any] = {
            name: replace(cause, promise_without=0.0 - cause.promise_without)
            for name, cause in self.causes.items()
        }
        return replace(self, as_seen=0.0 - self.as_seen, **turned)


@dataclass(frozen=True, kw_only=True)
class Tilted:
    """The return of a policy between what was done and what was chosen: by episodes and by model.

    Attributes
    ----------
    share
        The probability with which the chosen policy decides; otherwise behaviour decides.
    log, error
        The policy's return by the reweighted episodes of the log, and its standard error.
    model
        The policy's return by the averages of the log.
    episodes
        The effective number of episodes after reweighting.

    Examples
    --------
    >>> Tilted(share=0.25, log=1.0, error=0.1, model=1.5, episodes=80.0).surprise
    -5.0
    """

    share: float
    log: float
    error: float
    model: float
    episodes: float

    @property
    def surprise(self) -> float:
        """How many standard errors the return by the episodes lies above that by the model."""
        return (self.log - self.model) / self.error if self.error > 0 else 0.0

    def mirrored(self) -> "Tilted":
        """Convert rewards to costs, or back."""
        return replace(self, log=0.0 - self.log, model=0.0 - self.model)


def minus(value: float | None) -> float | None:
    """Return a number with the opposite sign, or None for None.

    Examples
    --------
    >>> minus(2.0), minus(0.0), minus(None)
    (-2.0, 0.0, None)
    """
    return None if value is None else 0.0 - value
