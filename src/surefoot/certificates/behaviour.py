"""What behaviour earned in the log's own episodes, and what a policy gains over it.

No model and no prior: the mean discounted return of the episodes, with an interval that holds in
finite samples (:mod:`surefoot.certificates.bets`). Episodes may differ and may depend on each
other, as they do where behaviour learns. The interval is for the average over the episodes of the
log, either given their first states or not, to match the promise it is compared with.
"""

from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from surefoot._arguments import check_inside
from surefoot.certificates.bets import mean_above
from surefoot.certificates.evidence import Earned, Gain

BEHAVIOUR_SHARE = 0.2
"""The share of delta that behaviour's side of a gain gets.

Its interval widens only with ``sqrt(log(1/delta))``: a fifth of .05 instead of a half makes it
about 10% wider. The policy's side is usually the wider one and rests on an order statistic, which
needs draws in proportion to ``1/delta``.
"""
FEWEST_EPISODES = 10
"""With fewer episodes there is no interval: for a few long trajectories none holds in finite
samples without assumptions about mixing."""
ROUNDING = 1e-9
"""A return may exceed its limit by this share of the limits' size, from rounding alone."""

NO_EPISODES, FEW_EPISODES, CUT_OFF = "no episodes", "few episodes", "cut off"
NO_LIMIT = "no limit of a return"
"""Why there is no interval, or no gain."""


class Followed(Protocol):
    """What this module needs from the episodes of a log (`surefoot.data.episodes.Episodes`)."""

    @property
    def discount(self) -> float: ...  # noqa: D102
    @property
    def earned(self) -> NDArray[np.float64]: ...  # noqa: D102
    @property
    def steps(self) -> NDArray[np.int64]: ...  # noqa: D102
    @property
    def ended(self) -> NDArray[np.bool_]: ...  # noqa: D102
    @property
    def time_limit(self) -> int | None: ...  # noqa: D102


def share_delta(delta: float) -> tuple[float, float]:
    """Return the policy's and behaviour's shares of a failure probability.

    Examples
    --------
    >>> share_delta(0.5)
    (0.4, 0.1)
    """
    check_inside("delta", delta)
    return (1 - BEHAVIOUR_SHARE) * delta, BEHAVIOUR_SHARE * delta


def earned(
    episodes: Followed | None,
    *,
    lowest: float,
    highest: float,
    delta: float,
    horizon: int | None = None,
) -> Earned:
    """Return what behaviour earned per episode, with a lower and an upper bound.

    Parameters
    ----------
    episodes
        The episodes of the log; None where it has none.
    lowest, highest
        Limits of a discounted return from any state: declared, or derived from declared rewards.
        Never the range seen. If either is infinite, there is no interval.
    delta
        The failure probability of each bound.
    horizon
        None for whole returns: an episode cut after T steps may still earn between
        ``discount^T lowest`` and ``discount^T highest``. Otherwise the common length of all cut
        episodes: what they earned over that many steps is known.

    Examples
    --------
    >>> class Three:
    ...     discount, time_limit = 0.5, None
    ...     earned, steps = np.repeat([1.0, 0.0, 0.5], 100), np.full(300, 4)
    ...     ended = np.arange(300) < 200
    >>> found = earned(Three, lowest=0.0, highest=1.0, delta=0.05)
    >>> found.episodes, found.cut, round(found.lower, 2), round(found.upper, 2)
    (300, 100, 0.44, 0.58)
    """
    if lowest == -np.inf or highest == np.inf:
        return replace(_nothing(episodes, delta, horizon), reason=NO_LIMIT)
    if not -np.inf < lowest <= highest < np.inf:
        raise ValueError(
            f"lowest={lowest}, highest={highest}; both must be finite, and lowest must not exceed "
            "highest."
        )
    size = 0 if episodes is None else len(episodes.earned)
    if episodes is None or size < FEWEST_EPISODES:
        return _nothing(episodes, delta, horizon)
    beyond = _unseen_share(episodes, horizon)
    least = episodes.earned + beyond * lowest
    most = episodes.earned + beyond * highest
    # The rest of a cut episode lies within the limits; so does its whole return.
    least = np.where(episodes.ended, least, np.maximum(least, lowest))
    most = np.where(episodes.ended, most, np.minimum(most, highest))
    _check_limits(least, most, lowest, highest)
    scale = max(highest - lowest, np.finfo(np.float64).tiny)
    return Earned(
        mean=float(episodes.earned.mean()),
        lower=lowest + mean_above(np.maximum(least - lowest, 0.0), delta=delta, scale=scale),
        upper=highest - mean_above(np.maximum(highest - most, 0.0), delta=delta, scale=scale),
        delta=delta,
        episodes=size,
        cut=int(np.count_nonzero(~episodes.ended)),
        slack=float((most - least).mean()),
        horizon=horizon,
    )


def _nothing(episodes: Followed | None, delta: float, horizon: int | None) -> Earned:
    size = 0 if episodes is None else len(episodes.earned)
    return Earned(
        mean=float(episodes.earned.mean()) if episodes is not None and size else None,
        lower=None,
        upper=None,
        delta=delta,
        episodes=size,
        cut=int(np.count_nonzero(~episodes.ended)) if episodes is not None else 0,
        horizon=horizon,
        reason=NO_EPISODES if size == 0 else FEW_EPISODES,
    )


def _unseen_share(episodes: Followed, horizon: int | None) -> Any:
    """Return the discount factor of the part an episode did not show; 0 if it ended."""
    if horizon is None:
        return np.where(episodes.ended, 0.0, episodes.discount ** episodes.steps.astype(float))
    if horizon != episodes.time_limit and not episodes.ended.all():
        raise ValueError(
            f"horizon={horizon}; the log's cut episodes have the common length "
            f"{episodes.time_limit}. Only returns over that many steps are known for all episodes."
        )
    return np.zeros(len(episodes.steps))


def _check_limits(least: Any, most: Any, lowest: float, highest: float) -> None:
    room = ROUNDING * max(abs(lowest), abs(highest), 1.0)
    beyond = most.max() if most.max() > highest + room else least.min()
    if not lowest - room <= beyond <= highest + room:
        raise ValueError(
            f"an episode of the log earned {float(beyond)}, outside the limits of a return "
            f"({lowest}, {highest}). Correct the declared range of rewards."
        )


def gain(promise: float, behaviour: Earned, *, delta_policy: float) -> Gain:
    """Return the certified gain of a policy over behaviour: lower bound minus upper bound.

    Parameters
    ----------
    promise
        The policy's lower bound at ``delta_policy``, from the same first states (and over the same
        ``horizon``) as behaviour's.
    behaviour
        What :func:`earned` returned for the rest of delta.

    Notes
    -----
    If the bound is not positive only because of what cut episodes did not show, there is no number,
    and the reason is ``"cut off"``: compare returns up to the cut instead, with ``horizon``.

    Examples
    --------
    >>> found = Earned(mean=0.1, lower=0.05, upper=0.2, delta=0.01, episodes=90, cut=0)
    >>> round(gain(0.5, found, delta_policy=0.04).lower_bound, 2)
    0.3
    """
    reason, bound = behaviour.reason, None
    if behaviour.upper is not None:
        bound = promise - behaviour.upper
        if bound <= 0 < bound + behaviour.slack:
            reason, bound = CUT_OFF, None
    return Gain(
        lower_bound=bound,
        promise=promise,
        behaviour=behaviour.upper,
        delta_policy=delta_policy,
        delta_behaviour=behaviour.delta,
        horizon=behaviour.horizon,
        reason=reason,
    )
