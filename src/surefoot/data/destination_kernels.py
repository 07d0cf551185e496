"""Kernels that list candidate successors, and find which part would have named those left out.

A *pool* is a sorted run of states (or steps) with the number of rows that show each. The candidates
of a row are the pool without the successors that the row has shown: sums over them come from
running totals minus the row's own successors, so that a row costs its own length, not that of the
pool.
"""

import numpy as np
from numpy.typing import NDArray

from surefoot._compile import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.uint8]

CROWDED = 8
"""Pools with at least one in this many of all states are stored as flags, counted in one pass."""


@kernel()
def first_at_least(values: Floats | Ints, goal: float) -> int:
    """Return the first index in an increasing array whose value reaches a goal. O(log n)."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle] < goal:
            low = middle + 1
        else:
            high = middle
    return low


@kernel()
def steps_to_states(
    origin: int, step: Ints, running: Floats, state_of: Ints, kept: Ints, kept_running: Floats
) -> int:
    """Write the steps that lead to a state, and running totals of their rows; return how many.

    ``state_of[number]`` is the state of that number, -1 for none. O(steps).
    """
    size = 0
    kept_running[0] = 0.0
    for j in range(len(step)):
        if state_of[origin + step[j]] >= 0:
            kept[size] = step[j]
            kept_running[size + 1] = kept_running[size] + running[j + 1] - running[j]
            size += 1
    return size


@kernel()
def find_shown(pool: Ints, shown: Ints, number: Ints, origin: int, at: Ints) -> None:
    """Write the positions of a row's own successors in a sorted pool, -1 for those not in it.

    A pool of steps is searched for the successor's ``number`` minus ``origin``; without an origin
    (-1), the pool is searched for the successor itself.
    """
    for j in range(len(shown)):
        at[j] = -1
        if origin >= 0 and number[shown[j]] < 0:
            continue
        wanted = shown[j] if origin < 0 else number[shown[j]] - origin
        found = first_at_least(pool, wanted)
        if found < len(pool) and pool[found] == wanted:
            at[j] = found


@kernel()
def list_candidates(
    pool: Ints, running: Floats, own: Ints, total: float, origin: int, state_of: Ints, state: Ints,
    weight: Floats,
) -> int:  # fmt: skip
    """Write all candidates of a pool and their shares of the total; return how many.

    ``own``: positions in the pool of what the row has shown, increasing. A pool of steps leads from
    the ``origin`` to states; without an origin (-1) it holds the states themselves.
    """
    size, skip = 0, 0
    for j in range(len(pool)):
        if skip < len(own) and own[skip] == j:
            skip += 1
            continue
        state[size] = pool[j] if origin < 0 else state_of[origin + pool[j]]
        weight[size] = (running[j + 1] - running[j]) / total
        size += 1
    return size


@kernel()
def sample_candidates(
    pool: Ints, running: Floats, rank: Ints, priority: Floats, first: int, last: int, origin: int,
    state_of: Ints, mark: Ints, row: int, most: int, total: float, state: Ints, weight: Floats,
) -> int:  # fmt: skip
    """Write the ``most`` candidates of the highest priority and their shares; return how many.

    A priority sample (Duffield, Lund and Thorup 2007): the priority of a candidate is the number of
    rows that show it, divided by a pseudo-random number that depends on the candidate and on the
    shade of the row's state. The threshold is the highest priority left out. Candidates that more
    rows show than the threshold get their share of the ``total``; the others get equal shares and
    represent all that are left out. Actions of a state with similar pools list the same candidates,
    so that no action looks better by chance.

    ``rank`` lists positions in the pool by falling priority; positions ``first`` to ``last`` - 1
    count. States with ``mark[state] == row`` have been shown and are left out.
    """
    size, threshold = 0, 0.0
    for j in rank:
        if not first <= j < last:
            continue
        target = pool[j] if origin < 0 else state_of[origin + pool[j]]
        if target < 0 or mark[target] == row:
            continue
        if size == most:
            threshold = priority[j]
            break
        state[size], weight[size] = target, running[j + 1] - running[j]
        size += 1
    often, known = 0, 0.0
    for k in range(size):
        if weight[k] > threshold:
            often += 1
            known += weight[k]
    rest = (total - known) / max(1, size - often)
    if often == size:  # no candidate represents those left out
        total = known
    for k in range(size):
        weight[k] = (weight[k] if weight[k] > threshold else rest) / total
    return size


@kernel()
def flag_pools(steps: Ints, anywhere: Ints, number: Ints, by_step: Flags, by_number: Flags) -> int:
    """Flag the steps of an action, and the numbers of states that a pool names anywhere.

    A step's flag is ``by_step[numbers + step]``, so that steps from a state are a run of flags.
    Returns how many of these states have no number.
    """
    by_step[:] = 0
    by_number[:] = 0
    for away in steps:
        by_step[len(by_number) + away] = 1
    unnumbered = 0
    for target in anywhere:
        if number[target] >= 0:
            by_number[number[target]] = 1
        else:
            unnumbered += 1
    return unnumbered


@kernel()
def count_flags(by_step: Flags, by_number: Flags, has_state: Flags) -> int:
    """Return how many numbers of states either array flags. O(states), vectorised."""
    total = 0
    for k in range(len(by_number)):
        total += (by_number[k] | by_step[k]) & has_state[k]
    return total


@kernel()
def pointed_by_flags(
    shown: Ints, near: Ints, anywhere: Ints, number: Ints, by_step: Flags, by_number: Flags,
    has_state: Flags, mark: Ints, row: int,
) -> int:  # fmt: skip
    """Return how many states a row shows or the pools name, where two pools are flags.

    The states of ``anywhere`` without a number are not counted: the caller adds them. ``by_step``
    flags the numbers that a step from the row's state leads to.
    """
    total: int = count_flags(by_step, by_number, has_state)
    for targets in (shown, near):
        for target in targets:
            if mark[target] == row:
                continue
            mark[target] = row
            k = number[target]
            if k >= 0:
                total += 1 if (by_number[k] | by_step[k]) == 0 else 0
            else:
                found = first_at_least(anywhere, target)
                total += 1 if found == len(anywhere) or anywhere[found] != target else 0
    return total


@kernel()
def pointed_one_by_one(
    shown: Ints, near: Ints, moved: Ints, anywhere: Ints, state_of: Ints, origin: int, mark: Ints,
    row: int,
) -> int:  # fmt: skip
    """Return how many states a row shows or the pools name, where all pools are lists."""
    total = 0
    for targets in (shown, near, anywhere):
        for target in targets:
            if mark[target] != row:
                mark[target] = row
                total += 1
    for away in moved:
        target = state_of[origin + away]
        if mark[target] != row:
            mark[target] = row
            total += 1
    return total


@kernel()
def row_candidates(
    row_start: Ints, row_state: Ints, row_action: Ints, successor: Ints, once: NDArray[np.bool_],
    number: Ints, state_of: Ints, whole: bool,
    step_start: Ints, step: Ints, step_running: Floats, step_rank: Ints, step_priority: Floats,
    state_start: Ints, by_state: Ints, state_running: Floats, state_rank: Ints,
    state_priority: Floats,
    action_start: Ints, by_action: Ints, action_running: Floats, action_rank: Ints,
    action_priority: Floats,
    other_start: Ints, by_other: Ints, other_running: Floats, other_rank: Ints,
    other_priority: Floats, anywhere: Ints,
    most: Ints, fewest: Ints, others: int, start: Ints, state: Ints, weight: Floats, named: Floats,
) -> int:  # fmt: skip
    """Write the candidates of every row and part, and how well each part predicts singletons.

    Entries are those shown; ``once`` marks the singletons to leave out. The pools are ``step``
    (displacements) by action, ``by_state`` by state, ``by_action`` and ``by_other`` by action, each
    with running totals of the rows that show a member, positions by falling priority, and
    priorities (`sample_candidates`). ``anywhere``: all states of the last two pools, of any action.
    ``whole``: every number has a state. At most ``most[part, row]`` candidates are listed.
    ``others`` is the total number of states. ``named[i, part]`` is the probability with which each
    part, and the rest, would have named singleton ``i``. Returns the number of singletons.
    O(row log pools) per row; O(pools) where numbers have gaps or no part names a singleton, on
    bytes instead of integers where these pools are large.
    """
    parts = len(fewest)
    states = len(number)
    longest = 0
    for r in range(len(row_state)):
        longest = max(longest, row_start[r + 1] - row_start[r])
    at = np.empty((parts, longest), np.int64)
    own = np.empty(longest, np.int64)
    kept, kept_running = np.empty(states, np.int64), np.empty(states + 1)
    mark, own_mark = np.full(states, -1), np.full(states, -1)
    numbers = len(state_of)
    has_state = np.zeros(numbers, np.uint8)
    for k in range(numbers):
        has_state[k] = 1 if state_of[k] >= 0 else 0
    room = 0
    flags_at = np.full(len(action_start) - 1, -1)
    for a in range(len(flags_at)):
        pooled = len(anywhere) + step_start[a + 1] - step_start[a]
        if CROWDED * pooled >= numbers:
            flags_at[a] = room
            room += 1
    by_number = np.empty((room, numbers), np.uint8)
    by_step = np.empty((room, 2 * numbers), np.uint8)
    unnumbered = np.full(room, -1)  # no flags yet
    nowhere = np.zeros(numbers, np.uint8)
    size, left_out = 0, 0
    for r in range(len(row_state)):
        s, a = row_state[r], row_action[r]
        shown = successor[row_start[r] : row_start[r + 1]]
        for target in shown:
            own_mark[target] = r
        b, e = state_start[s], state_start[s + 1]
        near, near_running = by_state[b:e], state_running[b : e + 1]
        b, e = action_start[a], action_start[a + 1]
        entered, entered_running = by_action[b:e], action_running[b : e + 1]
        b, e = other_start[a], other_start[a + 1]
        elsewhere, elsewhere_running = by_other[b:e], other_running[b : e + 1]
        origin = number[s]
        b, e = step_start[a], step_start[a + 1]
        if origin >= 0:
            e = b + first_at_least(step[b:e], len(state_of) - origin)
            b += first_at_least(step[b:e], -origin)
        else:
            e = b
        first_step, last_step = b - step_start[a], e - step_start[a]
        moved, moved_running = step[b:e], step_running[b : e + 1]
        if not whole:
            count = steps_to_states(origin, moved, moved_running, state_of, kept, kept_running)
            moved, moved_running = kept[:count], kept_running[: count + 1]
        find_shown(near, shown, number, -1, at[0])
        find_shown(moved, shown, number, origin, at[1])
        find_shown(entered, shown, number, -1, at[2])
        find_shown(elsewhere, shown, number, -1, at[3])
        for part in range(parts):
            if part == 0:
                pool, running = near, near_running
            elif part == 1:
                pool, running = moved, moved_running
            elif part == 2:
                pool, running = entered, entered_running
            else:
                pool, running = elsewhere, elsewhere_running
            known = 0
            for j in range(len(shown)):
                if at[part, j] >= 0:
                    k = known
                    while k > 0 and own[k - 1] > at[part, j]:
                        own[k] = own[k - 1]
                        k -= 1
                    own[k] = at[part, j]
                    known += 1
            free = running[len(pool)] - running[0]
            for p in own[:known]:
                free -= running[p + 1] - running[p]
            start[parts * r + part] = size
            here = origin if part == 1 else -1
            if len(pool) - known <= most[part, r]:
                size += list_candidates(
                    pool, running, own[:known], free, here, state_of, state[size:], weight[size:]
                )
            else:
                first, last = 0, states
                if part == 0:
                    b, e = state_start[s], state_start[s + 1]
                    every, totals, rank, priority = (
                        by_state, state_running, state_rank, state_priority,
                    )  # fmt: skip
                elif part == 1:
                    b, e, first, last = step_start[a], step_start[a + 1], first_step, last_step
                    every, totals, rank, priority = step, step_running, step_rank, step_priority
                elif part == 2:
                    b, e = action_start[a], action_start[a + 1]
                    every, totals, rank, priority = (
                        by_action, action_running, action_rank, action_priority,
                    )  # fmt: skip
                else:
                    b, e = other_start[a], other_start[a + 1]
                    every, totals, rank, priority = (
                        by_other, other_running, other_rank, other_priority,
                    )  # fmt: skip
                shade = s % len(rank)
                size += sample_candidates(
                    every[b:e], totals[b : e + 1], rank[shade, b:e], priority[shade, b:e], first,
                    last, here, state_of, own_mark, r, most[part, r], free, state[size:],
                    weight[size:],
                )  # fmt: skip
            i = left_out
            for j in range(len(shown)):
                if once[row_start[r] + j]:
                    p = at[part, j]
                    rows = running[p + 1] - running[p] - 1.0 if p >= 0 else 0.0
                    named[i, part] = rows / (free + rows) if rows >= fewest[part] else 0.0
                    i += 1
        pointed = -1
        for j in range(len(shown)):
            if not once[row_start[r] + j]:
                continue
            if named[left_out, :parts].sum() == 0.0:
                if pointed < 0 and flags_at[a] >= 0:
                    f = flags_at[a]
                    if unnumbered[f] < 0:
                        steps = step[step_start[a] : step_start[a + 1]]
                        unnumbered[f] = flag_pools(
                            steps, anywhere, number, by_step[f], by_number[f]
                        )
                    ahead = nowhere
                    if origin >= 0:
                        ahead = by_step[f, numbers - origin : 2 * numbers - origin]
                    pointed = unnumbered[f] + pointed_by_flags(
                        shown, near, anywhere, number, ahead, by_number[f], has_state, mark, r
                    )
                elif pointed < 0:
                    pointed = pointed_one_by_one(
                        shown, near, moved, anywhere, state_of, origin, mark, r
                    )
                # The singleton itself is left out of what the row shows.
                named[left_out, parts] = 1.0 / max(1, others - (pointed - 1))
            else:
                named[left_out, parts] = 0.0
            left_out += 1
    start[parts * len(row_state)] = size
    return left_out
