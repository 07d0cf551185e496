"""How uncertain mean rewards are: laws for Bayesian promises, intervals for frequentist ones.

Only entries that were seen and whose reward was not given are uncertain. Where a range of rewards
is declared, all of these are, because one reward seen n times does not prove that there is no
other. Without a range, an entry is uncertain if its action showed different rewards for one and the
same transition; all other rewards are taken as exact.

``"normal"``: rewards of one action scatter normally around the mean of their transition, all with
the same variance. Draws pool the means of an action (`surefoot.posterior.pooled_rewards`);
intervals are Student's.

``"bounded"``: rewards lie in a known range. Where every row has to hold by itself, draws come from
`bounded_law`, with one more reward in each row than was seen, at the low end of the range. For the
return of one policy they come from `scattering_law`, and the policy as a whole pays for losses that
the log may have missed (`surefoot.solvers.evaluation.missed_losses`). Intervals are Hoeffding's.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from surefoot._arguments import check_inside
from surefoot.data.counts import Counts
from surefoot.data.rewards import GivenRewards, RewardStatistics, pool, range_declared
from surefoot.model.mdp import MDP

Floats = NDArray[np.float64]


def uncertain_rewards(counts: Counts) -> NDArray[np.bool_]:
    """Return ``(E,)``: which mean rewards are uncertain.

    Examples
    --------
    >>> from surefoot.data.transitions import read_transitions
    >>> log = {"state": [0, 0, 1], "action": [0, 0, 1], "next_state": [1, 1, 0],
    ...        "reward": [1.0, 2.0, 5.0]}
    >>> uncertain_rewards(read_transitions(log)).tolist()
    [True, False]
    >>> uncertain_rewards(read_transitions(log, reward_range=(0.0, 10.0))).tolist()
    [True, True]
    """
    if counts.reward_model == "fixed" or counts.reward_var is None:
        return np.zeros(counts.num_entries, dtype=np.bool_)
    action = counts.entry_action
    noisy = np.full(counts.num_actions, range_declared(counts))
    noisy[action[counts.reward_var > 0]] = True
    return noisy[action] & _read_from_log(counts)


def _read_from_log(counts: Counts) -> NDArray[np.bool_]:
    """Return ``(E,)``: entries that were seen and whose reward was not given."""
    seen: NDArray[np.bool_] = counts.count > 0
    if counts.given is None:
        return seen
    given = counts.given.of(
        counts.entry_state, counts.entry_action, counts.successor.astype(np.int64),
        counts.state_labels, counts.action_labels,
    )  # fmt: skip
    return seen & np.isnan(given)


def rewards_taken_as_seen(counts: Counts) -> bool:
    """Return whether some rewards of a log are taken as exact because they never varied.

    A transition that paid the same each time may still pay something else occasionally: without a
    declared range no log can rule that out.

    Examples
    --------
    >>> from surefoot.data.transitions import read_transitions
    >>> log = {"state": [0, 0, 1], "action": [0, 0, 1], "next_state": [1, 1, 0],
    ...        "reward": [1.0, 1.0, 5.0]}
    >>> rewards_taken_as_seen(read_transitions(log))
    True
    >>> rewards_taken_as_seen(read_transitions(log, reward_range=(0.0, 10.0)))
    False
    """
    if counts.log is None or counts.reward_mean is None or range_declared(counts):
        return False
    return bool(np.any(_read_from_log(counts) & ~uncertain_rewards(counts)))


def model_uncertain_rewards(counts: Counts, mdp: MDP) -> NDArray[np.bool_]:
    """Return ``(E,)``: which mean rewards of a model are uncertain.

    A reward that the model does not take from the counts was given by the user and is certain.
    """
    if counts.reward_mean is None:
        return np.zeros(counts.num_entries, dtype=np.bool_)
    return np.asarray(uncertain_rewards(counts) & (counts.reward_mean == mdp.entry_reward))


def reward_facts(counts: Counts) -> tuple[NDArray[Any], ...]:
    """Return everything that the laws of mean rewards depend on, for fingerprints."""
    nothing = np.zeros(0)
    arrays = (counts.reward_mean, counts.reward_var, counts.reward_low, counts.reward_high)
    bounds = nothing if counts.reward_range is None else np.array(counts.reward_range)
    known = tuple(nothing if array is None else array for array in arrays)
    return (*known, bounds, np.array(counts.reward_model), uncertain_rewards(counts))


def mean_reward_interval(counts: Counts, delta: float) -> tuple[Floats, Floats]:
    """Return ``(E,)`` limits that hold all mean rewards together with probability ``1 - delta``.

    This is a union bound over the ``m`` uncertain entries. How often an entry was seen is random,
    so an entry seen ``n`` times has the level ``delta / (m n (n + 1))``.

    Examples
    --------
    >>> from surefoot.data.transitions import read_transitions
    >>> log = {"state": [0, 0, 1], "action": [0, 0, 1], "next_state": [1, 1, 0],
    ...        "reward": [1.0, 2.0, 5.0]}
    >>> counts = read_transitions(log, reward_range=(0.0, 10.0))
    >>> low, high = mean_reward_interval(counts, 0.05)
    >>> low.tolist(), high.tolist()
    ([0.0, 0.0], [10.0, 10.0])
    """
    check_inside("delta", delta)
    means = mean_rewards(counts)
    low, high = means.copy(), means.copy()
    which = np.flatnonzero(uncertain_rewards(counts))
    if len(which) == 0:
        return low, high
    size = counts.count[which].astype(np.float64)
    log_level = np.log(delta) - np.log(len(which)) - np.log(size) - np.log(size + 1)
    if counts.reward_model == "normal":
        variance, freedom = pooled_variance(counts)
        action = counts.entry_action[which]
        reach = stats.t.isf(np.exp(log_level) / 2, freedom[action])
        reach = reach * np.sqrt(variance[action] / size)
        low[which], high[which] = means[which] - reach, means[which] + reach
        return low, high
    bottom, top = reward_bounds(counts)
    reach = (top - bottom) * np.sqrt((np.log(2) - log_level) / (2 * size))
    low[which] = np.maximum(bottom, means[which] - reach)
    high[which] = np.minimum(top, means[which] + reach)
    return low, high


def negated(counts: Counts) -> Counts:
    """Return counts with negated rewards: costs become rewards.

    What was never seen is assumed to bring the lowest reward, which is then the highest cost.

    Examples
    --------
    >>> counts = Counts.from_arrays([[[3, 1]], [[0, 2]]], rewards=[[0.0], [5.0]])
    >>> negated(counts).lowest_reward
    -5.0
    """
    given = counts.given
    if given is not None and given.function is not None:
        raise ValueError("rewards that are a function cannot be negated; give a table.")
    if given is not None:
        given = GivenRewards(
            table=None if given.table is None else {k: -v for k, v in given.table.items()},
            array=None if given.array is None else -given.array,
        )

    def minus(values: Floats | None) -> Floats | None:
        return None if values is None else 0.0 - values

    bounds = counts.reward_range
    return replace(
        counts,
        reward_mean=minus(counts.reward_mean),
        reward_low=minus(counts.reward_high),
        reward_high=minus(counts.reward_low),
        reward_range=None if bounds is None else (-bounds[1], -bounds[0]),
        reward_sums=None,
        given=given,
    )


def mean_rewards(counts: Counts) -> Floats:
    """Return ``(E,)``: the mean rewards, seen or given."""
    if counts.reward_mean is None:
        raise ValueError("these counts have no rewards.")
    return np.array(counts.reward_mean)


def reward_bounds(counts: Counts) -> tuple[float, float]:
    """Return the range that rewards lie in: the given one, else the one seen."""
    if counts.reward_range is not None:
        return counts.reward_range
    if counts.reward_low is None or counts.reward_high is None:
        raise ValueError("these counts have no rewards.")
    return float(np.nanmin(counts.reward_low)), float(np.nanmax(counts.reward_high))


HARDLY_KNOWN = 0.5
"""How many of its rewards an entry of a long row leaves out. Frequencies that a prior makes surer
than those seen do not scatter as in Gaffke's law; the mean of a few rewards has to."""


class BoundedLaw(NamedTuple):
    """``lowest + width Beta(successes, failures)`` for every entry; 0 successes give the lowest."""

    lowest: float
    width: Floats
    successes: Floats
    failures: Floats


def bounded_law(counts: Counts) -> BoundedLaw:
    """Return a law of every uncertain mean reward in a range under which each row holds by itself.

    Gaffke (2005) gives the n rewards seen, and one more at the low end, random weights from
    Dirichlet(1, ..., 1): a lower quantile of the weighted mean is a lower confidence bound. A row
    has one more reward, and its entries share it by their tries: if frequencies have the weights of
    Gaffke too, the row's law is his.

    Counts keep only mean and variance. Among all rewards with this mean and variance, those that
    are either the lowest or ``width`` above it reach furthest down (their third moment is
    smallest). Their law is a Beta with the same mean and variance as Gaffke's. No upper end of the
    range is needed. In rows with several entries, one that was seen a few times hardly shows its
    variance: it counts as if it had been seen once more, with the variance of its action.

    Examples
    --------
    >>> from surefoot.data.transitions import read_transitions
    >>> log = {"state": [0, 0, 1], "action": [0, 0, 1], "next_state": [1, 1, 0],
    ...        "reward": [0.0, 0.0, 3.0]}
    >>> law = bounded_law(read_transitions(log, reward_range=(-1.0, 10.0)))
    >>> law.width.tolist(), law.successes.tolist(), law.failures.tolist()
    ([1.0, 4.0], [2.0, 1.0], [1.0, 1.0])
    """
    size = uncertain_tries(counts)
    tries = np.bincount(counts.entry_row, size, counts.num_rows)[counts.entry_row]
    more = np.divide(size, tries, out=np.ones_like(size), where=tries > 0)
    common = pooled_variance(counts)[0][counts.entry_action]
    width, share = _two_points(counts, (1.0 - more) * common, within=True)
    known = np.maximum(size - HARDLY_KNOWN * (1.0 - more), 0.0)
    low = reward_bounds(counts)[0]
    return BoundedLaw(low, width, known * share, known * (1.0 - share) + more)


def scattering_law(counts: Counts) -> BoundedLaw:
    """Return a law of every uncertain mean reward in a range, around the mean that was seen.

    As `bounded_law`, without its further reward. Every entry counts as if it had been seen once
    more, with the variance of its action, to which all rewards of the action together count as one
    further repetition: where nothing was tried twice, nothing else tells how rewards scatter.

    Examples
    --------
    >>> from surefoot.data.transitions import read_transitions
    >>> log = {"state": [0] * 4 + [1], "action": [0] * 5, "next_state": [1] * 4 + [0],
    ...        "reward": [0.0, 0.0, 0.0, 4.0, 0.0]}
    >>> law = scattering_law(read_transitions(log, reward_range=(-1.0, 10.0)))
    >>> ((law.lowest + law.width * law.successes / (law.successes + law.failures))[:1]).tolist()
    [1.0]
    """
    size = uncertain_tries(counts)
    common = _common_variance(counts)[counts.entry_action]
    width, share = _two_points(counts, common, within=False)
    known = np.maximum(size - HARDLY_KNOWN, 0.0)
    return BoundedLaw(reward_bounds(counts)[0], width, known * share, known * (1.0 - share))


def uncertain_tries(counts: Counts) -> Floats:
    """Return ``(E,)``: how often each entry whose mean reward is uncertain was seen."""
    return np.where(uncertain_rewards(counts), counts.count, 0).astype(np.float64)


def above_lowest(counts: Counts) -> Floats:
    """Return ``(E,)``: how far uncertain mean rewards lie above the low end of the range."""
    low, high = reward_bounds(counts)
    mean = np.where(uncertain_rewards(counts), mean_rewards(counts), low)
    return np.asarray(np.clip(mean - low, 0.0, high - low))  # rounding may move a mean out of it


def _two_points(counts: Counts, more: Floats, *, within: bool) -> tuple[Floats, Floats]:
    """Return the width above the lowest reward, and how often it occurs, of laws on two points.

    They have the mean that was seen and its variance, with squares ``more`` added; without any
    variance it is the largest in the range. Laws ``within`` the range have no more than that. Where
    rows are added up they need it all: a row that was tried once, and showed the highest reward,
    would not scatter at all.
    """
    low, high = reward_bounds(counts)
    size, variance = uncertain_tries(counts), _variance(counts)
    above = above_lowest(counts)
    widest = above * (high - low - above)
    own = np.where(size > 1, variance * np.maximum(size - 1.0, 0.0), 0.0)
    own = np.where(np.isnan(own), widest * np.maximum(size - 1.0, 0.0), own)
    spread = (own + more) / np.maximum(size, 1.0)
    spread = np.minimum(spread, widest) if within else spread
    width = above + np.divide(spread, above, out=np.zeros_like(above), where=above > 0)
    return width, np.divide(above, width, out=np.zeros_like(above), where=above > 0)


def _common_variance(counts: Counts) -> Floats:
    """Return, per action, the variance of rewards, all of them together as one repetition more."""
    size, (within, _) = uncertain_tries(counts), pooled_variance(counts)
    repeats = np.bincount(counts.entry_action, np.maximum(size - 1.0, 0.0), counts.num_actions)
    seen = RewardStatistics(mean_rewards(counts), np.nan_to_num(_variance(counts)))
    total = pool(counts.entry_action.astype(np.int64), size, seen, counts.num_actions).variance
    everywhere = pool(np.zeros(len(size), dtype=np.int64), size, seen, 1).variance[0]
    low, high = reward_bounds(counts)
    largest = (high - low) ** 2 / 4.0  # of any rewards in the range
    total = np.where(np.isnan(total), np.fmin(everywhere, largest), total)
    return np.asarray((repeats * within + total) / (repeats + 1.0))


def pooled_variance(counts: Counts) -> tuple[Floats, Floats]:
    """Return, per action, the variance within transitions and its degrees of freedom."""
    counted = uncertain_rewards(counts) & (counts.count > 1) & ~np.isnan(_variance(counts))
    freedom = np.zeros(counts.num_actions)
    square = np.zeros(counts.num_actions)
    action = counts.entry_action[counted]
    np.add.at(freedom, action, counts.count[counted] - 1.0)
    np.add.at(square, action, (counts.count[counted] - 1.0) * _variance(counts)[counted])
    # An action without any repetition has no uncertain entry; 1 keeps its arithmetic harmless.
    known = np.maximum(freedom, 1.0)
    return square / known, known


def _variance(counts: Counts) -> Floats:
    if counts.reward_var is None:
        raise ValueError("these counts have no rewards.")
    return counts.reward_var
