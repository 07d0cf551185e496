"""What stands beside a promise: how the log was divided, what choosing cost, what the log shows.

All amounts are in the units of the certificate they belong to; ``mirrored`` turns rewards into
costs. A gain and a backtest's advantage count what is better: they are the same for both.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.certificates.json_fields import NOT_KEPT

BACKTEST_LEVEL = 0.01
"""A backtest fails below this, shared by its tests."""


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
        What decided which part each went to; None for a division in time.
    """

    by: str
    choosing: int
    certifying: int
    seed: int | None = None


@dataclass(frozen=True, kw_only=True)
class Curse:
    """What choosing the policy on the same data cost, taken off the promise.

    Attributes
    ----------
    mean
        The mean difference between halves of the log, for the size of the whole; not below 0.
    spread
        Its standard error.
    differences
        ``(2 H,)``: ``v_X(pi_X) - v_Y(pi_X)``, two for each pair of halves; files do not keep them.
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
        Each is wrong with probability ``delta``; None where there is no interval.
    delta
        The failure probability of each end.
    episodes, cut
        How many episodes, and how many of them did not reach a terminal state.
    slack
        How much wider the interval is for what the cut episodes did not show.
    horizon
        None for whole returns; else both ends are about this many first steps.
    reason
        Why there is no interval; None where there is one.
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
        """Return the same about costs, or about rewards."""
        mean, lower, upper = minus(self.mean), minus(self.upper), minus(self.lower)
        return replace(self, mean=mean, lower=lower, upper=upper)


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A mean with a lower and an upper end.

    Examples
    --------
    >>> Interval(mean=2.0, lower=1.0, upper=4.0).mirrored()
    Interval(mean=-2.0, lower=-4.0, upper=-1.0)
    """

    mean: float
    lower: float
    upper: float

    def mirrored(self) -> "Interval":
        """Return the interval of costs for one of rewards, and the other way round."""
        return Interval(mean=0.0 - self.mean, lower=0.0 - self.upper, upper=0.0 - self.lower)


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """What the log's own decisions earned: as its episodes show, and as the model has it."""

    log: Earned | None = None
    model: Interval | None = None

    def mirrored(self) -> "Behaviour":
        """Return the same about costs, or about rewards."""
        return Behaviour(
            log=None if self.log is None else self.log.mirrored(),
            model=None if self.model is None else self.model.mirrored(),
        )


@dataclass(frozen=True, kw_only=True)
class Gain:
    """How much better than what was done in the log the policy is, at least.

    Attributes
    ----------
    lower_bound
        The policy's lower bound less behaviour's upper one; None where nothing can be said.
    promise, behaviour
        The two numbers.
    delta_policy, delta_behaviour
        Their failure probabilities; the gain fails with at most their sum, however the two depend
        on each other.
    horizon
        None for whole returns; else the gain over this many first steps.
    reason
        Why there is no number; None where there is one.
    """

    lower_bound: float | None
    promise: float | None
    behaviour: float | None
    delta_policy: float
    delta_behaviour: float
    horizon: int | None = None
    reason: str | None = None

    def mirrored(self) -> "Gain":
        """Return the same about costs, or about rewards: better stays better."""
        return replace(self, promise=minus(self.promise), behaviour=minus(self.behaviour))


@dataclass(frozen=True, kw_only=True)
class NewSuccessors:
    """How often the held-out part went where the other never did.

    Attributes
    ----------
    seen, expected
        Held-out transitions to successors that the other part did not see in the row: how many, and
        how many its posterior expected.
    tried
        Held-out transitions in rows that the other part saw at all.
    p_value
        The probability of this many or more; small where the posterior leaves too little mass.
    """

    seen: int
    expected: float
    tried: int
    p_value: float


@dataclass(frozen=True, kw_only=True)
class Advantage:
    """What the held-out part says of the steps that the policy takes.

    Attributes
    ----------
    statistic
        How much better these steps were than the other part expected; negative where worse.
    error
        Its standard error.
    uncovered
        The share of the policy's visits in states where the held-out part has no step of it.
    p_value
        One-sided: small where the steps were worse than expected. None without any.
    """

    statistic: float
    error: float
    uncovered: float
    p_value: float | None


@dataclass(frozen=True, kw_only=True)
class HeldOutRewards:
    """What held-out steps brought, against the law of mean rewards that the other part gives.

    Attributes
    ----------
    statistic
        How much more than expected a step brought on average; negative where less.
    error
        The standard deviation of its predictive law.
    tried
        Held-out steps whose mean reward is uncertain.
    p_value
        One-sided: the probability of so little or less.
    """

    statistic: float
    error: float
    tried: int
    p_value: float


@dataclass(frozen=True, kw_only=True)
class Backtest:
    """The policy chosen without a part of the log, looked at on that part: three tests.

    A failed one speaks against the promise; a passed one is no proof.

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
        """Those of the tests that ran."""
        tests = (self.new_successors, self.advantage, self.rewards)
        found = (None if test is None else test.p_value for test in tests)
        return tuple(p for p in found if p is not None)

    @property
    def p_value(self) -> float | None:
        """The smallest p-value times the number of tests (Bonferroni); None where none ran."""
        return min(1.0, len(self.p_values) * min(self.p_values)) if self.p_values else None

    @property
    def failed(self) -> bool:
        """Whether the held-out part contradicts the model."""
        return self.p_value is not None and self.p_value < self.level

    def fails(self, test: NewSuccessors | Advantage | HeldOutRewards | None) -> bool:
        """Tell whether one test failed, at its part of the level."""
        p_value = None if test is None else test.p_value
        return p_value is not None and p_value < self.level / len(self.p_values)


@dataclass(frozen=True, kw_only=True)
class Cause:
    """One cause of doubt.

    Attributes
    ----------
    amount
        What it takes off; the amounts of all causes add up.
    error
        The standard error of the amount.
    promise_without
        What could be promised without this cause alone, all others as they are.
    """

    amount: float
    error: float
    promise_without: float


CAUSES = ("transitions", "unseen", "rewards", "first_state", "choosing", "monte_carlo")
"""All causes of doubt, in the order of tables."""


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """What lies between the averages of the log and the promise, by cause.

    Attributes
    ----------
    as_seen
        What the policy earns by the averages of the log: every row and reward exactly as it was on
        average, and nothing else possible. That is no promise, and no unbiased guess either.
    draws
        The posterior draws behind the split.
    transitions
        How often the successors that were seen really follow.
    unseen
        What was never observed: how much of it there is, and where it leads.
    rewards
        The mean rewards.
    first_state
        The law of the first state.
    choosing
        The luck of choosing on the data that certify.
    monte_carlo
        That draws are finite: those of the promise, and those of this split.

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
        """Those that there are, by name."""
        found = ((name, getattr(self, name)) for name in CAUSES)
        return {name: cause for name, cause in found if cause is not None}

    @property
    def total(self) -> float:
        """All amounts together."""
        return sum(cause.amount for cause in self.causes.values())

    def mirrored(self) -> "Doubt":
        """Return the same about costs, or about rewards: amounts stay."""
        turned: dict[str, Any] = {
            name: replace(cause, promise_without=0.0 - cause.promise_without)
            for name, cause in self.causes.items()
        }
        return replace(self, as_seen=0.0 - self.as_seen, **turned)


@dataclass(frozen=True, kw_only=True)
class Tilted:
    """A policy between what was done and what was chosen: by the episodes, and by the model.

    Attributes
    ----------
    share
        How often the chosen policy decides; else behaviour does.
    log, error
        What it earns by the log's episodes, reweighted, and the standard error.
    model
        What it earns by the averages of the log.
    episodes
        How many episodes the reweighted ones are worth.

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
        """By how many standard errors the episodes lie above the model."""
        return (self.log - self.model) / self.error if self.error > 0 else 0.0

    def mirrored(self) -> "Tilted":
        """Return the same about costs, or about rewards."""
        return replace(self, log=0.0 - self.log, model=0.0 - self.model)


def minus(value: float | None) -> float | None:
    """Return a number with the other sign, where there is one.

    Examples
    --------
    >>> minus(2.0), minus(0.0), minus(None)
    (-2.0, 0.0, None)
    """
    return None if value is None else 0.0 - value
