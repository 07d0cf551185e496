"""Rewards of transitions never seen, by patterns of the log."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot._rows import Ints
from surefoot.data import rewards
from surefoot.data.additive import (
    Transitions,
    fit_additive,
    fit_steady,
    predict_by_less,
)
from surefoot.data.count_arrays import CountArrays, Entries
from surefoot.data.noisy_rewards import fit_noisy
from surefoot.data.state_order import state_numbers


def fill_by_pattern(
    counts: CountArrays, listed: Entries, mean: Any, variance: Any, possible: NDArray[np.bool_],
    tries: Ints, lowest: NDArray[np.float64] | None,
) -> bool:  # fmt: skip
    """Fill in the rewards of unseen entries that a pattern of the log predicts.

    Returns whether some are predicted at their lower ends: those are too kind to costs.

    Where rewards vary within a transition, or a declared range makes them uncertain, averages
    predict them. Without ``lowest``, only the exact additive pattern is used.
    """
    seen = ~np.isnan(mean) & possible
    scatter = rewards.range_declared(counts) or bool(np.any(np.nan_to_num(variance[seen]) != 0.0))
    if scatter and lowest is None:
        return False
    rows, row = np.unique(listed.state * counts.num_actions + listed.action, return_inverse=True)
    every = Transitions(row, listed.action, listed.successor, _kinds(counts, listed))
    unknown = np.flatnonzero(np.isnan(mean) & possible)
    shown, asked = every.where(seen), every.where(unknown)
    sizes = (max(len(rows), counts.num_actions), counts.num_states)
    if scatter and lowest is not None:
        tried = seen & (tries > 0)
        size = len(rows), counts.num_actions, sizes[1]
        noisy = fit_noisy(every.where(tried), mean[tried], variance[tried], tries[tried], size)
        if noisy is None:
            return False
        return _write(unknown, noisy.predict(asked, lowest[asked.action]), mean, variance)
    fit = fit_additive(shown.row, shown.successor, mean[seen], *sizes)
    if fit is not None:
        value = fit.predict(asked.row, asked.successor)
        rest = np.isnan(value)
        _write(unknown, value, mean, variance)
        if lowest is None:
            return False
        least = lowest[asked.action[rest]]
        value = predict_by_less(shown, mean[seen], asked.where(rest), least, sizes)
        return _write(unknown[rest], value, mean, variance)
    steady = fit_steady(shown, mean[seen], tries[seen], len(rows))
    if steady is None or lowest is None:
        return False
    return _write(unknown, steady.predict(asked, lowest[asked.action]), mean, variance)


def _write(unknown: Ints, value: NDArray[np.float64], mean: Any, variance: Any) -> bool:
    """Write the values that are numbers; return whether there are any."""
    known = ~np.isnan(value)
    mean[unknown[known]], variance[unknown[known]] = value[known], 0.0
    return bool(known.any())


def _kinds(counts: CountArrays, listed: Entries) -> Ints:
    """Return a number for each entry's action and displacement; -1 without an order of states."""
    number = state_numbers(counts.state_labels, counts.num_states)
    if number is None:
        return np.full(len(listed.state), -1)
    number = np.append(number, np.full(int(listed.successor.max(initial=0)) + 1, np.nan))
    step = number[listed.successor] - number[listed.state]
    known = ~np.isnan(step)
    distances, place = np.unique(step[known], return_inverse=True)
    kind = np.full(len(step), -1)
    kind[known] = listed.action[known] * len(distances) + place
    return kind
