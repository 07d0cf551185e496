"""What the held-out part of a log says about a model and a policy made without it.

The promise of a policy cannot be observed in a log of other behaviour. Three things can be: how
often the held-out part B shows successors that part A never saw, compared with the mass that A's
posterior left for them; whether steps bring less than A's distribution of mean rewards predicts;
and whether the steps of the policy that B happens to contain bring what A expected of them. Passing
proves little. Failing means that the model of A is wrong in a way that matters.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from surefoot.certificates.evidence import Advantage, HeldOutRewards, NewSuccessors
from surefoot.data.counts import Counts
from surefoot.data.reward_uncertainty import (
    bounded_law,
    mean_rewards,
    pooled_variance,
    uncertain_rewards,
)
from surefoot.posterior.mean_rewards import MeanRewards
from surefoot.posterior.protocol import stream_key

SIMULATIONS = 2000
"""How many numbers of new successors are simulated: enough for a p-value of half the level."""
ENOUGH_ROWS = 100
"""From this many rows with about equal variances on, their sum is taken as normal."""
MOST_SIMULATED = 5000
"""More rows than this are not simulated if their sum is close to normal."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def new_successors(
    trials: ArrayLike,
    seen: ArrayLike,
    rng: np.random.Generator,
    *,
    beta: ArrayLike | None = None,
    draws: ArrayLike | None = None,
    tolerated: float = 0.0,
) -> NewSuccessors:
    """Compare the number of new successors in B with its predictive distribution by A's posterior.

    Parameters
    ----------
    trials, seen
        ``(R,)``: B's transitions in each row, and how many of them led to a successor that A did
        not see there.
    rng
        Source of the simulations.
    beta
        ``(2, R)``: the unseen mass of each row is Beta(``beta[0]``, ``beta[1]``), rows independent.
    draws
        ``(D, R)``: instead of ``beta``, draws of the unseen mass from A's posterior, for rows that
        depend on each other.
    tolerated
        The p-value is computed for a mass larger by this share: in long logs any model of the
        unseen mass is slightly wrong, and a promise can bear that. Only with ``draws``.

    Notes
    -----
    The p-value is exact up to simulation: each simulation draws a mass for every row and a binomial
    number, and the p-value is ``(1 + #{simulated >= seen}) / (1 + simulations)``. Where a hundred
    or more independent rows share the variance, the sum is taken as normal and is not simulated;
    with ``draws``, where there are thousands of rows and the sum of every draw is close to normal.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> beta = [[1.0, 1.0], [9.0, 9.0]]  # Beta(1, 9): a tenth unseen
    >>> new_successors([10, 10], [1, 1], rng, beta=beta).expected
    2.0
    >>> new_successors([50, 50], [40, 45], rng, beta=beta).p_value < 0.001
    True
    """
    number, observed = np.asarray(trials, dtype=np.int64), np.asarray(seen, dtype=np.int64)
    if (beta is None) == (draws is None):
        raise ValueError("give the unseen mass once, either as beta= or as draws=.")
    mass = np.asarray(draws if beta is None else beta, dtype=np.float64)
    _check_numbers(number, observed, mass)
    total = int(observed.sum())
    if beta is None:
        expected = float(number @ mass.mean(axis=0))
        larger = mass * (1.0 + tolerated)
        p_value = _normal(total, number, np.clip(larger, 0.0, 1.0))
        if p_value is None:
            masses = (larger[i % len(mass)] for i in _blocks(len(number)))
            p_value = _simulated(total, number, masses, rng)
    else:
        expected, p_value = _beta_binomial(total, number, mass, rng)
    return NewSuccessors(seen=total, expected=expected, tried=int(number.sum()), p_value=p_value)


def _check_numbers(number: Ints, observed: Ints, mass: Floats) -> None:
    if mass.ndim != 2 or mass.shape[1:] != number.shape or observed.shape != number.shape:
        raise ValueError(
            f"trials {number.shape}, seen {observed.shape} and the unseen mass {mass.shape} must "
            "be (R,), (R,) and (2, R) or (D, R)."
        )
    if np.any(observed > number) or np.any(observed < 0):
        raise ValueError("seen must lie between 0 and trials in every row.")


def _beta_binomial(
    total: int, number: Ints, beta: Floats, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the expected sum of beta-binomial numbers, and the probability of `total` or more."""
    size = beta.sum(axis=0)
    mean = beta[0] / size
    variance = number * mean * (1 - mean) * (size + number) / (size + 1)
    spread, expected = float(variance.sum()), float(number @ mean)
    if spread > 0 and spread**2 >= ENOUGH_ROWS * float((variance**2).sum()):
        return expected, float(stats.norm.sf((total - 0.5 - expected) / np.sqrt(spread)))
    masses = (rng.beta(beta[0], beta[1], (len(i), len(number))) for i in _blocks(len(number)))
    return expected, _simulated(total, number, masses, rng)


def _normal(total: int, number: Ints, masses: Floats) -> float | None:
    """Return the probability of `total` or more, averaged over draws of the unseen masses.

    None where there are few rows, or the sum of some draw is not close to normal.
    """
    if len(number) <= MOST_SIMULATED:
        return None
    variance = number * masses * (1.0 - masses)
    spread = variance.sum(axis=1)
    if not np.all((spread > 0) & (spread**2 >= ENOUGH_ROWS * (variance**2).sum(axis=1))):
        return None
    chance = stats.norm.sf((total - 0.5 - masses @ number) / np.sqrt(spread))
    return float((1.0 + SIMULATIONS * chance.mean()) / (1.0 + SIMULATIONS))


def _blocks(rows: int) -> list[Ints]:
    """Return the indices of the simulations, in blocks of about a million values."""
    return np.array_split(np.arange(SIMULATIONS), 1 + SIMULATIONS * rows // 10**6)


def _simulated(
    total: int, number: Ints, masses: Iterable[Floats], rng: np.random.Generator
) -> float:
    sums = np.concatenate(
        [rng.binomial(number, np.clip(mass, 0.0, 1.0)).sum(axis=1) for mass in masses]
    )
    return float((1 + np.count_nonzero(sums >= total)) / (1 + len(sums)))


def held_out_rewards(
    known: Counts, held_out: Counts, rng: np.random.Generator
) -> HeldOutRewards | None:
    """Compare what steps brought in B with A's distribution of mean rewards; None without any.

    Each simulation draws mean rewards from A, and around them B's rewards as the reward model has
    them: the lowest reward of the range or ``width`` above it (``"bounded"``), or normal ones. The
    statistic is the sum over all steps.

    Examples
    --------
    >>> from surefoot.data.transitions import read_transitions
    >>> log = {"state": [0, 1] * 50, "action": [0] * 100, "next_state": [1, 0] * 50}
    >>> rng = np.random.default_rng(0)
    >>> high, low = (
    ...     read_transitions(log | {"reward": rng.random(100) - less}, reward_range=(-1.0, 1.0))
    ...     for less in (0.0, 0.4)
    ... )
    >>> held_out_rewards(high, low, rng).p_value < 0.01 < held_out_rewards(high, high, rng).p_value
    True
    """
    uncertain = uncertain_rewards(known)
    at, entry = _same_entries(known, held_out)
    kept = uncertain[entry] & (held_out.count[at] > 0)
    at, entry = at[kept], entry[kept]
    if len(entry) == 0:
        return None
    number = held_out.count[at].astype(np.int64)
    total = float(number @ mean_rewards(held_out)[at])
    drawn = MeanRewards(known).draws(stream_key(rng), 0, SIMULATIONS, entry)
    if known.reward_model == "normal":
        deviation = np.sqrt(pooled_variance(known)[0][known.entry_action[entry]] * number)
        sums = drawn @ number + rng.normal(size=drawn.shape) @ deviation
    else:
        law = bounded_law(known)
        width = law.width[entry]
        share = np.divide(drawn - law.lowest, width, out=np.zeros_like(drawn), where=width > 0)
        good = rng.binomial(number, np.clip(share, 0.0, 1.0))
        sums = law.lowest * number.sum() + good @ width
    steps = int(number.sum())
    return HeldOutRewards(
        statistic=(total - float(sums.mean())) / steps,
        error=float(sums.std()) / steps,
        tried=steps,
        p_value=float((1 + np.count_nonzero(sums <= total)) / (1 + len(sums))),
    )


def _same_entries(known: Counts, held_out: Counts) -> tuple[Ints, Ints]:
    """Return the entries of B that A also has, and the matching entries of A."""
    keys, wanted = (
        _row_keys(counts)[counts.entry_row] * known.num_states + counts.successor
        for counts in (known, held_out)
    )
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    at = np.flatnonzero(keys[place] == wanted)
    return at, place[at]


def newly_seen(known: Counts, held_out: Counts) -> tuple[Ints, Ints, Ints]:
    """Return the rows of A that B played, how often, and how often with a successor new to the row.

    Both counts list what was observed, with the same state and action ids (parts of one log).

    Examples
    --------
    >>> known = Counts.from_arrays([[[3, 0]], [[0, 2]]])
    >>> row, trials, new = newly_seen(known, Counts.from_arrays([[[1, 4]], [[0, 1]]]))
    >>> row.tolist(), trials.tolist(), new.tolist()
    ([0, 1], [5, 1], [4, 0])
    """
    rows = _row_keys(known)
    entries = rows[known.entry_row] * known.num_states + known.successor
    counted = known.count > 0
    played = _row_keys(held_out)[held_out.entry_row]
    key = played * known.num_states + held_out.successor
    fresh = ~np.isin(key, entries[counted])
    visited = np.add.reduceat(known.count, known.row_start[:-1]) > 0
    place = np.minimum(np.searchsorted(rows, played), len(rows) - 1)
    here = (rows[place] == played) & visited[place]
    trials = np.bincount(place[here], held_out.count[here], len(rows)).astype(np.int64)
    new = np.bincount(place[here], (held_out.count * fresh)[here], len(rows)).astype(np.int64)
    row = np.flatnonzero(trials)
    return row, trials[row], new[row]


def _row_keys(counts: Counts) -> Ints:
    return counts.row_state * counts.num_actions + counts.row_action


def advantage(
    occupancy: ArrayLike,
    expected: ArrayLike,
    variance: ArrayLike,
    mean: ArrayLike,
    number: ArrayLike,
) -> Advantage:
    """Compare what the policy's steps brought in B with what A expected of them.

    Parameters
    ----------
    occupancy
        ``(S,)``: ``d_A``, the discounted visits of the policy in A's model (of any sum).
    expected, variance
        ``(S,)``: mean and variance, in A, of ``z = r + discount v_A(s')`` in the row (s, pi_A(s)).
    mean, number
        ``(S,)``: the mean of z over B's steps in that row, and how many there are (if 0, the mean
        is ignored).

    Notes
    -----
    ``E_A z`` is itself an estimate: pass the *predictive* variance of a mean over B, or the plain
    variance for the test in METHODS.md. Where A saw no spread in a row's z, its variance says
    nothing; such a row counts as uncovered unless B agrees exactly.

    Examples
    --------
    >>> found = advantage([2.0, 1.0], [1.0, 0.0], [4.0, 1.0], [0.0, np.nan], [16, 0])
    >>> found.statistic, found.error, round(found.uncovered, 3)
    (-2.0, 1.0, 0.333)
    >>> round(found.p_value, 4)
    0.0228
    """
    weight, hoped, spread, got = (
        np.asarray(x, dtype=np.float64) for x in (occupancy, expected, variance, mean)
    )
    size = np.asarray(number)
    difference = np.where(size > 0, got - hoped, 0.0)
    known = (size > 0) & ((spread > 0) | (difference == 0))
    statistic = float(weight[known] @ difference[known])
    error = float(np.sqrt(np.sum(weight[known] ** 2 * spread[known] / size[known])))
    total = float(weight.sum())
    return Advantage(
        statistic=statistic,
        error=error,
        uncovered=float(weight[~known].sum()) / total if total > 0 else 1.0,
        p_value=float(stats.norm.cdf(statistic / error)) if error > 0 else None,
    )
