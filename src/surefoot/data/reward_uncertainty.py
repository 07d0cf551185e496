"""How sure a mean reward is: laws for a Bayesian, intervals for a frequentist.

Only entries that were seen, whose reward was not given, and whose action showed different rewards
for one and the same transition are uncertain; all others are taken as they are.

``"normal"``: rewards of one action scatter normally around the mean of their transition, all with
the same variance. With the prior 1/variance the variance has a scaled inverse chi-square posterior
and each mean a normal one around what was seen (Gelman et al., Bayesian Data Analysis, 3.2).

``"bounded"``: rewards lie in a known range. Draws come from the Beta law whose quantiles are the
Clopper-Pearson lower bounds of a success rate, each reward counted as that part of a success that
it has of the range: never higher than with a uniform prior. Intervals are Hoeffding's.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from surefoot.data.counts import Counts
from surefoot.data.rewards import GivenRewards
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
    """
    if counts.reward_model == "fixed" or counts.reward_var is None:
        return np.zeros(counts.num_entries, dtype=np.bool_)
    action = counts.entry_action
    noisy = np.zeros(counts.num_actions, dtype=np.bool_)
    noisy[action[counts.reward_var > 0]] = True
    uncertain: NDArray[np.bool_] = noisy[action] & (counts.count > 0)
    if counts.given is not None:
        uncertain &= np.isnan(
            counts.given.of(
                counts.entry_state, action, counts.successor.astype(np.int64),
                counts.state_labels, counts.action_labels,
            )
        )  # fmt: skip
    return uncertain


def model_uncertain_rewards(counts: Counts, mdp: MDP) -> NDArray[np.bool_]:
    """Return ``(E,)``: which mean rewards of a model are uncertain.

    A reward that the model does not take from the counts was given by the user and is certain.
    """
    if counts.reward_mean is None:
        return np.zeros(counts.num_entries, dtype=np.bool_)
    return np.asarray(uncertain_rewards(counts) & (counts.reward_mean == mdp.entry_reward))


def reward_facts(counts: Counts) -> tuple[NDArray[Any], ...]:
    """Return all that the laws of mean rewards depend on, for fingerprints."""
    nothing = np.zeros(0)
    arrays = (counts.reward_mean, counts.reward_var, counts.reward_low, counts.reward_high)
    bounds = nothing if counts.reward_range is None else np.array(counts.reward_range)
    known = tuple(nothing if array is None else array for array in arrays)
    return (*known, bounds, np.array(counts.reward_model), uncertain_rewards(counts))


def mean_reward_interval(counts: Counts, delta: float) -> tuple[Floats, Floats]:
    """Return ``(E,)`` ends that hold all mean rewards together with probability ``1 - delta``.

    A union over the uncertain entries; how often an entry was seen is random, so an entry seen
    ``n`` times has the level ``delta / (m n (n + 1))``.

    Examples
    --------
    >>> from surefoot.data.transitions import read_transitions
    >>> log = {"state": [0, 0, 1], "action": [0, 0, 1], "next_state": [1, 1, 0],
    ...        "reward": [1.0, 2.0, 5.0]}
    >>> counts = read_transitions(log, reward_range=(0.0, 10.0))
    >>> low, high = mean_reward_interval(counts, 0.05)
    >>> low.tolist(), high.tolist()
    ([0.0, 5.0], [10.0, 5.0])
    """
    if not 0 < delta < 1:
        raise ValueError(f"delta={delta!r}; it must lie between 0 and 1.")
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
    """Return counts whose rewards are the negative of those given: costs become rewards.

    What was never seen is taken to bring the lowest reward; of costs that must be the highest.

    Examples
    --------
    >>> counts = Counts.from_arrays([[[3, 1]], [[0, 2]]], rewards=[[0.0], [5.0]])
    >>> negated(counts).lowest_reward
    -5.0
    """
    given = counts.given
    if given is not None and given.function is not None:
        raise ValueError("rewards that are a function cannot be turned round; give a table.")
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
    """Return ``(E,)``: the mean rewards as seen or given."""
    if counts.reward_mean is None:
        raise ValueError("these counts have no rewards.")
    return np.array(counts.reward_mean)


def reward_bounds(counts: Counts) -> tuple[float, float]:
    """Return the range that rewards lie in: as given, else as seen."""
    if counts.reward_range is not None:
        return counts.reward_range
    if counts.reward_low is None or counts.reward_high is None:
        raise ValueError("these counts have no rewards.")
    return float(np.nanmin(counts.reward_low)), float(np.nanmax(counts.reward_high))


def pooled_variance(counts: Counts) -> tuple[Floats, Floats]:
    """Return, per action, the variance within transitions and its degrees of freedom."""
    counted = (counts.count > 1) & ~np.isnan(_variance(counts))
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
