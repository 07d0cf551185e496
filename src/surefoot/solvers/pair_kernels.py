"""Rows of L1 balls, solved by the donor and receiver that tie at the optimal multiplier.

The dual of ``dual_kernels.l1_dual`` has its maximum where some donor and the receiver tie,
``mu = (z_donor - z_receiver) / (w_donor + w_receiver)``: without that donor the budget is not used
up, with it it is. One pass verifies a pair, and the pair of the last sweep is usually still right.
If it is not, passes that only add up the budget the donors would use find the next pair. A pair
that is not verified is never used; the dual is searched instead. This happens where two receivers
or two donors tie: such rows are marked (their donor is stored as ``-2 - donor``), and in the next
sweep the dual is searched as soon as the stored pair fails.
"""

import numpy as np

from surefoot._compile import kernel
from surefoot.solvers.dual_kernels import (
    FAST,
    HUGE,
    L1,
    LONG_ROW,
    ONE,
    ZERO,
    l1_donors,
    l1_receiver,
    search,
)

NEVER = np.int32(-1)
"""The memory of a row before it is solved for the first time."""
STEP = 0.05
"""First step away from a multiplier that was optimal for earlier values, relative to it."""
MAX_STEPS = 40
"""Passes before the search for a donor is abandoned; two to six are usual."""
MAX_IDLE = 6
"""Consecutive passes that remove no entry from the bracket: beyond this, its entries tie."""


@kernel(lean=True, forceinline=True)
def l1_value(z, p, at, w, wat, k, budget, nominal, accuracy, row, memory):
    """Return the worst case of an L1 row and its gap.

    Tries the remembered pair first. If that fails, finds the right donor for its receiver, or for
    the entry that undercuts the receiver, and tries that pair. Searches the dual only if that
    fails too.
    """
    guess, step = 0.0, HUGE
    turns = 2
    if memory[row, 0] == NEVER:
        donor, receiver = first_pair(z, p, at, w, wat, k, budget, nominal)
    elif memory[row, 0] >= 0:
        donor, receiver = np.uint64(memory[row, 0]), np.uint64(memory[row, 1])
    else:
        donor, receiver = np.uint64(-2 - memory[row, 0]), np.uint64(memory[row, 1])
        turns = 1
    for turn in range(turns):
        both = w[wat + donor] + w[wat + receiver]
        if not (both > 0 and z[donor] > z[receiver]):
            break
        mu = (z[donor] - z[receiver]) / both
        guess, step = mu, 0.05 * mu
        value, slope, margin, undercut = l1_pair(
            z, p, at, w, wat, k, budget, nominal, mu, donor, receiver
        )
        if not undercut and slope <= 0 and slope + margin >= 0:
            memory[row, 0] = donor
            memory[row, 1] = receiver
            return value, 0.0
        if turn + 1 < turns:
            if undercut:
                receiver = l1_receiver(z, w, wat, k, mu)
            donor = find_donor(z, p, at, w, wat, k, budget, receiver, mu)
    value, gap, mu, _, _ = search(L1, z, p, at, w, wat, k, budget, nominal, guess, step, accuracy)
    remember_pair(z, w, wat, k, mu, row, memory)
    return value, gap


@kernel(lean=True)
def first_pair(z, p, at, w, wat, k, budget, nominal):
    """Return a donor and a receiver to start from, for a row that was never solved."""
    receiver = l1_receiver(z, w, wat, k, 0.0)
    if not (w[wat + receiver] > 0 and nominal > z[receiver]):
        return receiver, receiver
    mu = (nominal - z[receiver]) / (2 * w[wat + receiver])
    receiver = l1_receiver(z, w, wat, k, mu)
    return find_donor(z, p, at, w, wat, k, budget, receiver, mu), receiver


@kernel(lean=True, forceinline=True)
def l1_pair(z, p, at, w, wat, k, budget, nominal, mu, donor, receiver):
    """Evaluate the dual where donor and receiver tie; O(k).

    Returns the value, the slope without the donor, the donor's share of the slope, and whether
    another entry undercuts the receiver (then the pair is not optimal).
    """
    lowest = z[receiver] + mu * w[wat + receiver]
    kept = z[donor]
    z[donor] = lowest  # it ties, so it must not count as a donor because of rounding
    taken, mass, weighted = l1_donors(z, p, at, w, wat, k, mu, lowest)
    undercut = l1_undercut(z, w, wat, k, mu, lowest)
    z[donor] = kept
    value = nominal - mu * budget - taken
    slope = weighted + w[wat + receiver] * mass - budget
    return value, slope, p[at + donor] * (w[wat + donor] + w[wat + receiver]), undercut > 0


@kernel(lean=True, fastmath=FAST)
def l1_undercut(z, w, wat, k, mu, lowest):
    """Count the entries with ``z + mu*w`` below a level."""
    count = 0
    for i in range(k):
        count += 1 if z[i] + mu * w[wat + i] < lowest else 0
    return count


def _spent(z, p, at, w, wat, k, receiver, mu):
    """Return the budget that the donors at ``mu`` use with a given receiver, and their number."""
    lowest, weight = z[receiver] + mu * w[wat + receiver], w[wat + receiver]
    spent = 0.0
    count = 0
    for i in range(k):
        over = z[i] - mu * w[wat + i]
        price = p[at + i] * (w[wat + i] + weight)
        spent += price if over > lowest else 0.0
        count += 1 if over > lowest else 0
    return spent, count


def _between(z, w, wat, k, receiver, low, high):
    """Return the sum of the indices of entries that are donors at ``low`` but not at ``high``."""
    weight = w[wat + receiver]
    at_low, at_high = z[receiver] + low * weight, z[receiver] + high * weight
    places = 0
    for i in range(k):
        still = z[i] - high * w[wat + i] > at_high
        gone = (z[i] - low * w[wat + i] > at_low) & (not still)
        places += i if gone else 0
    return np.uint64(places)


_spent_short = kernel(lean=True, forceinline=True)(_spent)
_spent_long = kernel(lean=True, fastmath=FAST, twin="long")(_spent)
_between_short = kernel(lean=True, forceinline=True)(_between)
_between_long = kernel(lean=True, fastmath=FAST, twin="long")(_between)


@kernel(lean=True, forceinline=True)
def spent_at(z, p, at, w, wat, k, receiver, mu):
    """Return the budget spent at a multiplier (see ``_spent``)."""
    if k < LONG_ROW:
        return _spent_short(z, p, at, w, wat, k, receiver, mu)
    return _spent_long(z, p, at, w, wat, k, receiver, mu)


@kernel(lean=True, forceinline=True)
def between(z, w, wat, k, receiver, low, high):
    """Return the only entry that is a donor at ``low`` but not at ``high`` (see ``_between``)."""
    if k < LONG_ROW:
        return _between_short(z, w, wat, k, receiver, low, high)
    return _between_long(z, w, wat, k, receiver, low, high)


@kernel(lean=True)
def find_donor(z, p, at, w, wat, k, budget, receiver, mu):
    """Return the donor whose tie with the receiver uses up the budget; the receiver if none found.

    The budget that donors use falls as the multiplier rises. Starting from a guess ``mu > 0``, the
    search brackets the multiplier at which they use exactly ``budget`` and narrows the bracket
    until one donor is left between its ends. Each step is one pass.
    """
    if not budget > 0:
        return receiver
    spent, count = spent_at(z, p, at, w, wat, k, receiver, mu)
    low = high = mu
    most, many, least, few = spent, count, spent, count
    has_low = spent >= budget
    has_high = not has_low
    step = STEP * mu
    idle = 0
    for _ in range(MAX_STEPS):
        if has_low and has_high:
            if many - few == 1:
                return between(z, w, wat, k, receiver, low, high)
            share = 0.5 if idle > 0 else (most - budget) / (most - least)
            mu = low + (high - low) * share
            if not low < mu < high:
                mu = 0.5 * (low + high)
        else:
            mu = low + step if has_low else max(0.0, high - step)
            step *= 4
        if mu in (low, high) or idle > MAX_IDLE:
            break
        spent, count = spent_at(z, p, at, w, wat, k, receiver, mu)
        idle = idle + 1 if count in (many, few) else 0
        if spent >= budget:
            low, most, many, has_low = mu, spent, count, True
        else:
            high, least, few, has_high = mu, spent, count, True
    return receiver


@kernel(lean=True, forceinline=True)
def remember_pair(z, w, wat, k, mu, row, memory):
    """Remember the receiver at ``mu`` and the entry nearest to a tie with it; mark the row."""
    receiver = l1_receiver(z, w, wat, k, mu)
    lowest = z[receiver] + mu * w[wat + receiver]
    smallest = HUGE
    for i in range(k):
        if i != receiver:
            smallest = min(smallest, abs(z[i] - mu * w[wat + i] - lowest))
    donor = ONE if receiver == ZERO else ZERO
    for i in range(k):
        if i != receiver and abs(z[i] - mu * w[wat + i] - lowest) <= smallest:
            donor = i
            break
    memory[row, 0] = -2 - np.int64(donor)
    memory[row, 1] = receiver
