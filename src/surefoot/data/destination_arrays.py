"""The kernels of `surefoot.data.destination_kernels` on whole arrays, for use without numba.

Weights of pools are whole numbers, so their sums are exact in any order; everything else is done in
the order of the kernels. A test checks that both give the same bits.
"""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot._cores import available_cores, on_threads

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

PARTS = 4
"""Patterns that name candidates."""
MOST_EXPANDED = 2**22
"""Pools are expanded a few rows at a time, with about this many members in total."""


class Pools(NamedTuple):
    """Sorted pools: the members of row ``r``'s pool are ``what[begin[r]:end[r]]``.

    ``running`` are running totals of how many rows show each member. ``key`` increases, and member
    ``m`` of the pool of row ``r`` has ``key == base[r] + m``.
    """

    what: Ints
    running: Floats
    key: Ints
    begin: Ints
    end: Ints
    base: Ints

    def find(self, row: Ints, wanted: Ints, known: Bools) -> Ints:
        """Return the positions of members in the pools of their rows; -1 for those not in them."""
        key = np.where(known, self.base[row] + wanted, -1)
        at = np.searchsorted(self.key, key)
        there = known & (at < len(self.key))
        there[there] = self.key[at[there]] == key[there]
        return np.where(there, at, -1)

    def weigh(self, at: Ints) -> Floats:
        """Return how many rows show each member."""
        return np.asarray(self.running[at + 1] - self.running[at])

    def written_out(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the positions of all members of some rows' pools, and the row of each."""
        return _ranges(self.begin[rows], self.end[rows])


class Ranks(NamedTuple):
    """Pools of groups by falling priority, and which of their members count for each row.

    ``rank`` lists positions in a group's pool; for a row, positions ``first`` to ``last`` - 1
    count.
    """

    start: Ints
    what: Ints
    running: Floats
    rank: Ints
    priority: Floats
    group: Ints
    first: Ints
    last: Ints


class _Chunk(NamedTuple):
    """Rows of a block, counted from 0, and the successors they have shown."""

    state: Ints
    action: Ints
    origin: Ints
    most: Ints
    row: Ints
    successor: Ints
    once: Bools


def row_candidates(
    row_start: Ints, row_state: Ints, row_action: Ints, successor: Ints, once: Bools,
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
    """Compute the same as the kernel of this name, block by block."""
    span, size, left_out = len(number) + 1, 0, 0
    first_step, last_step = _reach(step_start, step, row_action, number[row_state], len(state_of))
    for first, last in _blocks(last_step - first_step, whole=whole):
        begin, end = row_start[first], row_start[last]
        s, a = row_state[first:last], row_action[first:last]
        rows = _Chunk(
            state=s, action=a, origin=number[s], most=most[:, first:last],
            row=np.repeat(np.arange(last - first), np.diff(row_start[first : last + 1])),
            successor=successor[begin:end], once=once[begin:end],
        )  # fmt: skip
        moved = _steps(step_start, step, step_running, a, first_step[first:last],
                       last_step[first:last], len(state_of))  # fmt: skip
        pools = (
            _group(state_start, by_state, state_running, s, span),
            moved if whole else _leading(moved, rows.origin, state_of),
            _group(action_start, by_action, action_running, a, span),
            _group(other_start, by_other, other_running, a, span),
        )
        steps_from = step_start[a]
        none, every = np.zeros(len(a), dtype=np.int64), np.full(len(a), len(number))
        ranks = (
            Ranks(state_start, by_state, state_running, state_rank, state_priority, s, none, every),
            Ranks(step_start, step, step_running, step_rank, step_priority, a,
                  first_step[first:last] - steps_from, last_step[first:last] - steps_from),
            Ranks(action_start, by_action, action_running, action_rank, action_priority, a, none,
                  every),
            Ranks(other_start, by_other, other_running, other_rank, other_priority, a, none, every),
        )  # fmt: skip
        slots = start[PARTS * first : PARTS * last + 1]
        slots[0] = size
        single = np.count_nonzero(rows.once)
        told = named[left_out : left_out + single]
        size = _block(rows, pools, ranks, (step_start, step), anywhere, number, state_of, fewest,
                      others, slots, state, weight, told)  # fmt: skip
        left_out += int(single)
    start[PARTS * len(row_state)] = size
    return left_out


def _block(
    rows: _Chunk, pools: tuple[Pools, ...], ranks: tuple[Ranks, ...], steps: tuple[Ints, Ints],
    anywhere: Ints, number: Ints, state_of: Ints, fewest: Ints, others: int, start: Ints,
    state: Ints, weight: Floats, named: Floats,
) -> int:  # fmt: skip
    """Write the candidates of some rows from ``start[0]`` on; return where they end."""
    step = number[rows.successor] - rows.origin[rows.row]
    numbered = (rows.origin[rows.row] >= 0) & (number[rows.successor] >= 0)
    every = np.ones(len(rows.row), dtype=np.bool_)
    itself = (rows.successor, every)
    wanted = (itself, (step, numbered), itself, itself)

    def of_part(part: int) -> tuple[Ints, tuple[Ints, Ints, Floats]]:
        pool = pools[part]
        at = pool.find(rows.row, *wanted[part])
        own = np.flatnonzero(at >= 0)
        own = own[np.lexsort((at[own], rows.row[own]))]
        free = pool.running[pool.end] - pool.running[pool.begin]
        free -= np.bincount(rows.row[own], pool.weigh(at[own]), len(free))
        of_row, there = rows.row[rows.once], at[rows.once]
        shown = np.zeros(len(there))
        shown[there >= 0] = pool.weigh(there[there >= 0]) - 1.0
        named[:, part] = np.divide(
            shown, free[of_row] + shown, out=np.zeros(len(shown)), where=shown >= fewest[part]
        )
        known = np.bincount(rows.row[own], minlength=len(rows.state))
        short = pool.end - pool.begin - known <= rows.most[part]
        origin = rows.origin if part == 1 else np.full(len(short), -1)
        row, member, share = _listed(pool, rows.row[own], at[own], free, np.flatnonzero(short))
        listed = row, _targets(member, origin[row], state_of), share
        chosen = _sampled(
            ranks[part], np.flatnonzero(~short), rows, rows.most[part], free, origin, state_of
        )
        order = np.argsort(np.concatenate((listed[0], chosen[0])), kind="stable")
        both = (np.concatenate(pair)[order] for pair in zip(listed, chosen, strict=True))
        return at, tuple(both)  # type: ignore[return-value]

    with ThreadPoolExecutor(PARTS) as threads:
        places, lists = zip(*threads.map(of_part, range(PARTS)), strict=True)
    _write_lists(lists, len(rows.state), start, state, weight)
    named[:, PARTS] = _of_the_rest(
        rows, pools[:2], steps, anywhere, np.stack(places), number, state_of, others, named
    )
    return int(start[-1])


def _listed(
    pool: Pools, own_row: Ints, own: Ints, total: Floats, rows: Ints
) -> tuple[Ints, Ints, Floats]:
    """Return (row, member, share) of all candidates of some rows."""
    at, which = pool.written_out(rows)
    offset, mine = np.zeros(len(total), dtype=np.int64), np.zeros(len(total), dtype=np.bool_)
    offset[rows] = np.cumsum(pool.end[rows] - pool.begin[rows]) - pool.end[rows]
    mine[rows] = True
    new = np.ones(len(at), dtype=np.bool_)
    kept = mine[own_row]
    new[offset[own_row[kept]] + own[kept]] = False
    at, row = at[new], rows[which[new]]
    return row, pool.what[at], pool.weigh(at) / total[row]


def _sampled(
    ranks: Ranks, left: Ints, rows: _Chunk, most: Ints, total: Floats, origin: Ints, state_of: Ints
) -> tuple[Ints, Ints, Floats]:
    """Return (row, state, share) of priority samples; each turn looks at every row's next best."""
    span = max(int(ids.max(initial=0)) for ids in (rows.successor, state_of, ranks.what))
    shown = np.sort(rows.row * (span + 1) + rows.successor)
    taken, threshold = np.zeros(len(most), dtype=np.int64), np.zeros(len(most))
    found: list[tuple[Ints, Ints, Floats]] = []
    turn = 0
    while len(left):
        begin = ranks.start[ranks.group[left]]
        shade = rows.state[left] % len(ranks.rank)
        j = ranks.rank[shade, begin + turn]
        at = begin + j
        good = (ranks.first[left] <= j) & (j < ranks.last[left])
        target = np.full(len(left), -1)
        target[good] = _targets(ranks.what[at[good]], origin[left[good]], state_of)
        good &= target >= 0
        key = left * (span + 1) + target
        place = np.minimum(np.searchsorted(shown, key), len(shown) - 1)
        good &= shown[place] != key
        full = taken[left] == most[left]
        last, more = good & full, good & ~full
        threshold[left[last]] = ranks.priority[shade[last], at[last]]
        weight = ranks.running[at[more] + 1] - ranks.running[at[more]]
        found.append((left[more], target[more], weight))
        taken[left[more]] += 1
        turn += 1
        left = left[~last & (begin + turn < ranks.start[ranks.group[left] + 1])]
    if not found:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
    row, state, weight = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.argsort(row, kind="stable")
    row, state, weight = row[order], state[order], weight[order]
    often = weight > threshold[row]
    known = np.bincount(row[often], weight[often], len(total))
    few = np.bincount(row[~often], minlength=len(total))
    rest = (total - known) / np.maximum(1, few)
    return row, state, np.where(often, weight, rest[row]) / np.where(few > 0, total, known)[row]


def _targets(member: Ints, origin: Ints, state_of: Ints) -> Ints:
    """Return the states that pool members stand for: with an origin, where the step leads."""
    stepping = origin >= 0
    at = np.where(stepping, origin + member, 0)
    return np.where(stepping, state_of[at], member)


def _write_lists(
    lists: tuple[tuple[Ints, Ints, Floats], ...], rows: int, start: Ints, state: Ints,
    weight: Floats,
) -> None:  # fmt: skip
    """Write the candidates row by row, part by part."""
    sizes = np.stack([np.bincount(row, minlength=rows) for row, _, _ in lists], axis=1)
    start[1:] = start[0] + np.cumsum(sizes.ravel())
    for part, (row, target, share) in enumerate(lists):
        rank = np.arange(len(row)) - (np.cumsum(sizes[:, part]) - sizes[:, part])[row]
        at = start[PARTS * row + part] + rank
        state[at] = target
        weight[at] = share


def _of_the_rest(
    rows: _Chunk, pools: tuple[Pools, ...], steps: tuple[Ints, Ints], anywhere: Ints, places: Ints,
    number: Ints, state_of: Ints, others: int, named: Floats,
) -> Floats:  # fmt: skip
    """Return the probability of singletons that no part names: uniform over the other states."""
    near, moved = pools
    lost = named[:, :PARTS].sum(axis=1) == 0.0
    of_row = rows.row[rows.once]
    asked = np.unique(of_row[lost])
    new = np.ones(len(number), dtype=np.bool_)
    new[anywhere] = False
    pointed = np.zeros(len(rows.state), dtype=np.int64)
    pointed[asked] = len(anywhere) - 1
    alone = (places[:2] < 0).all(axis=0) & new[rows.successor]
    pointed += np.bincount(rows.row[alone], minlength=len(pointed))
    at, which = near.written_out(asked)
    target, row = near.what[at], asked[which]
    step, numbered = number[target] - rows.origin[row], number[target] >= 0
    fresh = moved.find(row, step, numbered & (rows.origin[row] >= 0)) < 0
    pointed += np.bincount(row[fresh & new[target]], minlength=len(pointed))
    for action in np.unique(rows.action[asked]):
        mine = asked[rows.action[asked] == action]
        step = steps[1][steps[0][action] : steps[0][action + 1]]
        pointed[mine] += _led_to(new, step, rows.origin[mine], state_of)
    return np.where(lost, 1.0 / np.maximum(1, others - pointed[of_row]), 0.0)


def _led_to(new: Bools, step: Ints, origin: Ints, state_of: Ints) -> Ints:
    """Return how many new states the steps of an action lead to, from every origin.

    The sums over steps are computed by Fourier transforms and rounded to whole numbers, far coarser
    than the error of the transforms.
    """
    numbers = len(state_of)
    wanted, taken = np.zeros((2, 2 * numbers))
    wanted[:numbers] = (state_of >= 0) & new[state_of]
    taken[step] = 1.0
    sums = np.fft.irfft(np.fft.rfft(wanted) * np.fft.rfft(taken).conj(), 2 * numbers)
    return np.where(origin < 0, 0, np.rint(sums[origin]).astype(np.int64))


def mixture_weights(
    named: Floats, open_to: Floats, times: Floats, prior: Floats, rounds: int, tolerance: float
) -> Floats:
    """Compute the same as the kernel of this name; singletons are summed in the same order."""
    whole = np.cumsum(prior)[-1]
    size = len(named) + whole
    learned, share = np.asarray(size * prior / whole), np.zeros(len(prior))
    given = np.ascontiguousarray(named.T)
    terms = np.empty((len(prior), len(named) + 1))
    terms[:, 0] = prior

    def take(part: int) -> None:
        terms[part, 1:] /= total
        learned[part] = np.cumsum(terms[part])[-1]

    for _ in range(rounds):
        change = np.abs(learned / size - share).max()
        share = learned / size
        reach = np.cumsum(share * open_to, axis=1)[:, -1:]
        asked = np.cumsum(
            np.vstack((np.full(len(prior), whole), times[:, None] * open_to / reach)), axis=0
        )[-1]
        np.multiply(given, share[:, None], out=terms[:, 1:])
        total = terms[0, 1:].copy()
        for part in range(1, len(prior)):
            total += terms[part, 1:]
        on_threads(take, range(len(prior)), available_cores())
        learned /= asked
        learned *= size / np.cumsum(learned)[-1]
        if change < tolerance:
            break
    return learned


def _group(start: Ints, what: Ints, running: Floats, group: Ints, span: int) -> Pools:
    """Return the pools of groups, one for each row."""
    owner = np.repeat(np.arange(len(start) - 1), np.diff(start))
    return Pools(what, running, owner * span + what, start[group], start[group + 1], group * span)


def _reach(start: Ints, step: Ints, action: Ints, origin: Ints, numbers: int) -> tuple[Ints, Ints]:
    """Return the range of steps that lead to a valid number; empty without an origin."""
    pool = _steps(start, step, np.zeros(0), action, start[action], start[action + 1], numbers)
    first = np.searchsorted(pool.key, pool.base - origin)
    last = np.searchsorted(pool.key, pool.base + numbers - origin)
    return np.where(origin < 0, pool.begin, first), np.where(origin < 0, pool.begin, last)


def _steps(
    start: Ints, step: Ints, running: Floats, action: Ints, begin: Ints, end: Ints, numbers: int
) -> Pools:
    owner = np.repeat(np.arange(len(start) - 1), np.diff(start))
    span = 2 * numbers + 1  # steps lie between -numbers and numbers
    return Pools(step, running, owner * span + step + numbers, begin, end, action * span + numbers)


def _leading(pool: Pools, origin: Ints, state_of: Ints) -> Pools:
    """Return pools of only the steps that lead to a state, with running totals from 0 in each."""
    at, row = pool.written_out(np.arange(len(origin)))
    kept = state_of[origin[row] + pool.what[at]] >= 0
    at, row = at[kept], row[kept]
    size = np.bincount(row, minlength=len(origin))
    # A pool has one more running total than members, so that each takes one extra place.
    begin = np.cumsum(size + 1) - size - 1
    place = begin[row] + np.arange(len(row)) - (np.cumsum(size) - size)[row]
    span = 2 * len(state_of) + 2
    what = np.zeros(len(row) + len(origin), dtype=np.int64)
    weight = np.zeros(len(what) + 1)
    key = np.repeat(np.arange(len(origin)) * span + span - 1, size + 1)
    what[place], weight[place + 1] = pool.what[at], pool.weigh(at)
    key[place] = row * span + pool.what[at] + len(state_of)
    running = np.cumsum(weight)
    running[:-1] -= np.repeat(running[begin], size + 1)
    base = np.arange(len(origin)) * span + len(state_of)
    return Pools(what, running, key, begin, begin + size, base)


def _blocks(sizes: Ints, *, whole: bool) -> list[tuple[int, int]]:
    """Cut rows into blocks whose pools do not have too many members in total."""
    if whole or len(sizes) == 0:
        return [(0, len(sizes))]
    block = np.cumsum(sizes) // MOST_EXPANDED
    cuts = np.flatnonzero(np.diff(block)) + 1
    edges = [0, *cuts.tolist(), len(sizes)]
    return list(pairwise(edges))


def _ranges(begin: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Return the numbers of all ranges one after another, and the range of each."""
    size = end - begin
    which = np.repeat(np.arange(len(size)), size)
    return np.arange(len(which)) + (begin - (np.cumsum(size) - size))[which], which
