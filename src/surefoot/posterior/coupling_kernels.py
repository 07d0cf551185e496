"""Kernels for coupling (`coupled.py`): the worth of drawn rows, and rows reassigned to models."""

import numpy as np
from numpy.typing import NDArray

from surefoot._compile import kernel
from surefoot.posterior.law_kernels import row_likelihood
from surefoot.posterior.learned_kernels import draw_masses, row_law, shown_places
from surefoot.posterior.philox_kernels import CONTROL, WORDS, Words, uniform
from surefoot.posterior.unseen_kernels import (
    candidate,
    candidate_of_rest,
    running_shares,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RUN = 8
"""Length of the runs that are sorted by insertion before they are merged."""


@kernel(lean=True)
def score_rows(draws: Floats, values: Floats, row_start: Ints, out: Floats) -> None:
    """Write the worth ``p.values`` of row ``r`` of draw ``i`` to ``out[i, r]``. O(n entries)."""
    for i in range(len(draws)):
        for r in range(len(row_start) - 1):
            total = 0.0
            for e in range(row_start[r], row_start[r + 1]):
                total += draws[i, e] * values[e]
            out[i, r] = total


@kernel(lean=True)
def deal_rows(draws: Floats, places: Ints, row_start: Ints, out: Floats) -> None:
    """Write row ``r`` of draw ``j`` into model ``places[j, r]``. O(n entries)."""
    for j in range(len(draws)):
        for r in range(len(row_start) - 1):
            given = places[j, r]
            for e in range(row_start[r], row_start[r + 1]):
                out[given, e] = draws[j, e]


@kernel(lean=True)
def landed(
    row: int, usual: Floats, part_start: Ints, part_entry: Ints, part_cumulative: Floats,
    numbers: Floats,
) -> int:  # fmt: skip
    """Return the entry to which an unseen successor leads, given its three uniform numbers."""
    found = candidate(row, usual, part_start, part_cumulative, numbers[0], numbers[1])
    if found < 0:
        found = candidate_of_rest(row, len(usual), part_start, part_cumulative, numbers[2])
    return int(part_entry[found])


@kernel(lean=True)
def row_parts(
    count: Floats, begin: int, end: int, row: int, action: int, distinct: int, log: Floats,
    scaled: Floats, laws: Floats, alpha: Floats, strength: Floats, sizes: Floats, size_law: Ints,
    alpha_law: Ints, open_row: bool, key0: np.uint64, key1: np.uint64, first: int, words: Words,
    control: Words, place: Ints, shape: Floats, d: Floats, c: Floats, filled: Ints,
    known: NDArray[np.bool_], picked: Floats, used: Ints, landing: Floats, mass: Floats,
) -> int:  # fmt: skip
    """Draw one row except for where its unseen successors lead; return how many were seen.

    Draw ``i`` has ``used[i]`` successors with probabilities ``mass[i]``: first those seen, in the
    order of ``place``, then unseen ones, each with three uniform numbers in ``landing[i]``.
    """
    shown, most = shown_places(count, begin, end, place)
    known[:] = False
    filled[:] = 0
    for i in range(len(size_law)):
        a, size = row_law(
            i, row, first, key0, key1, size_law[i, action], alpha_law[i, action], log, scaled,
            laws, sizes, distinct, known, picked, words, control,
        )  # fmt: skip
        used[i] = shown
        if open_row and size > distinct:
            used[i] += size - distinct
        for k in range(used[i] - shown):
            for number in range(3):
                landing[i, k, number] = uniform(words, control)
        if used[i] == 1:
            mass[i, 0] = 1.0
        else:
            draw_masses(
                count, place, shown, used[i], a, size_law[i, action], alpha, strength, most, filled,
                shape, d, c, words, control, i, mass,
            )  # fmt: skip
    return int(shown)


@kernel(lean=True)
def merge_sorted(key: Floats, order: Ints, begin: int, middle: int, end: int, out: Ints) -> None:
    """Merge two sorted runs of ``order``, ``begin:middle`` and ``middle:end``, into ``out``."""
    a, b = begin, middle
    for k in range(begin, end):
        if b >= end or (a < middle and key[order[a]] <= key[order[b]]):
            out[k] = order[a]
            a += 1
        else:
            out[k] = order[b]
            b += 1


@kernel(lean=True)
def order_in_classes(
    score: Floats, classes: Floats, action: int, key: Floats, order: Ints, room: Ints
) -> None:
    """Write the order of the draws by ``classes[:, action]``, then by score.

    Classes are whole numbers and scores lie in [0, 1). Runs are sorted by insertion, then merged:
    stable, O(n log n).
    """
    size = len(score)
    for i in range(size):
        key[i] = classes[i, action] + score[i]
    for begin in range(0, size, RUN):
        for i in range(begin, min(begin + RUN, size)):
            k = i
            while k > begin and key[order[k - 1]] > key[i]:
                order[k] = order[k - 1]
                k -= 1
            order[k] = i
    width = RUN
    while width < size:
        for begin in range(0, size, 2 * width):
            middle, end = min(begin + width, size), min(begin + 2 * width, size)
            merge_sorted(key, order, begin, middle, end, room)
        for k in range(size):
            order[k] = room[k]
        width *= 2


@kernel(lean=True)
def scale_down(score: Floats) -> None:
    """Rescale scores to [0, 1/2], keeping their order."""
    low, high = np.inf, -np.inf
    for i in range(len(score)):
        low, high = min(low, score[i]), max(high, score[i])
    width = 2.0 * (high - low) if high > low else 1.0
    for i in range(len(score)):
        score[i] = (score[i] - low) / width


@kernel(lean=True)
def deal_row(
    row: int, begin: int, end: int, column: int, shown: int, used: int, place: Ints, mass: Floats,
    numbers: Floats, usual: Floats, room: float, part_start: Ints, part_entry: Ints,
    part_cumulative: Floats, rare: float, landing: Floats, out: Floats,
) -> None:  # fmt: skip
    """Write one drawn row into a model whose running shares are ``usual`` and sum to ``room``.

    A share ``rare`` of the mass is spread as in ``landing``. If ``room`` is 0, unseen successors
    are dropped and the seen ones rescaled; if none was seen, the row is ``landing``.
    """
    scale, seen = 1.0, 1.0
    if used > shown and not room > 0.0:
        seen = 0.0
        for k in range(shown):
            seen += mass[k]
        used = shown
    if seen > 0.0:
        scale = (1.0 - rare) / seen
    else:
        rare = 1.0
    for e in range(end - begin):
        out[column + e] = rare * landing[begin + e]
    for k in range(used):
        entry = place[k]
        if k >= shown:
            entry = landed(row, usual, part_start, part_entry, part_cumulative, numbers[k - shown])
        out[column + entry - begin] += scale * mass[k]


@kernel(lean=True)
def row_worths(
    row: int, begin: int, column: int, shown: int, used: Ints, place: Ints, mass: Floats,
    bits: Floats, usual: Floats, part_start: Ints, part_entry: Ints, part_cumulative: Floats,
    values: Floats, out: Floats,
) -> None:  # fmt: skip
    """Write the worth of each draw of a row, with running shares ``usual``."""
    for i in range(len(out)):
        total = 0.0
        for k in range(used[i]):
            entry = place[k]
            if k >= shown:
                entry = landed(
                    row, usual, part_start, part_entry, part_cumulative, bits[i, k - shown]
                )
            total += mass[i, k] * values[column + entry - begin]
        out[i] = total


@kernel(lean=True)
def deal_draws(
    row: int, begin: int, end: int, column: int, action: int, shown: int, used: Ints, place: Ints,
    mass: Floats, bits: Floats, by_worth: Ints, by_number: Ints, shares: Floats, usual: Floats,
    part_start: Ints, part_entry: Ints, part_cumulative: Floats, rare: Floats, open_to: float,
    landing: Floats, out: Floats,
) -> None:  # fmt: skip
    """Write the draw of a row that is k-th by worth into the model that is k-th by number."""
    new = 0.0
    for e in range(begin, end):
        new += landing[e]
    for k in range(len(by_worth)):
        i, model = by_worth[k], by_number[k]
        room = running_shares(row, shares[model], part_start, usual)
        share = 1.0 - (1.0 - rare[model, action]) ** open_to if new > 0.0 else 0.0
        deal_row(
            row, begin, end, column, shown, used[i], place, mass[i], bits[i], usual, room,
            part_start, part_entry, part_cumulative, share, landing, out[model],
        )  # fmt: skip


@kernel()
def couple_rows(
    count: Floats, row_start: Ints, rows: Ints, columns: Ints, action: Ints, fine: Ints,
    group: Ints, distinct: Ints, shape: Floats, marginal: Floats, laws: Floats, alpha: Floats,
    strength: Floats, sizes: Floats, size_law: Ints, alpha_law: Ints, shares: Floats,
    part_start: Ints, part_entry: Ints, part_cumulative: Floats, key0: np.uint64, key1: np.uint64,
    first: int,
    states: Ints, values: Floats, classes: Floats, numbers: Floats, usual_shares: Floats,
    rare: Floats, open_to: Floats, landing: Floats, out: Floats,
) -> None:  # fmt: skip
    """Write draws of several rows, coupled within each state; see `learned_rows`.

    Every row is drawn once per line of the drawn laws. Among the models with the same ``classes``
    of the row's action, the draw with the k-th smallest worth (with the usual shares) goes to the
    model with the k-th smallest number of the row's state. O(K + log n) per row and draw.
    """
    words = np.empty(WORDS, np.uint64)
    control = np.empty(CONTROL, np.uint64)
    num_draws, num_sizes, num_alpha = len(size_law), sizes.shape[1], len(alpha)
    longest = 0
    for row in rows:
        longest = max(longest, row_start[row + 1] - row_start[row])
    width = longest + sizes.shape[3]
    shapes, d, c = np.empty((3, num_alpha, width))
    place, filled = np.empty(width, np.int64), np.empty(num_alpha, np.int64)
    log, scaled = np.empty((2, num_sizes, num_alpha))
    known = np.empty((num_sizes, len(laws)), np.bool_)
    picked = np.empty((num_sizes, len(laws), num_alpha))
    used, mass = np.empty(num_draws, np.int64), np.empty((num_draws, width))
    bits, usual = np.empty((num_draws, sizes.shape[3], 3)), np.empty(shares.shape[1])
    worth, number, key = np.empty((3, num_draws))
    by_worth, by_number, merged = np.empty((3, num_draws), np.int64)
    for j in range(len(rows)):
        row, column = rows[j], columns[j]
        begin, end, act = row_start[row], row_start[row + 1], action[row]
        if end - begin == 1:
            out[:, column] = 1.0
            continue
        for s in range(num_sizes):
            row_likelihood(marginal[fine[row], s], shape[row], log[s], scaled[s])
        room = running_shares(row, usual_shares, part_start, usual)
        shown = row_parts(
            count, begin, end, row, act, distinct[row], log, scaled, laws, alpha, strength,
            sizes[group[row]], size_law, alpha_law, room > 0.0, key0, key1, first, words, control,
            place, shapes, d, c, filled, known, picked, used, bits, mass,
        )  # fmt: skip
        for i in range(num_draws):
            number[i] = numbers[i, states[j]]
        row_worths(
            row, begin, column, shown, used, place, mass, bits, usual, part_start, part_entry,
            part_cumulative, values, worth,
        )  # fmt: skip
        scale_down(worth)
        order_in_classes(worth, classes, act, key, by_worth, merged)
        order_in_classes(number, classes, act, key, by_number, merged)
        deal_draws(
            row, begin, end, column, act, shown, used, place, mass, bits, by_worth, by_number,
            shares, usual, part_start, part_entry, part_cumulative, rare, open_to[row], landing,
            out,
        )  # fmt: skip
