"""Which states the unseen successors of a row may be, by patterns in the rest of the log.

An unseen successor of the row (s, a) is assumed to come from one of five parts:

* *same state*: states that other actions reached from s;
* *displacement*: for numbered states, s plus a step that three or more other rows of a have shown;
* *entered*: states that three or more other rows of a have shown;
* *entered by others*: states that three or more other rows have shown, few or none of them of a;
* the *rest*: a state that no pattern points to. Nothing is known about it, so it is charged as the
  worst state of the log.

The shares of the parts are learned by leaving out the successors that a row showed just once, one
at a time, and computing which part would have named them.

Within a part, a candidate is weighted by how much of it rows like those that have shown it would
still hide after as many tries as this row has had: the sum of ``p (1 - p) ** tries`` over these
rows, with ``p`` their observed share of the candidate. After seventy tries, a row may still hide
the accident that some rows met once, but hardly the next state that others reach every other time.
"""

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from surefoot._compile import COMPILES
from surefoot._cores import available_cores, on_threads
from surefoot.data import destination_arrays, destination_kernels
from surefoot.data.destination_pools import FEWEST_ROWS, others_pool, pool_of, ranked

kernels: Any = destination_kernels if COMPILES else destination_arrays

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PARTS = ("same state", "displacement", "entered", "entered by others")
PRIOR_SHARES = (0.5, 0.5, 0.25, 0.25, 0.25)
"""Prior Dirichlet parameters of the four parts and the rest."""
ROUNDS = 200
CANDIDATES, MOST_EACH = 20_000, 64
"""About how many candidates a part lists over all rows, and the most in one row. A row with many
successors may list a third as many as it has shown, so that no model more than doubles."""
HIDDEN_EACH = 16
"""Candidates per part for a row whose tries all reached different successors. Such a row has shown
little, and its value is mostly that of its candidates: with only one or two of them it would look
good or bad by chance, and a search would find the good ones."""
MUCH_HIDDEN = 4
"""Rows of large models list states that only other actions entered if they need this many
candidates: a quarter of their tries were seen once."""
BY_ROWS = 0.05
"""The share of a candidate's weight that depends only on how many rows have shown it."""
LEAST_HIDDEN = 1e-100
"""Sums of hidden probabilities below this are too small to compare candidates."""
MOST_NUMBERS_EACH = 1000
"""Numbers in labels that lie further apart than this on average are names, not an order."""

_NUMBERED = re.compile(r"(.*?)(-?\d{1,9})").fullmatch


@dataclass(frozen=True, kw_only=True, eq=False)
class Destinations:
    """Candidate successors of every row, part by part.

    Attributes
    ----------
    start
        ``(4 R + 1,)``: the candidates of part ``p`` of row ``r`` begin at ``start[4 r + p]``.
    state
        The candidates: never one that the row has shown.
    weight
        The probability of each within its part. If a part sums to less than 1, the remainder goes
        to the rest.
    shares
        ``(5,)``: learned Dirichlet parameters of the parts and the rest.
    """

    start: Ints
    state: Ints
    weight: Floats
    shares: Floats


def state_numbers(labels: tuple[Any, ...] | None, num_states: int) -> Floats | None:
    """Return the number in every state's label, NaN where it has none; None without an order.

    Examples
    --------
    >>> state_numbers(("wear 0", "wear 1", "wear 2", "broken"), 4).tolist()
    [0.0, 1.0, 2.0, nan]
    >>> state_numbers(("cold", "warm"), 2) is None
    True
    """
    if labels is None:
        return np.arange(num_states, dtype=np.float64)
    found = [_NUMBERED(str(label)) for label in labels]
    heads = Counter(match[1] for match in found if match).most_common(1)
    if not heads or heads[0][1] < max(3, len(labels) / 2):
        return None
    common = heads[0][0]
    return np.array(
        [float(match[2]) if match and match[1] == common else np.nan for match in found]
    )


_known: WeakKeyDictionary[Any, Destinations] = WeakKeyDictionary()


def learn_destinations(counts: Any) -> Destinations:
    """List the candidates of every row of the counts, and learn the shares of the parts.

    A row's candidates depend on the log only, not on rows that were added: they are the same before
    and after a support is declared. They are cached as long as the counts live, because declaring
    the support needs them first.
    """
    if counts not in _known:
        _known[counts] = _learn(counts)
    return _known[counts]


def carried_over(counts: Any, placed: Any) -> Destinations | None:
    """Return the candidates of ``counts`` for the rows of ``placed``, their declared counts.

    States without rows have loops there, which need no candidates. None if other rows were added or
    some are missing: then the candidates must be learned again.
    """
    found, parts = learn_destinations(counts), len(PARTS)
    key = counts.row_state.astype(np.int64) * counts.num_actions + counts.row_action
    keys = placed.row_state.astype(np.int64) * placed.num_actions + placed.row_action
    if placed.num_actions != counts.num_actions or len(key) == 0:
        return None
    at = np.minimum(np.searchsorted(key, keys), len(key) - 1)
    known = key[at] == keys
    if np.count_nonzero(known) < len(key) or np.any(np.diff(placed.row_start)[~known] > 1):
        return None
    size = np.zeros((len(keys), parts), dtype=np.int64)
    size[known] = np.diff(found.start).reshape(-1, parts)
    return replace(found, start=np.concatenate(([0], np.cumsum(size.ravel()))))


def _learn(counts: Any) -> Destinations:
    shown = counts.count > 0
    if counts.unseen is not None:
        shown &= counts.successor != counts.unseen
    row_start = np.concatenate(([0], np.cumsum(shown)))[counts.row_start]
    seen, visits = np.diff(row_start), counts.visits
    row, successor = counts.entry_row[shown], counts.successor[shown].astype(np.int64)
    state, action = counts.row_state[row], counts.row_action[row]
    once = (counts.count[shown] == 1) & (visits[row] > 1)
    number, state_of = _numbering(counts)
    known = (number[state] >= 0) & (number[successor] >= 0)
    steps = (number[successor] - number[state])[known]
    actions, states = counts.num_actions, counts.num_states
    kinds = [
        lambda: pool_of(action[known], steps, actions, FEWEST_ROWS),
        lambda: pool_of(state, successor, states, 1),
        lambda: pool_of(action, successor, actions, FEWEST_ROWS),
        lambda: others_pool(action, successor, actions, states),
    ]
    found: list[Any] = [None] * len(kinds)

    def gather(part: int) -> None:
        found[part] = ranked(kinds[part]())

    on_threads(gather, range(len(kinds)), available_cores())
    pools = [array for pool in found for array in pool]
    anywhere = np.flatnonzero(np.bincount(successor, minlength=states) >= FEWEST_ROWS)
    most = _most_candidates(counts, row, shown, seen)
    start = np.empty(len(PARTS) * counts.num_rows + 1, dtype=np.int64)
    room = int(most.sum())
    listed_states, weight = np.empty(room, dtype=np.int64), np.empty(room)
    named = np.empty((np.count_nonzero(once), len(PARTS) + 1))
    kernels.row_candidates(
        row_start, counts.row_state.astype(np.int64), counts.row_action.astype(np.int64),
        successor, once, number, state_of, bool((state_of >= 0).all()), *pools, anywhere, most,
        np.array([1, FEWEST_ROWS, FEWEST_ROWS, FEWEST_ROWS]),
        states - (counts.unseen is not None), start, listed_states, weight, named,
    )  # fmt: skip
    listed = Destinations(
        start=start,
        state=listed_states[: start[-1]].copy(),
        weight=weight[: start[-1]].copy(),
        shares=kernels.mixture_weights(named, np.array(PRIOR_SHARES), ROUNDS, 1e-9),
    )
    return replace(listed, weight=_weighed(listed, counts, shown, number))


def _weighed(listed: Destinations, counts: Any, shown: NDArray[np.bool_], number: Ints) -> Floats:
    """Return candidate weights, by how much of a candidate rows that showed it would still hide."""
    row, successor = counts.entry_row[shown], counts.successor[shown].astype(np.int64)
    state, action = (ids[row].astype(np.int64) for ids in (counts.row_state, counts.row_action))
    share = counts.count[shown] / (counts.visits[row] + 1.0)
    known = (number[state] >= 0) & (number[successor] >= 0)
    lists = np.repeat(np.arange(len(listed.start) - 1), np.diff(listed.start))
    asking, part = np.divmod(lists, len(PARTS))
    of_state, of_action = (
        ids[asking].astype(np.int64) for ids in (counts.row_state, counts.row_action)
    )
    steps, wanted = number[successor] - number[state], number[listed.state] - number[of_state]
    looked_up = (  # group of rows, what they show, their shares; group and candidate asked for
        (state, successor, share, of_state, listed.state),
        (action[known], steps[known], share[known], of_action, wanted),
        (action, successor, share, of_action, listed.state),
        (np.zeros_like(action), successor, share, np.zeros_like(of_action), listed.state),
    )
    hidden = np.ones(len(lists))
    for k, (group, what, shares, asked, candidate) in enumerate(looked_up):
        mine = part == k
        tries = counts.visits[asking[mine]]
        hidden[mine] = _hidden(group, what, shares, asked[mine], candidate[mine], tries)
    return _reweighed(listed, hidden)


def on_entries(found: Destinations, counts: Any, open_rows: NDArray[np.bool_]) -> Destinations:
    """Return the candidates that declared counts list, with the rest as the last part.

    In an open row the rest is the unseen state; in a row whose successors are all declared it is
    every one of them that was not seen, with equal weights.
    """
    parts, states = len(PARTS), counts.num_states
    owner = np.repeat(np.arange(len(found.start) - 1), np.diff(found.start))
    keys = counts.entry_row.astype(np.int64) * states + counts.successor
    wanted = owner // parts * states + found.state
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)  # entries are in key order
    listed = keys[at] == wanted
    new = np.flatnonzero(counts.count == 0)
    is_rest = np.ones(len(new), dtype=np.bool_)
    if counts.unseen is not None:
        is_rest = (counts.successor[new] == counts.unseen) | ~open_rows[counts.entry_row[new]]
    row = counts.entry_row[new[is_rest]].astype(np.int64)
    size = np.bincount(row, minlength=counts.num_rows)
    slot = np.concatenate(
        ((owner // parts * (parts + 1) + owner % parts)[listed], row * (parts + 1) + parts)
    )
    # In open rows all candidates of the whole log are entries; a part of the log may list others.
    part = np.bincount(owner[listed], found.weight[listed], len(found.start) - 1)
    whole = np.where(open_rows[owner // parts] & (part[owner] > 0), part[owner], 1.0)
    weight = np.concatenate(((found.weight / whole)[listed], 1.0 / size[row]))
    state = np.concatenate((found.state[listed], counts.successor[new[is_rest]]))
    order = np.argsort(slot, kind="stable")
    start = np.searchsorted(slot[order], np.arange(counts.num_rows * (parts + 1) + 1))
    return Destinations(
        start=start, state=state[order].astype(np.int64), weight=weight[order],
        shares=found.shares,
    )  # fmt: skip


def _numbering(counts: Any) -> tuple[Ints, Ints]:
    """Return the number of every state, from 0 up and -1 for none, and the state of each number.

    Where two labels have one number ("s1" and "s01"), it names the first of them.
    """
    found = state_numbers(counts.state_labels, counts.num_states)
    number = np.full(counts.num_states, -1, dtype=np.int64)
    if found is None:
        return number, np.full(1, -1)
    if counts.unseen is not None:
        found[counts.unseen] = np.nan
    numbered = np.flatnonzero(~np.isnan(found))
    if len(numbered) == 0:
        return number, np.full(1, -1)
    values, first = np.unique(found[numbered].astype(np.int64), return_index=True)
    span = int(values[-1] - values[0]) + 1
    if span > MOST_NUMBERS_EACH * len(values):
        return number, np.full(1, -1)
    number[numbered[first]] = values - values[0]
    state_of = np.full(span, -1)
    state_of[values - values[0]] = numbered[first]
    return number, state_of


def shown_patterns(counts: Any) -> tuple[Ints, Ints]:
    """Return two ``(E,)`` arrays that number what entries show: successor, and step (-1: none)."""
    number, _ = _numbering(counts)
    state, successor = counts.entry_state, counts.successor.astype(np.int64)
    known = (number[state] >= 0) & (number[successor] >= 0)
    span = int(number.max(initial=0)) + 1
    return successor, np.where(known, number[successor] - number[state] + span, -1)


def _hidden(
    group: Ints, what: Ints, share: Floats, asked: Ints, candidate: Ints, tries: Floats
) -> Floats:
    """Return the mean of ``p (1 - p) ** tries`` over the rows that have shown a candidate.

    ``group, what, share``: what rows of a group have shown, and their share ``p`` of it. ``asked,
    candidate, tries``: group, candidate and tries of each mean. Tries are rounded down to powers of
    two.
    """
    if len(candidate) == 0:  # otherwise something was shown: candidates come from it
        return np.zeros(0)
    low = min(int(what.min()), int(candidate.min()))
    span = max(int(what.max()), int(candidate.max())) - low + 1
    keys, key = np.unique(group.astype(np.int64) * span + (what - low), return_inverse=True)
    at = np.searchsorted(keys, asked * span + (candidate - low))
    rows, found = np.bincount(key), np.zeros(len(candidate))
    level = np.log2(np.maximum(tries, 1.0)).astype(np.int64)
    for one in np.unique(level):
        here = level == one
        mass = np.bincount(key, share * (1.0 - share) ** (2.0**one))
        found[here] = (mass / rows)[at[here]]
    return found


def _reweighed(found: Destinations, factor: Floats) -> Floats:
    """Return the weights of candidates times a factor; each list keeps its sum.

    A small share ``BY_ROWS`` of each weight stays as it was: shares of few tries do not prove that
    a candidate is impossible.
    """
    lists = np.repeat(np.arange(len(found.start) - 1), np.diff(found.start))
    made = found.weight * factor
    before = np.bincount(lists, found.weight, len(found.start) - 1)
    after = np.bincount(lists, made, len(found.start) - 1)
    told = after > LEAST_HIDDEN  # with very many tries, the factors underflow
    ratio = np.divide(before, after, out=np.zeros(len(before)), where=told)
    made = np.where(told[lists], made * ratio[lists], found.weight)
    return (1.0 - BY_ROWS) * made + BY_ROWS * found.weight


def _most_candidates(counts: Any, row: Ints, shown: NDArray[np.bool_], seen: Ints) -> Ints:
    """Return ``(parts, R)``: how many candidates of each part a row lists at most.

    In large models, a row with four or more successors lists no more candidates than it has shown
    successors, the rest included, unless it hides much. States that only other actions entered are
    listed there by rows that hide much: elsewhere they would make the model larger and change
    little.
    """
    usual = min(MOST_EACH, CANDIDATES // max(1, int(np.count_nonzero(counts.visits))))
    hidden = _hidden_candidates(counts, row, shown)
    large = usual <= 1
    most = np.maximum(np.maximum(max(1, usual), (seen - large) // 3), hidden)
    others = np.where(hidden >= MUCH_HIDDEN, hidden, 0) if large else most
    return np.stack([most] * (len(PARTS) - 1) + [others])


def _hidden_candidates(counts: Any, row: Ints, shown: NDArray[np.bool_]) -> Ints:
    """Return how many candidates rows need: in proportion to their share of tries seen once."""
    once = np.bincount(row, counts.count[shown] == 1, counts.num_rows)
    hidden = np.divide(once, counts.visits, out=np.ones(len(once)), where=counts.visits > 0)
    most: Ints = np.floor(min(HIDDEN_EACH, MOST_EACH) * hidden).astype(np.int64)
    return most
