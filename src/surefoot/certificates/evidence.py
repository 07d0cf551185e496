"""What stands beside a promise: how the log was divided, what choosing cost, what the log shows.

All amounts are in the units of the certificate they belong to; ``mirrored`` turns rewards into
costs. A gain and a backtest's advantage count what is better: they are the same for both.
"""

from dataclasses import dataclass, replace


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
    """What choosing the policy on the same data cost, taken off the promise: 0 or more."""

    mean: float
    spread: float


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A mean with a lower and an upper end, and the episodes behind it where there are any.

    Examples
    --------
    >>> Interval(mean=2.0, lower=1.0, upper=4.0).mirrored()
    Interval(mean=-2.0, lower=-4.0, upper=-1.0, episodes=None)
    """

    mean: float
    lower: float
    upper: float
    episodes: int | None = None

    def mirrored(self) -> "Interval":
        """Return the interval of costs for one of rewards, and the other way round."""
        return replace(self, mean=-self.mean, lower=-self.upper, upper=-self.lower)


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """What the log's own decisions earned: as its episodes show, and as the model has it."""

    log: Interval | None = None
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
        The policy's lower bound at ``delta_policy`` minus behaviour's upper bound at
        ``delta_behaviour``.
    delta_policy, delta_behaviour
        They sum to the certificate's delta, so that both bounds hold together.
    """

    lower_bound: float
    delta_policy: float
    delta_behaviour: float


@dataclass(frozen=True, kw_only=True)
class Backtest:
    """The policy chosen without a part of the log, looked at on that part.

    Attributes
    ----------
    passed
        Whether nothing spoke against the promise. That is no proof.
    advantage, spread
        How much better the held-out part was than predicted, and its standard error.
    uncovered
        Share of the policy's visits that the held-out part says nothing about.
    successors, rewards
        p-values of what the held-out part shows under its predictive law; None where not tested.
    """

    passed: bool
    advantage: float | None = None
    spread: float | None = None
    uncovered: float | None = None
    successors: float | None = None
    rewards: float | None = None


@dataclass(frozen=True, kw_only=True)
class Cause:
    """One cause of doubt: its share of it, and what could be promised without it."""

    share: float
    promise_without: float


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """Where the distance between the promise and the posterior mean comes from, by cause."""

    transitions: Cause | None = None
    unseen: Cause | None = None
    rewards: Cause | None = None

    def mirrored(self) -> "Doubt":
        """Return the same about costs, or about rewards."""
        return Doubt(
            transitions=_turned(self.transitions),
            unseen=_turned(self.unseen),
            rewards=_turned(self.rewards),
        )


def _turned(cause: Cause | None) -> Cause | None:
    return None if cause is None else replace(cause, promise_without=-cause.promise_without)
