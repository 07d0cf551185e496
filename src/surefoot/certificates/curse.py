"""The curse of choosing, measured by the log itself.

A policy chosen on part of a log looks better there than on the rest: by how much is an estimate of
what the choice owes to luck, and to a prior that flatters it. ``c = mean of v_X(pi_X) - w_Y(pi_X)``
over random halves (X, Y) of the log, each used both ways, and not below 0: ``v_X`` is the value by
the posterior of X, ``w_Y`` that by the plain frequencies of Y.

The return is not linear in the frequencies, so frequencies of few tries are biased, by about one
over the number of tries: with ten tries a pair they make an epidemic milder than it is. Half of Y
has twice the bias of Y, so the difference of the two estimates the bias of Y (the jackknife of
Quenouille). It is taken off ``w_Y`` where that shows more luck. Where rows were tried a few times,
half of Y lacks most of them and the estimate is noise: on wards it hid luck that was there.

Departures from a clear practice that the whole log makes and halves do not cannot show their luck
there: they are charged with what they lose when they regress to the mean of their state.

Rows that Y never tried are as lucky as those it tried, in deviations of their estimate. The same
goes for rows of the final policy that the whole log tried once or twice: no half can test them.

The final policy is also valued by the plain frequencies of the whole log, which chose it: luck
is in both values, so whatever the posterior adds comes from the prior. At least that much is taken
off, and at least what its rewards lose when they regress to those of their action, together with
that (`surefoot.certificates.lucky_rewards`).

There is no proof behind it: how much it leaves broken is counted, not derived (docs/guarantee.md).
"""

from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot._workers import all_parts
from surefoot.certificates.by_step import Policy
from surefoot.certificates.evidence import Curse
from surefoot.certificates.halves import Half, LogBuckets, as_seen
from surefoot.certificates.lucky_rewards import lucky_rewards
from surefoot.certificates.plays import plays_of, row_values, standard_error
from surefoot.certificates.usual import CLEAR, PREFERRED, lost_by_regression, usual_rows
from surefoot.data.buckets import NUM_BUCKETS
from surefoot.model.mdp import MDP
from surefoot.model.policies import AnyPolicy, check_policy, row_shares
from surefoot.model.step_policy import StepPolicy
from surefoot.solvers.evaluation.visits import plays_of_rows
from surefoot.solvers.solver import evaluate

DEFAULT_HALVES = 6
"""Pairs of halves; each gives two differences."""
FEW_HALVES, MANY_ROWS = 2, 5000
"""Larger models have fewer, which cost as much; their luck averages over more rows."""
SHARED_ROWS = 2000
"""From this many rows on, halves of a model are worth sending to the workers of a cluster."""
FEW_TRIES = 2
"""Rows with at most this many tries in the whole log cannot be tested on halves of it."""
WHOLE = 0.8
"""How much of the luck in a half is left in the whole. With many tries luck shrinks with the root
of the data (.71); with few, as counted on worlds with a known truth, to .8 or more."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Loss(NamedTuple):
    """What the policy of a half loses on the other half.

    ``by``: by the plain frequencies of the other half, and by those without their bias. ``lucky``:
    how lucky its rows were (see `_shortfall`). ``departures``: in how many states it does something
    else than a policy that was given.
    """

    policy: Policy
    by: tuple[float, float]
    lucky: tuple[float, float]
    departures: int = 0


def balanced_halves(number: int, seed: int) -> list[tuple[int, ...]]:
    """Return distinct halves of the buckets, at random; none is another's complement.

    Examples
    --------
    >>> halves = balanced_halves(4, seed=0)
    >>> len({half for half in halves}), {len(half) for half in halves}
    (4, {8})
    """
    # Bucket 0 is always in X: that picks one of each pair of complements.
    every = list(combinations(range(1, NUM_BUCKETS), NUM_BUCKETS // 2 - 1))
    if not 1 <= number <= len(every):
        raise ValueError(f"number={number}; there are 1 to {len(every)} pairs of halves.")
    chosen = np.random.default_rng(seed).choice(len(every), size=number, replace=False)
    return [(0, *every[i]) for i in chosen]


def curse_of_choosing(
    log: LogBuckets, policy: Policy | None = None, *, halves: int | None = None, seed: int
) -> Curse:
    """Choose on one half of a log, value on both, and return the difference.

    ``policy``: the one chosen on the whole log, whose hardly tried rows are charged as well, and
    which the prior must not flatter by more than is taken off.
    """
    found = _shortfalls(log, None, halves, seed)
    curse = _larger(found)
    if policy is None:
        return curse
    gained, possible = map(float, np.sum([loss.lucky for loss in found], axis=0))
    usual = max(0.0, gained / possible) if possible > 0 else 0.0
    mean = curse.mean + usual * _hardly_tried(log, policy)
    mean = _with_departures(log, policy, found, mean)
    plays = plays_of_rows(log.mdp, check_policy(log.mdp, policy))
    lucky = lucky_rewards(log.mdp, log.posterior.counts, plays)
    return replace(curse, mean=max(mean, flattery(log, policy) + lucky))


def _with_departures(log: LogBuckets, policy: Policy, losses: list[Loss], mean: float) -> float:
    """Return luck that counts the departures from a clear practice which halves do not make.

    Halves have seen their share of the luck in departures. What those of the policy lose when they
    regress to the mean of their state is added for as many as it makes more often than halves do,
    and is the least there is. They cannot lose more than they seem to gain over usual actions.
    """
    usual = np.asarray(log.mdp.row_action[usual_rows(log.mdp, log.whole.visits)])
    lost = _regressing(log, policy, usual, clear=CLEAR)
    if lost == 0.0:
        return mean
    gained = evaluate(log.mdp, policy).return_upper - evaluate(log.mdp, usual).return_lower
    if gained < lost:
        lost = max(0.0, gained)
    theirs = sum(_departures(log.mdp, loss.policy, usual) for loss in losses) / len(losses)
    own = max(1, _departures(log.mdp, policy, usual))
    more = max(0.0, 1.0 - theirs / own)
    return max(mean + more * lost, lost)


def flattery(log: LogBuckets, policy: Policy) -> float:
    """Return how much more a policy earns by the posterior than by the plain frequencies.

    At least 0: where the unseen makes the posterior more cautious, it does not flatter the policy.
    """
    seen = evaluate(as_seen(log.whole, log.whole), policy)
    return max(0.0, evaluate(log.mdp, policy).return_lower - seen.return_upper)


def curse_of_preferring(
    log: LogBuckets, given: AnyPolicy, policy: AnyPolicy | None = None, *,
    halves: int | None = None, seed: int,
) -> Curse:  # fmt: skip
    """Return the luck in how much better a chosen policy looks than one that was given.

    A half may value all policies too high, or all too low. That cancels in a difference; the luck
    of the choice does not, and shows more clearly.

    ``policy``: the one chosen on the whole log. Luck goes with departures from the given one, and
    halves that make fewer of them say little about a whole log that makes more: theirs is then
    taken as many times as that policy departs more often than they do on average. At least what
    departures from preferred actions lose when they regress to the mean of their state is taken:
    halves know them by few tries, and may all leave them alone.
    """
    losses = _shortfalls(log, given, halves, seed)
    found = _larger(losses)
    if policy is None:
        return found
    theirs = max(1.0, sum(loss.departures for loss in losses)) / len(losses)
    more = max(1.0, _departures(log.mdp, policy, given) / theirs)
    least = _regressing(log, policy, given, clear=PREFERRED)
    one, other = (plays_of_rows(log.mdp, check_policy(log.mdp, each)) for each in (policy, given))
    least += lucky_rewards(log.mdp, log.posterior.counts, one - other)
    return replace(found, mean=max(more * found.mean, least), spread=more * found.spread)


def _regressing(log: LogBuckets, policy: AnyPolicy, given: AnyPolicy, *, clear: float) -> float:
    """Return what departures of a policy from usual actions owe to luck, by regression.

    Only from actions that were tried ``clear`` times as often or more, and where a given policy
    does something else: what both do cancels in the difference.
    """
    if not isinstance(policy, StepPolicy) and policy.ndim != 1:
        return 0.0
    mdp, visits = log.mdp, log.whole.visits
    plays = plays_of(mdp, policy)
    mean, deviation = row_values(mdp, plays.ahead)
    lost = lost_by_regression(mdp, visits, mean, standard_error(deviation, visits), clear=clear)
    return float((plays.weight * lost) @ (row_shares(mdp, given) == 0))


def _departures(mdp: MDP, policy: AnyPolicy, given: AnyPolicy) -> int:
    """Return in how many states a policy does something else than another, at any step."""
    one, other = _shares(mdp, policy), _shares(mdp, given)
    return len(np.unique(mdp.row_state[one != other]))


def _shares(mdp: MDP, policy: AnyPolicy) -> Floats:
    """Return ``(R,)``: how often a policy takes each row; one by step, whether it ever does."""
    if not isinstance(policy, StepPolicy):
        return row_shares(mdp, policy)
    taken = np.zeros((mdp.num_states, mdp.num_actions))
    taken[np.repeat(np.arange(mdp.num_states), np.diff(policy.state_start)), policy.action] = 1.0
    return np.asarray(taken[mdp.row_state, mdp.row_action])


def _shortfalls(
    log: LogBuckets, given: AnyPolicy | None, halves: int | None, seed: int
) -> list[Loss]:
    """Return the shortfalls of all halves, over that of a given policy if there is one."""
    parts = [(chosen,) for chosen in halves_of(log, halves, seed)]
    known = given is None and all((chosen, 1) in log.losses for (chosen,) in parts)
    if known or log.mdp.num_rows < SHARED_ROWS:
        made = [both_ways(log, given, *part) for part in parts]
    else:
        made = all_parts(both_ways, (log, given), parts)
    return [one for pair in made for one in pair]


def halves_of(log: LogBuckets, number: int | None, seed: int) -> list[tuple[int, ...]]:
    """Return the halves that measure the luck of choosing on a log; None: as many as usual."""
    if number is None:
        number = DEFAULT_HALVES if log.mdp.num_rows <= MANY_ROWS else FEW_HALVES
    return balanced_halves(number, seed)


def both_ways(log: LogBuckets, given: AnyPolicy | None, chosen: tuple[int, ...]) -> list[Loss]:
    """Return the shortfalls of one pair of halves; what halves lost is kept with the log."""
    if given is None and (chosen, 1) in log.losses:
        return [log.losses[chosen, turn] for turn in (0, 1)]
    rest = np.setdiff1d(np.arange(NUM_BUCKETS), chosen)
    sides = log.half(np.array(chosen)), log.half(rest)
    found = []
    for turn, (own, other) in enumerate((sides, sides[::-1])):
        if (chosen, turn) not in log.losses:
            log.losses[chosen, turn] = _shortfall(log, log.choose(own), own, other)
        loss = log.losses[chosen, turn]
        if given is not None:
            missed = _missed(log, given, own, other)
            by = (loss.by[0] - missed[0], loss.by[1] - missed[1])
            loss = loss._replace(by=by, departures=_departures(log.mdp, loss.policy, given))
        found.append(loss)
    return found


def _missed(log: LogBuckets, policy: AnyPolicy, own: Half, other: Half) -> tuple[float, float]:
    """Return how much less a given policy earns on the other half than on its own, both ways."""
    nothing = np.zeros(own.mdp.num_rows)
    thought = evaluate(own.mdp, policy).return_lower
    plain, unbiased = _returns_on(log, policy, other, as_seen(other, own), nothing)
    return thought - plain, thought - unbiased


def _returns_on(
    log: LogBuckets, policy: AnyPolicy, other: Half, seen: MDP, less: Floats
) -> tuple[float, float]:
    """Return what a policy earns by the frequencies of a half, less what its rows are charged.

    By the plain frequencies, and without the bias of order one over the tries.
    """

    def earned(mdp: MDP) -> float:
        reward = mdp.entry_reward - less[mdp.entry_row]
        return evaluate(replace(mdp, reward=reward, reward_per_entry=True), policy).return_lower

    parts = [earned(log.quarter_seen(buckets, seen)) for buckets in other.quarters]
    plain = earned(seen)
    return plain, 2.0 * plain - float(np.mean(parts))


def _shortfall(log: LogBuckets, policy: Policy, own: Half, other: Half) -> Loss:
    """Return what a half's policy loses on the other, and how lucky its rows were.

    Luck is a sum over rows that both have tried, of what they lost and of what a deviation of each
    would have cost, as often as they are played (`surefoot.certificates.plays`).
    """
    mdp = own.mdp
    plays = plays_of(mdp, policy)
    weight = plays.weight
    seen = as_seen(other, own)
    mean, deviation = row_values(mdp, plays.ahead)
    got = row_values(seen, plays.ahead)[0]
    error = standard_error(deviation, own.visits)  # of what the half thinks of a row
    spread = float(np.abs(plays.value).max()) * 1e-9
    tested = (other.visits > 0) & (own.visits > 0) & (deviation > spread)
    lost = float(weight[tested] @ (mean - got)[tested])
    possible = float(weight[tested] @ error[tested])
    usual = max(0.0, lost / possible) if possible > 0 else 0.0
    less = np.where((weight > 0) & ~tested, usual * error, 0.0)
    plain, unbiased = _returns_on(log, policy, other, seen, less)
    own_return = plays.return_lower
    return Loss(policy, (own_return - plain, own_return - unbiased), (lost, possible))


def _larger(losses: list[Loss]) -> Curse:
    """Return the luck that losses show: by plain frequencies or without their bias, if more."""
    plain, unbiased = (summarize(np.array([loss.by[way] for loss in losses])) for way in (0, 1))
    return max(plain, unbiased, key=lambda one: one.mean)


def _hardly_tried(log: LogBuckets, policy: Policy) -> float:
    """Return what a deviation of each row that was tried once or twice would cost a policy."""
    mdp = log.mdp
    plays = plays_of(mdp, policy)
    visits = np.add.reduceat(log.posterior.counts.count, mdp.row_start[:-1])
    few = (plays.weight > 0) & (visits > 0) & (visits <= FEW_TRIES)
    if not few.any():
        return 0.0
    error = standard_error(row_values(mdp, plays.ahead)[1], visits)[few]
    return float(plays.weight[few] @ error)


def summarize(differences: Floats) -> Curse:
    """Return what choosing on the whole log costs, and its standard error.

    The two differences of one pair depend on each other; the standard error is therefore that of
    as many differences as there are pairs.

    Examples
    --------
    >>> curse = summarize(np.array([0.1, 0.3, 0.3, 0.5]))
    >>> round(curse.mean, 3), round(curse.spread, 3)
    (0.24, 0.08)
    """
    if not np.isfinite(differences).all():  # never taken for no luck at all
        return Curse(mean=np.inf, spread=0.0, differences=differences)
    pairs = differences.reshape(-1, 2).mean(axis=1)
    error = float(pairs.std(ddof=1) / np.sqrt(len(pairs))) if len(pairs) > 1 else 0.0
    mean = max(0.0, float(differences.mean()))
    return Curse(mean=WHOLE * mean, spread=WHOLE * error, differences=differences)
